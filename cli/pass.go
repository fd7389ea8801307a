package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"holdfast/contract"
)

const (
	passPoll     = time.Second      // until a pass that runs is asked for again; the door itself waits
	passPatience = 60               // times in a row that the door may fail to answer meanwhile
	passWord     = 10 * time.Second // until it is said what is waited for, and then each
	passWords    = time.Minute
)

// passWait is how long a report is waited for, and who is told after which time what for;
// nil for nobody.
type passWait struct {
	most, word time.Duration
	say        func(word string)
}

// reconcile has a SKU looked through and waits for the report.
func (d *door) reconcile(ctx context.Context, sku string, dryRun, agree bool, wait passWait) (p passAnswer, err error) {
	path := "/v1/stock/" + sku + "/reconcile"
	began, word := time.Now(), wait.word
	got, err := d.post(ctx, path, map[string]bool{"dry_run": dryRun, "agree": agree})
	for patience := passPatience; err == nil; {
		if err = json.Unmarshal(got.body, &p); err != nil || p.RunID == "" {
			return p, fmt.Errorf("the door's answer is no report: %.200q", got.body)
		}
		if p.body = got.body; got.status != http.StatusAccepted {
			return p, nil
		}
		waited := time.Since(began)
		if waited >= wait.most {
			return p, fmt.Errorf("the pass has not ended in %s; it goes on, and the report is its workflow's, %s. %s", wait.most, contract.ReconcileWorkflowID(sku), d.passWaitsFor(ctx))
		}
		if waited >= word && wait.say != nil {
			wait.say(fmt.Sprintf("waiting for the pass over %s for %s. %s", sku, waited.Round(time.Second), d.passWaitsFor(ctx)))
			word = waited + passWords
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(min(passPoll, wait.most-waited)):
		}
		var later passing
		next, failed := d.get(ctx, path+"?run_id="+url.QueryEscape(p.RunID))
		switch {
		case failed == nil:
			got, patience = next, passPatience
		case errors.As(failed, &later) && patience > 0: // the pass goes on without the door
			patience--
		default:
			err = failed
		}
	}
	return p, err
}

// passWaitsFor says what keeps a pass, as far as the door knows.
func (d *door) passWaitsFor(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	v, err := readAttention(ctx, d)
	if err != nil {
		return "The door does not say whether a worker runs, which does it: " + oneLine(err)
	}
	for _, l := range v.Data {
		switch l.Kind {
		case contract.LookTemporalSilent, contract.LookRedisSilent, contract.LookNoWorker, contract.LookWorkWaits:
			return "It waits, for " + l.Says + ": " + l.Do
		}
	}
	return "A worker does it, and goes on also without this command; when none has run for two minutes, holdfast status says so"
}

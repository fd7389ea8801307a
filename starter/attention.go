package starter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast/contract"
)

const (
	attentionTimeout = 3 * time.Second // of each part, side by side
	workWaits        = time.Minute     // from when on work that nobody takes is told
	passOverdue      = 5 * time.Minute // there is a pass each minute
	rebuiltFor       = time.Hour       // how long a rebuild is told
	otherAmountsMost = 100             // holds
)

// attentionView is what a person should look at and no other list shows. Redis and
// Temporal are open or unavailable; what a silent one would have told is not in Data.
type attentionView struct {
	Data     []lookView `json:"data"`
	Redis    string     `json:"redis"`
	Temporal string     `json:"temporal"`
	Now      string     `json:"now"`
}

// lookView is one thing to look at. Grave says that units or money are at stake, or that
// it cannot be told. Says and Do are sentences for a person.
type lookView struct {
	Kind  string `json:"kind"`
	Grave bool   `json:"grave"`
	SKU   string `json:"sku,omitempty"`
	ID    string `json:"id,omitempty"` // of a hold
	Says  string `json:"says"`
	Do    string `json:"do"`
}

// getAttention asks Redis and Temporal side by side: one silence must not use up the
// other's time.
func (d *Door) getAttention(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), attentionTimeout)
	defer cancel()
	v := attentionView{Data: []lookView{}, Redis: gateOpen, Temporal: gateOpen}
	parts := []struct {
		state *string
		kind  string
		ask   func(ctx context.Context) ([]lookView, error)
		says  string
		do    string
		looks []lookView
	}{
		{
			state: &v.Temporal, kind: contract.LookTemporalSilent, ask: d.lookAtWorkers, says: "Temporal does not answer the door: refunds, events, workers and passes are not known, and no hold is made",
			do: "see HoldfastTemporalFails in docs/runbook.md",
		},
		{state: &v.Temporal, kind: contract.LookTemporalSilent, ask: d.lookAtPasses},
		{
			state: &v.Redis, kind: contract.LookRedisSilent, ask: d.lookAtMoney, says: "Redis does not answer the door: the SKUs are not known, and nothing is sold",
			do: "see HoldfastGateUnavailable in docs/runbook.md",
		},
	}
	var wg sync.WaitGroup
	failed := make([]error, len(parts))
	for i := range parts {
		wg.Go(func() { parts[i].looks, failed[i] = parts[i].ask(ctx) })
	}
	wg.Wait()
	for i, part := range parts {
		if failed[i] != nil {
			d.log.Warn("what needs attention is not known", "kind", part.kind, "error", failed[i])
			*part.state = gateUnavailable
		}
		v.Data = append(v.Data, part.looks...)
	}
	for _, part := range parts {
		if *part.state == gateUnavailable && part.says != "" {
			v.Data = append([]lookView{{Kind: part.kind, Grave: true, Says: part.says, Do: part.do}}, v.Data...)
		}
	}
	v.Now = stamp(time.Now())
	return writeJSON(w, http.StatusOK, v)
}

// whatStops is what nobody does while no worker takes a queue's tasks.
var whatStops = map[string]string{
	contract.TaskQueue:       "holds do not end, stock events are not applied and nobody is offered anything",
	contract.SMSTaskQueue:    "no text goes out",
	contract.EventsTaskQueue: "the shop is told of nothing",
}

// lookAtWorkers says whether the workers take what Temporal has for them. Texts may wait
// for their turn for long, as many as there are and as fast as they may go.
func (d *Door) lookAtWorkers(ctx context.Context) (looks []lookView, err error) {
	queues, err := d.directory.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var silent []string
	for _, q := range queues {
		switch tasks := q.Kind + " tasks of queue " + q.Name; {
		case !q.Polled:
			silent = append(silent, tasks)
			looks = append(looks, noWorker("no worker asks for the "+tasks+": "+whatStops[q.Name]))
		case q.Oldest >= workWaits && q.Name != contract.SMSTaskQueue:
			looks = append(looks, lookView{
				Kind: contract.LookWorkWaits, Grave: q.Name == contract.TaskQueue,
				Says: fmt.Sprintf("%d %s wait for a worker, the first for %s: until it is their turn %s", q.Waiting, tasks, q.Oldest.Round(time.Second), whatStops[q.Name]),
				Do:   "see whether a worker stands still or is full: HoldfastWorkerFull in docs/runbook.md",
			})
		}
	}
	if len(silent) == len(queues) && len(queues) > 0 {
		return []lookView{noWorker("no worker asks for work: holds do not end, stock events are not applied, no text goes out and the shop is told of nothing")}, nil
	}
	return looks, nil
}

func noWorker(says string) lookView {
	return lookView{Kind: contract.LookNoWorker, Grave: true, Says: says, Do: "start a worker, or see why it stands still: HoldfastDown in docs/runbook.md"}
}

// lookAtMoney lists the live holds that were paid another amount than was announced.
// Only what was told through a door is known here; it also shows that Redis answers.
func (d *Door) lookAtMoney(ctx context.Context) (looks []lookView, err error) {
	ids, err := d.gate.OtherAmounts(ctx, otherAmountsMost)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		sku, err := d.skus.byHold(ctx, id)
		if err != nil {
			continue // its SKU is being read or checked, which is told elsewhere
		}
		out, known, err := d.gate.ReadHold(ctx, sku, id)
		switch {
		case err != nil:
		case !known || out.Hold.State.Ended():
			if err := d.gate.ForgetOtherAmount(ctx, id); err != nil {
				return nil, err
			}
		default:
			looks = append(looks, lookView{
				Kind: contract.LookOtherAmount, SKU: sku, ID: id,
				Says: "was paid another amount than its checkout announced; the money goes back when the hold ends, at " + stamp(out.Hold.Deadline) + " or a little later",
				Do:   "confirm it with the right amount, or release the hold; its workflow has the payment",
			})
		}
	}
	return looks, nil
}

// tripwires begin an alarm of a pass that the tripwire of the SKU tells as well. That the
// lines of a ledger do not add up may be known to the pass alone.
var tripwires = []string{contract.WireOversold + ":", contract.WireShortfall + ":", contract.WireNegative + ":"}

func toldByTripwire(alarm string) bool {
	for _, wire := range tripwires {
		if strings.HasPrefix(alarm, wire) {
			return true
		}
	}
	return false
}

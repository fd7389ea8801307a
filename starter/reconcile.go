package starter

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
)

const (
	passTimeout = 8 * time.Second // for a report, less than the command waits
	passPoll    = 250 * time.Millisecond
)

// passView is a pass over a SKU. Without Done it runs and the rest is not known.
type passView struct {
	RunID       string   `json:"run_id"`
	Done        bool     `json:"done"`
	SKU         string   `json:"sku"`
	DryRun      bool     `json:"dry_run"`
	Closed      bool     `json:"closed"`
	Opened      bool     `json:"opened"`
	Found       int      `json:"found"`
	Repaired    int      `json:"repaired"`
	Differences []string `json:"differences"`
	Alarms      []string `json:"alarms"`
	Owners      int      `json:"owners"`
	Missing     int      `json:"missing"`
	Braked      bool     `json:"braked"`
	DriftUnits  int64    `json:"drift_units"`
	CheckedAt   string   `json:"checked_at,omitempty"`
}

// postReconcile has a SKU looked through, and waits for the report for a while.
func (d *Door) postReconcile(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, true)
	if err != nil {
		return err
	}
	dryRun, agree := f.boolean("dry_run"), f.boolean("agree")
	if err := f.done(); err != nil {
		return err
	}
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), passTimeout)
	defer cancel()
	in := contract.ReconcileInput{SKU: sku, ReopenSeconds: int64(d.reopenWait() / time.Second), Pass: true, DryRun: dryRun, Agree: agree}
	for {
		run, err := d.launcher.NewPass(ctx, in)
		if err == nil {
			return d.answerPass(ctx, w, sku, run, true)
		}
		if !errors.Is(err, launch.ErrRuns) {
			return err
		}
		// The one that runs may have been asked for something else.
		if pause(ctx, passPoll) != nil {
			return tryLater(retryClosed, "another pass over SKU %s runs; ask again when it has ended", sku)
		}
	}
}

var runID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// getReconcile answers the report of a pass, by run_id or the last one.
func (d *Door) getReconcile(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	run := r.URL.Query().Get("run_id")
	if run != "" && !runID.MatchString(run) {
		return badQuery("run_id", "must be that of an answer of POST to this path")
	}
	ctx, cancel := context.WithTimeout(r.Context(), passTimeout)
	defer cancel()
	return d.answerPass(ctx, w, sku, run, false)
}

// answerPass answers the report of a run. One that was just started runs, whatever
// keeps the door from reading of it.
func (d *Door) answerPass(ctx context.Context, w http.ResponseWriter, sku, run string, started bool) error {
	view := passView{RunID: run, SKU: sku, Differences: []string{}, Alarms: []string{}}
	var report contract.ReconcileReport
	err := d.launcher.Result(ctx, contract.ReconcileWorkflowID(sku), run, &report)
	var failed *temporal.WorkflowExecutionError
	switch {
	case errors.Is(err, launch.ErrNoOwner) && run != "" && !started:
		return badQuery("run_id", "names no pass over SKU "+sku+" that Temporal still knows")
	case errors.Is(err, launch.ErrNoOwner):
		return tryLater(retryClosed, "no pass over SKU %s has begun yet; there is one each minute", sku)
	case err != nil && (started && !errors.As(err, &failed) || waitedFor(ctx, err)):
		return writeJSON(w, http.StatusAccepted, view)
	case err != nil:
		return err
	}
	report.SKU = sku
	return writeJSON(w, http.StatusOK, viewPass(run, report))
}

func viewPass(run string, report contract.ReconcileReport) passView {
	return passView{
		RunID: run, Done: true, SKU: report.SKU, DryRun: report.DryRun, Closed: report.Closed, Opened: report.Opened,
		Found: report.Found, Repaired: report.Repaired, Owners: report.Owners, Missing: report.Missing,
		Braked: report.Braked, DriftUnits: report.DriftUnits, CheckedAt: stampIf(report.Checked),
		Differences: append([]string{}, report.Differences...), Alarms: append([]string{}, report.Alarms...),
	}
}

// waitedFor says that the wait was over before the pass was: by our clock, or by
// Temporal's client or server, which may see the end first.
func waitedFor(ctx context.Context, err error) bool {
	var late *serviceerror.DeadlineExceeded
	var left *serviceerror.Canceled
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) || errors.As(err, &left)
}

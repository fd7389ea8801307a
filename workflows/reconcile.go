package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

var (
	reconcileActivities *activities.Reconciles
	passActivities      *activities.Passes
)

// Reconcile looks after one SKU, one run at a time. A pass looks through a SKU that
// is open and mends what it finds. One whose gate is closed is checked against its
// book and its open workflows, after a pause in which every lease of before has
// ended. The check opens the gate when nothing was lost; otherwise it is rebuilt. What
// cannot be rebuilt stays closed, and whoever meets it next starts the check again.
func Reconcile(ctx workflow.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	r := &reconcile{ctx: ctx, in: in, report: contract.ReconcileReport{SKU: in.SKU}}
	err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.ReconcileReport, error) { return r.report, nil })
	if err != nil {
		return r.report, err
	}
	if in.Pass {
		if err := r.lookThrough(); err != nil || !r.report.Closed || in.DryRun {
			return r.report, err
		}
	}
	return r.report, r.check()
}

type reconcile struct {
	ctx    workflow.Context
	in     contract.ReconcileInput
	report contract.ReconcileReport
}

func (r *reconcile) details(state, next string) {
	details(r.ctx, "State", state, "Lines", verbatim(r.in.SKU), "Next", next)
}

// lookThrough is the pass. It is tried a few times: the next one comes in a minute.
func (r *reconcile) lookThrough() error {
	r.details("looking", "the end of the pass")
	act := workflow.WithActivityOptions(r.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, // of some four hundred thousand records without an owner; the next try goes on
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second, MaximumAttempts: 5},
		Summary:             "look for what gate and workflows differ in, and mend it",
	})
	if err := workflow.ExecuteActivity(act, passActivities.LookThrough, r.in).Get(r.ctx, &r.report); err != nil {
		return err
	}
	if r.report.Closed {
		return nil
	}
	state := "open"
	if len(r.report.Alarms) > 0 {
		state = "alarm"
	}
	details(r.ctx,
		"State", state,
		"Lines", verbatim(r.in.SKU),
		"Owners", fmt.Sprintf("%d, of which %d are missing", r.report.Owners, r.report.Missing),
		"Found", fmt.Sprintf("%d difference(s), %d mended", r.report.Found, r.report.Repaired),
		"Differences", sentences(r.report.Differences),
		"Alarms", sentences(r.report.Alarms),
		"Next", "closes",
	)
	setState(r.ctx, state)
	return nil
}

// sentences are shown as they are, in one line.
func sentences(list []string) string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = verbatim(s)
	}
	return strings.Join(shown, "; ")
}

// check looks at a closed gate. One that is open when the check begins was opened for
// whoever met it closed before: a check that waited all the same would meet the next loss
// in the middle of its pause, and open again before the leases of that one have ended.
func (r *reconcile) check() error {
	open, err := r.isOpen()
	if err != nil {
		return err
	}
	if open {
		r.report.Opened, r.report.Checked = true, workflow.Now(r.ctx).UTC()
		r.details("open", "closes")
		setState(r.ctx, "open")
		return nil
	}
	r.details("waiting", "the check of the closed gate")
	pause := workflow.NewTimerWithOptions(r.ctx, seconds(r.in.ReopenSeconds), workflow.TimerOptions{Summary: "leases end"})
	if err := pause.Get(r.ctx, nil); err != nil {
		return err
	}
	act := workflow.WithActivityOptions(r.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    10 * time.Second, // a worker that died keeps nobody waiting; it beats by itself
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "compare gate, book and open workflows",
	})
	err = workflow.ExecuteActivity(act, reconcileActivities.CheckAndOpen, activities.SKURef{SKU: r.in.SKU}).Get(r.ctx, &r.report)
	if err != nil {
		return err
	}
	if !r.report.Opened && len(r.report.Differences) > 0 && r.report.Rebuildable {
		if err := r.rebuild(); err != nil {
			return err
		}
	}
	state, next := "open", "closes"
	switch {
	case r.report.Opened:
	case len(r.report.Differences) == 0:
		state, next = "unknown", "nothing: no book and no stock of this SKU"
	default:
		state, next = "closed", "**a person must look**: "+sentences(append(slices.Clone(r.report.Alarms), r.report.Differences...))
		workflow.GetLogger(r.ctx).Error("gate stays closed", "sku", r.in.SKU, "differences", r.report.Differences)
	}
	r.details(state, next)
	setState(r.ctx, state)
	return nil
}

func (r *reconcile) isOpen() (open bool, err error) {
	act := workflow.WithActivityOptions(r.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
		Summary:             "is the gate closed still",
	})
	err = workflow.ExecuteActivity(act, reconcileActivities.IsOpen, activities.SKURef{SKU: r.in.SKU}).Get(r.ctx, &open)
	return open, err
}

// rebuild merges a closed gate with its workflows and its book, and opens it.
func (r *reconcile) rebuild() error {
	r.details("rebuilding", "the opening of the gate")
	act := workflow.WithActivityOptions(r.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "merge gate, book and workflows",
	})
	var merged contract.ReconcileReport
	if err := workflow.ExecuteActivity(act, passActivities.Rebuild, r.in).Get(r.ctx, &merged); err != nil {
		return err
	}
	merged.Differences = append(r.report.Differences, merged.Differences...)
	r.report = merged
	workflow.GetLogger(r.ctx).Error("gate rebuilt", "sku", r.in.SKU, "opened", r.report.Opened, "differences", r.report.Differences)
	return nil
}

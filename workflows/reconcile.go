package workflows

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

var reconcileActivities *activities.Reconciles

// Reconcile checks one SKU whose gate is closed against its book and its open
// workflows, after a pause in which every lease of before has ended. It opens
// the gate when nothing was lost; otherwise the gate stays closed, and whoever
// meets it next starts the check again.
func Reconcile(ctx workflow.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	report := contract.ReconcileReport{SKU: in.SKU}
	err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.ReconcileReport, error) { return report, nil })
	if err != nil {
		return report, err
	}
	details(ctx, "State", "waiting", "Lines", verbatim(in.SKU), "Next", "the check of the closed gate")
	pause := workflow.NewTimerWithOptions(ctx, seconds(in.ReopenSeconds), workflow.TimerOptions{Summary: "leases end"})
	if err := pause.Get(ctx, nil); err != nil {
		return report, err
	}
	act := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    10 * time.Second, // a worker that died keeps nobody waiting; it beats by itself
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "compare gate, book and open workflows",
	})
	err = workflow.ExecuteActivity(act, reconcileActivities.CheckAndOpen, activities.SKURef{SKU: in.SKU}).Get(ctx, &report)
	if err != nil {
		return report, err
	}
	state, next := "open", "closes"
	switch {
	case report.Opened:
	case len(report.Differences) == 0:
		state, next = "unknown", "nothing: no book and no stock of this SKU"
	default:
		shown := make([]string, len(report.Differences))
		for i, d := range report.Differences {
			shown[i] = verbatim(d)
		}
		state, next = "closed", "**a person must look**: "+strings.Join(shown, "; ")
		workflow.GetLogger(ctx).Error("gate stays closed", "sku", in.SKU, "differences", report.Differences)
	}
	details(ctx, "State", state, "Lines", verbatim(in.SKU), "Next", next)
	setState(ctx, state)
	return report, nil
}

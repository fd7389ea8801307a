package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
)

// ReconcileAll has every SKU looked through, a few at a time. A Schedule starts it;
// it begins to look at Holds that did not end by themselves where the last one that
// got through began, less the time by which Temporal's lists may be behind.
func ReconcileAll(ctx workflow.Context, in contract.ReconcileAllInput) (contract.ReconcileAllReport, error) {
	var report contract.ReconcileAllReport
	err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.ReconcileAllReport, error) { return report, nil })
	if err != nil {
		return report, err
	}
	if workflow.HasLastCompletionResult(ctx) {
		var last contract.ReconcileAllReport
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			workflow.GetLogger(ctx).Warn("the last report cannot be read: all Holds are looked at again", "error", err)
		}
		in.Since = last.Since
	}
	began := workflow.Now(ctx)
	since := in.Since
	if !since.IsZero() {
		in.Since = since.Add(-listsLag)
	}
	details(ctx, "State", "looking", "Next", "the end of the passes")
	act := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 6 * time.Hour, // of very many SKUs
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second, MaximumAttempts: 5},
		Summary:             "look through every SKU",
	})
	if err := workflow.ExecuteActivity(act, passActivities.LookThroughAll, in).Get(ctx, &report); err != nil {
		return report, err
	}
	report.Since = since
	state, next := "done", "the next run of the Schedule"
	if len(report.Failed) == 0 {
		report.Since = began
	} else {
		state, next = "failed", "**look at** "+verbatim(strings.Join(report.Failed, ", "))
	}
	details(ctx,
		"State", state,
		"Lines", fmt.Sprintf("%d SKUs: %d difference(s), %d mended, %d alarm(s)", report.SKUs, report.Found, report.Repaired, report.Alarms),
		"Next", next,
	)
	return report, nil
}

// listsLag is by how much Temporal's lists of workflows may be behind.
const listsLag = 10 * time.Minute

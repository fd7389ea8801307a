package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

var claimActivities *activities.Claims

// tellEntry tells the entry whose link was pressed that it holds, which costs one
// event here. It is for people who look at the entry: one that is not told finds out
// when its offer would lapse, and of the hold's end it is told by the gate's outbox.
// So it is tried once: no payment of the hold waits for it.
func (h *hold) tellEntry() {
	if h.in.EntryID == "" || h.status.State != contract.HoldHeld {
		return
	}
	ctx := workflow.WithLocalActivityOptions(h.ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             "tell its entry",
	})
	in := activities.TellClaimedInput{EntryID: h.in.EntryID, Claimed: contract.Claimed{HoldID: h.in.HoldID, ExpiresAt: h.ends}}
	if err := workflow.ExecuteLocalActivity(ctx, claimActivities.TellClaimed, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(h.ctx).Warn("the entry does not know yet that it holds", "hold", h.in.HoldID, "entry", h.in.EntryID, "error", err)
	}
}

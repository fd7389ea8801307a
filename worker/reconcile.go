package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/activities"
	"holdfast/codec"
	"holdfast/config"
	"holdfast/contract"
	"holdfast/keys"
	"holdfast/launch"
	"holdfast/metrics"
	"holdfast/redis"
)

const (
	reconcileEvery = time.Minute
	passPatience   = 2 * time.Minute // for one SKU of all
	scheduleRetry  = 5 * time.Second // the pause before it is created again
)

// newPasses makes the activities that look through open SKUs.
func newPasses(c client.Client, cfg *config.Config, gate *redis.Gate, l *launch.Launcher, payloads *codec.Codec, counts *metrics.Metrics, ring *keys.Ring) *activities.Passes {
	return &activities.Passes{
		Guard: newGuard(cfg, l), Gate: gate, Books: l, Owners: c, Payments: l, SKUs: gate, Starter: l, Payloads: payloads,
		Patience: passPatience, Lease: cfg.Gate.Lease, Grace: cfg.Hold.Grace, Drift: counts.Drift, LedgerFault: counts.LedgerFault,
		Closed: func(replID string) activities.RebuildGate { return gate.Rebuilding(replID) }, Epochs: l,
		AuditAge: cfg.Gate.AuditAge, Names: ring.NamesOf,
	}
}

// schedules is the part of Temporal's client that makes a Schedule.
type schedules interface {
	Create(ctx context.Context, options client.ScheduleOptions) (client.ScheduleHandle, error)
}

// keepSchedule makes the Schedule that has every SKU looked through, unless there is
// one: what an operator has changed of it, or paused, stays so. It tries until
// it has succeeded or ctx ends.
func keepSchedule(ctx context.Context, s schedules, log *slog.Logger) {
	for told := false; ; told = true {
		_, err := s.Create(ctx, client.ScheduleOptions{
			ID:   contract.ReconcileSchedule,
			Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: reconcileEvery}}},
			Action: &client.ScheduleWorkflowAction{
				ID: contract.ReconcileSchedule, Workflow: contract.ReconcileAllWorkflow, Args: []any{contract.ReconcileAllInput{}},
				TaskQueue: contract.TaskQueue, StaticSummary: "looks through every SKU",
				Priority: temporal.Priority{PriorityKey: contract.PriorityBook},
			},
			Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
			CatchupWindow: reconcileEvery, // one look makes up for all that were missed
		})
		switch {
		case err == nil:
			log.Info("schedule created", "schedule", contract.ReconcileSchedule, "every", reconcileEvery)
			return
		case errors.Is(err, temporal.ErrScheduleAlreadyRunning), ctx.Err() != nil:
			return
		case !told:
			log.Warn("schedule not created yet", "schedule", contract.ReconcileSchedule, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(scheduleRetry):
		}
	}
}

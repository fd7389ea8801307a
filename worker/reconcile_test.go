package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
)

// planner answers attempts to create a Schedule one after the other.
type planner struct {
	answers []error
	asked   []client.ScheduleOptions
}

func (p *planner) Create(_ context.Context, opts client.ScheduleOptions) (client.ScheduleHandle, error) {
	p.asked = append(p.asked, opts)
	return nil, p.answers[len(p.asked)-1]
}

// The Schedule is created once Temporal answers, and one that is there stays as it is.
func TestTheScheduleIsKept(t *testing.T) {
	for _, last := range []error{nil, temporal.ErrScheduleAlreadyRunning} {
		synctest.Test(t, func(t *testing.T) {
			p := &planner{answers: []error{errors.New("away"), errors.New("away"), last}}
			began := time.Now()
			keepSchedule(t.Context(), p, slog.New(slog.NewTextHandler(io.Discard, nil)))
			require.Equal(t, 2*scheduleRetry, time.Since(began))
			require.Len(t, p.asked, 3)
			opts := p.asked[2]
			action := opts.Action.(*client.ScheduleWorkflowAction)
			require.Equal(t, [5]any{"reconcile", time.Minute, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, contract.ReconcileAllWorkflow, contract.TaskQueue},
				[5]any{opts.ID, opts.Spec.Intervals[0].Every, opts.Overlap, action.Workflow, action.TaskQueue})
			require.Equal(t, contract.PriorityBook, action.Priority.PriorityKey)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &planner{answers: []error{errors.New("away"), nil}}
	keepSchedule(ctx, p, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.Len(t, p.asked, 1)
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
)

// The worker was away while the provider had news for everybody in a long line, so that
// each of them waits for a worker. What comes last goes first all the same: the shop's
// pause of that SKU, and the payment of a hold.
func TestABookAndAPaymentWaitForNoLine(t *testing.T) {
	people, soon := 600, 5*time.Minute
	if long() {
		people, soon = 5000, 20*time.Minute
	}
	const busy, paid = "long-queue", "paid-in-a-queue"
	ctx := t.Context()
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_JOIN_MAX_BACKLOG": "1000000"}}, lease)
	h.opened(t, busy, 0)
	h.opened(t, paid, 1)
	hold, err := h.shop.Hold(ctx, paid, "customer")
	require.NoError(t, err)
	h.status(t, hold.HoldID, "is held", inState("held"))
	entries := slices.Sorted(maps.Keys(h.longLine(t, busy, people, soon)))

	worker := h.Child(stack.Worker)
	worker.Kill()
	require.NoError(t, each(ctx, people, 32, func(ctx context.Context, i int) error {
		return h.temporal.SignalWorkflow(ctx, entries[i], "", "text-status", map[string]string{"status": "delivered"})
	}))
	require.NoError(t, within(ctx, soon, "everybody waits for a worker", func() error {
		n, err := h.tasksWaiting(ctx)
		if err == nil && n < int64(people) {
			err = fmt.Errorf("%d tasks wait", n)
		}
		return err
	}))
	require.NoError(t, h.temporal.SignalWorkflow(ctx, hold.HoldID, "", "payment-succeeded", map[string]string{"payment_ref": payOf(hold.HoldID, "queue")}))
	paused := make(chan error, 1)
	go func() {
		paused <- within(ctx, soon, "the SKU is paused", func() error {
			a, err := h.shop.Call(ctx, http.MethodPost, "/v1/stock/"+busy+"/pause", nil)
			if err == nil && a.Status != http.StatusOK {
				err = errors.New(a.String())
			}
			return err
		})
	}()
	require.NoError(t, worker.Start(ctx))
	require.NoError(t, <-paused)
	require.NoError(t, h.closed(ctx, hold.HoldID))

	done := map[string]time.Time{}
	done["pause"], err = h.timeOf(ctx, "stock."+busy, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED)
	require.NoError(t, err)
	done["sale"], err = h.timeOf(ctx, hold.HoldID, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)
	require.NoError(t, err)
	heard := make([]time.Time, people)
	require.NoError(t, each(ctx, people, 16, func(ctx context.Context, i int) error {
		return within(ctx, soon, entries[i]+" hears the news", func() (err error) {
			heard[i], err = h.timeOf(ctx, entries[i], enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)
			return err
		})
	}))
	for what, at := range done {
		before := 0
		for _, b := range heard {
			if b.Before(at) {
				before++
			}
		}
		figure(t, "entries_heard_before_the_"+what, float64(before), fmt.Sprint("of ", people))
		assert.Less(t, before, people/2, "entries whose task was served before the %s", what)
	}
	h.judge(t, busy, paid)
}

// tasksWaiting is how many workflow tasks wait in the queue of all workers.
func (h *house) tasksWaiting(ctx context.Context) (int64, error) {
	out, err := h.temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: h.Namespace(), TaskQueue: &taskqueuepb.TaskQueue{Name: "holdfast"}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW, ReportStats: true,
	})
	return out.GetStats().GetApproximateBacklogCount(), err
}

// timeOf is when the last run of a workflow first had an event of the last of these
// types, after one of each before it.
func (h *house) timeOf(ctx context.Context, id string, types ...enumspb.EventType) (time.Time, error) {
	got, err := history.Of(ctx, h.temporal, id, "")
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range got.GetEvents() {
		if e.GetEventType() != types[0] {
			continue
		}
		if types = types[1:]; len(types) == 0 {
			return e.GetEventTime().AsTime(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s has no %s yet", id, types[0])
}

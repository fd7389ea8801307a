package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
)

// B11, B117: a thousand holds are due in the same second (in the long form; else 200),
// on whatever cores there are. Each ends once, and no workflow task fails or runs
// out of its time. Their workflows are started by a Temporal client that knows the moment; the gate
// takes the units when they adopt.
func TestAThousandHoldsAreDueInTheSameSecond(t *testing.T) {
	holds := 200
	if long() {
		holds = 1000
	}
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	const sku = "due"
	h.opened(t, sku, int64(holds))
	sample, err := h.shop.Hold(ctx, sku, "sample")
	require.NoError(t, err)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, sample.HoldID, "", "release", nil))
	require.NoError(t, h.closed(ctx, sample.HoldID))
	ids := make([]string, holds)
	for i := range ids {
		ids[i] = sample.HoldID[:len("hold_")+8] + serial(i)
	}

	due := time.Now().Add(time.Duration(holds)*80*time.Millisecond + 12*time.Second).Truncate(time.Second)
	began := time.Now()
	require.NoError(t, each(ctx, holds, 6, func(ctx context.Context, i int) error {
		_, err := h.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: ids[i], TaskQueue: "holdfast"}, "Hold", map[string]any{
			"hold_id": ids[i], "customer": fmt.Sprint("customer-", i), "person": fmt.Sprint("person-", i),
			"lines":    []any{map[string]any{"sku": sku, "quantity": 1}},
			"settings": map[string]int64{"hold_seconds": int64(time.Until(due).Round(time.Second) / time.Second)},
		})
		if err != nil {
			return err
		}
		// The deadline counts from here on.
		return until(ctx, ids[i]+" is held", func() error {
			held, err := h.redis.HExists(ctx, "hf:{"+sku+"}:holds", ids[i]).Result()
			if err == nil && !held {
				err = errNotYet
			}
			return err
		})
	}))
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, int64(holds), stock.Held)
	figure(t, "holds_started_and_adopted", perSecond(holds, time.Since(began)), "1/s")

	require.NoError(t, within(ctx, 5*time.Minute, "every unit is back", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && (stock.Held != 0 || stock.Available != int64(holds)) {
			err = fmt.Errorf("%d are held", stock.Held)
		}
		return err
	}))
	figure(t, "due_to_all_units_back", time.Since(due).Seconds(), "s")

	var tasks, together, requeued atomic.Int64
	require.NoError(t, each(ctx, holds, 16, func(ctx context.Context, i int) error {
		if err := h.closed(ctx, ids[i]); err != nil {
			return err
		}
		run, err := history.Of(ctx, h.temporal, ids[i], "")
		if err != nil {
			return err
		}
		if failed := history.Failed(run); failed != "" {
			return fmt.Errorf("%s, %s", ids[i], failed)
		}
		tasks.Add(int64(history.Count(run, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)))
		for _, e := range run.GetEvents() {
			if timer := e.GetTimerStartedEventAttributes(); timer != nil {
				at := e.GetEventTime().AsTime().Add(timer.GetStartToFireTimeout().AsDuration())
				if at.Sub(due).Abs() <= time.Second {
					together.Add(1)
				}
			}
		}
		if n := history.Count(run, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED); n > 0 {
			return fmt.Errorf("%s has %d failed workflow tasks", ids[i], n)
		}
		requeued.Add(int64(history.Count(run, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)))
		return nil
	}))
	figure(t, "due_to_all_closed", time.Since(due).Seconds(), "s")
	figure(t, "workflow_tasks_of_a_hold", float64(tasks.Load())/float64(holds), "tasks")
	// A task that waits long for the worker that has the run in its cache is handed
	// to whoever is free: no failure, but a measure of the crowd.
	figure(t, "tasks_that_waited_too_long_for_their_worker", float64(requeued.Load()), "tasks")
	figure(t, "holds_due_within_a_second_of_the_moment", float64(together.Load()), "holds")
	require.GreaterOrEqual(t, together.Load(), int64(holds/2), "this machine was too busy to make them due together")
	h.expiredOnce(t, sku, holds)
	h.judge(t, sku)
}

// expiredOnce asserts that so many holds of a SKU expired, each of them once.
func (h *house) expiredOnce(t *testing.T, sku string, holds int) {
	t.Helper()
	ends := h.expiries(t, sku)
	require.Len(t, ends, holds)
	for id, n := range ends {
		require.Equal(t, 1, n, id)
	}
}

// expiries counts how often each hold of a SKU expired.
func (h *house) expiries(t *testing.T, sku string) map[string]int {
	t.Helper()
	ends := map[string]int{}
	for _, l := range h.ledger(t, sku) {
		if l.State == "expired" {
			ends[l.Ref]++
		}
	}
	return ends
}

// serial spells a number as the 18 letters that end an id.
func serial(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	out := []byte(strings.Repeat("a", 18))
	for i := range 4 {
		out[i] = letters[n%32]
		n /= 32
	}
	return string(out)
}

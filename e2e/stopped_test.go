package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
)

// B94, B116: the gate takes longer than a step may, and the worker is told to stop in the
// middle of taking the unit. The step is repeated until its answer is known, by whoever
// works then, and takes one unit.
func TestAWorkerStopsWhileAUnitIsTaken(t *testing.T) {
	const sku, silent = "stopped-reserve", 8 * time.Second // a step may take two
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	h.opened(t, sku, 2)
	sample, err := h.shop.Hold(ctx, sku, "sample")
	require.NoError(t, err)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, sample.HoldID, "", "release", nil))
	require.NoError(t, h.closed(ctx, sample.HoldID))

	// A stranger's hold takes its unit when it is adopted.
	id := sample.HoldID[:len("hold_")+8] + serial(7)
	require.NoError(t, h.redis.Do(ctx, "CLIENT", "PAUSE", silent.Milliseconds(), "ALL").Err())
	paused := time.Now()
	_, err = h.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "holdfast"}, "Hold", map[string]any{
		"hold_id": id, "customer": "ada", "person": "person-1", "lines": []any{map[string]any{"sku": sku, "quantity": 1}},
		"settings": map[string]int64{"hold_seconds": 600},
	})
	require.NoError(t, err)
	require.NoError(t, until(ctx, "the worker asks the gate", func() error {
		run, err := history.Of(ctx, h.temporal, id, "")
		if err == nil && history.Count(run, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED) == 0 {
			err = errNotYet
		}
		return err
	}))
	stopped := make(chan error, 1)
	go func() { stopped <- h.Child(stack.Worker).Stop() }()
	require.NoError(t, until(ctx, "the worker stops", func() error {
		log, err := os.ReadFile(filepath.Join(h.dir, "logs", "worker.log"))
		if err == nil && !strings.Contains(string(log), "worker stops") {
			err = errNotYet
		}
		return err
	}))
	require.Less(t, time.Since(paused), silent, "in the middle of it")
	require.NoError(t, <-stopped)
	require.NoError(t, h.Child(stack.Worker).Start(ctx))

	_, err = h.holdState(ctx, id, "held")
	require.NoError(t, err)
	h.status(t, id, "knows of its unit", inState("held"))
	taken, adopted := 0, 0
	for _, l := range h.ledger(t, sku) {
		if l.Ref == id && l.Verb == "reserve" {
			taken++
		}
		if l.Ref == id && l.Verb == "adopt" {
			adopted++
		}
	}
	require.Equal(t, []int{1, 1}, []int{taken, adopted}, "taken and adopted once")
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1}, []int64{stock.Available, stock.Held})
	run, err := history.Of(ctx, h.temporal, id, "")
	require.NoError(t, err)
	require.Empty(t, history.Failed(run))
	h.judge(t, sku)
}

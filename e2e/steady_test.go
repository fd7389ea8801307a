package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
)

// B104, B105: stock events and wakes without a pause, for ten minutes in the long form,
// else until the book has rolled over three times. Each event counts once, every
// roll-over succeeds, and no run grows far past its bound.
func TestABookUnderSteadySignals(t *testing.T) {
	const sku, senders, rolls, bound = "steady", 16, 3, 5000
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	h.opened(t, sku, 0)
	began := time.Now()
	enough := func(runs int) bool {
		if long() {
			return time.Since(began) >= 10*time.Minute
		}
		return runs > rolls
	}
	var stop atomic.Bool
	var sent, slowed, wakes atomic.Int64
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- each(work, senders+1, senders+1, func(ctx context.Context, i int) error {
			for n := 0; !stop.Load(); n++ {
				if i == senders { // the wakes of a busy gate, which nobody waits for
					if err := h.temporal.SignalWorkflow(ctx, "stock."+sku, "", "settle", nil); err != nil {
						return err
					}
					wakes.Add(1)
					continue
				}
				again, err := h.restocks(ctx, fmt.Sprintf("e-%d-%d", i, n), sku, &slowed)
				if err != nil {
					return err
				}
				sent.Add(again)
			}
			return nil
		})
	}()
	runs := 0
	for deadline := time.Now().Add(12 * time.Minute); !enough(runs); {
		select {
		case err := <-done:
			t.Fatalf("a sender ended: %v", err)
		case <-time.After(time.Second): // between two looks at a list
		}
		found, err := h.runsOf(ctx, "stock."+sku)
		require.NoError(t, err)
		runs = len(found)
		require.True(t, time.Now().Before(deadline), "%d runs, %d events sent", runs, sent.Load())
	}
	stop.Store(true)
	require.NoError(t, <-done)
	took := time.Since(began)
	require.NoError(t, within(ctx, time.Minute, "every event is decided", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && stock.OnHand != sent.Load() {
			err = fmt.Errorf("%d of %d", stock.OnHand, sent.Load())
		}
		return err
	}))
	found, err := h.runsOf(ctx, "stock."+sku)
	require.NoError(t, err)
	for i, run := range found {
		want := enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
		if i == 0 { // the newest first
			want = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		require.Equal(t, want, run.Status)
		require.Less(t, run.Length, int64(3*bound), "it rolls over well below the server's bound")
	}
	restocks := 0
	for _, l := range h.ledger(t, sku) {
		if l.Kind == "restock" {
			restocks++
		}
	}
	require.EqualValues(t, sent.Load(), restocks, "each once")
	figure(t, "stock_events_decided", perSecond(restocks, took), "1/s")
	figure(t, "wakes", perSecond(int(wakes.Load()), took), "1/s")
	figure(t, "roll_overs", float64(len(found)-1), "runs")
	figure(t, "senders_slowed", float64(slowed.Load()), "times")
	h.judge(t, sku)
}

// restocks sends one unit and repeats it until the book has it. It answers 1.
func (h *house) restocks(ctx context.Context, event, sku string, slowed *atomic.Int64) (int64, error) {
	return 1, until(ctx, event+" is written down", func() error {
		a, err := h.shop.Inventory(ctx, map[string]any{"event_id": event, "sku": sku, "kind": "restock", "units": 1})
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusServiceUnavailable:
			slowed.Add(1)
			return errors.New(a.String())
		case a.Status != http.StatusOK && a.Status != http.StatusAccepted:
			return fmt.Errorf("unexpected: %s", a)
		}
		return nil
	})
}

// bookRun is one run of a workflow.
type bookRun struct {
	Status enumspb.WorkflowExecutionStatus
	Length int64 // events of its history
}

// runsOf lists the runs of a workflow, the newest first.
func (h *house) runsOf(ctx context.Context, id string) ([]bookRun, error) {
	var out []bookRun
	var next []byte
	for {
		page, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = %q", id), NextPageToken: next,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetExecutions() {
			out = append(out, bookRun{e.GetStatus(), e.GetHistoryLength()})
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return out, nil
		}
	}
}

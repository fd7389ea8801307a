package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
)

const (
	steadySignals = 200 // a second, the rate of the case
	steadyEvery   = 30  // one of so many is a delivery, the others wakes
)

// B104, B105: signals that never pause, for ten minutes in the long form, else until
// the book has rolled over three times: two hundred a second, deliveries among them that
// come twice, and beside them sixteen senders who go on as soon as the door has answered.
// Each delivery counts once, every roll-over succeeds, no run grows far past its bound,
// and senders are slowed rather than lost.
func TestABookUnderSteadySignals(t *testing.T) {
	const sku, senders, rolls = "steady", 16, 3
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
	var sent, slowed atomic.Int64
	done := make(chan error, 1)
	go func() {
		done <- each(ctx, senders, senders, func(ctx context.Context, i int) error {
			for n := 0; !stop.Load(); n++ {
				if err := h.restocks(ctx, fmt.Sprintf("e-%d-%d", i, n), sku, &slowed); err != nil {
					return err
				}
				sent.Add(1)
			}
			return nil
		})
	}()
	stream := h.stream(ctx, sku, &stop)
	runs := 0
	for deadline := time.Now().Add(12 * time.Minute); !enough(runs); {
		select {
		case err := <-done:
			t.Fatalf("a sender ended: %v", err)
		case <-time.After(time.Second): // between two looks at a list
		}
		if found, err := h.runsOf(ctx, "stock."+sku); err == nil { // else a server that is as busy as this may be
			runs = len(found)
		}
		require.True(t, time.Now().Before(deadline), "%d runs, %d events sent", runs, sent.Load())
	}
	stop.Store(true)
	require.NoError(t, <-done)
	signals, direct, err := stream()
	require.NoError(t, err)
	took := time.Since(began)
	deliveries := sent.Load() + direct
	require.NoError(t, within(ctx, time.Minute, "every delivery is decided", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && stock.OnHand != deliveries {
			err = fmt.Errorf("%d of %d units are there", stock.OnHand, deliveries)
		}
		return err
	}))
	seen := map[string]bool{}
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "stock" {
			require.False(t, seen[l.Ref], "%s was counted twice", l.Ref)
			seen[l.Ref] = true
		}
	}
	require.Len(t, seen, int(deliveries))

	found, err := h.runsOf(ctx, "stock."+sku)
	require.NoError(t, err)
	for i, run := range found {
		want := enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
		if i == 0 { // the newest first
			want = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		require.Equal(t, want, run)
	}
	longest, _, _ := h.bookRuns(t, sku)
	figure(t, "steady_signals", perSecond(signals, took), "1/s")
	figure(t, "steady_deliveries_of_the_door", perSecond(int(sent.Load()), took), "1/s")
	figure(t, "steady_time", took.Seconds(), "s")
	figure(t, "steady_roll_overs", float64(len(found)-1), "")
	figure(t, "steady_longest_run", float64(longest), "events")
	figure(t, "steady_senders_slowed", float64(slowed.Load()), "times")
	require.Less(t, longest, mostEvents, "it rolls over well below the server's bound")
	require.Less(t, h.bookInput(t, sku), mostInput)
	h.judge(t, sku)
}

// stream signals the book at the case's rate until it is stopped. The answer waits for
// that, and says how many signals there were and how many deliveries.
func (h *house) stream(ctx context.Context, sku string, stop *atomic.Bool) (end func() (signals int, deliveries int64, err error)) {
	var sending sync.WaitGroup
	var signals int
	failed := make(chan error, 1)
	sending.Go(func() {
		pace := time.NewTicker(time.Second / steadySignals)
		defer pace.Stop()
		crowd := make(chan struct{}, 64) // a server that is slow slows them
		var sent sync.WaitGroup
		defer sent.Wait()
		// Each delivery comes twice, so the last one must have had its repeat.
		for ; !stop.Load() || signals%(2*steadyEvery) != 0; signals++ {
			<-pace.C
			name, arg := "settle", any(nil)
			if signals%steadyEvery == 0 {
				name = "stock-event"
				arg = map[string]any{"event_id": fmt.Sprintf("direct-%d", signals/steadyEvery/2), "kind": "restock", "units": 1}
			}
			crowd <- struct{}{}
			sent.Go(func() {
				defer func() { <-crowd }()
				err := until(ctx, "the book has the signal", func() error {
					return h.temporal.SignalWorkflow(ctx, "stock."+sku, "", name, arg)
				})
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
	})
	return func() (int, int64, error) {
		sending.Wait()
		select {
		case err := <-failed:
			return 0, 0, err
		default:
			return signals, int64(signals / steadyEvery / 2), nil
		}
	}
}

// restocks sends one unit and repeats it until the book has it.
func (h *house) restocks(ctx context.Context, event, sku string, slowed *atomic.Int64) error {
	return until(ctx, event+" is written down", func() error {
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

// runsOf lists how the runs of a workflow stand, the newest first.
func (h *house) runsOf(ctx context.Context, id string) ([]enumspb.WorkflowExecutionStatus, error) {
	var out []enumspb.WorkflowExecutionStatus
	var next []byte
	for {
		page, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = %q", id), NextPageToken: next,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetExecutions() {
			out = append(out, e.GetStatus())
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return out, nil
		}
	}
}

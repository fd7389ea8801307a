package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// B104, B105: signals that never pause, deliveries among them, each of which comes
// twice. The book is continued again and again all the same, stays short, and counts
// every delivery once.
func TestABookStaysShortUnderSignals(t *testing.T) {
	signals := 3_000 // in the large form ten minutes of them
	if long() {
		signals = 120_000
	}
	const every, aSecond = 30, 200
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "steady-book"
	h.opened(t, sku, 0)
	began := time.Now()
	pace := time.NewTicker(time.Second / aSecond)
	defer pace.Stop()
	require.NoError(t, each(ctx, signals, 64, func(ctx context.Context, i int) error {
		select { // the case's rate: a crowd without one is no stream
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if i%every != 0 {
			return h.temporal.SignalWorkflow(ctx, "stock."+sku, "", "settle", nil)
		}
		ev := map[string]any{"event_id": fmt.Sprintf("steady-book-%d", i/every/2), "kind": "restock", "units": 1}
		return h.temporal.SignalWorkflow(ctx, "stock."+sku, "", "stock-event", ev)
	}))
	figure(t, "steady_signals", perSecond(signals, time.Since(began)), "1/s")
	deliveries := int64(signals / every / 2)
	require.NoError(t, until(ctx, "every delivery is counted", func() error {
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
	longest, runs := h.bookRuns(t, sku)
	figure(t, "steady_longest_run", float64(longest), "events")
	figure(t, "steady_runs", float64(runs), "")
	require.Less(t, longest, mostEvents)
	require.Greater(t, runs, 1)
	require.Less(t, h.bookInput(t, sku), mostInput)
	h.judge(t, sku)
}

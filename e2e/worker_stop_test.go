package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// A worker is told to stop while a hundred holds are about to end, Redis answers nothing and
// Temporal cannot be reached: it does not wait for them longer than whoever stops it waits
// for it. Another worker ends each hold, once.
func TestAWorkerStopsWhileNothingAnswersIt(t *testing.T) {
	const sku, holds = "stops", 100
	ctx := t.Context()
	a := newArena(t, lease)
	a.opened(t, sku, holds)
	a.putPolicy(t, sku, map[string]any{"hold_seconds": 8})
	ids := make([]string, holds)
	require.NoError(t, each(ctx, holds, 16, func(ctx context.Context, i int) error {
		hold, err := a.shop.Hold(ctx, sku, fmt.Sprint("customer-", i))
		ids[i] = hold.HoldID
		return err
	}))
	last, err := a.shop.ReadHold(ctx, ids[holds-1])
	require.NoError(t, err)
	redis, worker, nets := a.Child(stack.Redis), a.child(stack.Worker), a.networks(stack.Temporal, stack.Worker)
	require.NoError(t, redis.Suspend())
	require.NoError(t, lasts(ctx, time.Until(last.ExpiresAt)+time.Second))
	for _, n := range nets {
		n.Stop()
	}
	require.NoError(t, worker.Stop())
	for _, n := range nets {
		require.NoError(t, n.Start())
	}
	require.NoError(t, redis.Resume())
	require.NoError(t, worker.Start(ctx))

	require.NoError(t, within(ctx, 2*time.Minute, "every hold has ended", func() error {
		stock, err := a.shop.Stock(ctx, sku)
		if err == nil && stock.Held != 0 {
			err = fmt.Errorf("%d are held", stock.Held)
		}
		return err
	}))
	ends := a.expiries(t, sku)
	for _, id := range ids {
		require.Equal(t, 1, ends[id], id)
	}
	a.judge(t, sku)
}

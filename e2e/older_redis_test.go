package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// Redis comes back as it was before: it has forgotten holds, sales and places that it
// had acknowledged. They are merged from the workflows and the book before anything
// is served: each hold's 201 is honoured, no unit is sold twice, the line keeps its
// order, and the difference is reported.
// B98.
func TestRedisComesBackOlder(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "4s"}}, 3*time.Second)
	ctx := t.Context()
	const sku = "older"
	h.opened(t, sku, 20)
	var held []string
	for range 10 {
		hold, err := h.shop.Hold(ctx, sku, "before")
		require.NoError(t, err)
		held = append(held, hold.HoldID)
	}
	redis, data := h.Child(stack.Redis), filepath.Join(h.dir, stack.Redis)
	kept := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, redis.Stop())
	require.NoError(t, os.CopyFS(kept, os.DirFS(data)))
	require.NoError(t, redis.Start(ctx))
	require.NoError(t, until(ctx, "the gate has opened", func() error {
		hold, err := h.shop.Hold(ctx, sku, "after")
		held = append(held, hold.HoldID)
		if err != nil {
			held = held[:len(held)-1]
		}
		return err
	}))
	for range 9 {
		hold, err := h.shop.Hold(ctx, sku, "after")
		require.NoError(t, err)
		held = append(held, hold.HoldID)
	}
	confirmed(t, h, held[0], "pay_"+held[0])
	confirmed(t, h, held[19], "pay_"+held[19])
	for _, id := range []string{held[0], held[19]} {
		require.NoError(t, h.closed(ctx, id))
	}
	waits, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)

	require.NoError(t, redis.Stop())
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.CopyFS(data, os.DirFS(kept)))
	require.NoError(t, redis.Start(ctx))
	require.NoError(t, until(ctx, "the gate is rebuilt", func() error {
		_, err := h.shop.Stock(ctx, sku)
		return err
	}))
	require.NoError(t, until(ctx, "it is open", func() error {
		a, err := h.shop.AskHold(ctx, sku, "walk-in", "walk-in")
		if err == nil && a.Status != 409 {
			err = &unexpected{a.String()}
		}
		return err
	}))
	s, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, [4]int64{18, 18, 0, 2}, [4]int64{s.OnHand, s.Held, s.Offered, s.Sold})
	for _, id := range held {
		confirmed(t, h, id, "pay_"+id)
	}
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	var report passReport
	require.NoError(t, until(ctx, "a pass finds nothing", func() error {
		if report = h.reconcile(t, sku); report.Found > 0 || len(report.Alarms) > 0 {
			return &unexpected{"found " + sku}
		}
		return nil
	}))
}

type unexpected struct{ what string }

func (u *unexpected) Error() string { return "unexpected: " + u.what }

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// Redis restarts with its append-only file intact: every SKU is closed, nobody
// hears sold-out, and the check of book and open workflows opens it. Then Redis
// is emptied: a SKU that the book knows is closed, not new, until it was written anew,
// and a new one can be sold.
func TestRedisRestartsAndThenForgets(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "4s"}}, 3*time.Second)
	ctx := t.Context()
	const sku = "fenced"
	h.opened(t, sku, 2)
	held, err := h.shop.Hold(ctx, sku, "ada")
	require.NoError(t, err)
	sold, err := h.shop.Hold(ctx, sku, "bob")
	require.NoError(t, err)
	confirmed(t, h, sold.HoldID, "pi_bob")
	waits, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)

	h.Child(stack.Redis).Kill()
	require.NoError(t, h.Child(stack.Redis).Start(ctx))
	began, refused := time.Now(), 0
	require.NoError(t, until(ctx, "the gate has opened by itself", func() error {
		a, err := h.shop.AskHold(ctx, sku, "walk-in", fmt.Sprint("walk-in-", refused))
		if err != nil {
			return err
		}
		if a.Status == http.StatusConflict {
			require.Equal(t, "reserved-for-line", a.Code())
			return nil
		}
		refused++
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a)
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		return errors.New(a.String())
	}))
	require.Positive(t, refused, "the gate was never closed")
	figure(t, "redis_restart_to_open_gate", time.Since(began).Seconds(), "s")

	confirmed(t, h, held.HoldID, "pi_ada")
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	h.judge(t, sku)

	require.NoError(t, h.redis.FlushAll(ctx).Err())
	for i := range 3 {
		a, err := h.shop.AskHold(ctx, sku, "walk-in", fmt.Sprint("forgotten-", i))
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a)
	}
	h.reopens(t, sku)
	s, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, [4]int64{1, 0, 1, 2}, [4]int64{s.OnHand, s.Held, s.Offered, s.Sold})
	h.judge(t, sku)

	h.opened(t, "unfenced", 1)
	_, err = h.shop.Hold(ctx, "unfenced", "cyd")
	require.NoError(t, err)
	h.judge(t, "unfenced")
}

// Joins go on while Temporal is away, also at a door that starts meanwhile.
func TestADoorStartsWhileTemporalIsAway(t *testing.T) {
	h := ownHouse(t, stack.Options{}, lease)
	ctx := t.Context()
	const sku = "alone"
	h.opened(t, sku, 0)
	h.Child(stack.Temporal).Kill()
	require.NoError(t, h.Child(stack.Door).Stop())
	require.NoError(t, h.Child(stack.Door).Start(ctx))

	joined, err := h.shop.Join(ctx, sku, phone(0))
	require.NoError(t, err)
	a, err := h.shop.AskHold(ctx, sku, "walk-in", "walk-in")
	require.NoError(t, err)
	require.Equal(t, "reserved-for-line", a.Code(), "%s", a)

	require.NoError(t, h.Child(stack.Temporal).Start(ctx))
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, joined.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	h.judge(t, sku)
}

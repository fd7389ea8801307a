package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// cartSKUs opens three SKUs of a story, in the order in which a cart takes them.
func (h *house) cartSKUs(t *testing.T, story string, units ...int64) []string {
	t.Helper()
	skus := []string{story + "-a", story + "-b", story + "-c"}
	for i, sku := range skus {
		h.opened(t, sku, units[i])
	}
	return skus
}

// requireCounts checks what is held and sold of each SKU.
func (h *house) requireCounts(t *testing.T, skus []string, held, sold int64) {
	t.Helper()
	for _, sku := range skus {
		stock, err := h.shop.Stock(t.Context(), sku)
		require.NoError(t, err)
		require.Equal(t, []int64{held, sold}, []int64{stock.Held, stock.Sold}, "held and sold of %s", sku)
	}
}

// B56: a cart is one hold: named by its lines, paid once, sold whole, and takes of each SKU
// what it names of it.
func TestCartIsSold(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	skus := h.cartSKUs(t, "cart-sold", 2, 2, 2)
	cart, err := h.shop.Cart(ctx, []string{skus[2], skus[0], skus[1]}, "ada")
	require.NoError(t, err)
	require.Equal(t, []shop.Line{{SKU: skus[0], Quantity: 1}, {SKU: skus[1], Quantity: 1}, {SKU: skus[2], Quantity: 1}}, cart.Lines)
	h.requireCounts(t, skus, 1, 0)
	first := confirmed(t, h, cart.HoldID, "pay_cart")
	require.Equal(t, first, confirmed(t, h, cart.HoldID, "pay_cart"), "a repeat is answered the same")
	second, err := h.shop.Confirm(ctx, cart.HoldID, "pay_again_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, "payment-conflict", second.Code(), second)
	h.requireCounts(t, skus, 0, 1)
	require.NoError(t, h.closed(ctx, cart.HoldID))

	for _, sku := range skus[:2] {
		require.NoError(t, h.shop.Restock(ctx, sku, 7))
	}
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{
		"customer": "ben", "lines": []any{map[string]any{"sku": skus[0], "quantity": 5}, map[string]any{"sku": skus[1], "quantity": 3}},
	}, "Idempotency-Key", shop.Token())
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	uneven, err := shop.ParseHold(a)
	require.NoError(t, err)
	confirmed(t, h, uneven.HoldID, "pay_uneven")
	for sku, want := range map[string][]int64{skus[0]: {3, 0, 0, 6, 0, 0, 0}, skus[1]: {5, 0, 0, 4, 0, 0, 0}} {
		stock, err := h.shop.Stock(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, want, parts(stock), sku)
	}
	h.judge(t, skus...)
}

// The second line is not to be had: the first one's unit is free at once, and the
// same request can be tried again.
func TestCartIsRefusedAtItsSecondLine(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	skus := h.cartSKUs(t, "cart-refused", 1, 0, 1)
	key := shop.Token()
	a, err := h.shop.AskCart(ctx, skus, "ada", key)
	require.NoError(t, err)
	require.Equal(t, "sold-out", a.Code(), a)
	other, err := h.shop.Hold(ctx, skus[0], "ben")
	require.NoError(t, err, "the first line's unit is free again")
	a, err = h.shop.AskCart(ctx, skus, "ada", key)
	require.NoError(t, err)
	require.Equal(t, "sold-out", a.Code(), a)
	_, err = h.shop.Declined(ctx, other.HoldID, "pay_declined")
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, skus[1], 1))
	require.NoError(t, until(ctx, "the cart is taken", func() error {
		a, err = h.shop.AskCart(ctx, skus, "ada", key)
		if err == nil && a.Status != http.StatusCreated {
			err = errors.New(a.String())
		}
		return err
	}))
	h.judge(t, skus...)
}

// Nobody pays: all lines are free again, and late money buys them while they are.
// B19, B21, B23.
func TestCartExpires(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	door := h.door(t, "HOLDFAST_HOLD_TTL", "5s")
	skus := h.cartSKUs(t, "cart-expires", 1, 1, 1)
	cart, err := door.Cart(ctx, skus, "ada")
	require.NoError(t, err)
	_, err = h.holdState(ctx, cart.HoldID, "expired")
	require.NoError(t, err)
	h.requireCounts(t, skus, 0, 0)
	late := confirmed(t, h, cart.HoldID, "pay_late_"+cart.HoldID)
	require.Equal(t, "pay_late_"+cart.HoldID, late.PaymentRef)
	h.requireCounts(t, skus, 0, 1)

	gone, err := door.Cart(ctx, skus[:1], "ben")
	require.Error(t, err, gone)
	for _, sku := range skus {
		require.NoError(t, h.shop.Restock(ctx, sku, 1))
	}
	cart, err = door.Cart(ctx, skus, "ben")
	require.NoError(t, err)
	_, err = h.holdState(ctx, cart.HoldID, "expired")
	require.NoError(t, err)
	_, err = h.shop.Hold(ctx, skus[1], "cleo") // of the middle line
	require.NoError(t, err)
	a, err := h.shop.Confirm(ctx, cart.HoldID, "pay_too_late_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), a)
	require.Equal(t, "refund-pending", a.Problem().Refund.State)
	for i, held := range []int64{0, 1, 0} {
		stock, err := h.shop.Stock(ctx, skus[i])
		require.NoError(t, err)
		require.Equal(t, []int64{held, 1}, []int64{stock.Held, stock.Sold}, "all or none of %s", skus[i])
	}
	h.judge(t, skus...)
}

// A forced correction takes the last line's unit away: the sale of the lines before
// it is undone, the money goes back, and all that is left is free.
func TestCartRunsShort(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	skus := h.cartSKUs(t, "cart-short", 1, 1, 1)
	cart, err := h.shop.Cart(ctx, skus, "ada")
	require.NoError(t, err)
	broken, err := h.shop.Decided(ctx, map[string]any{
		"event_id": shop.Token(), "sku": skus[2], "kind": "correction", "delta": -1, "reason": "broken", "allow_shortfall": true,
	})
	require.NoError(t, err)
	require.True(t, broken.Applied)
	a, err := h.shop.Confirm(ctx, cart.HoldID, "pay_short_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), a)
	_, err = h.holdState(ctx, cart.HoldID, "released")
	require.NoError(t, err)
	h.requireCounts(t, skus, 0, 0)
	for i, want := range []string{"confirm sold, unconfirm held, release released", "confirm sold, unconfirm held, release released", "release released"} {
		got := ""
		for _, l := range h.ledger(t, skus[i]) {
			if l.Ref == cart.HoldID && slices.Contains([]string{"confirm", "unconfirm", "release"}, l.Verb) {
				got += l.Verb + " " + l.Kind + ", "
			}
		}
		require.Equal(t, want+", ", got)
	}
	again, err := h.shop.Confirm(ctx, cart.HoldID, "pay_short_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, "hold-ended", again.Code(), "a marked payment never sells: %s", again)
	_, err = h.shop.Cart(ctx, skus[:2], "ben")
	require.NoError(t, err)
	h.judge(t, skus...)
}

// B58: carts that name the same SKUs in opposite order, singles beside them,
// and half of the winners pay while others give back. Nothing waits for anything,
// and of each SKU no unit is sold or held twice.
func TestCartsCrosswise(t *testing.T) {
	const units, buyers = 30, 120
	ctx := t.Context()
	h := sharedHouse(t)
	crowd, _ := crowdOf(h.shop, 48)
	t.Cleanup(crowd.HTTP.CloseIdleConnections)
	skus := h.cartSKUs(t, "cart-cross", units, units, units)
	var mu sync.Mutex
	taken := map[string]int64{}
	codes := map[string]int{}
	require.NoError(t, each(ctx, buyers, 48, func(ctx context.Context, i int) error {
		names := [][]string{
			{skus[0], skus[1], skus[2]}, {skus[2], skus[1], skus[0]}, {skus[1], skus[0]}, {skus[2], skus[0]}, {skus[1]},
		}[i%5]
		a, err := crowd.AskCart(ctx, names, fmt.Sprintf("customer-%d", i), shop.Token())
		if err != nil {
			return err
		}
		if a.Status != http.StatusCreated {
			mu.Lock()
			defer mu.Unlock()
			codes[a.Code()]++
			if a.Status != http.StatusConflict {
				return errors.New(a.String())
			}
			return nil
		}
		cart, err := shop.ParseHold(a)
		if err != nil {
			return err
		}
		switch i % 3 {
		case 0:
			a, err = crowd.Confirm(ctx, cart.HoldID, "pay_"+cart.HoldID)
		case 1:
			a, err = crowd.Declined(ctx, cart.HoldID, "pay_"+cart.HoldID)
			names = nil
		}
		if err != nil || a.Status >= http.StatusBadRequest {
			return errors.Join(err, errors.New(a.String()))
		}
		mu.Lock()
		defer mu.Unlock()
		codes["taken"]++
		for _, sku := range names {
			taken[sku]++
		}
		return nil
	}))
	t.Logf("%v, units taken %v of %d each", codes, taken, units)
	require.Greater(t, codes["taken"], units/2)
	for _, sku := range skus {
		stock, err := h.shop.Stock(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, taken[sku], stock.Held+stock.Sold, "%s", sku)
		require.LessOrEqual(t, taken[sku], int64(units))
	}
	h.judge(t, skus...)
}

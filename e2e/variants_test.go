package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// B43, B52: each variant of a product is a SKU with its own line and counters, also when the
// name of one begins that of another. Who waits for the one, however long, is told nothing of
// units of the other; who holds its last unit may wait for a second one, and is told of that.
func TestEachVariantHasItsOwnLine(t *testing.T) {
	const small, large = "variant-x", "variant-xl"
	ctx := t.Context()
	h := sharedHouse(t)
	h.opened(t, small, 0)
	h.opened(t, large, 1)
	ada, err := h.inLine(ctx, h.shop, small, phone(0))
	require.NoError(t, err)
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{
		"sku": large, "quantity": 1, "customer": "cyd", "customer_phone": phone(2),
	}, "Idempotency-Key", shop.Token())
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	held, err := shop.ParseHold(a)
	require.NoError(t, err)
	cyd, err := h.inLine(ctx, h.shop, large, phone(2))
	require.NoError(t, err)
	ben, err := h.inLine(ctx, h.shop, large, phone(1))
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 2}, []int64{ada.Position, cyd.Position, ben.Position})

	require.NoError(t, h.shop.Restock(ctx, large, 2))
	for number, of := range map[string]shop.Entry{phone(2): cyd, phone(1): ben} {
		text, err := h.offerText(ctx, of.EntryID)
		require.NoError(t, err)
		require.Equal(t, number, text.To)
	}
	confirmed(t, h, held.HoldID, "pay_"+held.HoldID)
	for sku, want := range map[string][]int64{small: {0, 0, 0, 0, 0, 1, 0}, large: {2, 0, 2, 1, 0, 0, 0}} {
		stock, err := h.shop.Stock(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, want, parts(stock), sku)
	}
	_, told, err := h.outbox.OfferTo(ada.EntryID)
	require.NoError(t, err)
	require.False(t, told, "a unit of another SKU was offered")
	h.judge(t, small, large)
}

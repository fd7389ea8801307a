package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// temporalForgets, B22, B33, B109: Temporal forgets who bought, who gave back and who stood
// in line. Afterwards the same payment, reservation and delivery move nothing a second time,
// money that comes late finds its hold, and who bought joins again as somebody new. It takes
// a server most of a minute to forget, so a story that waits as long plays this beside its
// own, and asks for the rest when it is over.
func (h *house) temporalForgets(t *testing.T) (afterwards func()) {
	t.Helper()
	const sku, line = "retention", "retention-line"
	ctx := t.Context()
	h.opened(t, sku, 0)
	delivery := event(sku, "restock", map[string]any{"units": 4})
	h.decided(t, delivery, "")
	ask := func(status int) shop.Hold {
		t.Helper()
		a, err := h.shop.AskHold(ctx, sku, "buyer", "retention-buyer")
		require.NoError(t, err)
		require.Equal(t, status, a.Status, a)
		hold, err := shop.ParseHold(a)
		require.NoError(t, err)
		return hold
	}
	sold := ask(http.StatusCreated)
	confirmed(t, h, sold.HoldID, "pay_kept")
	back, err := h.shop.Hold(ctx, sku, "dreamer")
	require.NoError(t, err)
	_, err = h.shop.Declined(ctx, back.HoldID, "pay_declined")
	require.NoError(t, err)

	h.opened(t, line, 0)
	entry, err := h.inLine(ctx, h.shop, line, phone(0))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, line, 2))
	pressed := h.presses(t, entry.EntryID)
	confirmed(t, h, pressed.HoldID, "pay_pressed")
	_, err = h.entryState(ctx, entry.EntryID, "bought")
	require.NoError(t, err)
	h.judge(t, line) // whoever is judged must be known
	gone := []string{sold.HoldID, back.HoldID, pressed.HoldID, entry.EntryID}
	h.forget(t, gone...)

	return func() {
		t.Helper()
		h.forgotten(t, gone...)
		h.untouched(t, sku, func() {
			again := ask(http.StatusOK)
			require.Equal(t, []string{sold.HoldID, "sold"}, []string{again.HoldID, again.State})
			confirmed(t, h, sold.HoldID, "pay_kept")
			h.decided(t, delivery, "")
		})
		for _, late := range []struct{ hold, ref, code string }{
			{sold.HoldID, "pay_second_of_retention", "payment-conflict"},
			{back.HoldID, "pay_late_of_retention", "hold-ended"},
		} {
			a, err := h.pay(ctx, late.hold, late.ref)
			require.NoError(t, err)
			require.Equal(t, late.code, a.Code(), a)
			require.NotNil(t, a.Problem().Refund, a)
			owner := paymentID(late.hold, late.ref)
			require.Equal(t, []string{owner, "refund-pending"}, []string{a.Problem().Refund.PaymentID, a.Problem().Refund.State})
			h.settlesPayment(t, owner)
			require.NoError(t, h.closed(ctx, owner))
		}
		hold, err := h.shop.ReadHold(ctx, back.HoldID)
		require.NoError(t, err)
		require.Equal(t, []string{"released", "payment-failed"}, []string{hold.State, hold.EndReason})

		again, err := h.inLine(ctx, h.shop, line, phone(0))
		require.NoError(t, err)
		require.NotEqual(t, entry.EntryID, again.EntryID)
		text, err := h.offerText(ctx, again.EntryID)
		require.NoError(t, err)
		require.Equal(t, phone(0), text.To)
		for of, want := range map[string][]int64{sku: {3, 0, 0, 1, 0, 0, 0}, line: {1, 0, 1, 1, 0, 0, 0}} {
			stock, err := h.shop.Stock(ctx, of)
			require.NoError(t, err)
			require.Equal(t, want, parts(stock), of)
		}
		h.judge(t, sku)
	}
}

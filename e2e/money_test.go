package e2e

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// paymentID is built as a stranger builds it who knows only the rule.
func paymentID(holdID, ref string) string {
	sum := sha256.Sum256([]byte(holdID + "\n" + ref))
	return "payment_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Money that met no live hold gets an owner, which stays open until the money
// has gone back; the payment that made a sale is never refunded. B107: none of it
// starts a hold.
func TestMoneyThatMetNoLiveHold(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "money"
	h.opened(t, sku, 3)
	sold, err := h.shop.Hold(ctx, sku, "buyer")
	require.NoError(t, err)
	confirmed(t, h, sold.HoldID, "pay_first")
	released, err := h.shop.Hold(ctx, sku, "late")
	require.NoError(t, err)
	_, err = h.shop.Declined(ctx, released.HoldID, "pay_declined")
	require.NoError(t, err)
	_, err = h.holdState(ctx, released.HoldID, "released")
	require.NoError(t, err)

	for _, c := range []struct{ name, hold, ref, code string }{
		{"second", sold.HoldID, "pay_second_for_money", "payment-conflict"},
		{"late", released.HoldID, "pay_late_for_money", "hold-ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := paymentID(c.hold, c.ref)
			for range 2 { // a repeat moves nothing and finds the same owner
				a, err := h.shop.Confirm(ctx, c.hold, c.ref)
				require.NoError(t, err)
				require.Equal(t, http.StatusConflict, a.Status, a)
				require.Equal(t, c.code, a.Code(), a)
				refund := a.Problem().Refund
				require.NotNil(t, refund, a)
				require.Equal(t, []string{owner, c.ref, "refund-pending"}, []string{refund.PaymentID, refund.PaymentRef, refund.State})
			}
			require.NoError(t, h.temporal.SignalWorkflow(ctx, owner, "", "refund-settled", map[string]string{"reference": "re_1"}))
			require.NoError(t, h.closed(ctx, owner))
			var status struct {
				State     string `json:"state"`
				Reference string `json:"reference"`
			}
			v, err := h.temporal.QueryWorkflow(ctx, owner, "", "status")
			require.NoError(t, err)
			require.NoError(t, v.Get(&status))
			require.Equal(t, "refund-settled", status.State)
			require.Equal(t, "re_1", status.Reference)
		})
	}
	again := confirmed(t, h, sold.HoldID, "pay_first")
	require.Equal(t, "pay_first", again.PaymentRef)
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 0, 1}, []int64{stock.OnHand, stock.Held, stock.Sold}, "on_hand, held, sold")
	h.judge(t, sku)
}

// Money of a hold that nobody knows waits before a person, whether it came
// through the door or from a stranger's Temporal client.
func TestMoneyOfAnUnknownHold(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "money-unknown"
	h.opened(t, sku, 1)
	known, err := h.shop.Hold(ctx, sku, "customer")
	require.NoError(t, err)
	// An id of this SKU that was never given.
	unknown := known.HoldID[:len("hold_")+8] + strings.Repeat("a", 18)

	a, err := h.shop.Confirm(ctx, unknown, "pay_door")
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, a.Status, a)
	require.NotNil(t, a.Problem().Refund, a)
	require.Equal(t, "parked", a.Problem().Refund.State)
	_, err = h.temporal.ExecuteWorkflow(ctx,
		client.StartWorkflowOptions{ID: paymentID(unknown, "pay_stranger"), TaskQueue: "holdfast"}, "Payment",
		map[string]any{"payment_id": paymentID(unknown, "pay_stranger"), "hold_id": unknown, "payment_ref": "pay_stranger", "cause": "unknown"})
	require.NoError(t, err)
	for _, ref := range []string{"pay_door", "pay_stranger"} {
		require.NoError(t, until(ctx, ref+" is parked", func() error {
			v, err := h.temporal.QueryWorkflow(ctx, paymentID(unknown, ref), "", "status")
			if err != nil {
				return err
			}
			var status struct {
				State string `json:"state"`
			}
			if err := v.Get(&status); err != nil {
				return err
			}
			if status.State != "parked" {
				err = errors.New("it is " + status.State)
			}
			return err
		}))
	}
	h.judge(t, sku)
}

// rawRef is the reference that money gets of which nobody could read more.
func rawRef(data string) string {
	sum := sha256.Sum256([]byte(data))
	return "raw-" + hex.EncodeToString(sum[:])
}

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/internal/stripetest"
)

// Stripe's own words make sales and settle refunds, and what shoppers may still
// pay ends with their hold.
func TestStripeTakesThePayments(t *testing.T) {
	h := newStripeHouse(t)
	ctx := t.Context()
	var sale, late struct{ hold, ref string }

	// B28.
	t.Run("a signed webhook makes the sale, beside the return page", func(t *testing.T) {
		sku := "stripe-sale"
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		body := h.stripe.Event("payment_intent.succeeded", pi, nil)
		status, answer, err := h.post(t, body, stripetest.Sign(body, time.Now(), "whsec_of-somebody-else"))
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status, "%s", answer)
		require.Contains(t, string(answer), "signature-invalid")

		race(func() { h.deliver(t, "payment_intent.succeeded", pi) }, func() {
			_, err := h.shop.Confirm(ctx, hold.HoldID, pi)
			require.NoError(t, err)
		})
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		sold := confirmed(t, h.house, hold.HoldID, pi)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, 1, h.sales(t, sku))
		sale.hold, sale.ref = hold.HoldID, pi
		h.forget(t, hold.HoldID)

		second := h.intent(hold.HoldID)
		h.stripe.Pay(second)
		require.Equal(t, "payment-conflict", h.deliver(t, "payment_intent.succeeded", second).Outcome)
		h.paymentState(t, paymentID(hold.HoldID, second), "refund-settled")
		require.Len(t, h.stripe.Refunds(), 1)
		require.Equal(t, second, h.stripe.Get(h.stripe.Refunds()[0])["payment_intent"], "never the payment that made the sale")
		h.judge(t, sku)
	})

	t.Run("a late payment goes back once, whatever repeats", func(t *testing.T) {
		sku, before := "stripe-late", len(h.stripe.Refunds())
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		owner := paymentID(hold.HoldID, pi)
		// The refund is made, and its answer lost.
		h.stripe.NewRefunds("pending")
		h.stripe.Next(&stripetest.Fault{On: "POST /v1/refunds", Drop: true, Done: true})
		got := h.deliver(t, "payment_intent.succeeded", pi)
		require.Equal(t, []string{"hold-ended", owner}, []string{got.Outcome, got.PaymentID})
		h.paymentState(t, owner, "refund-reported")
		require.Contains(t, h.stripe.Keys(), "holdfast-refund-"+owner)
		refunds := h.stripe.Refunds()[before:]
		require.Len(t, refunds, 1)

		h.stripe.NewRefunds("succeeded")
		h.stripe.EndRefund(refunds[0], "succeeded")
		require.Equal(t, "told", h.deliver(t, "refund.updated", refunds[0]).Outcome)
		require.NoError(t, h.closed(ctx, owner))
		require.Equal(t, "nothing", h.deliver(t, "refund.updated", refunds[0]).Outcome)

		// Replayed after the settled refund.
		require.Equal(t, "hold-ended", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		h.paymentState(t, owner, "refund-settled")
		late.hold, late.ref = hold.HoldID, pi
		h.forget(t, owner, hold.HoldID)
		require.Len(t, h.stripe.Refunds()[before:], 1, "one refund")
		h.judge(t, sku)
	})

	// B18, B25.
	t.Run("what an expired hold left open is closed", func(t *testing.T) {
		sku := "stripe-open"
		h.opened(t, sku, 1)
		hold, cs := h.begun(t, sku, func(id string) string { return h.stripe.Session(id, "", 4900, "eur") })
		_, err := h.holdState(ctx, hold.HoldID, "expired")
		require.NoError(t, err)
		require.Equal(t, "expired", h.stripe.Get(cs)["status"], "before the unit went")
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.NotContains(t, h.details(t, hold.HoldID), "Unresolved")
		require.Equal(t, "nothing", h.deliver(t, "checkout.session.expired", cs).Outcome)
		h.judge(t, sku)
	})

	t.Run("what a released hold left open is closed", func(t *testing.T) {
		sku := "stripe-released"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, "canceled", h.stripe.Get(pi)["status"])
		h.judge(t, sku)
	})

	// B21.
	t.Run("paid, and the webhook was lost", func(t *testing.T) {
		sku := "stripe-lost"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Pay(pi)
		sold, err := h.holdState(ctx, hold.HoldID, "sold")
		require.NoError(t, err)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome, "it comes in the end")
		require.Equal(t, 1, h.sales(t, sku))
		h.judge(t, sku)
	})

	t.Run("nobody knows whether it was paid", func(t *testing.T) {
		sku := "stripe-unresolved"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Set(pi, stripetest.Object{"status": "processing"})
		_, err := h.holdState(ctx, hold.HoldID, "expired")
		require.NoError(t, err)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Contains(t, h.details(t, hold.HoldID), "- **Unresolved**: **a person should look at the provider**: `"+pi+"`: `"+pi+" is under way")
		h.judge(t, sku)
	})

	t.Run("money of a hold that nobody knows is listed", func(t *testing.T) {
		pi := h.intent("cart 17")
		h.stripe.Pay(pi)
		got := h.deliver(t, "payment_intent.succeeded", pi)
		require.Equal(t, "parked", got.Outcome)
		require.NoError(t, until(ctx, "the list shows it", func() error {
			out, err := h.operator("refunds", "--open")
			if err == nil && !strings.Contains(out, got.PaymentID) {
				err = errors.New(out)
			}
			return err
		}))
		_, err := h.operator("refunds", "retry", got.PaymentID)
		require.ErrorContains(t, err, "is parked: a person must find out")
		_, err = h.operator("refunds", "settle", got.PaymentID, "--ref", "booked elsewhere", "--yes")
		require.NoError(t, err)
		require.Equal(t, "refund-settled", h.deliver(t, "payment_intent.succeeded", pi).Outcome, "what a person has settled stays settled")
	})

	t.Run("a refund that was refused is asked for again", func(t *testing.T) {
		sku := "stripe-retry"
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		_, err = h.shop.Declined(ctx, hold.HoldID, "pi_declined")
		require.NoError(t, err)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		h.stripe.Next(&stripetest.Fault{On: "POST /v1/refunds", Status: http.StatusForbidden})
		owner := h.deliver(t, "payment_intent.succeeded", pi).PaymentID
		require.NoError(t, until(ctx, "a person is told", func() error {
			if d := h.details(t, owner); !strings.Contains(d, "a person must pay this money back") {
				return errors.New(d)
			}
			return nil
		}))
		out, err := h.operator("refunds", "retry", owner)
		require.NoError(t, err)
		require.Contains(t, out, owner+" is refund-settled: the money has gone back, reference re_")
		require.NoError(t, h.closed(ctx, owner))
		h.judge(t, sku)
	})

	t.Run("one payment told of for two holds stays with its own", func(t *testing.T) {
		sku, before := "stripe-two-holds", len(h.stripe.Refunds())
		h.opened(t, sku, 2)
		own, err := h.shop.Hold(ctx, sku, "customer-1")
		require.NoError(t, err)
		other, err := h.shop.Hold(ctx, sku, "customer-2")
		require.NoError(t, err)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+other.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		pi := h.intent(own.HoldID)
		h.stripe.Pay(pi)
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		a, err = h.shop.Confirm(ctx, other.HoldID, pi)
		require.NoError(t, err)
		require.Equal(t, "payment-conflict", a.Code(), a)
		owner := paymentID(other.HoldID, pi)
		require.NoError(t, until(ctx, "a person is told", func() error {
			if d := h.details(t, owner); !strings.Contains(d, "belongs to "+own.HoldID) {
				return errors.New(d)
			}
			return nil
		}))
		confirmed(t, h.house, own.HoldID, pi)
		require.Len(t, h.stripe.Refunds(), before, "it made a sale")
		_, err = h.operator("refunds", "settle", owner, "--ref", "nothing to pay back", "--yes")
		require.NoError(t, err)
		h.judge(t, sku)
	})

	t.Run("the worker is killed while it asks", func(t *testing.T) {
		sku := "stripe-killed"
		h.opened(t, sku, 1)
		asked, over := make(chan struct{}), make(chan struct{})
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Pay(pi)
		h.stripe.Next(&stripetest.Fault{On: "GET /v1/payment_intents/" + pi, Before: func() { close(asked); <-over }})
		<-asked
		h.Child(stack.Worker).Kill()
		close(over)
		require.NoError(t, h.Child(stack.Worker).Start(ctx))
		sold, err := h.holdState(ctx, hold.HoldID, "sold")
		require.NoError(t, err)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, 1, h.sales(t, sku))
		h.judge(t, sku)
	})

	// B22, B109.
	t.Run("replayed after the retention of the runs, the record decides", func(t *testing.T) {
		before, owner := len(h.stripe.Refunds()), paymentID(late.hold, late.ref)
		h.forgotten(t, sale.hold, late.hold, owner)
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", sale.ref).Outcome)
		confirmed(t, h.house, sale.hold, sale.ref)
		require.Equal(t, "hold-ended", h.deliver(t, "payment_intent.succeeded", late.ref).Outcome)
		h.paymentState(t, owner, "refund-settled")
		require.NoError(t, h.closed(ctx, owner))
		require.Len(t, h.stripe.Refunds(), before, "what had gone back is found at Stripe")
		h.judge(t, "stripe-sale", "stripe-late")
	})
}

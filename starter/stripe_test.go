package starter

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/stripetest"
	"holdfast/launch"
	"holdfast/payment"
	"holdfast/redis"
)

const stripeSecret = "whsec_the-endpoint-of-the-tests"

// stripeHouse is a house whose payments Stripe's stand-in takes.
type stripeHouse struct {
	*house
	stripe *stripetest.Server
}

func withStripe(t *testing.T, units int64) *stripeHouse {
	t.Helper()
	s := stripetest.New()
	t.Cleanup(s.Close)
	h := newHouse(t, units, func(cfg *config.Config, _ *redis.Options) {
		cfg.Payment.Provider, cfg.Payment.Timeout = payment.ProviderStripe, 5*time.Second
		cfg.Payment.Stripe.Key, cfg.Payment.Stripe.BaseURL = s.Key, s.URL
		cfg.Payment.Stripe.WebhookSecrets = []string{stripeSecret}
	})
	return &stripeHouse{h, s}
}

// hook delivers a signed event as Stripe does.
func (h *stripeHouse) hook(body []byte) answer {
	h.t.Helper()
	return h.signed(body, stripetest.Sign(body, time.Now(), stripeSecret))
}

func (h *stripeHouse) signed(body []byte, signature string) answer {
	r := httptest.NewRequestWithContext(h.t.Context(), "POST", "/v1/webhooks/stripe", bytes.NewReader(body))
	r.Header.Set("Stripe-Signature", signature)
	return h.send(r)
}

// deliver delivers what an object of the stand-in is now.
func (h *stripeHouse) deliver(kind, id string) stripeView {
	h.t.Helper()
	a := h.hook(h.stripe.Event(kind, id, nil))
	require.Equal(h.t, http.StatusOK, a.status, a.body)
	var v stripeView
	a.into(h.t, &v)
	return v
}

// paid is a payment of 4900 cents for a hold.
func (h *stripeHouse) paid(holdID string) string {
	id := h.stripe.Intent(holdID, 4900, "eur")
	h.stripe.Pay(id)
	return id
}

func TestStripePaymentMakesTheSale(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	pi := h.paid(v.HoldID)
	for range 3 { // Stripe repeats, and the return page confirms as well
		got := h.deliver("payment_intent.succeeded", pi)
		require.Equal(t, contract.ConfirmSold, got.Outcome)
		require.Equal(t, contract.HoldSold, h.confirm(v.HoldID, pi).hold(t).State)
	}
	require.Equal(t, pi, h.record(v.HoldID).PaymentRef)
	require.Equal(t, [4]int64{0, 0, 0, 1}, h.parts())
	require.Equal(t, 1, h.wf.called("Confirm"), "the others saw the record")
	require.Empty(t, h.wf.decided)
}

func TestStripePaymentStartsAndFails(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	pi := h.stripe.Intent(v.HoldID, 4900, "eur")
	amount := int64(4900)
	require.Equal(t, stripeTold, h.deliver("payment_intent.requires_action", pi).Outcome)
	require.Equal(t, sentSignal{v.HoldID, contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: pi, Amount: &amount, Currency: "EUR"}}, h.wf.sent()[0])
	require.True(t, h.record(v.HoldID).Extended)

	require.Equal(t, stripeTold, h.deliver("payment_intent.payment_failed", pi).Outcome)
	require.Equal(t, sentSignal{v.HoldID, contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: pi, Reason: "declined", AttemptOnly: true}}, h.wf.sent()[1])
	require.Equal(t, contract.HoldHeld, h.record(v.HoldID).State)

	h.stripe.Set(pi, stripetest.Object{"status": "canceled", "cancellation_reason": "requested_by_customer"})
	require.Equal(t, stripeTold, h.deliver("payment_intent.canceled", pi).Outcome)
	require.True(t, h.wf.sent()[2].Arg.(contract.PaymentFailed).Final)
	require.Equal(t, contract.HoldReleased, h.record(v.HoldID).State)

	h.untouched(func() { // whatever comes after the end
		for _, kind := range []string{"payment_intent.requires_action", "payment_intent.payment_failed", "payment_intent.canceled"} {
			require.Equal(t, stripeNothing, h.deliver(kind, pi).Outcome, kind)
		}
	})
}

// A hold whose workflow is gone gives its units back all the same; what is only
// offered or sold is not touched by a word about a payment.
func TestStripeFailureWithoutAWorkflow(t *testing.T) {
	h := withStripe(t, 2)
	gone, sold := h.hold(), h.askHold("another").hold(t)
	h.wf.set(func() { h.wf.holds = map[string]contract.HoldInput{} })
	_, err := h.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: h.sku, HoldID: sold.HoldID, PaymentRef: "pi_other"})
	require.NoError(t, err)
	cancelled := func(holdID string) stripeView {
		pi := h.stripe.Intent(holdID, 4900, "eur")
		h.stripe.Set(pi, stripetest.Object{"status": "canceled", "cancellation_reason": "requested_by_customer"})
		return h.deliver("payment_intent.canceled", pi)
	}
	require.Equal(t, contract.ReasonPaymentFailed, cancelled(gone.HoldID).Outcome)
	require.Equal(t, contract.HoldReleased, h.record(gone.HoldID).State)
	h.untouched(func() {
		require.Equal(t, stripeNothing, cancelled(gone.HoldID).Outcome)
		require.Equal(t, stripeNothing, cancelled(sold.HoldID).Outcome)
		require.Equal(t, stripeNothing, cancelled(contract.HoldID(h.sku, []byte("eleven bytes"))).Outcome)
	})
}

func TestStripePaymentOfAnEndedHold(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil)
	pi := h.paid(v.HoldID)
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	got := h.deliver("payment_intent.succeeded", pi)
	require.Equal(t, []string{holdEnded, contract.PaymentID(v.HoldID, pi)}, []string{got.Outcome, got.PaymentID})
	require.Equal(t, contract.CauseLate, h.wf.decided[0].Cause)
	require.EqualValues(t, 4900, *h.wf.decided[0].Amount)

	// Neither Temporal nor the gate answers: Stripe is asked to send it again.
	h.wf.fail["Decide"] = errTemporalDown
	a := h.hook(h.stripe.Event("payment_intent.succeeded", pi, nil))
	exact(t, a, 503, unavailable)
	require.NotEmpty(t, a.header.Get("Retry-After"))
}

// Money that names a hold nobody knows waits for a person, and Stripe gets 200:
// it cannot mend that by sending it again.
func TestStripeMoneyOfAnUnknownHoldIsListed(t *testing.T) {
	h := withStripe(t, 1)
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmHoldEnded}
	for name, hold := range map[string]string{
		"another shop's": contract.HoldID("NOBODY", []byte("eleven bytes")),
		"never given":    contract.HoldID(h.sku, []byte("eleven bytes")),
		"no id at all":   "cart 17",
		"no name":        "",
		"endless":        strings.Repeat("é", 500),
	} {
		t.Run(name, func(t *testing.T) {
			pi := h.paid(hold)
			before := len(h.wf.decided)
			got := h.deliver("payment_intent.succeeded", pi)
			require.Equal(t, contract.PaymentParked, got.Outcome)
			require.Len(t, h.wf.decided, before+1)
			in := h.wf.decided[before]
			require.Equal(t, got.PaymentID, in.PaymentID)
			require.Equal(t, contract.PaymentID(in.HoldID, pi), in.PaymentID)
			require.Equal(t, []any{pi, contract.CauseUnknown, "EUR"}, []any{in.PaymentRef, in.Cause, in.Currency})
			require.LessOrEqual(t, len([]rune(in.HoldID)), 60, "it becomes part of a summary")
			require.Contains(t, h.log.String(), in.PaymentID)

			// A person has settled it: a repeat stays settled.
			run := PaymentRun{ID: in.PaymentID, RunID: "run of " + pi, StartedAt: paidAt}
			h.closes(run, contract.PaymentStatus{PaymentID: in.PaymentID, State: contract.PaymentRefundSettled}, true)
			h.deliver("payment_intent.succeeded", pi)
			require.Len(t, h.wf.decided, before+1)
		})
	}
	require.Equal(t, 0, h.wf.called("Signal"))
	h.dir.err = errTemporalDown
	exact(t, h.hook(h.stripe.Event("payment_intent.succeeded", h.paid("cart 18"), nil)), 503, unavailable)
}

// An account may sell other things: a payment says so, or the configuration.
func TestStripeEventsOfOthersAreLeftAlone(t *testing.T) {
	h := withStripe(t, 1)
	h.untouched(func() {
		got := h.deliver("payment_intent.succeeded", h.paid("none"))
		require.Equal(t, []string{"ignored", stripeNothing}, []string{got.Kind, got.Outcome})
		require.Contains(t, got.Reason, "no hold")
	})
	require.Empty(t, h.wf.decided)
}

// A person pays such money back in the Dashboard: that settles it, like any other.
func TestStripeMoneyWithoutAHoldIsSettledByHand(t *testing.T) {
	h := withStripe(t, 1)
	pi := h.paid("")
	id := contract.PaymentID("", pi)
	re := h.stripe.RefundByHand(pi, 4900)
	h.wf.onSettle = func(string, contract.RefundSettled) error { return nil }
	require.Equal(t, stripeTold, h.deliver("refund.updated", re).Outcome)
	require.Equal(t, []sentSignal{{id, contract.SignalRefundSettled, contract.RefundSettled{Reference: re, Actor: "stripe"}}}, h.wf.sent())
}

func TestStripeRefundsSettleTheirPayment(t *testing.T) {
	h := withStripe(t, 1)
	hold := contract.HoldID(h.sku, []byte("eleven bytes"))
	pi := h.paid(hold)
	run, s := h.payment(pi, contract.PaymentRefundReported)
	re := h.stripe.RefundByHand(pi, 4900)
	h.wf.onSettle = func(string, contract.RefundSettled) error { return nil }
	require.Equal(t, stripeTold, h.deliver("refund.updated", re).Outcome)
	require.Equal(t, []sentSignal{{run.ID, contract.SignalRefundSettled, contract.RefundSettled{Reference: re, Actor: "stripe"}}}, h.wf.sent())

	// A repeat after it has closed, and a refund of a sale, which has no Payment.
	h.wf.onSettle = func(string, contract.RefundSettled) error { return launch.ErrNoOwner }
	s.State, s.Reference = contract.PaymentRefundSettled, re
	h.closes(run, s, true)
	require.Equal(t, stripeNothing, h.deliver("refund.updated", re).Outcome)
	require.Equal(t, stripeNothing, h.deliver("refund.updated", h.stripe.RefundByHand(h.paid(hold), 4900)).Outcome)
	require.Empty(t, h.wf.decided)

	// Days later it comes back: a person must act, so the Payment opens anew.
	h.stripe.EndRefund(re, "failed")
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	got := h.deliver("refund.failed", re)
	require.Equal(t, []string{contract.PaymentRefundPending, run.ID}, []string{got.Outcome, got.PaymentID})
	require.Equal(t, []any{run.ID, hold, h.sku, pi, contract.CauseLate},
		[]any{h.wf.decided[0].PaymentID, h.wf.decided[0].HoldID, h.wf.decided[0].SKU, h.wf.decided[0].PaymentRef, h.wf.decided[0].Cause})

	// A person has settled it in another way: an old word changes nothing.
	s.Reference = "bank transfer 7"
	h.closes(run, s, true)
	require.Equal(t, stripeNothing, h.deliver("refund.failed", re).Outcome)
	require.Len(t, h.wf.decided, 1)
	other := h.paid(hold)
	never := h.stripe.RefundByHand(other, 4900)
	h.stripe.EndRefund(never, "failed")
	require.Equal(t, stripeNothing, h.deliver("refund.failed", never).Outcome, "a refund of the shop's own, of a sale")
	require.Len(t, h.wf.decided, 1)
}

func TestStripeRefundFailsWhileItIsOpen(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	pi := h.paid(v.HoldID)
	re := h.stripe.RefundByHand(pi, 4900)
	h.stripe.EndRefund(re, "failed")
	id := contract.PaymentID(v.HoldID, pi)
	h.wf.set(func() { h.wf.holds[id], h.wf.inert = contract.HoldInput{}, true }) // an open workflow of that id
	require.Equal(t, stripeTold, h.deliver("refund.failed", re).Outcome)
	require.Equal(t, []sentSignal{{id, contract.SignalRefundFailed, contract.RefundFailed{Reference: re, Reason: "the refund is failed lost_or_stolen_card"}}}, h.wf.sent())
}

func TestStripeWebhookRefusals(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	body := h.stripe.Event("payment_intent.succeeded", h.paid(v.HoldID), nil)
	h.untouched(func() {
		for _, signature := range []string{
			"", "t=1,v1=ab", stripetest.Sign(body, time.Now(), "whsec_another-secret"),
			stripetest.Sign(body, time.Now().Add(-time.Hour), stripeSecret), stripetest.Sign([]byte("{}"), time.Now(), stripeSecret),
		} {
			exact(t, h.signed(body, signature), 401, signatureInvalid)
		}
		for _, not := range []string{"", "{", "[]", `{"object":"event"}`, `{"object":"v2.core.event","type":"v1.x"}`} {
			exact(t, h.hook([]byte(not)), 400, malformedBody)
		}
		large := append(bytes.Repeat([]byte(" "), 256<<10-len(body)), body...)
		p := exact(t, h.hook(append(large, ' ')), 413, bodyTooLarge)
		require.Contains(t, p.Detail, "262144")
		require.Zero(t, h.wf.called("Confirm"))

		// Stripe is away while a refund's event is read.
		re := h.stripe.RefundByHand(h.paid(v.HoldID), 4900)
		event := h.stripe.Event("refund.updated", re, nil)
		h.stripe.Next(&stripetest.Fault{On: "GET /v1/refunds", Status: 500})
		a := h.hook(event)
		exact(t, a, 503, unavailable)
		require.NotEmpty(t, a.header.Get("Retry-After"))
	})
	large := append(bytes.Repeat([]byte(" "), 256<<10-len(body)), body...)
	a := h.hook(large)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, contract.HoldSold, h.record(v.HoldID).State, "256 KiB are taken")
	require.NotContains(t, h.log.String(), v.HoldID)
}

func TestStripeWebhookIsThereWithStripeOnly(t *testing.T) {
	h := newHouse(t, 0)
	require.Equal(t, http.StatusNotFound, h.call("POST", "/v1/webhooks/stripe", "{}").status)
	s := withStripe(t, 1)
	v := s.hold()
	require.True(t, s.wf.holds[v.HoldID].Settings.AsksProvider)
	h.restock(1)
	v = h.hold()
	require.False(t, h.wf.holds[v.HoldID].Settings.AsksProvider)
}

// One payment has one name: that of its PaymentIntent.
func TestConfirmTakesNamesOfMoneyOnly(t *testing.T) {
	h := withStripe(t, 1)
	v := h.hold()
	h.untouched(func() {
		for _, ref := range []string{"cs_test_1", "ch_1", "order-7", "pi_", "PI_1"} {
			p := exact(t, h.confirm(v.HoldID, ref), 422, validationFailed, "/payment_ref")
			require.Contains(t, p.Errors[0].Detail, "is no PaymentIntent: send its id (pi_…)")
		}
		exact(t, h.confirm(v.HoldID, ""), 422, validationFailed, "/payment_ref")
	})
	require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+v.HoldID+"/checkout", map[string]any{"payment_ref": "cs_test_1"}).status, "a session may be announced")
	require.Equal(t, http.StatusOK, h.confirm(v.HoldID, "pi_1").status)
}

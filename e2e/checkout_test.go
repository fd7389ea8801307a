package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// B3: what comes after the reservation fails for good, and somebody waits.
func TestDeclinedCard(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "declined"
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "customer-1")
	require.NoError(t, err)
	next, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)

	answer, err := h.shop.Declined(ctx, hold.HoldID, "pay_declined")
	require.NoError(t, err)
	require.Less(t, answer.Status, 300, answer)

	ended, err := h.holdState(ctx, hold.HoldID, "released")
	require.NoError(t, err)
	require.Equal(t, "payment-failed", ended.EndReason)
	text, err := h.offerText(ctx, next.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0, 1, 0}, []int64{stock.OnHand, stock.Held, stock.Offered, stock.Sold}, "on_hand, held, offered, sold")
	require.NoError(t, h.closed(ctx, hold.HoldID))
	h.judge(t, sku)
}

// The answer to a confirm never arrives; the checkout sends it again.
func TestLostConfirm(t *testing.T) {
	for name, early := range map[string]bool{"answer-dropped": false, "connection-cut": true} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			h := sharedHouse(t)
			sku := "lost-" + name
			h.opened(t, sku, 2)
			hold, err := h.shop.Hold(ctx, sku, "customer-1")
			require.NoError(t, err)
			other, err := h.shop.Hold(ctx, sku, "customer-2")
			require.NoError(t, err)

			line := newLossy(t, h.shop.URL, early)
			_, err = h.shop.At(line.url).Confirm(ctx, hold.HoldID, "pay_lost_"+name)
			require.Error(t, err, "the proxy loses the answer")
			line.lost.Wait()

			again := confirmed(t, h, hold.HoldID, "pay_lost_"+name)
			require.NoError(t, h.closed(ctx, hold.HoldID))
			require.Equal(t, again, confirmed(t, h, hold.HoldID, "pay_lost_"+name), "answer after the run has closed")

			sales := 0
			for _, l := range h.ledger(t, sku) {
				if l.State == "sold" {
					sales++
					require.Equal(t, hold.HoldID, l.Ref)
				}
			}
			require.Equal(t, 1, sales)
			untouched, err := h.shop.ReadHold(ctx, other.HoldID)
			require.NoError(t, err)
			require.Equal(t, "held", untouched.State)
			h.judge(t, sku)
		})
	}
}

// confirmed confirms and returns the hold without the answer's own time.
func confirmed(t *testing.T, h *house, holdID, ref string) shop.Hold {
	t.Helper()
	a, err := h.shop.Confirm(t.Context(), holdID, ref)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	hold, err := shop.ParseHold(a)
	require.NoError(t, err)
	require.Equal(t, "sold", hold.State)
	require.Equal(t, ref, hold.PaymentRef)
	hold.Now = time.Time{}
	return hold
}

// Nobody looks for expired holds: the hold's own timer gives the unit back.
// B7, B11.
func TestAbandonedCart(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "abandoned"
	h.opened(t, sku, 1)
	hold, err := h.door(t, "HOLDFAST_HOLD_TTL", "5s").Hold(ctx, sku, "customer-1")
	require.NoError(t, err)
	require.LessOrEqual(t, hold.ExpiresAt.Sub(hold.Now), 5*time.Second)
	next, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)

	ended, err := h.holdState(ctx, hold.HoldID, "expired")
	require.NoError(t, err)
	require.Equal(t, "expired", ended.EndReason)
	text, err := h.offerText(ctx, next.EntryID)
	require.NoError(t, err)

	lines := h.ledger(t, sku)
	at := -1
	for i, l := range lines {
		if l.Ref == hold.HoldID && l.Verb == "release" {
			at = i
		}
	}
	require.GreaterOrEqual(t, at, 0, "no release line in %+v", lines)
	release := lines[at]
	require.Equal(t, "hold timer", release.Actor, "nobody but the timer may have released it")
	require.False(t, release.At.Before(hold.ExpiresAt), "released %s before %s", release.At, hold.ExpiresAt)
	require.Greater(t, len(lines), at+1, "no line after the release")
	offer := lines[at+1]
	require.Equal(t, []string{"offer", text.HoldID}, []string{offer.Verb, offer.Ref})
	require.NoError(t, h.closed(ctx, hold.HoldID))
	h.judge(t, sku)
	figure(t, "release_after_deadline", float64(release.At.Sub(hold.ExpiresAt).Milliseconds()), "ms")
}

// A checkout that has only a Temporal client and the names on the wire.
func TestStrangersCheckout(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "stranger"
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "customer-1")
	require.NoError(t, err)

	pay := map[string]any{"payment_ref": "pay_stranger", "amount": 4900, "currency": "EUR"}
	require.NoError(t, h.temporal.SignalWorkflow(ctx, hold.HoldID, "", "payment-started", pay))
	require.NoError(t, until(ctx, "the stranger sees the extension", func() error {
		status, err := strangersView(t, h, hold.HoldID)
		if err == nil && !status.Extended {
			err = errors.New("not extended")
		}
		return err
	}))
	require.NoError(t, h.temporal.SignalWorkflow(ctx, hold.HoldID, "", "payment-succeeded", pay))
	var result struct {
		State      string `json:"state"`
		PaymentRef string `json:"payment_ref"`
	}
	require.NoError(t, h.temporal.GetWorkflow(ctx, hold.HoldID, "").Get(ctx, &result))
	require.Equal(t, "sold", result.State)
	require.Equal(t, "pay_stranger", result.PaymentRef)

	sold, err := h.shop.ReadHold(ctx, hold.HoldID)
	require.NoError(t, err)
	require.Equal(t, "sold", sold.State)
	require.Equal(t, "pay_stranger", sold.PaymentRef)
	h.judge(t, sku)
	facts, err := h.check.Read(ctx, sku)
	require.NoError(t, err)
	figure(t, "history_events_of_a_paid_hold_with_extension", float64(facts.Workflows[hold.HoldID].Events), "events")
}

type strangersStatus struct {
	State    string `json:"state"`
	Extended bool   `json:"extended"`
}

// strangersView is the query status, read without any type of the product.
func strangersView(t *testing.T, h *house, holdID string) (strangersStatus, error) {
	var raw json.RawMessage
	var out strangersStatus
	v, err := h.temporal.QueryWorkflow(t.Context(), holdID, "", "status")
	if err != nil {
		return out, err
	}
	if err := v.Get(&raw); err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

// B20, B25, B31, B55: a hold that is simply confirmed counts once, at once: one of two is
// left, and no two are to be had. Nothing that ends a hold moves what was sold.
func TestPlainSale(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "plain"
	h.opened(t, sku, 2)
	hold, err := h.shop.Hold(ctx, sku, "customer-1")
	require.NoError(t, err)
	confirmed(t, h, hold.HoldID, "pay_plain")
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 0, 1}, []int64{stock.OnHand, stock.Available, stock.Held, stock.Sold}, "on_hand, available, held, sold")
	require.NoError(t, h.closed(ctx, hold.HoldID))
	h.untouched(t, sku, func() {
		two, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{"sku": sku, "quantity": 2, "customer": "customer-2"}, "Idempotency-Key", shop.Token())
		require.NoError(t, err)
		require.Equal(t, "sold-out", two.Code(), "all or nothing: %s", two)
		for verb, body := range map[string]any{
			"release": map[string]any{"reason": "shop"}, "checkout": map[string]any{"payment_ref": "pay_plain"},
			"payment-failed": map[string]any{"payment_ref": "pay_plain", "reason": "expired", "final": true},
		} {
			a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/"+verb, body)
			require.NoError(t, err)
			require.Less(t, a.Status, http.StatusInternalServerError, a)
		}
	})
	confirmed(t, h, hold.HoldID, "pay_plain")
	second, err := h.shop.Confirm(ctx, hold.HoldID, "pay_other")
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, second.Status, second)
	require.Equal(t, "payment-conflict", second.Code())
	h.judge(t, sku)
	facts, err := h.check.Read(ctx, sku)
	require.NoError(t, err)
	figure(t, "history_events_of_a_confirmed_hold", float64(facts.Workflows[hold.HoldID].Events), "events")
}

// One payment arrives by the API and by a signal in the same instant, and by the
// signal once more.
// B28.
func TestOnePaymentOverTwoRoads(t *testing.T) {
	const holds = 20
	h := sharedHouse(t)
	sku := "two-roads"
	h.opened(t, sku, holds)
	require.NoError(t, each(t.Context(), holds, 5, func(ctx context.Context, i int) error {
		hold, err := h.shop.Hold(ctx, sku, "customer")
		if err != nil {
			return err
		}
		pay := map[string]any{"payment_ref": "pay_" + hold.HoldID}
		var answer shop.Answer
		var confirmErr, signalErr error
		sides := []func(){
			func() {
				// Unanswered in time is 503, and asks to be repeated.
				confirmErr = until(ctx, "the confirm is answered", func() (err error) {
					answer, err = h.shop.Confirm(ctx, hold.HoldID, "pay_"+hold.HoldID)
					if err == nil && answer.Status == http.StatusServiceUnavailable {
						err = errors.New(answer.String())
					}
					return err
				})
			},
			func() {
				for range 2 {
					err := h.temporal.SignalWorkflow(ctx, hold.HoldID, "", "payment-succeeded", pay)
					var closed *serviceerror.NotFound
					if err != nil && !errors.As(err, &closed) {
						signalErr = err
					}
				}
			},
		}
		race(sides[i%2], sides[1-i%2])
		if err := errors.Join(confirmErr, signalErr); err != nil {
			return err
		}
		if answer.Status != http.StatusOK {
			return fmt.Errorf("the confirm got %s", answer)
		}
		return h.closed(ctx, hold.HoldID)
	}))
	stock, err := h.shop.Stock(t.Context(), sku)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, holds}, []int64{stock.OnHand, stock.Held, stock.Sold}, "on_hand, held, sold")
	refunds, err := check.List(t.Context(), h.temporal, "WorkflowType = 'Payment' AND HoldfastSku = '"+sku+"'")
	require.NoError(t, err)
	require.Empty(t, refunds, "the payment that made a sale has no refund")
	h.judge(t, sku)
}

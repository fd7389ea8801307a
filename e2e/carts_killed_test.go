package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
	"holdfast/redis"
)

// The worker dies between two lines of a cart, or is stopped over the deadline of
// one. Nothing is sold by halves, and a payment has one outcome.
func TestCartsOfAWorkerThatDies(t *testing.T) {
	const short = 3 * time.Second
	h := ownHouse(t, stack.Options{AppendFsync: "always", Env: map[string]string{
		"HOLDFAST_GATE_REOPEN_WAIT": "3s", "HOLDFAST_HOLD_TTL": "6s", "HOLDFAST_HOLD_GRACE": "0s",
	}}, short)
	t.Run("between two confirms", h.diesBetweenConfirms)
	t.Run("the payment comes with the timer", h.paidWithTheTimer)
	t.Run("the expiry was first", h.paidAfterTheExpiry)
	t.Run("the release was done, its answer lost", func(t *testing.T) { h.paidAfterALostRelease(t, 3) })
	t.Run("a line does not answer", h.endsWithALineThatDoesNotAnswer)
	t.Run("a line does not answer when it is taken", h.takenWithALineThatDoesNotAnswer)
	t.Run("the release was half done", func(t *testing.T) { h.paidAfterALostRelease(t, 1) })
}

// diesBetweenConfirms closes the second line's gate, so that a confirm stops there.
func (h *house) diesBetweenConfirms(t *testing.T) {
	ctx := t.Context()
	skus := h.cartSKUs(t, "dies-between", 1, 1, 1)
	long := h.door(t, "HOLDFAST_HOLD_TTL", "10m")
	cart, err := long.Cart(ctx, skus, "ada")
	require.NoError(t, err)
	h.status(t, cart.HoldID, "knows of every line", inState("held")) // or it would stop at the adoption
	require.NoError(t, h.redis.HSet(ctx, "hf:{"+skus[1]+"}:stock", "fence", "elsewhere").Err())
	require.NoError(t, h.temporal.SignalWorkflow(ctx, cart.HoldID, "", "payment-succeeded", map[string]string{"payment_ref": "pay_between"}))
	require.NoError(t, until(ctx, "the first line is sold", func() error {
		f, err := h.check.Gate(ctx, skus[0])
		if state := f.Holds[cart.HoldID].State; err == nil && state != "sold" {
			err = errors.New("it is " + state)
		}
		return err
	}))
	h.Child(stack.Worker).Kill()
	f, err := h.check.Gate(ctx, skus[2])
	require.NoError(t, err)
	require.Equal(t, "held", f.Holds[cart.HoldID].State, "between two lines")
	require.NoError(t, h.Child(stack.Worker).Start(ctx))
	_, err = h.holdState(ctx, cart.HoldID, "sold")
	require.NoError(t, err)
	h.requireCounts(t, skus, 0, 1)
	require.NoError(t, h.closed(ctx, cart.HoldID))
	h.judge(t, skus...)
}

// pay confirms until the door knows the outcome.
func (h *house) pay(ctx context.Context, holdID, ref string) (shop.Answer, error) {
	var a shop.Answer
	return a, until(ctx, "payment "+ref+" has an outcome", func() error {
		var err error
		if a, err = h.shop.Confirm(ctx, holdID, ref); err != nil {
			return err
		}
		if a.Status == http.StatusServiceUnavailable {
			return errors.New(a.String())
		}
		return nil
	})
}

// stopped takes a cart, kills the worker and waits until the cart's deadline has
// passed.
func (h *house) stopped(t *testing.T, skus []string) shop.Hold {
	t.Helper()
	ctx := t.Context()
	cart, err := h.shop.Cart(ctx, skus, "ada")
	require.NoError(t, err)
	h.Child(stack.Worker).Kill()
	require.NoError(t, until(ctx, "the deadline has passed", func() error {
		hold, err := h.shop.ReadHold(ctx, cart.HoldID)
		if err == nil && !hold.Now.After(hold.ExpiresAt.Add(100*time.Millisecond)) {
			err = fmt.Errorf("until %s it is %s", hold.ExpiresAt, hold.Now)
		}
		return err
	}))
	return cart
}

func (h *house) paidWithTheTimer(t *testing.T) {
	ctx := t.Context()
	skus := h.cartSKUs(t, "with-timer", 1, 1, 1)
	cart := h.stopped(t, skus)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, cart.HoldID, "", "payment-succeeded", map[string]string{"payment_ref": "pay_timer"}))
	require.NoError(t, h.Child(stack.Worker).Start(ctx))
	a, err := h.pay(ctx, cart.HoldID, "pay_timer")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "payment wins: %s", a)
	require.NoError(t, h.closed(ctx, cart.HoldID))
	h.requireCounts(t, skus, 0, 1)
	for _, sku := range skus {
		require.False(t, h.ledgerHas(t, sku, cart.HoldID, "release", "expired"), "never given back")
	}
	h.judge(t, skus...)
}

// ledgerHas says whether a hold has a line of a verb and kind.
func (h *house) ledgerHas(t *testing.T, sku, holdID, verb, kind string) bool {
	t.Helper()
	for _, l := range h.ledger(t, sku) {
		if l.Ref == holdID && l.Verb == verb && l.Kind == kind {
			return true
		}
	}
	return false
}

func (h *house) paidAfterTheExpiry(t *testing.T) {
	ctx := t.Context()
	skus := h.cartSKUs(t, "expiry-first", 1, 1, 1)
	cart := h.stopped(t, skus)
	require.NoError(t, h.Child(stack.Worker).Start(ctx))
	_, err := h.holdState(ctx, cart.HoldID, "expired")
	require.NoError(t, err)
	other, err := h.door(t, "HOLDFAST_HOLD_TTL", "10m").Hold(ctx, skus[2], "ben")
	require.NoError(t, err)
	a, err := h.pay(ctx, cart.HoldID, "pay_lost_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), "one line has gone to another: %s", a)
	h.requireCounts(t, skus[:2], 0, 0)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, other.HoldID, "", "release", map[string]string{"reason": "shop"}))
	_, err = h.holdState(ctx, other.HoldID, "released")
	require.NoError(t, err)
	a, err = h.pay(ctx, cart.HoldID, "pay_late_"+cart.HoldID)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "another payment finds all lines free: %s", a)
	h.requireCounts(t, skus, 0, 1)
	h.judge(t, skus...)
}

// paidAfterALostRelease: the dead worker had given lines back, the last ones first,
// and never knew. The payment comes while nobody works; Hold and Payment then run at
// the same time.
func (h *house) paidAfterALostRelease(t *testing.T, released int) {
	ctx := t.Context()
	skus := h.cartSKUs(t, fmt.Sprint("lost-release-", released), 1, 1, 1)
	cart := h.stopped(t, skus)
	dead := redis.New(h.redis, redis.Options{Lease: h.check.Lease, RecordRetention: time.Hour, SaleRetention: time.Hour, OfferMaxAge: time.Hour})
	for i, sku := range slices.Backward(skus) {
		if i < len(skus)-released {
			break
		}
		out, err := dead.Release(ctx, redis.ReleaseRequest{SKU: sku, HoldID: cart.HoldID, Reason: "expired", Actor: redis.ActorHoldTimer, Deadline: cart.ExpiresAt})
		require.NoError(t, err)
		require.Equal(t, redis.OK, out.Verdict)
	}
	require.NoError(t, h.temporal.SignalWorkflow(ctx, cart.HoldID, "", "payment-succeeded", map[string]string{"payment_ref": "pay_lost_" + cart.HoldID}))
	if released == len(skus) { // its Payment starts as well
		a, err := h.shop.Confirm(ctx, cart.HoldID, "pay_lost_"+cart.HoldID)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "nobody works: %s", a)
	}
	require.NoError(t, h.Child(stack.Worker).Start(ctx))
	a, err := h.pay(ctx, cart.HoldID, "pay_lost_"+cart.HoldID)
	require.NoError(t, err)
	sold := int64(0)
	if a.Status == http.StatusOK {
		sold = 1
	} else {
		require.Equal(t, "hold-ended", a.Code(), a)
	}
	if released == len(skus) {
		require.Equal(t, http.StatusOK, a.Status, "every line was free: its Payment sells them again: %s", a)
	}
	require.NoError(t, h.closed(ctx, cart.HoldID))
	h.requireCounts(t, skus, 0, sold)
	h.judge(t, skus...)
}

// takenWithALineThatDoesNotAnswer, B59: the third of four reservations is not answered. The
// cart is not promised; repeated it is whole, and sold whole.
func (h *house) takenWithALineThatDoesNotAnswer(t *testing.T) {
	ctx := t.Context()
	skus := append(h.cartSKUs(t, "not-taken", 1, 1, 1), "not-taken-d")
	h.opened(t, skus[3], 1)
	h.shuts(t, skus[2])
	a, err := h.shop.AskCart(ctx, skus, "ada", "not-taken")
	require.NoError(t, err)
	require.Equal(t, []any{http.StatusServiceUnavailable, "unavailable"}, []any{a.Status, a.Code()}, a)
	require.NoError(t, until(ctx, "the cart is taken", func() error {
		a, err = h.shop.AskCart(ctx, skus, "ada", "not-taken")
		if err == nil && a.Status != http.StatusCreated && a.Status != http.StatusOK {
			err = errors.New(a.String())
		}
		return err
	}))
	cart, err := shop.ParseHold(a)
	require.NoError(t, err)
	require.Len(t, cart.Lines, 4)
	h.requireCounts(t, skus, 1, 0)
	confirmed(t, h, cart.HoldID, "pay_not_taken")
	h.requireCounts(t, skus, 0, 1)
	h.judge(t, skus...)
}

// endsWithALineThatDoesNotAnswer releases a cart one of whose gates is closed: the
// other lines do not wait for it.
func (h *house) endsWithALineThatDoesNotAnswer(t *testing.T) {
	ctx := t.Context()
	skus := h.cartSKUs(t, "no-answer", 1, 1, 1)
	cart, err := h.door(t, "HOLDFAST_HOLD_TTL", "10m").Cart(ctx, skus, "ada")
	require.NoError(t, err)
	h.status(t, cart.HoldID, "knows of every line", inState("held"))
	require.NoError(t, h.redis.HSet(ctx, "hf:{"+skus[1]+"}:stock", "fence", "elsewhere").Err())
	require.NoError(t, h.temporal.SignalWorkflow(ctx, cart.HoldID, "", "release", map[string]string{"reason": "shop"}))
	_, err = h.holdState(ctx, cart.HoldID, "released")
	require.NoError(t, err)
	require.NoError(t, h.closed(ctx, cart.HoldID))
	at := func(sku, verb, kind string) time.Time {
		for _, l := range h.ledger(t, sku) {
			if l.Verb == verb && l.Kind == kind {
				return l.At
			}
		}
		t.Fatalf("%s has no line %s %s", sku, verb, kind)
		return time.Time{}
	}
	opened := at(skus[1], "open", "checked")
	require.False(t, at(skus[1], "release", "released").Before(opened))
	for _, sku := range []string{skus[0], skus[2]} {
		require.True(t, at(sku, "release", "released").Before(opened), "%s waited for %s", sku, skus[1])
	}
	h.requireCounts(t, skus, 0, 0)
	h.judge(t, skus...)
}

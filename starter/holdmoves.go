package starter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/payment"
	"holdfast/redis"
)

const (
	moveWait = workerWait // for a signal and until it shows in the gate's record
	moveMost = 200        // requests that wait so; those beyond them look once
)

// postCheckout says that the shopper is paying: the hold is extended once.
func (d *Door) postCheckout(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	started := contract.PaymentStarted{PaymentRef: f.text("payment_ref", 200)}
	if err := payment.PlainRef(started.PaymentRef); err != nil && started.PaymentRef != "" {
		f.complain("payment_ref", "%s", strings.TrimPrefix(err.Error(), "payment_ref "))
	}
	if m := f.amount(); m != nil {
		started.Amount, started.Currency = &m.Amount, m.Currency
	}
	if err := f.done(); err != nil {
		return err
	}
	out, err := d.readHold(r.Context(), r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	if out.Hold.State == contract.HoldSold && out.Hold.PaymentRef == started.PaymentRef {
		return d.answerHold(w, r, out)
	}
	if !mayBePaid(out.Hold) {
		return problem(holdEnded, "hold %s is %s; there is nothing to pay for", out.Hold.ID, out.Hold.State)
	}
	clocks, err := d.holdClocks(r.Context(), linesOf(out.Hold))
	if err != nil {
		return err
	}
	d.notePaying(r.Context(), out.Hold.ID, started.PaymentRef)
	out, err = d.move(r.Context(), out.Hold, contract.SignalPaymentStarted, started, func(h redis.Hold) bool {
		return h.Extended || !h.State.Live() || clocks.ExtensionSeconds == 0
	})
	switch {
	case errors.Is(err, launch.ErrNoOwner) || err == nil && !mayBePaid(out.Hold) && out.Hold.State != contract.HoldSold:
		return problem(holdEnded, "hold %s has ended; there is nothing to pay for", out.Hold.ID)
	case err != nil:
		return err
	}
	return d.answerHold(w, r, out)
}

// mayBePaid is true while a payment can make the hold a sale.
func mayBePaid(h redis.Hold) bool {
	return h.State == contract.HoldHeld || h.State == contract.HoldProvisional
}

// postPaymentFailed tells of a payment that did not go through. Only a final
// failure gives the units back.
func (d *Door) postPaymentFailed(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	var failed contract.PaymentFailed
	failed.PaymentRef, _ = f.optionalText("payment_ref", 200)
	failed.Reason, _ = f.optionalText("reason", 200)
	failed.Final = f.boolean("final")
	if err := f.done(); err != nil {
		return err
	}
	ctx := r.Context()
	out, err := d.readHold(ctx, r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	d.notePaying(ctx, out.Hold.ID, failed.PaymentRef)
	switch {
	case failed.Final:
		out, err = d.end(ctx, out, contract.SignalPaymentFailed, failed, contract.ReasonPaymentFailed, callerOf(ctx))
	case out.Hold.State == contract.HoldSold:
		err = alreadySold(out.Hold)
	case out.Hold.State.Live():
		out, err = d.move(ctx, out.Hold, contract.SignalPaymentFailed, failed, func(redis.Hold) bool { return true })
		if errors.Is(err, launch.ErrNoOwner) {
			err = nil // nothing was to be moved
		}
	}
	if err != nil {
		return err
	}
	return d.answerHold(w, r, out)
}

// reservedReasons are written by the product itself and mean a different ending.
var reservedReasons = map[string]bool{
	contract.ReasonExpired: true, contract.ReasonCompensation: true, contract.ReasonLeft: true,
}

// postRelease gives a hold's units back for the shop.
func (d *Door) postRelease(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, true)
	if err != nil {
		return err
	}
	reason, given := f.optionalText("reason", 64)
	if !given || reason == "" {
		reason = contract.ReasonShop
	}
	if reservedReasons[reason] {
		f.complain("reason", "must be another word: %q is written by the product itself", reason)
	}
	if err := f.done(); err != nil {
		return err
	}
	out, err := d.giveBack(r.Context(), r.PathValue("hold_id"), reason, callerOf(r.Context()))
	if err != nil {
		return err
	}
	return d.answerHold(w, r, out)
}

// giveBack ends a live hold and answers its record, ended.
func (d *Door) giveBack(ctx context.Context, id, reason, actor string) (redis.HoldOutcome, error) {
	out, err := d.readHold(ctx, id)
	if err != nil {
		return out, err
	}
	return d.end(ctx, out, contract.SignalRelease, contract.Release{Reason: reason}, reason, actor)
}

// end has a live hold's workflow give the units back, so that money it knows of
// is seen to first; without an open workflow the gate does. An ended hold is
// answered as it is, a sale is refused.
func (d *Door) end(ctx context.Context, out redis.HoldOutcome, signal string, arg any, reason, actor string) (redis.HoldOutcome, error) {
	id := out.Hold.ID
	if out.Hold.State.Live() {
		moved, err := d.move(ctx, out.Hold, signal, arg, func(h redis.Hold) bool { return !h.State.Live() })
		if errors.Is(err, launch.ErrNoOwner) {
			moved, err = d.releaseAtGate(ctx, out.Hold, reason, actor)
		}
		if err != nil {
			return moved, err
		}
		out = moved
	}
	switch {
	case out.Hold.State == contract.HoldSold:
		return out, alreadySold(out.Hold)
	case out.Hold.State.Live():
		return out, tryLater(retrySoon, "hold %s was told to give its units back and has not done so yet; repeat to see it ended", id)
	}
	return out, nil
}

func alreadySold(h redis.Hold) *Problem {
	return problem(holdEnded, "hold %s is sold by payment %s; a sold unit comes back as a return", h.ID, h.PaymentRef)
}

func (d *Door) releaseAtGate(ctx context.Context, h redis.Hold, reason, actor string) (redis.HoldOutcome, error) {
	for _, line := range slices.Backward(linesOf(h)) {
		out, err := d.gate.Release(ctx, redis.ReleaseRequest{SKU: line.SKU, HoldID: h.ID, Reason: reason, Actor: actor})
		if err != nil {
			return out, err
		}
		d.wakeIf(line.SKU, out.Base)
	}
	out, _, err := d.readWhole(ctx, h.SKU, h.ID)
	return out, err
}

// move signals the hold's workflow and waits a little until done holds of the
// record. It answers the record as it is then: the signal stays, whoever waits for it.
func (d *Door) move(ctx context.Context, h redis.Hold, signal string, arg any, done func(redis.Hold) bool) (redis.HoldOutcome, error) {
	last := redis.HoldOutcome{Hold: h}
	end := time.Now().Add(moveWait)
	sent, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	if err := d.launcher.Signal(sent, h.ID, signal, arg); err != nil {
		return last, err
	}
	select {
	case d.moving <- struct{}{}:
		defer func() { <-d.moving }()
	default: // no worker has moved anything for a while
		end = time.Now()
	}
	return last, watch(ctx, end, func() (bool, error) {
		out, ok, err := d.readWhole(ctx, h.SKU, h.ID)
		if err != nil || !ok {
			return true, err
		}
		last = out
		return done(out.Hold), nil
	})
}

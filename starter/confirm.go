package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const (
	confirmTimeout = workerWait
	afterTimeout   = 5 * time.Second // for what must still be said after it
)

// postConfirm tells of money. It ends as a sale, as a refund with an owner, or
// as "not known, repeat" with the payment left for the hold's workflow.
func (d *Door) postConfirm(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	req := contract.ConfirmRequest{PaymentRef: d.paymentRef(f)}
	if m := f.amount(); m != nil {
		req.Amount, req.Currency = &m.Amount, m.Currency
	}
	if err := f.done(); err != nil {
		return err
	}
	id := r.PathValue("hold_id")
	// Money is seen to even when the client has gone.
	ctx := context.WithoutCancel(r.Context())
	sku, err := d.skus.byHold(ctx, id)
	if err != nil {
		return err
	}
	out, err := d.confirm(ctx, sku, id, req)
	if err != nil {
		return err
	}
	return d.answerHold(w, r, out)
}

// paymentRef reads the name of money. It must be the one by which the payment
// provider knows it: under two names one payment would be sold and paid back.
func (d *Door) paymentRef(f *fields) string {
	ref := f.text("payment_ref", 200)
	if ref == "" {
		return ""
	}
	if err := d.payments.CheckRef(ref); err != nil {
		f.complain("payment_ref", "%s", strings.TrimPrefix(err.Error(), "payment_ref "))
	}
	return ref
}

// confirm asks the hold's workflow; when that has closed the record decides who
// owns the money. A further round is for a hold that ended in between.
func (d *Door) confirm(ctx context.Context, sku, id string, req contract.ConfirmRequest) (redis.HoldOutcome, error) {
	out, err := d.confirmInTurn(ctx, sku, id, req)
	if err != nil {
		d.notePaying(ctx, id, req.PaymentRef) // of a sale the gate knows whose payment it is
	}
	return out, err
}

func (d *Door) confirmInTurn(ctx context.Context, sku, id string, req contract.ConfirmRequest) (redis.HoldOutcome, error) {
	for range 3 {
		out, ok, err := d.readWhole(ctx, sku, id)
		if err != nil {
			if err = d.leaveSignal(ctx, id, req, err); errors.Is(err, launch.ErrNoOwner) {
				return d.decide(ctx, redis.Hold{ID: id, SKU: sku}, contract.CauseLate, req)
			}
			return out, err
		}
		if ok && out.Hold.State.Ended() {
			return d.confirmEnded(ctx, out, req)
		}
		res, err := d.askConfirm(ctx, id, req)
		if err == nil {
			return d.confirmed(ctx, redis.Hold{ID: id, SKU: sku}, req, res)
		}
		// It may have ended between the two looks, by this very payment or without.
		again, known, rerr := d.readWhole(ctx, sku, id)
		switch {
		case rerr == nil && known && again.Hold.State.Ended():
			continue
		case !errors.Is(err, launch.ErrNoOwner):
			if err = d.leaveSignal(ctx, id, req, err); !errors.Is(err, launch.ErrNoOwner) {
				return out, err
			}
			continue // it closed before the payment could be left
		case rerr != nil:
			return again, rerr
		case known:
			return d.decide(ctx, again.Hold, contract.CauseLate, req)
		}
		return d.decide(ctx, redis.Hold{ID: id, SKU: sku}, contract.CauseUnknown, req)
	}
	return redis.HoldOutcome{}, tryLater(retrySoon, "hold %s changed while it was asked; repeat the request as it was", id)
}

// askConfirm sends the update, each time as a new one: the workflow knows a
// payment by its reference, and an amount that was refused may be right by now.
func (d *Door) askConfirm(ctx context.Context, id string, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	return d.launcher.Confirm(ctx, id, "confirm-"+rand.Text(), req)
}

// confirmed turns the workflow's answer into ours. Money that it has handed over is
// its Payment's to decide, which may sell the hold after all: that is asked next.
func (d *Door) confirmed(ctx context.Context, h redis.Hold, req contract.ConfirmRequest, res contract.ConfirmResult) (redis.HoldOutcome, error) {
	switch {
	case res.Outcome == contract.ConfirmSold:
		return d.soldHold(ctx, h)
	case res.Refund != nil && res.Refund.State == contract.PaymentDeciding:
		return d.decide(ctx, h, causeOf(res.Outcome), req)
	case res.Outcome == contract.ConfirmAmountMismatch && res.Refund == nil: // the hold keeps the money
		if err := d.gate.NoteOtherAmount(ctx, h.ID); err != nil {
			d.log.Warn("a payment of another amount is not noted for whoever is on call", "error", err)
		}
	}
	return redis.HoldOutcome{}, refusedMoney(h.ID, res.Outcome, res.Refund)
}

func (d *Door) soldHold(ctx context.Context, h redis.Hold) (redis.HoldOutcome, error) {
	out, ok, err := d.readWhole(ctx, h.SKU, h.ID)
	if err == nil && !ok {
		err = tryLater(retrySoon, "hold %s is sold, but its record cannot be read", h.ID)
	}
	return out, err
}

// causeOf is why a Hold has handed money over, by what it answered. It counts only
// for a Payment that has closed meanwhile and is begun anew.
func causeOf(outcome string) string {
	switch outcome {
	case contract.ConfirmConflict:
		return contract.CauseSecond
	case contract.ConfirmAmountMismatch:
		return contract.CauseMismatched
	default:
		return contract.CauseLate
	}
}

func refusedMoney(id, outcome string, refund *contract.RefundInfo) *Problem {
	var p *Problem
	parked := refund != nil && refund.State == contract.PaymentParked
	switch {
	case parked && outcome == contract.ConfirmConflict:
		p = problem(paymentConflict, "this payment was told for another hold before, and a payment pays for one; a person must find out what it was meant for, and GET /v1/refunds says why")
	case parked:
		p = problem(holdEnded, "this payment makes no sale of hold %s; a person must find out what it is, and GET /v1/refunds says why", id)
	case outcome == contract.ConfirmConflict:
		p = problem(paymentConflict, "hold %s was sold by another payment; this one is not needed", id)
	case outcome == contract.ConfirmAmountMismatch:
		p = problem(amountMismatch, "the amount is not the one that the checkout of hold %s announced; the hold goes on", id)
	default:
		p = problem(holdEnded, "hold %s is not live any more; this payment made no sale", id)
	}
	p.Refund = refund
	return p
}

// confirmEnded is a confirm of a hold that has ended.
func (d *Door) confirmEnded(ctx context.Context, out redis.HoldOutcome, req contract.ConfirmRequest) (redis.HoldOutcome, error) {
	switch h := out.Hold; {
	case h.State == contract.HoldSold && h.PaymentRef == req.PaymentRef:
		return out, nil // the answer was lost, and the checkout asks again
	case h.State == contract.HoldSold:
		return d.decide(ctx, h, contract.CauseSecond, req)
	default:
		return d.decide(ctx, h, contract.CauseLate, req)
	}
}

// decide gives the money to a Payment and answers what became of it.
func (d *Door) decide(ctx context.Context, h redis.Hold, cause string, req contract.ConfirmRequest) (redis.HoldOutcome, error) {
	in := contract.PaymentInput{
		PaymentID: contract.PaymentID(h.ID, req.PaymentRef), HoldID: h.ID, SKU: h.SKU,
		PaymentRef: req.PaymentRef, Amount: req.Amount, Currency: req.Currency, Cause: cause,
		Tell: d.cfg.Events.On(),
	}
	asked, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	run, was, err := d.lastPayment(asked, in.PaymentID)
	if err != nil {
		return redis.HoldOutcome{}, err
	}
	if run.Completed && was.State == contract.PaymentRefundSettled {
		return redis.HoldOutcome{}, wentBack(h, req.PaymentRef, cause)
	}
	decision, err := d.launcher.Decide(asked, in)
	if err != nil {
		return redis.HoldOutcome{}, d.undecided(ctx, in, err)
	}
	if decision.Outcome == contract.ConfirmSold {
		return d.soldHold(ctx, h)
	}
	return redis.HoldOutcome{}, refusedMoney(h.ID, decision.Outcome,
		&contract.RefundInfo{PaymentID: in.PaymentID, PaymentRef: in.PaymentRef, State: decision.State})
}

// undecided is for a Payment that did not say in time what becomes of the money. It
// is begun in any case, which is durable where the question is not. An answer before
// its decision could turn out wrong: the gate may still make the sale.
func (d *Door) undecided(ctx context.Context, in contract.PaymentInput, cause error) error {
	d.log.Warn("a payment's decision stayed unanswered", "payment", in.PaymentID, "error", cause)
	ctx, cancel := context.WithTimeout(ctx, afterTimeout)
	defer cancel()
	if err := d.launcher.Payment(ctx, in); err != nil {
		d.log.Error("and the payment could not be recorded", "payment", in.PaymentID, "error", err)
		return tryLater(retrySoon, "what becomes of this payment is not decided, and it is not recorded; repeat the request as it was until it is answered")
	}
	return tryLater(retrySoon, "what becomes of this payment is not decided yet; it is recorded, repeat the request to see its outcome")
}

// wentBack answers for money that has gone back already: it must not be asked
// back a second time.
func wentBack(h redis.Hold, ref, cause string) *Problem {
	outcome := contract.ConfirmHoldEnded
	if cause == contract.CauseSecond {
		outcome = contract.ConfirmConflict
	}
	return refusedMoney(h.ID, outcome, &contract.RefundInfo{
		PaymentID: contract.PaymentID(h.ID, ref), PaymentRef: ref, State: contract.PaymentRefundSettled,
	})
}

// leaveSignal is for an update that stayed unanswered, or a record that cannot
// be read: the payment is left as a signal, which is durable where an update is
// not. ErrNoOwner when the workflow has closed; anything else is an answer.
func (d *Door) leaveSignal(ctx context.Context, id string, req contract.ConfirmRequest, cause error) error {
	after := retrySoon
	var closed *redis.ClosedError
	if errors.As(cause, &closed) {
		d.metClosed(closed)
		after = retryClosed
	}
	var refused *temporal.ApplicationError
	if errors.As(cause, &refused) && refused.Type() == contract.ErrBadRequest {
		return problem(validationFailed, "hold %s does not take this payment: %s", id, refused.Message())
	}
	d.log.Warn("a confirm stayed unanswered", "error", cause)
	ctx, cancel := context.WithTimeout(ctx, afterTimeout)
	defer cancel()
	err := d.launcher.Signal(ctx, id, contract.SignalPaymentSucceeded, contract.PaymentSucceeded(req))
	if errors.Is(err, launch.ErrNoOwner) {
		return err
	}
	if err != nil {
		d.log.Error("and its payment could not be left for the workflow", "error", err)
		return tryLater(after, "hold %s did not answer and the payment is not recorded; repeat the request as it was until it is answered", id)
	}
	return tryLater(after, "hold %s did not answer in time; the payment is recorded, repeat the request to see its outcome", id)
}

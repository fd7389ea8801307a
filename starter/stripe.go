package starter

import (
	"context"
	"errors"
	"net/http"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/payment"
	"holdfast/payment/stripe"
)

// stripeReader reads Stripe's webhooks; *stripe.Adapter is one.
type stripeReader interface {
	Receive(ctx context.Context, body []byte, signature string) (stripe.Happening, error)
}

const (
	maxStripeBody = 256 << 10
	stripeActor   = "stripe"
	maxStripeHold = 60 // characters of a hold_id that is none
)

// What became of an event beside the outcomes of a confirm.
const (
	stripeTold    = "told"    // the workflow has it
	stripeNothing = "nothing" // it says nothing that is still to be done
)

type stripeView struct {
	EventID   string `json:"event_id"`
	Kind      string `json:"kind"`
	Outcome   string `json:"outcome"`
	Reason    string `json:"reason,omitempty"`
	PaymentID string `json:"payment_id,omitempty"`
}

// postStripe takes an event of Stripe. What it means is done before the answer;
// with every answer but 200 Stripe sends it again, which changes nothing twice.
func (d *Door) postStripe(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBodyOf(w, r, maxStripeBody)
	if err != nil {
		return err
	}
	// Money is seen to even when Stripe has hung up.
	ctx := context.WithoutCancel(r.Context())
	h, err := d.stripe.Receive(ctx, raw, r.Header.Get("Stripe-Signature"))
	if err != nil {
		return d.unread(err)
	}
	view := stripeView{EventID: h.EventID, Kind: string(h.Kind), Outcome: stripeNothing, Reason: h.Reason}
	if err := d.happened(ctx, h, &view); err != nil {
		return err
	}
	d.log.Info("event of Stripe", "event", h.EventID, "type", h.Type, "kind", view.Kind, "outcome", view.Outcome)
	return writeJSON(w, http.StatusOK, view)
}

// unread answers for an event that could not be read.
func (d *Door) unread(err error) error {
	var asked *payment.Error
	switch {
	case errors.Is(err, stripe.ErrSignature):
		return problem(signatureInvalid, "%s", err)
	case errors.Is(err, stripe.ErrBody):
		return problem(malformedBody, "%s", err)
	case errors.As(err, &asked):
		d.log.Warn("an event of Stripe needs an answer that Stripe did not give", "error", err)
		return tryLater(max(asked.RetryAfter, retrySoon), "Stripe did not say what it means; send it again")
	}
	return err
}

func (d *Door) happened(ctx context.Context, h stripe.Happening, view *stripeView) error {
	amount, currency := (*int64)(nil), ""
	if h.Money != nil {
		amount, currency = &h.Money.Amount, h.Money.Currency
	}
	switch h.Kind {
	case stripe.Started:
		d.notePaying(ctx, h.HoldID, h.Ref)
		return d.tell(ctx, h.HoldID, contract.SignalPaymentStarted,
			contract.PaymentStarted{PaymentRef: h.Ref, Amount: amount, Currency: currency}, view)
	case stripe.Succeeded:
		return d.paidAtStripe(ctx, h, contract.ConfirmRequest{PaymentRef: h.Ref, Amount: amount, Currency: currency}, view)
	case stripe.Failed:
		d.notePaying(ctx, h.HoldID, h.Ref)
		return d.failedAtStripe(ctx, h, view)
	case stripe.RefundSettled:
		return d.tell(ctx, h.PaymentID, contract.SignalRefundSettled, contract.RefundSettled{Reference: h.Reference, Actor: stripeActor}, view)
	case stripe.RefundFailed:
		return d.refundFailed(ctx, h, view)
	case stripe.Unmatched:
		return d.unmatched(ctx, h, h.Reason, view)
	}
	return nil
}

// tell signals a workflow; one that has closed needs to know nothing.
func (d *Door) tell(ctx context.Context, id, signal string, arg any, view *stripeView) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	err := d.launcher.Signal(ctx, id, signal, arg)
	switch {
	case errors.Is(err, launch.ErrNoOwner):
		view.Reason = "nobody waits for it"
		return nil
	case err != nil:
		return err
	}
	view.Outcome = stripeTold
	return nil
}

// paidAtStripe goes the way of a confirm. A refusal is an answer: the money has
// its owner.
func (d *Door) paidAtStripe(ctx context.Context, h stripe.Happening, req contract.ConfirmRequest, view *stripeView) error {
	sku, err := d.skus.byHold(ctx, h.HoldID)
	if err == nil {
		_, err = d.confirm(ctx, sku, h.HoldID, req)
	}
	var p *Problem
	switch {
	case err == nil:
		view.Outcome = contract.ConfirmSold
	case !errors.As(err, &p) || p.Status == http.StatusServiceUnavailable:
		return err
	case p.Status == http.StatusConflict:
		view.Outcome = p.Code
		if p.Refund != nil {
			view.PaymentID = p.Refund.PaymentID
			if p.Refund.State == contract.PaymentParked {
				view.Outcome = contract.PaymentParked
				d.recordUnmatched(h, p.Refund.PaymentID, "no such hold")
			}
		}
	case p.Code == unknownHold:
		return d.unmatched(ctx, h, "no such hold", view)
	default:
		return d.unmatched(ctx, h, p.Detail, view)
	}
	return nil
}

// failedAtStripe tells the hold. Without an open workflow a final failure gives
// the units back at the gate.
func (d *Door) failedAtStripe(ctx context.Context, h stripe.Happening, view *stripeView) error {
	err := d.tell(ctx, h.HoldID, contract.SignalPaymentFailed,
		contract.PaymentFailed{PaymentRef: h.Ref, Reason: h.Reason, Final: h.Final, AttemptOnly: true}, view)
	if err != nil || view.Outcome == stripeTold || !h.Final {
		return err
	}
	out, err := d.readHold(ctx, h.HoldID)
	switch {
	case isProblem(err, unknownHold) || err == nil && !mayBePaid(out.Hold):
		return nil
	case err != nil:
		return err
	}
	view.Outcome = contract.ReasonPaymentFailed
	_, err = d.releaseAtGate(ctx, out.Hold, contract.ReasonPaymentFailed, stripeActor)
	return err
}

// refundFailed: the money came back to the shop, maybe days after it had been
// settled. Its Payment then opens anew, and finds out that a person must act.
func (d *Door) refundFailed(ctx context.Context, h stripe.Happening, view *stripeView) error {
	err := d.tell(ctx, h.PaymentID, contract.SignalRefundFailed, contract.RefundFailed{Reference: h.Reference, Reason: h.Reason}, view)
	if err != nil || view.Outcome == stripeTold {
		return err
	}
	run, s, err := d.lastPayment(ctx, h.PaymentID)
	if err != nil || !run.Completed || s.State != contract.PaymentRefundSettled || s.Reference != h.Reference {
		return err // no Payment of ours, or a person settled it in another way
	}
	return d.park(ctx, contract.PaymentInput{
		PaymentID: h.PaymentID, HoldID: s.HoldID, SKU: run.SKU, PaymentRef: s.PaymentRef, Amount: s.Amount, Currency: s.Currency, Cause: s.Cause,
		Reopened: true, Tell: d.cfg.Events.On(),
	}, view)
}

// unmatched parks money for which no hold can be found, where the list of
// refunds shows it to a person. What a person has settled stays settled.
func (d *Door) unmatched(ctx context.Context, h stripe.Happening, why string, view *stripeView) error {
	hold := h.HoldID
	if cut := []rune(hold); len(cut) > maxStripeHold {
		hold = string(cut[:maxStripeHold])
	}
	in := contract.PaymentInput{
		PaymentID: contract.PaymentID(hold, h.Ref), HoldID: hold, PaymentRef: h.Ref, Cause: contract.CauseUnknown,
		Tell: d.cfg.Events.On(),
	}
	if h.Money != nil {
		in.Amount, in.Currency = &h.Money.Amount, h.Money.Currency
	}
	view.Reason = why
	run, s, err := d.lastPayment(ctx, in.PaymentID)
	if err != nil {
		return err
	}
	if run.Completed && settled(s.State) {
		view.Outcome, view.PaymentID = s.State, in.PaymentID
		return nil
	}
	d.notePaying(ctx, hold, h.Ref)
	d.recordUnmatched(h, in.PaymentID, why)
	return d.park(ctx, in, view)
}

// recordUnmatched notes that money came for which no hold can be found.
func (d *Door) recordUnmatched(h stripe.Happening, paymentID, why string) {
	d.log.Error("payment unmatched: money for a hold that cannot be found, parked for a person", "payment", paymentID, "event", h.EventID, "reason", why)
}

func (d *Door) park(ctx context.Context, in contract.PaymentInput, view *stripeView) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	decision, err := d.launcher.Decide(ctx, in)
	view.Outcome, view.PaymentID = decision.State, in.PaymentID
	return err
}

func isProblem(err error, code string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Code == code
}

package stripe

import (
	"context"
	"fmt"
	"slices"

	stripego "github.com/stripe/stripe-go/v84"

	"holdfast/payment"
)

// begun is what Stripe has of an attempt: either may be missing. A session has
// no PaymentIntent until somebody pays.
type begun struct {
	cs *stripego.CheckoutSession
	pi *stripego.PaymentIntent
}

// find reads an attempt by the id of its PaymentIntent or Checkout Session. why
// says why it is not to be touched or believed, "" when it is.
func (a *Adapter) find(ctx context.Context, at payment.Attempt) (b begun, why string, err error) {
	switch {
	case intentPattern.MatchString(at.Ref):
		b.pi, err = a.intent(ctx, at.Ref)
	case sessionPattern.MatchString(at.Ref):
		b.cs, err = a.session(ctx, at.Ref)
		if err == nil && b.cs.PaymentIntent != nil {
			b.pi, err = a.intent(ctx, b.cs.PaymentIntent.ID)
		}
	default:
		return b, fmt.Sprintf("%.60q is neither a PaymentIntent nor a Checkout Session", at.Ref), nil
	}
	if hasCode(err, stripego.ErrorCodeResourceMissing) {
		return b, "Stripe knows no " + at.Ref + " in this account and mode", nil
	}
	if err != nil {
		return b, "", err
	}
	hold := ""
	if b.cs != nil {
		hold = b.cs.Metadata[MetaHold]
	}
	if hold == "" && b.pi != nil {
		if hold, err = a.holdOf(ctx, b.pi); err != nil {
			return b, "", err
		}
	}
	if hold != "" && hold != at.HoldID {
		return b, fmt.Sprintf("%s is for %.60q, not for %s", at.Ref, hold, at.HoldID), nil
	}
	return b, "", nil
}

// Status asks Stripe what an attempt has come to. Money that went back, or
// belongs to another hold, is no reason to sell.
func (a *Adapter) Status(ctx context.Context, at payment.Attempt) (payment.Status, error) {
	b, why, err := a.find(ctx, at)
	if err != nil {
		return payment.Status{}, a.failed("status of "+at.Ref, err)
	}
	if why != "" {
		return payment.Status{State: payment.Unknown, Reason: why}, nil
	}
	return b.status(), nil
}

func (b begun) status() payment.Status {
	unpaid := payment.Status{State: payment.Unpaid}
	unknown := func(format string, args ...any) payment.Status {
		return payment.Status{State: payment.Unknown, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case b.pi == nil && b.cs.PaymentStatus == stripego.CheckoutSessionPaymentStatusNoPaymentRequired:
		if b.cs.Status != stripego.CheckoutSessionStatusComplete {
			return unpaid
		}
		return payment.Status{State: payment.Paid, Ref: b.cs.ID, Money: money(b.cs.AmountTotal, b.cs.Currency)}
	case b.pi == nil && b.cs.PaymentStatus == stripego.CheckoutSessionPaymentStatusUnpaid && b.cs.Status != stripego.CheckoutSessionStatusComplete:
		return unpaid
	case b.pi == nil:
		return unknown("the session %s is %s and %s, without a PaymentIntent", b.cs.ID, b.cs.Status, b.cs.PaymentStatus)
	}
	switch b.pi.Status {
	case stripego.PaymentIntentStatusSucceeded:
		if c := b.pi.LatestCharge; c != nil && c.AmountRefunded > 0 {
			return unknown("%s was paid, and %d of %d went back", b.pi.ID, c.AmountRefunded, c.Amount)
		}
		return payment.Status{State: payment.Paid, Ref: b.pi.ID, Money: money(b.pi.AmountReceived, b.pi.Currency)}
	case stripego.PaymentIntentStatusCanceled:
		return unpaid
	case stripego.PaymentIntentStatusProcessing:
		return unknown("%s is under way: Stripe does not know yet", b.pi.ID)
	}
	if cancelable(b.pi) {
		return unpaid
	}
	return unknown("%s is %q, a state that is not known here", b.pi.ID, b.pi.Status)
}

// cancelable says that no money was taken: at most it is reserved.
func cancelable(pi *stripego.PaymentIntent) bool {
	switch pi.Status {
	case stripego.PaymentIntentStatusRequiresPaymentMethod, stripego.PaymentIntentStatusRequiresConfirmation,
		stripego.PaymentIntentStatusRequiresAction, stripego.PaymentIntentStatusRequiresCapture:
		return true
	}
	return false
}

func (a *Adapter) cancelIntent(ctx context.Context, pi *stripego.PaymentIntent) error {
	params := &stripego.PaymentIntentCancelParams{
		CancellationReason: stripego.String(string(stripego.PaymentIntentCancellationReasonAbandoned)),
	}
	_, err := a.api.V1PaymentIntents.Cancel(ctx, pi.ID, params)
	return err
}

// CancelAttempt closes an attempt of an ended hold: sessions first, as the
// PaymentIntent of an open one cannot be cancelled. What Stripe refuses to end
// has ended by itself, and is read again.
func (a *Adapter) CancelAttempt(ctx context.Context, at payment.Attempt) (payment.Status, error) {
	doing := "end of " + at.Ref
	b, why, err := a.find(ctx, at)
	if err != nil {
		return payment.Status{}, a.failed(doing, err)
	}
	if why != "" {
		return payment.Status{State: payment.Unknown, Reason: why}, nil
	}
	acted, err := a.end(ctx, b, at.SaleRef)
	if err != nil {
		return payment.Status{}, a.failed(doing, err)
	}
	if !acted {
		return b.status(), nil
	}
	return a.Status(ctx, at)
}

// end expires and cancels what is open; acted says that it tried. Money that
// is reserved and captured after the sale looks open, so the sale's own payment
// is left alone under whichever name.
func (a *Adapter) end(ctx context.Context, b begun, saleRef string) (acted bool, err error) {
	sessions := []*stripego.CheckoutSession{b.cs}
	if b.cs == nil {
		sessions = nil
		if cancelable(b.pi) {
			if sessions, err = a.sessionsOf(ctx, b.pi.ID); err != nil {
				return false, err
			}
		}
	}
	if b.pi != nil && b.pi.ID == saleRef || slices.ContainsFunc(sessions, func(cs *stripego.CheckoutSession) bool { return cs.ID == saleRef }) {
		return false, nil
	}
	for _, cs := range sessions {
		if cs.Status != stripego.CheckoutSessionStatusOpen {
			continue
		}
		acted = true
		if _, err := a.api.V1CheckoutSessions.Expire(ctx, cs.ID, nil); err != nil && !refused(err) {
			return acted, err
		}
	}
	if b.pi != nil && cancelable(b.pi) {
		acted = true
		if err := a.cancelIntent(ctx, b.pi); err != nil && !refused(err) {
			return acted, err
		}
	}
	return acted, nil
}

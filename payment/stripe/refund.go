package stripe

import (
	"context"
	"fmt"

	stripego "github.com/stripe/stripe-go/v84"

	"holdfast/payment"
)

// RequestRefund pays back what is left of a payment. It looks first, as an
// earlier attempt, a person or another program may have done it: a lost answer
// is found again, whatever became of the idempotency key, which Stripe forgets
// after a day. As it always asks for all that is left, Stripe itself refuses a
// second one.
func (a *Adapter) RequestRefund(ctx context.Context, r payment.Refund) (payment.Receipt, error) {
	none := payment.Receipt{}
	if err := r.Check(); err != nil {
		return none, err
	}
	doing := "refund of " + r.PaymentRef
	if sessionPattern.MatchString(r.PaymentRef) {
		return a.refundSession(ctx, r, doing)
	}
	if err := a.CheckRef(r.PaymentRef); err != nil {
		return none, byHand(r, doing+": "+err.Error())
	}
	pi, err := a.intent(ctx, r.PaymentRef)
	if err != nil {
		return none, a.failed(doing, err)
	}
	if err := a.mayRefund(ctx, r, pi); err != nil {
		return none, err
	}
	if pi.Status != stripego.PaymentIntentStatusSucceeded {
		return a.refundUnpaid(ctx, pi, doing)
	}
	whole := pi.LatestCharge != nil && pi.LatestCharge.Refunded
	if receipt, done, err := a.refunded(ctx, r, whole); done || err != nil {
		return receipt, err
	}
	re, err := a.createRefund(ctx, r)
	if hasCode(err, stripego.ErrorCodeChargeAlreadyRefunded) {
		receipt, _, err := a.refunded(ctx, r, true)
		return receipt, err
	}
	if err != nil {
		e := a.failed(doing, err)
		if e.Class == payment.Permanent && e.Status == 400 {
			e.Do = payment.SettleByHand(r.PaymentID)
		}
		return none, e
	}
	receipt, _, err := receiptOf(r, re)
	return receipt, err
}

func byHand(r payment.Refund, reason string) *payment.Error {
	return &payment.Error{Class: payment.Permanent, Reason: reason, Do: "look at the payment in the Stripe Dashboard; if money has to go back, " + payment.SettleByHand(r.PaymentID)}
}

// mayRefund refuses money of another hold, and money that made the sale under
// another name.
func (a *Adapter) mayRefund(ctx context.Context, r payment.Refund, pi *stripego.PaymentIntent) error {
	doing := "refund of " + pi.ID
	hold, err := a.holdOf(ctx, pi)
	if err != nil {
		return a.failed(doing, err)
	}
	if hold != "" && hold != r.HoldID {
		return byHand(r, fmt.Sprintf("%s not asked: its metadata names %.60q, not %s, and may have made that sale", doing, hold, r.HoldID))
	}
	if !sessionPattern.MatchString(r.SaleRef) {
		return nil
	}
	cs, err := a.session(ctx, r.SaleRef)
	switch {
	case hasCode(err, stripego.ErrorCodeResourceMissing):
		return nil
	case err != nil:
		return a.failed(doing, err)
	case cs.PaymentIntent != nil && cs.PaymentIntent.ID == pi.ID:
		return byHand(r, fmt.Sprintf("%s not asked: it is the payment of %s, which made the sale of %s", doing, cs.ID, r.HoldID))
	}
	return nil
}

// refundUnpaid makes sure that nothing is taken any more.
func (a *Adapter) refundUnpaid(ctx context.Context, pi *stripego.PaymentIntent, doing string) (payment.Receipt, error) {
	settled := payment.Receipt{Reference: pi.ID, Settled: true}
	if pi.Status == stripego.PaymentIntentStatusCanceled {
		return settled, nil
	}
	if cancelable(pi) {
		err := a.cancelIntent(ctx, pi)
		if err == nil {
			return settled, nil
		}
		if !refused(err) {
			return payment.Receipt{}, a.failed(doing, err)
		}
	}
	return payment.Receipt{}, &payment.Error{
		Class: payment.Retry, Reason: fmt.Sprintf("%s: Stripe says the payment is %s, neither paid nor over", doing, pi.Status),
	}
}

// refundSession answers for a session without anything to pay, which has no
// PaymentIntent to name.
func (a *Adapter) refundSession(ctx context.Context, r payment.Refund, doing string) (payment.Receipt, error) {
	cs, err := a.session(ctx, r.PaymentRef)
	switch {
	case err != nil:
		return payment.Receipt{}, a.failed(doing, err)
	case cs.PaymentStatus == stripego.CheckoutSessionPaymentStatusNoPaymentRequired:
		return payment.Receipt{Reference: cs.ID, Settled: true}, nil
	}
	return payment.Receipt{}, byHand(r, doing+" not asked: a Checkout Session is no payment, and its PaymentIntent may have made the sale")
}

// refunded looks at the refunds that a payment has. whole says that nothing is
// left of it; done that no other refund may be asked for.
func (a *Adapter) refunded(ctx context.Context, r payment.Refund, whole bool) (receipt payment.Receipt, done bool, err error) {
	params := &stripego.RefundListParams{PaymentIntent: stripego.String(r.PaymentRef)}
	params.Limit = stripego.Int64(100)
	var last, pending, failed *stripego.Refund
	for re, err := range a.api.V1Refunds.List(ctx, params) {
		if err != nil {
			return receipt, false, a.failed("refunds of "+r.PaymentRef, err)
		}
		ours := re.Metadata[MetaPayment] == r.PaymentID
		switch re.Status {
		case stripego.RefundStatusSucceeded:
			if ours {
				return receiptOf(r, re)
			}
			if last == nil {
				last = re
			}
		case stripego.RefundStatusFailed, stripego.RefundStatusCanceled:
			if ours && failed == nil {
				failed = re
			}
		default:
			if ours || whole && pending == nil {
				pending = re
			}
		}
	}
	switch {
	case pending != nil:
		return receiptOf(r, pending)
	case whole && last != nil:
		return receiptOf(r, last)
	case failed != nil:
		return receiptOf(r, failed)
	case whole: // what Stripe says and what it lists must meet first
		return receipt, false, &payment.Error{Class: payment.Retry, Reason: "Stripe says that " + r.PaymentRef + " was paid back and lists no refund of it"}
	}
	return receipt, false, nil
}

// receiptOf says what a refund means; done is always true.
func receiptOf(r payment.Refund, re *stripego.Refund) (receipt payment.Receipt, done bool, err error) {
	switch re.Status {
	case stripego.RefundStatusSucceeded:
		return payment.Receipt{Reference: re.ID, Settled: true}, true, nil
	case stripego.RefundStatusFailed, stripego.RefundStatusCanceled:
		return receipt, true, &payment.Error{
			Class: payment.Permanent, Code: string(re.FailureReason),
			Reason: fmt.Sprintf("the refund %s of %s is %s", re.ID, r.PaymentRef, re.Status), Do: payment.SettleByHand(r.PaymentID),
		}
	}
	return payment.Receipt{Reference: re.ID}, true, nil // its settlement comes by webhook
}

// createRefund asks once under the Payment's key. The parameters are the same
// in every attempt, whatever cause it names, or Stripe would refuse the key.
func (a *Adapter) createRefund(ctx context.Context, r payment.Refund) (*stripego.Refund, error) {
	params := func(key string) *stripego.RefundCreateParams {
		p := &stripego.RefundCreateParams{PaymentIntent: stripego.String(r.PaymentRef)}
		p.AddMetadata(MetaHold, r.HoldID)
		p.AddMetadata(MetaPayment, r.PaymentID)
		p.SetIdempotencyKey(key)
		return p
	}
	re, err := a.api.V1Refunds.Create(ctx, params("holdfast-refund-"+r.PaymentID))
	if replayed(err) {
		return a.api.V1Refunds.Create(ctx, params(stripego.NewIdempotencyKey()))
	}
	return re, err
}

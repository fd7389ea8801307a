package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/payment"
)

// Refunds ask the shop's payment provider for money to go back.
type Refunds struct {
	Port payment.Port
	Tell bool // as in Guard
}

// RequestRefundInput names the money of one Payment. RequestedAt and Sequence are
// the same in every repeat.
type RequestRefundInput struct {
	PaymentID   string          `json:"payment_id"`
	HoldID      string          `json:"hold_id"`
	PaymentRef  string          `json:"payment_ref"`
	SaleRef     string          `json:"sale_ref,omitempty"` // the payment that made the hold's sale
	Amount      *contract.Money `json:"amount,omitempty"`
	Cause       string          `json:"cause"`
	RequestedAt time.Time       `json:"requested_at"`
	Sequence    int64           `json:"sequence"`
}

// RefundRequested is what became of a request: acknowledged, maybe with the money
// back already; or, with ByHand, nothing that a machine can do.
type RefundRequested struct {
	Reference string `json:"reference,omitempty"` // the provider's
	Settled   bool   `json:"settled,omitempty"`
	ByHand    string `json:"by_hand,omitempty"` // why, and what a person must do
	Tell      bool   `json:"tell,omitempty"`    // the shop has an endpoint for events
}

// RequestRefund asks until somebody outside owns the request.
func (a *Refunds) RequestRefund(ctx context.Context, in RequestRefundInput) (RefundRequested, error) {
	receipt, err := a.Port.RequestRefund(ctx, payment.Refund{
		PaymentID: in.PaymentID, HoldID: in.HoldID, PaymentRef: in.PaymentRef, SaleRef: in.SaleRef, Money: in.Amount, Cause: in.Cause,
		RequestedAt: in.RequestedAt, Sequence: in.Sequence,
	})
	switch {
	case err == nil:
		return RefundRequested{Reference: receipt.Reference, Settled: receipt.Settled, Tell: a.Tell}, nil
	case payment.NeedsPerson(err):
		return RefundRequested{ByHand: err.Error(), Tell: a.Tell}, nil
	}
	opts := passing(nil)
	opts.NextRetryDelay = payment.RetryAfter(err)
	var said *payment.Error
	if errors.As(err, &said) && said.Answer != "" {
		opts.Details = []any{said.Answer} // the message goes to the log, and the answer may repeat what it got
	}
	if n := attempt(ctx); worthALine(n) {
		activity.GetLogger(ctx).Warn("the provider has not taken a refund: asked again until it does", "payment", in.PaymentID, "attempt", n, "error", err)
	}
	return RefundRequested{}, temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnavailable, opts)
}

// Listens says whether the shop has an endpoint for events.
type Listens struct {
	Tell bool `json:"tell,omitempty"`
}

// ShopListens is for a Payment that asks the gate nothing, which would say so.
func (a *Refunds) ShopListens(context.Context, struct{}) (Listens, error) {
	return Listens{Tell: a.Tell}, nil
}

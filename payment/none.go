package payment

import "context"

// ErrNone is the answer to a refund request without an adapter. Nothing is
// dropped: the money waits until a person settles it.
var ErrNone = &Error{
	Class:  Permanent,
	Reason: "payment.provider is none: nobody can be asked for a refund",
	Do:     "pay the money back by hand, then run: holdfast refunds settle ID --ref YOUR-REFERENCE",
}

// None is the Port of a shop without an adapter.
func None() Port { return none{} }

type none struct{}

func (none) Name() string { return ProviderNone }

func (none) CheckRef(ref string) error { return PlainRef(ref) }

func (none) RequestRefund(context.Context, Refund) (Receipt, error) { return Receipt{}, ErrNone }

func (none) CancelAttempt(context.Context, Attempt) (Status, error) { return noneKnows, nil }

func (none) Status(context.Context, Attempt) (Status, error) { return noneKnows, nil }

var noneKnows = Status{State: Unknown, Reason: "payment.provider is none: nobody can be asked"}

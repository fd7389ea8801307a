package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/payment"
)

// maxAskPause bounds what a provider may ask to wait: a unit waits with it.
const maxAskPause = 15 * time.Second

// Attempts ask the shop's payment provider what became of payments that were
// begun for a hold, and end those that are still open.
type Attempts struct {
	Port payment.Port
}

// AttemptInput names a payment that was begun. SaleRef is the one that made the
// hold's sale, empty when none did.
type AttemptInput struct {
	HoldID  string `json:"hold_id"`
	Ref     string `json:"ref"`
	SaleRef string `json:"sale_ref,omitempty"`
}

// AttemptAnswer is what the provider says. Ref and Money are those of a payment
// that is paid; Reason says for people why nothing is known.
type AttemptAnswer struct {
	State  payment.State   `json:"state"`
	Ref    string          `json:"ref,omitempty"`
	Money  *contract.Money `json:"money,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// AskAttempt asks what a payment is, for a hold that is about to expire. One
// that is still open is ended, so that no money comes after the units have gone.
func (a *Attempts) AskAttempt(ctx context.Context, in AttemptInput) (AttemptAnswer, error) {
	s, err := a.Port.Status(ctx, payment.Attempt(in))
	if err == nil && s.State == payment.Unpaid {
		s, err = a.Port.CancelAttempt(ctx, payment.Attempt(in))
	}
	return attemptAnswer(ctx, in, s, err)
}

// EndAttempt ends a payment of a hold that has ended.
func (a *Attempts) EndAttempt(ctx context.Context, in AttemptInput) (AttemptAnswer, error) {
	s, err := a.Port.CancelAttempt(ctx, payment.Attempt(in))
	return attemptAnswer(ctx, in, s, err)
}

func attemptAnswer(ctx context.Context, in AttemptInput, s payment.Status, err error) (AttemptAnswer, error) {
	switch {
	case err == nil:
		return AttemptAnswer(s), nil
	case payment.NeedsPerson(err):
		activity.GetLogger(ctx).Error("the payment provider cannot be asked until somebody acts", "hold", in.HoldID, "error", err)
		return AttemptAnswer{State: payment.Unknown, Reason: err.Error()}, nil
	}
	return AttemptAnswer{}, temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnavailable,
		temporal.ApplicationErrorOptions{NextRetryDelay: min(payment.RetryAfter(err), maxAskPause)})
}

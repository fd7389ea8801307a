// Package webhook is the payment adapter of a shop that pays money back itself:
// it sends refund.requested to an endpoint of the shop, signed by Standard
// Webhooks. The shop says when the money has gone back with
// POST /v1/refunds/{id}/settle.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"holdfast/events"
	"holdfast/payment"
)

// RefundRequested is the type of the event, and SuffixRefund what its id has
// behind the Payment's.
const (
	RefundRequested = "refund.requested"
	SuffixRefund    = "_refund-requested"
)

// Data is what refund.requested tells the shop. Amount (minor units) and
// Currency are both there or both missing; missing means the whole payment,
// whatever it was.
type Data struct {
	PaymentID  string `json:"payment_id"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	SaleRef    string `json:"sale_payment_ref,omitempty"` // made this hold's sale and stays
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Cause      string `json:"cause"`
}

// Sender sends an event to the shop; *events.Sender does.
type Sender interface {
	Send(ctx context.Context, e events.Event) error
}

// New returns the adapter over a sender.
func New(sender Sender) payment.Port { return &adapter{sender: sender} }

type adapter struct{ sender Sender }

func (*adapter) Name() string { return payment.ProviderWebhook }

func (*adapter) CheckRef(ref string) error { return payment.PlainRef(ref) }

// RequestRefund tells the shop. Its acknowledgement is no settlement.
func (a *adapter) RequestRefund(ctx context.Context, r payment.Refund) (payment.Receipt, error) {
	if err := r.Check(); err != nil {
		return payment.Receipt{}, err
	}
	data := Data{PaymentID: r.PaymentID, HoldID: r.HoldID, PaymentRef: r.PaymentRef, SaleRef: r.SaleRef, Cause: r.Cause}
	if r.Money != nil {
		data.Amount, data.Currency = &r.Money.Amount, r.Money.Currency
	}
	err := a.sender.Send(ctx, events.Event{
		ID: r.PaymentID + SuffixRefund, Type: RefundRequested, Time: r.RequestedAt, Sequence: r.Sequence, Data: data,
	})
	if err != nil {
		return payment.Receipt{}, classify(err, r.PaymentID)
	}
	return payment.Receipt{}, nil
}

// classify keeps asking whatever a new version or setting at the shop can mend
// without a hand here.
func classify(err error, paymentID string) *payment.Error {
	out := &payment.Error{Class: payment.Retry, Reason: err.Error(), MaybeDone: true, Cause: err}
	var e *events.Error
	if !errors.As(err, &e) {
		return out
	}
	// The answer may repeat what it got, and the reason goes to the log.
	out.Reason, out.Answer, out.Cause = fmt.Sprintf("event %s not acknowledged: %s", e.Event, e.Reason), e.Answer, e.Unwrap()
	out.Status, out.RetryAfter, out.MaybeDone = e.Status, e.RetryAfter, e.MaybeTaken
	switch {
	case e.Final:
		out.Class, out.Do = payment.Permanent, payment.SettleByHand(paymentID)
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		out.Do = "compare payment.webhook.secrets with what the shop verifies"
	case e.Status >= 300 && e.Status <= 399, e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		out.Do = "check payment.webhook.url"
	case e.Status >= 400 && e.Status <= 499 && e.Status != http.StatusTooManyRequests:
		out.Do = "look at the endpoint's log: it refused the event"
	}
	return out
}

// CancelAttempt does nothing: only the shop knows its sessions, and the end of
// the hold is told to it by another event.
func (*adapter) CancelAttempt(context.Context, payment.Attempt) (payment.Status, error) {
	return shopKnows, nil
}

func (*adapter) Status(context.Context, payment.Attempt) (payment.Status, error) {
	return shopKnows, nil
}

var shopKnows = payment.Status{State: payment.Unknown, Reason: "only the shop knows its payments"}

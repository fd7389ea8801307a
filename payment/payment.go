// Package payment is the port to whoever takes the shop's payments: it asks for
// money to go back, ends a payment that a shopper has begun and no longer may
// finish, and asks what became of one. Holdfast itself takes no payments.
package payment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/contract"
)

// Providers are the names of the adapters.
const (
	ProviderNone    = "none"
	ProviderWebhook = "webhook"
	ProviderStripe  = "stripe"
)

// Port is what an adapter does. Every call may be repeated; a repeat changes
// nothing a second time. Errors are *Error; another one is a bug. It is safe
// for concurrent use.
type Port interface {
	// Name is one of the Provider constants.
	Name() string
	// CheckRef refuses a reference that cannot name money at this provider. Money
	// under two names would be sold under one and paid back under the other, so
	// whoever brings in a payment_ref asks this first. It calls nobody.
	CheckRef(ref string) error
	// RequestRefund asks for all of a payment's money to go back. Without an
	// error the request has an owner outside; the Receipt says whether the money
	// has gone back already.
	RequestRefund(ctx context.Context, r Refund) (Receipt, error)
	// CancelAttempt ends what a shopper has begun for a hold that has ended, so
	// that no money comes late. It answers what the payment is afterwards; one
	// that was paid meanwhile is no error: its word comes by itself.
	CancelAttempt(ctx context.Context, a Attempt) (Status, error)
	// Status says what a payment is now.
	Status(ctx context.Context, a Attempt) (Status, error)
}

// Refund asks for the money of one payment to go back, whole. PaymentID makes
// it idempotent: the same one is the same request.
type Refund struct {
	PaymentID   string // contract.PaymentID of the two below
	HoldID      string
	PaymentRef  string
	SaleRef     string          // the payment that made this hold's sale, empty when none did
	Money       *contract.Money // nil when nobody told the amount
	Cause       string          // one of the contract.Cause constants
	RequestedAt time.Time       // the same in every repeat
	Sequence    int64           // of the event refund.requested; the same in every repeat
}

// Receipt is an acknowledgement. Settled says that the money has gone back and
// no further word follows.
type Receipt struct {
	Reference string // the provider's, empty when it has none
	Settled   bool
}

// Attempt is a payment that was begun for a hold.
type Attempt struct {
	HoldID  string
	Ref     string // as payment-started named it
	SaleRef string // the payment that made the hold's sale, empty when none did; it is never ended
}

// State is what a payment is.
type State string

// States of a payment. Unpaid says that no money has come; after CancelAttempt
// also that none will.
const (
	Paid    State = "paid"
	Unpaid  State = "unpaid"
	Unknown State = "unknown"
)

// Status says what a payment is. Ref and Money are set when it is Paid: Ref is
// the name under which confirm and refund know it, which may be another than
// the attempt had. Reason says for people why it is Unknown.
type Status struct {
	State  State
	Ref    string
	Money  *contract.Money
	Reason string
}

// Class says what a failed call means for the next one.
type Class string

// Classes of failure.
const (
	Retry     Class = "retry"     // try again, slower and slower
	Permanent Class = "permanent" // trying again does not help: a person must act
)

// Error is why a call did not do what it was asked. It shows no secret.
type Error struct {
	Class  Class
	Reason string // what happened
	// Do is what a person must do. A Permanent error always has it, another one
	// when time alone is unlikely to help.
	Do         string
	Status     int           // HTTP's; 0 without an answer
	Answer     string        // its first bytes; no part of the text of the error, which is logged
	Code       string        // the provider's
	RetryAfter time.Duration // what the provider asked for, 0 when nothing
	MaybeDone  bool          // the answer was lost: it may have been done
	Cause      error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason)
	if e.Code != "" {
		fmt.Fprintf(&b, " [%s]", e.Code)
	}
	if e.Do != "" {
		b.WriteString(": " + e.Do)
	}
	return b.String()
}

// Unwrap gives the cause, such as a context that ended.
func (e *Error) Unwrap() error { return e.Cause }

// NeedsPerson says whether err will not pass by itself.
func NeedsPerson(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == Permanent
}

// SettleByHand is what a person does whose refund no machine can make.
func SettleByHand(paymentID string) string {
	return "pay the money back by hand, then run: holdfast refunds settle " + paymentID + " --ref YOUR-REFERENCE"
}

const maxRef = 200 // characters of a reference

// PlainRef is the CheckRef of an adapter whose references have no form of their
// own: 1 to 200 printable characters without blanks.
func PlainRef(ref string) error {
	switch n := utf8.RuneCountInString(ref); {
	case ref == "":
		return errors.New("payment_ref is empty: send the reference of the payment")
	case n > maxRef:
		return fmt.Errorf("payment_ref has %d characters: at most %d", n, maxRef)
	case strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }):
		return fmt.Errorf("payment_ref %.60q has blanks or control characters in it", ref)
	}
	return nil
}

// Check refuses a request that is not one. Adapters call it before they send
// anything.
func (r Refund) Check() error {
	wrong := ""
	switch {
	case r.HoldID == "" || PlainRef(r.PaymentRef) != nil:
		wrong = "names no hold or no payment"
	case r.PaymentID != contract.PaymentID(r.HoldID, r.PaymentRef):
		wrong = fmt.Sprintf("has the id %q, which is not that of its hold and payment", r.PaymentID)
	case r.RequestedAt.IsZero():
		wrong = "has no time"
	case r.PaymentRef == r.SaleRef:
		wrong = fmt.Sprintf("is for %s, the payment that made the sale of %s", r.PaymentRef, r.HoldID)
	default:
		return nil
	}
	return &Error{
		Class: Permanent, Reason: "not sent: the refund " + wrong,
		Do: "look at the hold and the payment; if money has to go back, " + SettleByHand(r.PaymentID),
	}
}

// RetryAfter is what the provider asked to wait before another try, 0 when it
// asked for nothing.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

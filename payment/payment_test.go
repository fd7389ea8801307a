package payment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func refund() Refund {
	hold := contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	return Refund{
		PaymentID: contract.PaymentID(hold, "pay_1"), HoldID: hold, PaymentRef: "pay_1",
		Money: &contract.Money{Amount: 1250, Currency: "EUR"}, Cause: contract.CauseLate,
		RequestedAt: time.Date(2027, 3, 14, 9, 26, 53, 0, time.UTC), Sequence: 3,
	}
}

// Without an adapter money waits for a person; it is neither dropped nor
// called settled.
func TestNoneDropsNothing(t *testing.T) {
	port := None()
	require.Equal(t, ProviderNone, port.Name())
	receipt, err := port.RequestRefund(t.Context(), refund())
	require.ErrorIs(t, err, ErrNone)
	require.True(t, NeedsPerson(err))
	require.ErrorContains(t, err, "payment.provider is none")
	require.ErrorContains(t, err, "holdfast refunds settle")
	require.Zero(t, receipt)

	for _, ask := range []func() (Status, error){
		func() (Status, error) { return port.Status(t.Context(), Attempt{HoldID: "hold_x", Ref: "pay_1"}) },
		func() (Status, error) {
			return port.CancelAttempt(t.Context(), Attempt{HoldID: "hold_x", Ref: "pay_1"})
		},
	} {
		got, err := ask()
		require.NoError(t, err)
		require.Equal(t, Unknown, got.State)
		require.NotEmpty(t, got.Reason)
	}
}

func TestARefundThatIsNoneIsNotSent(t *testing.T) {
	require.NoError(t, refund().Check())
	for word, change := range map[string]func(*Refund){
		"no hold":       func(r *Refund) { r.HoldID = "" },
		"no payment":    func(r *Refund) { r.PaymentRef = "" },
		"not that of":   func(r *Refund) { r.PaymentRef = "pay_2" },
		"has the id":    func(r *Refund) { r.PaymentID = "payment_x" },
		"no time":       func(r *Refund) { r.RequestedAt = time.Time{} },
		"made the sale": func(r *Refund) { r.SaleRef = "pay_1" },
	} {
		r := refund()
		change(&r)
		err := r.Check()
		require.ErrorContains(t, err, word)
		require.True(t, NeedsPerson(err), word)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.Do, word)
	}
}

func TestPlainRef(t *testing.T) {
	for _, ref := range []string{"pay_1", "INV/2027-0012", "ö", strings.Repeat("x", 200)} {
		require.NoError(t, PlainRef(ref), ref)
	}
	for _, ref := range []string{"", " ", "a b", "a\n", "a\x00", "\x7f", "a\xff", strings.Repeat("x", 201)} {
		require.Error(t, PlainRef(ref), "%q", ref)
	}
}

// The class is read through any wrapping.
func TestErrorTellsWhatToDo(t *testing.T) {
	cause := errors.New("dial refused")
	err := fmt.Errorf("refund: %w", &Error{Class: Retry, Reason: "no answer", Code: "lock_timeout", Cause: cause})
	require.False(t, NeedsPerson(err))
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "refund: no answer [lock_timeout]")
	require.True(t, NeedsPerson(fmt.Errorf("refund: %w", ErrNone)))
	require.False(t, NeedsPerson(cause))
	require.EqualError(t, &Error{Class: Permanent, Reason: "no money", Do: "look"}, "no money: look")
}

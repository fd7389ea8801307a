package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/payment"
)

// status asks the Payment what it is.
func (w *world) status() contract.PaymentStatus {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	var s contract.PaymentStatus
	require.NoError(w.t, v.Get(&s))
	return s
}

func latePayment() contract.PaymentInput {
	in := paymentOf("P1", contract.CauseLate)
	amount := int64(4900)
	in.Amount, in.Currency = &amount, "EUR"
	return in
}

// The request is repeated, the same each time, until the provider takes it; then
// the Payment waits for the money to have gone back.
func TestARefundIsAskedForUntilSomebodyOwnsIt(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){fails(silent), fails(silent), fails(errors.New("a bug")), takes("re_9", false)}
	var meanwhile contract.PaymentStatus
	w.at(time.Hour, func() { meanwhile = w.status() })
	_, open, end := w.runPayment(latePayment())
	require.True(t, open, "an acknowledged request is not a refund yet")
	require.Equal(t, contract.PaymentRefundReported, meanwhile.State)
	require.Equal(t, "re_9", meanwhile.Reference)
	require.Equal(t, contract.PaymentRefundSettled, end.State)
	require.Equal(t, "re_1", end.Reference, "what the person who settled it says")
	require.Len(t, w.provider.asked, 4)
	for _, r := range w.provider.asked {
		require.Equal(t, w.provider.asked[0], r, "a repeat is the same request")
	}
	r := w.provider.asked[0]
	require.Equal(t, payment.Refund{
		PaymentID: contract.PaymentID(holdID, "P1"), HoldID: holdID, PaymentRef: "P1", Money: &contract.Money{Amount: 4900, Currency: "EUR"},
		Cause: contract.CauseLate, RequestedAt: r.RequestedAt, Sequence: r.RequestedAt.UnixMicro(),
	}, r)
	require.Equal(t, []string{"P1"}, w.hold.Refunded, "marked before it was asked for")
}

func TestARefundThatIsBackAtOnceIsSettled(t *testing.T) {
	w := withRecord(t, contract.HoldSold, "P0")
	w.provider.answers = []func() (payment.Receipt, error){takes("re_9", true)}
	_, open, end := w.runPayment(paymentOf("P1", contract.CauseSecond))
	require.False(t, open)
	require.Equal(t, contract.PaymentRefundSettled, end.State)
	require.Equal(t, "re_9", end.Reference)
	require.Equal(t, "P0", w.provider.asked[0].SaleRef, "so that the sale's own money is never paid back")
}

// What no machine can do waits for a person, who is told why, and is asked for
// once.
func TestARefundByHandWaitsForAPerson(t *testing.T) {
	for name, answers := range map[string][]func() (payment.Receipt, error){
		"no provider": nil,
		"refused":     {fails(&payment.Error{Class: payment.Permanent, Reason: "the charge is disputed", Do: "answer the dispute"})},
	} {
		t.Run(name, func(t *testing.T) {
			w := withRecord(t, contract.HoldExpired, "")
			w.provider.answers = answers
			var meanwhile contract.PaymentStatus
			w.at(time.Hour, func() { meanwhile = w.status() })
			_, open, end := w.runPayment(paymentOf("P1", contract.CauseLate))
			require.True(t, open)
			require.Equal(t, contract.PaymentRefundPending, meanwhile.State)
			require.NotEmpty(t, meanwhile.ByHand)
			if answers != nil {
				require.True(t, strings.Contains(meanwhile.ByHand, "disputed") && strings.Contains(meanwhile.ByHand, "answer the dispute"), meanwhile.ByHand)
			}
			require.Len(t, w.provider.asked, 1)
			require.Equal(t, contract.PaymentRefundSettled, end.State)
		})
	}
}

// A provider that stays silent keeps nobody from settling it.
func TestAPersonSettlesWhileTheProviderIsSilent(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){fails(silent)}
	_, open, end := w.runPayment(paymentOf("P1", contract.CauseLate))
	require.True(t, open)
	require.Equal(t, contract.PaymentRefundSettled, end.State)
	require.Greater(t, len(w.provider.asked), 5)
}

// Money that made the sale after all is asked back by nobody.
func TestASaleIsNeverAskedBack(t *testing.T) {
	w := withRecord(t, contract.HoldHeld, "")
	w.provider.answers = []func() (payment.Receipt, error){takes("re_9", true)}
	decision, _, _ := w.runPayment(paymentOf("P1", contract.CauseLate))
	require.Equal(t, contract.PaymentSold, decision.State)
	require.Empty(t, w.provider.asked)
}

// retries has a person ask the provider once more, and answers at once what came of it.
func (w *world) retries(at time.Duration) **answer[contract.PaymentStatus] {
	var a *answer[contract.PaymentStatus]
	w.at(at, func() {
		a = update[contract.PaymentStatus](w, contract.UpdateRetryRefund, "", contract.RefundRetry{Actor: "ops"})
	})
	return &a
}

// What stood in the way was mended: the same request, word for word.
func TestARefundByHandIsAskedForAgain(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	refused := fails(&payment.Error{Class: payment.Permanent, Reason: "401", Do: "set the key"})
	w.provider.answers = []func() (payment.Receipt, error){refused, refused, takes("re_9", false), takes("re_9", true)}
	still, taken := w.retries(time.Hour), w.retries(2*time.Hour)
	var meanwhile contract.PaymentStatus
	w.at(3*time.Hour, func() { meanwhile = w.status() })
	back := w.retries(4 * time.Hour)
	_, open, end := w.runPayment(latePayment())
	require.Equal(t, []any{contract.PaymentRefundPending, "401: set the key"}, []any{(*still).result.State, (*still).result.ByHand})
	require.Equal(t, []any{contract.PaymentRefundReported, "re_9", ""}, []any{(*taken).result.State, (*taken).result.Reference, (*taken).result.ByHand})
	require.Equal(t, (*taken).result, meanwhile)
	require.Equal(t, contract.PaymentRefundSettled, (*back).result.State)
	require.False(t, open, "the last answer settled it")
	require.Equal(t, "re_9", end.Reference)
	require.Len(t, w.provider.asked, 4)
	for _, r := range w.provider.asked {
		require.Equal(t, w.provider.asked[0], r)
	}
}

// A silent provider is asked at once, not after the pause; the request is not
// dropped when it stays silent, nor made twice over.
func TestASilentProviderIsAskedAtOnce(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){fails(silent), fails(silent), fails(silent), fails(silent), fails(silent), takes("re_9", true)}
	asked := map[time.Duration]int{}
	for _, when := range []time.Duration{30 * time.Second, 32 * time.Second, 37 * time.Second} {
		w.at(when, func() { asked[when] = len(w.provider.asked) })
	}
	again := w.retries(31 * time.Second)
	_, open, end := w.runPayment(latePayment())
	require.False(t, open)
	require.Equal(t, contract.PaymentRefundSettled, (*again).result.State)
	require.Equal(t, "re_9", end.Reference)
	require.Equal(t, map[time.Duration]int{
		30 * time.Second: 3, // at 0, 5 and 15 s; the next would be at 35
		32 * time.Second: 4,
		37 * time.Second: 5, // one request goes on, not two
	}, asked)
}

func TestNobodyIsAskedForWhatIsNoRefund(t *testing.T) {
	w := newWorld(t)
	w.noRecord = true
	a := w.retries(time.Hour)
	w.runPayment(paymentOf("P1", contract.CauseUnknown))
	require.ErrorContains(t, (*a).rejected, "is parked: a person must find out")
	require.Empty(t, w.provider.asked)
}

// The provider had taken the refund and could not make it: a person is told, and
// may ask again.
func TestARefundThatFailsLaterNeedsAPerson(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){takes("re_9", false)}
	w.at(time.Hour, func() {
		for range 2 {
			w.SignalWorkflow(contract.SignalRefundFailed, contract.RefundFailed{Reference: "re_9", Reason: "card lost"})
		}
	})
	var meanwhile contract.PaymentStatus
	w.at(2*time.Hour, func() {
		meanwhile = w.status()
		require.Contains(t, w.currentDetails(), "a person must pay this money back")
	})
	again := w.retries(3 * time.Hour)
	_, open, _ := w.runPayment(latePayment())
	require.True(t, open)
	require.Equal(t, contract.PaymentRefundPending, meanwhile.State)
	require.Contains(t, meanwhile.ByHand, "card lost")
	require.Equal(t, contract.PaymentRefundReported, (*again).result.State)
}

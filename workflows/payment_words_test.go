package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/payment"
	"holdfast/redis"
)

// What others say of a refund may come at any time: while the gate is not heard, before
// the answer to the request, after the money was said to be back.

func settledBy(reference string) contract.RefundSettled {
	return contract.RefundSettled{Reference: reference, Actor: "ops"}
}

func failedRefund(reference string) contract.RefundFailed {
	return contract.RefundFailed{Reference: reference, Reason: "card lost"}
}

// decideOnly runs a Payment that nobody settles but what the test has set up.
func (w *world) decideOnly(in contract.PaymentInput) contract.PaymentStatus {
	w.ExecuteWorkflow(contract.PaymentWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var end contract.PaymentStatus
	require.NoError(w.t, w.GetWorkflowResult(&end))
	return end
}

// A person has paid the money back while its gate was closed: it buys nothing any more,
// and nobody is asked to pay it back again.
func TestAPersonSettlesBeforeTheGateDecides(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		shut  []string // verbs that are not answered
	}{
		"the sale is not answered": {contract.CauseLate, []string{"confirm", "refund"}},
		"the mark is not answered": {contract.CauseMismatched, []string{"refund"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withRecord(t, contract.HoldExpired, "")
			w.free = 1
			w.down = func(verb string) error {
				for _, v := range c.shut {
					if verb == v && w.Now().Before(began.Add(time.Minute)) {
						return &redis.ClosedError{SKU: chair}
					}
				}
				return nil
			}
			w.at(30*time.Second, func() { w.SignalWorkflow(contract.SignalRefundSettled, settledBy("re_1")) })
			end := w.decideOnly(paymentOf("P1", c.cause))
			require.Equal(t, contract.PaymentRefundSettled, end.State)
			require.Equal(t, "re_1", end.Reference)
			require.EqualValues(t, 1, w.free, "it has bought nothing")
			require.Equal(t, []string{"P1"}, w.hold.Refunded, "and never will")
			require.Empty(t, w.provider.asked)
			require.True(t, w.owners["P1"].Settled, "the gate knows it for a year")
		})
	}
}

// The attempt that was given up had reached the gate: a sale stays a sale.
func TestAPersonSettlesWhatTheGateHasSold(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.free = 1
	w.down = func(verb string) error {
		if verb == "confirm" && w.Now().Before(began.Add(time.Minute)) {
			return redis.ErrUnavailable
		}
		return nil
	}
	w.at(30*time.Second, func() {
		w.mu.Lock()
		w.free, w.hold.State, w.hold.PaymentRef = 0, contract.HoldSold, "P1"
		w.mu.Unlock()
		w.SignalWorkflow(contract.SignalRefundSettled, settledBy("re_1"))
	})
	end := w.decideOnly(paymentOf("P1", contract.CauseLate))
	require.Equal(t, contract.PaymentSold, end.State)
	require.Empty(t, w.hold.Refunded)
	require.Empty(t, w.provider.asked)
}

// A later line of a cart must answer: what of it was sold is undone with the others.
func TestAPersonSettlesWhileALaterLineIsNotHeard(t *testing.T) {
	w := cartRecords(t, 2, each(contract.HoldExpired)...)
	w.shut(lamp, 0, time.Minute)
	w.at(30*time.Second, func() { w.SignalWorkflow(contract.SignalRefundSettled, settledBy("re_1")) })
	end := w.decideOnly(paymentOf("P1", contract.CauseLate))
	require.Equal(t, contract.PaymentSold, end.State, "its first line was sold before the word came")
	require.Equal(t, each(contract.HoldSold), w.states())
	require.Empty(t, w.provider.asked)
}

// The provider's word that a refund has failed may be faster than its answer to the
// request, which is of before.
func TestARefundFailsBeforeItsRequestIsAnswered(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){fails(silent), takes("re_9", false)}
	w.at(time.Second, func() { w.SignalWorkflow(contract.SignalRefundFailed, failedRefund("re_9")) })
	var meanwhile contract.PaymentStatus
	w.at(time.Hour, func() { meanwhile = w.status() })
	_, open, _ := w.runPayment(latePayment())
	require.True(t, open)
	require.Len(t, w.provider.asked, 2)
	require.Equal(t, contract.PaymentRefundPending, meanwhile.State)
	require.Contains(t, meanwhile.ByHand, "card lost", "a person must pay it back")
}

// It may also fail after it was settled, while the gate does not take note of that.
func TestARefundFailsWhileItsSettlementIsNoted(t *testing.T) {
	for _, c := range []struct {
		failed string
		state  string
	}{{"re_9", contract.PaymentRefundPending}, {"re_8", contract.PaymentRefundSettled}} {
		w := withRecord(t, contract.HoldExpired, "")
		w.provider.answers = []func() (payment.Receipt, error){takes("re_9", false)}
		w.down = func(verb string) error {
			if verb == "settle" && w.Now().Before(began.Add(time.Hour+time.Minute)) {
				return redis.ErrUnavailable
			}
			return nil
		}
		w.at(time.Hour, func() { w.SignalWorkflow(contract.SignalRefundSettled, settledBy("re_9")) })
		w.at(time.Hour+30*time.Second, func() { w.SignalWorkflow(contract.SignalRefundFailed, failedRefund(c.failed)) })
		var meanwhile contract.PaymentStatus
		w.at(2*time.Hour, func() { meanwhile = w.status() })
		w.at(3*time.Hour, func() {
			if c.state == contract.PaymentRefundPending {
				require.False(t, w.owners["P1"].Settled, "the gate knows that it is owed again")
				w.SignalWorkflow(contract.SignalRefundSettled, settledBy("by hand"))
			}
		})
		end := w.decideOnly(latePayment())
		require.Equal(t, contract.PaymentRefundSettled, end.State)
		if c.state == contract.PaymentRefundPending {
			require.Equal(t, c.state, meanwhile.State)
			require.Equal(t, "by hand", end.Reference)
			require.Equal(t, redis.PaymentOwner{HoldID: holdID, Settled: true, Reference: "by hand"}, w.owners["P1"])
		} else {
			require.Equal(t, "re_9", end.Reference, "money that went back in another way did")
		}
	}
}

// Any client may start a Payment. Money that is not of the hold it names sells nothing.
func TestAPaymentThatIsNotOfItsHoldIsLeftToAPerson(t *testing.T) {
	amount := int64(-5)
	for name, change := range map[string]func(in *contract.PaymentInput){
		"another line of its cart": func(in *contract.PaymentInput) { in.SKU = table },
		"an id that is none":       func(in *contract.PaymentInput) { in.HoldID = "order-7" },
		"an amount that is none":   func(in *contract.PaymentInput) { in.Amount, in.Currency = &amount, "EUR" },
		"a currency alone":         func(in *contract.PaymentInput) { in.Currency = "EUR" },
	} {
		t.Run(name, func(t *testing.T) {
			w := cartRecords(t, 2, each(contract.HoldExpired)...)
			in := paymentOf("P1", contract.CauseLate)
			change(&in)
			in.PaymentID = contract.PaymentID(in.HoldID, in.PaymentRef)
			decision, open, end := w.runPayment(in)
			require.Equal(t, contract.PaymentParked, decision.State)
			require.True(t, open)
			require.NotEmpty(t, end.ByHand)
			require.Empty(t, w.calls, "the gate is not asked")
			require.Equal(t, each(contract.HoldExpired), w.states())
		})
	}
}

// What somebody writes of a refund is cut: a Payment outlives it.
func TestAPaymentOutlivesWhatIsWrittenOfIt(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.provider.answers = []func() (payment.Receipt, error){takes("re_9", false)}
	huge := strings.Repeat("<", 1_600_000)
	w.at(time.Hour, func() {
		w.SignalWorkflow(contract.SignalRefundFailed, contract.RefundFailed{Reference: huge, Reason: huge})
		w.SignalWorkflow(contract.SignalRefundSettled, contract.RefundSettled{Reference: huge, Actor: huge})
	})
	end := w.decideOnly(latePayment())
	require.Len(t, end.Reference, 500)
	require.Less(t, len(end.ByHand), 600)
}

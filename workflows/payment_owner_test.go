package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

const otherHold = "hold_bbbbbbbbbbbbbbbbbbbbbbbbbb"

// A payment that was told for another hold first may have made that one's sale: no
// machine sells by it or pays it back a second time.
func TestAPaymentOfAnotherHoldIsLeftToAPerson(t *testing.T) {
	for _, cause := range []string{contract.CauseLate, contract.CauseSecond, contract.CauseMismatched, contract.CauseOtherHold} {
		t.Run(cause, func(t *testing.T) {
			w := withRecord(t, contract.HoldHeld, "")
			w.owners = map[string]redis.PaymentOwner{"P1": {HoldID: otherHold}}
			decision, open, end := w.runPayment(paymentOf("P1", cause))
			require.Equal(t, contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmConflict}, decision)
			require.True(t, open, "it stays with a person until that person has settled it")
			require.Contains(t, end.ByHand, otherHold)
			require.Equal(t, contract.HoldHeld, w.hold.State, "it sold nothing")
			require.Empty(t, w.hold.Refunded)
			require.Empty(t, w.provider.asked, "nobody was asked to pay it back")
			require.Equal(t, redis.PaymentOwner{HoldID: otherHold}, w.owners["P1"])
		})
	}
}

func TestALivingHoldTakesNoPaymentOfAnotherHold(t *testing.T) {
	w := reserved(t)
	w.owners = map[string]redis.PaymentOwner{"P1": {HoldID: otherHold}}
	var a *answer[contract.ConfirmResult]
	w.at(time.Minute, func() {
		a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", contract.ConfirmRequest{PaymentRef: "P1"})
	})
	w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2")) })
	require.Equal(t, "P2", w.runHold().PaymentRef, "the hold goes on")
	require.Equal(t, contract.ConfirmConflict, a.result.Outcome)
	require.Equal(t, contract.PaymentID(holdID, "P1"), a.result.Refund.PaymentID)
	require.Equal(t, []string{contract.CauseOtherHold}, w.causes())
}

func TestASettlementOutlivesItsPayment(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	_, open, _ := w.runPayment(paymentOf("P1", contract.CauseLate))
	require.True(t, open)
	require.Equal(t, redis.PaymentOwner{HoldID: holdID, Settled: true, Reference: "re_1"}, w.owners["P1"])

	t.Run("a repeat asks nobody", func(t *testing.T) {
		again := withRecord(t, contract.HoldExpired, "")
		again.owners = w.owners
		decision, open, end := again.runPayment(paymentOf("P1", contract.CauseLate))
		require.Equal(t, contract.PaymentDecision{State: contract.PaymentRefundSettled, Outcome: contract.ConfirmHoldEnded}, decision)
		require.False(t, open)
		require.Equal(t, "re_1", end.Reference)
		require.Empty(t, again.provider.asked)
	})
	t.Run("a refund that failed after all is owed again", func(t *testing.T) {
		failed := withRecord(t, contract.HoldExpired, "")
		failed.hold.Refunded = []string{"P1"}
		failed.owners = w.owners
		in := paymentOf("P1", contract.CauseLate)
		in.Reopened = true
		decision, open, _ := failed.runPayment(in)
		require.Equal(t, contract.PaymentRefundPending, decision.State)
		require.True(t, open)
		require.NotEmpty(t, failed.provider.asked)
	})
}

// Money that the gate cannot be asked about is settled by a person alone.
func TestASettlementThatTheGateCannotKeep(t *testing.T) {
	w := newWorld(t)
	in := paymentOf("P1", contract.CauseUnknown)
	in.PaymentRef = ""
	_, _, end := w.runPayment(in)
	require.Equal(t, contract.PaymentRefundSettled, end.State)
	require.Empty(t, w.owners)
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// Any client may start a Payment, and none of them knows whether the shop listens.
func TestThePaymentOfAStrangerIsTold(t *testing.T) {
	for name, in := range map[string]contract.PaymentInput{
		"no SKU":     {HoldID: holdID, PaymentRef: "P1", Cause: contract.CauseUnknown},
		"no hold":    {PaymentRef: "P1", Cause: contract.CauseUnknown},
		"unreadable": {HoldID: holdID, SKU: chair, Cause: contract.CauseUndecodable, Raw: []byte("?")},
	} {
		t.Run(name, func(t *testing.T) {
			in.PaymentID = contract.PaymentID(in.HoldID, in.PaymentRef)
			w := newWorld(t)
			w.tells()
			decision, open, _ := w.runPayment(in)
			require.Equal(t, contract.PaymentParked, decision.State)
			require.True(t, open)
			require.Equal(t, []string{"payment.unmatched", "refund.settled"}, w.toldOf())

			silent := newWorld(t)
			silent.runPayment(in)
			require.Empty(t, silent.told)
		})
	}
}

// One payment under two ids would have two owners, and go back twice.
func TestAPaymentWithAnotherIDIsLeftToAPerson(t *testing.T) {
	for _, id := range []string{"", "payment_bbbbbbbbbbbbbbbbbbbbbbbbbb", contract.PaymentID(holdID, "P2")} {
		w := withRecord(t, contract.HoldHeld, "")
		w.tells()
		in := paymentOf("P1", contract.CauseLate)
		in.PaymentID = id
		w.at(time.Hour, func() {
			require.Contains(t, w.currentDetails(), "**a person must decide**")
			require.Contains(t, w.currentDetails(), contract.PaymentID(holdID, "P1"))
		})
		decision, open, end := w.runPayment(in)
		require.Equal(t, contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmHoldEnded}, decision)
		require.True(t, open, "nothing is lost")
		require.Contains(t, end.ByHand, "confirm it at the door")
		require.Empty(t, w.calls, "the gate is not asked")
		require.Empty(t, w.provider.asked)
		require.Contains(t, w.toldOf(), "payment.unmatched")
	}
}

// hold.confirmed of a cart tells the cart's times, whoever tells it.
func TestAPaymentTellsTheTimesOfItsCart(t *testing.T) {
	w := cartRecords(t, 2, each(contract.HoldHeld)...)
	w.tells()
	w.on(lamp).hold.Deadline = began.Add(-time.Minute)
	w.hold.Extended, w.on(table).hold.Extended = true, true
	w.runPayment(paymentOf("P1", contract.CauseLate))
	require.Equal(t, []string{"hold.confirmed"}, w.toldOf())
	require.Contains(t, string(w.told[0].Data), `"expires_at":"`+contract.Instant(began.Add(-time.Minute))+`"`)
	require.NotContains(t, string(w.told[0].Data), `"extended":true`, "not each line is")
}

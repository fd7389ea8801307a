package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/launch"
)

// The Hold of a pressed link tells its entry, which then shows the hold at once and
// asks the gate for nothing; it waits for the end, not for the offer's window.
func TestEntryLearnsOfThePressAtOnce(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.offers(holdID) })
	calls := 0
	w.at(day+time.Minute, func() {
		w.press()
		calls = len(w.calls)
		w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: holdID, ExpiresAt: w.hold.Deadline})
	})
	w.at(day+time.Minute+time.Second, func() {
		require.Equal(t, contract.EntryHolding, w.entryStatus().State)
		require.Len(t, w.calls, calls)
		w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: holdID, ExpiresAt: w.hold.Deadline}) // once more
	})
	w.at(day+10*time.Minute, func() {
		require.Len(t, w.calls, calls)
		w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
		w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
	})
	require.Equal(t, contract.EntryBought, w.runEntry().State)
	require.Zero(t, w.called("lapse claimed"))
}

// A word that comes late says nothing of what is now.
func TestEntryIgnoresALateClaim(t *testing.T) {
	w := joined(t)
	w.missedKeep = 1
	claim := func(id string) {
		w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: id, ExpiresAt: w.Now().Add(10 * time.Minute)})
	}
	w.at(day, func() { w.offers(holdID) })
	w.at(day+time.Minute, w.press)
	w.at(day+2*time.Minute, func() { w.holdEnds(contract.HoldReleased, contract.ReasonShop) })
	w.at(day+3*time.Minute, func() { claim(holdID) })
	w.at(day+4*time.Minute, func() { require.Equal(t, contract.EntryWaiting, w.entryStatus().State) })
	w.at(2*day, func() { w.offers(secondHold) })
	w.at(2*day+time.Minute, func() { claim(holdID) })
	w.at(2*day+2*time.Minute, func() { require.Equal(t, contract.EntryOffered, w.entryStatus().State) })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(2*day+15*time.Minute), w.hold.EndedAt)
}

// Only a link's Hold has an entry to tell, and it tells it once. Whether the entry
// hears it moves nothing: neither a closed one nor a Temporal that is away.
func TestHoldTellsItsEntryOfThePress(t *testing.T) {
	for name, meets := range map[string]error{"open": nil, "closed": launch.ErrNoOwner, "Temporal is away": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			w.noEntry = meets
			in := holdInput()
			in.EntryID = entryID
			w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "pi_1"}) })
			w.at(2*time.Minute, func() {
				w.SignalWorkflow(contract.SignalPaymentSucceeded, contract.PaymentSucceeded{PaymentRef: "pi_1"})
			})
			w.ExecuteWorkflow(contract.HoldWorkflow, in)
			require.NoError(t, w.GetWorkflowError())
			require.Equal(t, contract.HoldSold, w.hold.State)
			require.Len(t, w.signals, 1)
			require.Contains(t, w.signals[0], entryID+" "+contract.SignalClaimed+" {HoldID:"+holdID+" ExpiresAt:2026-03-01 12:10:00")
		})
	}
	t.Run("a walk-in's", func(t *testing.T) {
		w := reserved(t)
		w.ExecuteWorkflow(contract.HoldWorkflow, holdInput())
		require.NoError(t, w.GetWorkflowError())
		require.Empty(t, w.signals)
	})
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A line that stays sold, because units of it came back too soon, is a person's to put
// right. The others are free at once, and the hold may wait for years.
func TestCartWithALineThatStaysSold(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.mu.Lock()
		w.on(lamp).free = -1
		w.hold.Returned = 1
		w.mu.Unlock()
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	looks := 0
	w.at(2*time.Minute, func() {
		require.Equal(t, []int64{0, 0, 1}, w.freeUnits())
		require.NotContains(t, w.currentDetails(), "a person", "a Payment may be at it")
	})
	w.at(30*day, func() {
		looks = w.called("release shop TABLE existing")
		require.Contains(t, w.currentDetails(), "**a person should look**: `CHAIR` stays sold")
		w.mu.Lock()
		w.hold.Returned = 2 // the person takes back the rest
		w.mu.Unlock()
	})
	w.at(30*day+time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop}) })
	w.at(30*day+2*time.Minute, func() { require.True(t, w.IsWorkflowCompleted()) })
	require.Equal(t, contract.HoldReleased, w.runCart().State)
	require.Equal(t, []string{contract.CauseLate}, w.causes())
	require.Greater(t, looks, 29)
	require.Less(t, looks, 50)
}

// All of the line came back: nothing of it is sold, and nobody is needed.
func TestCartWithALineThatCameBack(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.mu.Lock()
		w.on(lamp).free = -1
		w.hold.Returned = 2
		w.mu.Unlock()
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.at(2*time.Minute, func() { require.True(t, w.IsWorkflowCompleted()) })
	require.Equal(t, contract.HoldReleased, w.runCart().State)
	require.Equal(t, contract.HoldSold, w.hold.State)
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// The server drops a task that was to end the run when something else came in
// meanwhile. The sale of that task stands at the gate, its confirm is gone from the
// run, and its caller asks again.
func TestHoldAnswersAConfirmThatWasLost(t *testing.T) {
	w := reserved(t)
	w.at(5*time.Minute, func() { // the task that the server dropped
		_, err := w.Confirm(t.Context(), redis.ConfirmRequest{SKU: chair, HoldID: holdID, PaymentRef: "P1"})
		require.NoError(t, err)
	})
	var again *answer[contract.ConfirmResult]
	w.at(10*time.Minute+2*time.Second, func() {
		again = update[contract.ConfirmResult](w, contract.UpdateConfirm, "the-update", contract.ConfirmRequest{PaymentRef: "P1"})
	})
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.True(t, again != nil && again.done, "it found somebody")
	require.Equal(t, contract.ConfirmSold, again.result.Outcome)
	require.Less(t, w.Now().Sub(began), 10*time.Minute+4*time.Second, "nothing more to wait for")
	require.Empty(t, w.payments)
}

// Nobody asks: the run does not stay for it.
func TestHoldWaitsShortlyForAConfirmThatWasLost(t *testing.T) {
	w := reserved(t)
	w.at(5*time.Minute, func() {
		_, err := w.Confirm(t.Context(), redis.ConfirmRequest{SKU: chair, HoldID: holdID, PaymentRef: "P1"})
		require.NoError(t, err)
	})
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.Less(t, w.Now().Sub(began), 11*time.Minute)
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"holdfast/contract"
)

// currentDetails is what an operator reads in the UI.
func (w *world) currentDetails() string {
	v, err := w.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(w.t, err)
	var m sdkpb.WorkflowMetadata
	require.NoError(w.t, v.Get(&m))
	return m.GetCurrentDetails()
}

func TestDetailsOfAHold(t *testing.T) {
	w := reserved(t)
	w.at(time.Minute, func() {
		require.Equal(t, `- **State**: held
- **Lines**: 1 × CHAIR
- **Customer**: ada
- **Held until**: 2026-03-01T12:10:00Z
- **Next**: given back at the deadline unless paid
`, w.currentDetails())
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.runHold()
	require.Equal(t, `- **State**: sold
- **Lines**: 1 × CHAIR
- **Customer**: ada
- **Held until**: 2026-03-01T12:10:00Z
- **Payment**: P1
- **Next**: closes
`, w.currentDetails())
}

func TestDetailsOfAnEntryHideThePhone(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Minute, func() {
		require.Equal(t, `- **State**: offered
- **Lines**: 1 × CHAIR
- **Customer**: p1
- **Held until**: 2026-03-02T12:15:00Z
- **Next**: a press, or the offer lapses
`, w.currentDetails())
	})
	w.runEntry()
	require.NotContains(t, w.currentDetails(), phone[1:])
}

func TestDetailsOfAPaymentSayWhoMustDoWhat(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.at(time.Hour, func() {
		require.Contains(t, w.currentDetails(), "**a person must pay this money back**")
	})
	w.runPayment(paymentOf("P1", contract.CauseLate))
}

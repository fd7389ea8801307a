package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"holdfast/contract"
	"holdfast/redis"
)

// currentDetails is what an operator reads in the UI.
func (w *world) currentDetails() string {
	v, err := w.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(w.t, err)
	var m sdkpb.WorkflowMetadata
	require.NoError(w.t, v.Get(&m))
	return m.GetCurrentDetails()
}

// page is a list of pairs in Markdown.
func page(pairs ...string) string {
	var out strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		out.WriteString("- **" + pairs[i] + "**: " + pairs[i+1] + "\n")
	}
	return out.String()
}

// What a shop or a shopper wrote is shown as it is, and is no Markdown.
func TestDetailsShowTextFromOutsideVerbatim(t *testing.T) {
	w := reserved(t)
	in := holdInput()
	in.Customer, in.OrderRef = "p--1", "a `tick`\n[click](https://evil.example)"
	w.at(time.Minute, func() {
		require.Contains(t, w.currentDetails(), "- **Customer**: `p--1`\n")
		require.Contains(t, w.currentDetails(), "- **Order**: `` a `tick` [click](https://evil.example) ``\n")
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.ExecuteWorkflow(contract.HoldWorkflow, in)
	require.NoError(t, w.GetWorkflowError())
}

func TestDetailsOfAHold(t *testing.T) {
	w := reserved(t)
	w.at(time.Minute, func() {
		require.Equal(t, page(
			"State", "held",
			"Lines", "1 × `CHAIR`",
			"Customer", "`ada`",
			"Held until", "2026-03-01T12:10:00Z",
			"Next", "given back at the deadline unless paid",
		), w.currentDetails())
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.runHold()
	require.Equal(t, page(
		"State", "sold",
		"Lines", "1 × `CHAIR`",
		"Customer", "`ada`",
		"Held until", "2026-03-01T12:10:00Z",
		"Payment", "`P1`",
		"Next", "closes",
	), w.currentDetails())
}

func TestDetailsOfAnEntryHideThePhone(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Minute, func() {
		require.Equal(t, page(
			"State", "offered",
			"Lines", "1 × `CHAIR`",
			"Customer", "`p1`",
			"Held until", "2026-03-02T12:15:00Z",
			"Next", "a press, or the offer lapses",
		), w.currentDetails())
	})
	w.runEntry()
	require.NotContains(t, w.currentDetails(), phone[1:])
}

func TestDetailsOfAPaymentSayWhoMustDoWhat(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.at(time.Hour, func() {
		require.Contains(t, w.currentDetails(), "**a person must pay this money back**, then send the signal `refund-settled` with `{\"reference\":\"re_123\",\"actor\":\"you\"}`")
		require.Contains(t, w.currentDetails(), "- **Hold**: `"+holdID+"`\n")
	})
	w.runPayment(paymentOf("P1", contract.CauseLate))
}

// A hold that was refused held nothing until any time.
func TestDetailsOfARefusedHold(t *testing.T) {
	w := newWorld(t)
	w.hold = &redis.Hold{ID: holdID, State: contract.HoldSwept}
	w.runHold()
	require.Equal(t, page(
		"State", "refused",
		"Lines", "1 × `CHAIR`",
		"Customer", "`ada`",
		"Next", "closes",
	), w.currentDetails())
}

func TestDetailsOfABookShowItsTitleVerbatim(t *testing.T) {
	w := newWorld(t)
	in := about()
	in.Title = "A [chair](https://evil.example)"
	w.at(time.Minute, func() {
		update[contract.PolicyResult](w, contract.UpdatePolicy, "", wantsAbout(in))
	})
	w.at(2*time.Minute, func() {
		require.Equal(t, page(
			"State", "open",
			"Lines", "`CHAIR`: received 0, returned 0, corrected 0, refused events 0",
			"Title", "`A [chair](https://evil.example)`",
			"Next", "the next stock event",
		), w.currentDetails())
	})
	w.runStock(contract.StockInput{SKU: chair}, time.Hour)
}

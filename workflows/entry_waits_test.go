package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/sms"
)

func (w *world) offerNow() (s contract.EntryStatus) {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	require.NoError(w.t, v.Get(&s))
	return s
}

// B41: while the text of an offer is kept back the entry says why, and nothing ends.
func TestEntrySaysWhatKeepsItsText(t *testing.T) {
	w := joined(t)
	tries := 0
	w.send = func(text sms.Text) (sms.Receipt, error) {
		if tries++; text.Cause == sms.CauseOffer && tries < 6 {
			return sms.Receipt{}, &sms.Error{Class: sms.StopAll, Code: 20003, Status: 401}
		}
		return sms.Receipt{ID: "SM1", Sent: true}, nil
	}
	w.at(time.Hour, func() { w.SignalWorkflow(contract.SignalTextWaits, contract.TextWait{Why: contract.WhySenderDown}) }) // of no offer
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Second, func() {
		require.Nil(t, w.offerNow().TextWaits)
		w.SignalWorkflow(contract.SignalTextWaits, contract.TextWait{Why: contract.WhySenderDown})
	})
	w.at(day+2*time.Minute, func() {
		require.Equal(t, &contract.TextWait{Why: contract.WhySenderDown}, w.offerNow().TextWaits)
		require.Contains(t, w.currentDetails(), "- **Next**: the text that tells of the offer, which waits: sender-down\n")
	})
	w.at(day+6*time.Minute, func() {
		require.Nil(t, w.offerNow().TextWaits)
		require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+19*time.Minute), w.hold.EndedAt, "the window began at the text, four minutes late")
}

// B80: the answer to a send was lost, and then the SKU is paused. On resume the provider
// is asked for that text before another is sent.
func TestEntryLooksForALostTextAfterAPause(t *testing.T) {
	w := joined(t)
	w.at(day, func() {
		w.send = func(sms.Text) (sms.Receipt, error) {
			w.send, w.paused = nil, true
			return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "no answer", MaybeSent: true}
		}
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	w.at(day+time.Hour, func() {
		require.Equal(t, 1, w.called("told paused"))
		w.paused = false
		w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID})
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Len(t, w.looked, 1)
	require.False(t, w.looked[0].IsZero(), "since the first attempt of before the pause")
	require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
}

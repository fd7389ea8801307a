package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/sms"
)

// What an entry does when Redis has forgotten something of it, and has been opened since.

// That an offer was told: the gate would keep its units for offer.max_age, and gets a window
// of its own instead.
func TestEntryOfferOfWhichTheTellingWasLost(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hold.ToldAt, w.hold.SentAt, w.hold.Deadline = time.Time{}, time.Time{}, w.hold.OfferedAt.Add(48*time.Hour)
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+30*time.Minute), w.hold.EndedAt, "its window, and once more the same")
	require.Equal(t, []string{"adopt entry ok", "adopt offer ok", "told ok", "sent ok", "lapse early", "sent ok", "lapse ok", "adopt entry ok"}, w.calls)
	require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts(), "one text a cause")
}

// That it was acknowledged: asked again, it does so again, and nothing else happens.
func TestEntryAcknowledgesAgain(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalEnded, contract.EntryEnded{State: contract.EntryWaiting}) })
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, []string{"adopt entry ok", "adopt entry ok", "leave expired ok"}, w.calls)
	require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
}

package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/sms"
)

// accepted is a provider that says later what became of a text.
func accepted(sms.Text) (sms.Receipt, error) { return sms.Receipt{ID: "SM1"}, nil }

func (w *world) textIs(holdID string, state sms.State, code int) {
	m := contract.TextStatus{TextID: "SM1", HoldID: holdID, Status: string(state), ErrorCode: code}
	if state.Lost() {
		m.Class, m.OptedOut = string(sms.ClassOf(code, 0)), sms.OptedOut(code)
	}
	w.SignalWorkflow(contract.SignalTextStatus, m)
}

// texted is an entry that was offered on its second day, and whose text was accepted.
func texted(t *testing.T) *world {
	w := joined(t)
	w.missedKeep = 1
	w.send = accepted
	w.at(day, func() { w.offers(holdID) })
	return w
}

// until runs the entry to its end and answers when and why the offer ended.
func (w *world) until(t *testing.T, state contract.EntryState) (time.Duration, string) {
	require.Equal(t, state, w.runEntry().State)
	return w.hold.EndedAt.Sub(began.Add(day)), w.hold.Reason
}

// The window starts when the provider has sent the text, whichever word of that is
// first. Repeats, and words that were overtaken, neither move it nor cost a step.
func TestEntryWindowStartsAtTheSending(t *testing.T) {
	for name, words := range map[string][]sms.State{
		"sent":                 {sms.StateSent},
		"sent, then delivered": {sms.StateSent, sms.StateDelivered},
		"sent is overtaken":    {sms.StateDelivered, sms.StateSent},
		"each word thrice":     {sms.StateSent, sms.StateSent, sms.StateDelivered, sms.StateSent, sms.StateDelivered, sms.StateDelivered},
		"every word":           {sms.StateAccepted, sms.StateQueued, sms.StateSending, sms.StateSent, sms.StateDelivered, sms.StateRead},
	} {
		t.Run(name, func(t *testing.T) {
			w := texted(t)
			for i, state := range words {
				w.at(day+30*time.Second+time.Duration(i)*time.Second, func() { w.textIs(holdID, state, 0) })
			}
			ended, reason := w.until(t, contract.EntryExpired)
			sent := 30 * time.Second
			if name == "every word" {
				sent = 33 * time.Second
			}
			require.Equal(t, sent+15*time.Minute, ended)
			require.Equal(t, "lapsed", reason)
			require.Equal(t, 1, w.called("sent ok"))
			require.Equal(t, 1, w.called("lapse ok"), "no early tries")
		})
	}
}

// The callback comes before the answer to the send, which was lost; and should the
// text be given up after all, it has been sent all the same.
func TestEntryIsSentBeforeItKnows(t *testing.T) {
	w := joined(t)
	w.send = func(sms.Text) (sms.Receipt, error) {
		return sms.Receipt{}, &sms.Error{Class: sms.Later, MaybeSent: true, Reason: "no answer"}
	}
	w.at(day, func() { w.offers(holdID) })
	w.at(day+3*time.Second, func() { w.textIs(holdID, sms.StateSent, 0) })
	ended, reason := w.until(t, contract.EntryLapsed)
	require.Equal(t, 3*time.Second+15*time.Minute, ended)
	require.Equal(t, "lapsed", reason)
}

// Nor does an answer that is overtaken by the callback move the window.
func TestEntryAnswerToTheSendIsOvertaken(t *testing.T) {
	w := joined(t)
	w.send = func(t sms.Text) (sms.Receipt, error) {
		if t.Cause == sms.CauseOffer {
			w.textIs(holdID, sms.StateSent, 0)
		}
		return sms.Receipt{ID: "SM1"}, nil
	}
	w.at(day, func() { w.offers(holdID) })
	ended, reason := w.until(t, contract.EntryLapsed)
	require.Equal(t, 15*time.Minute, ended)
	require.Equal(t, "lapsed", reason)
	require.Equal(t, 1, w.called("lapse ok"))
}

// A loss that no other text would mend makes room at once; any other one keeps the
// offer to its deadline, and then it costs no turn.
func TestEntryTextIsLost(t *testing.T) {
	for _, c := range []struct {
		state  sms.State
		code   int
		entry  contract.EntryState
		ends   time.Duration
		reason string
	}{
		{sms.StateUndelivered, 30005, contract.EntryUnreachable, time.Minute, contract.ReasonLeft},
		{sms.StateFailed, 30006, contract.EntryUnreachable, time.Minute, contract.ReasonLeft},
		{sms.StateFailed, 21610, contract.EntryOptedOut, time.Minute, contract.ReasonLeft},
		{sms.StateUndelivered, 30003, contract.EntryExpired, 15*time.Minute + 30*time.Second, contract.ReasonNotTold},
		{sms.StateUndelivered, 39999, contract.EntryExpired, 15*time.Minute + 30*time.Second, contract.ReasonNotTold},
		{sms.StateUndelivered, 30007, contract.EntryExpired, 15*time.Minute + 30*time.Second, contract.ReasonNotTold}, // stop all
		{sms.StateFailed, 30034, contract.EntryExpired, 15*time.Minute + 30*time.Second, contract.ReasonNotTold},      // stop all
	} {
		t.Run(fmt.Sprint(c.state, c.code), func(t *testing.T) {
			w := texted(t)
			w.at(day+30*time.Second, func() { w.textIs(holdID, sms.StateSent, 0) })
			w.at(day+time.Minute, func() { w.textIs(holdID, c.state, c.code) })
			// B78: an error is not overwritten.
			w.at(day+2*time.Minute, func() { w.textIs(holdID, sms.StateDelivered, 0) })
			ended, reason := w.until(t, c.entry)
			require.Equal(t, c.ends, ended)
			require.Equal(t, c.reason, reason)
			require.Zero(t, w.entry.Missed)
			require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts(), "no second text")
			require.EqualValues(t, 1, w.free)
		})
	}
}

// B84: accepted, and never heard of again: the offer ends at its deadline, which
// counts from the acceptance and sms.sent_grace.
func TestEntryTextIsNeverHeardOf(t *testing.T) {
	w := texted(t)
	ended, reason := w.until(t, contract.EntryExpired)
	require.Equal(t, 16*time.Minute, ended)
	require.Equal(t, "lapsed", reason)
	require.EqualValues(t, 1, w.entry.Missed)
	require.Equal(t, 1, w.undelivered, "and it is in the report")
}

// What is known to have arrived is in no report: by the provider's word, or because a
// sender says no more than that it took the text.
func TestEntryTextHasArrived(t *testing.T) {
	for name, c := range map[string]struct {
		receipt     sms.Receipt
		word        sms.State
		undelivered int
	}{
		"delivered": {sms.Receipt{ID: "SM1"}, sms.StateDelivered, 0}, "read": {sms.Receipt{ID: "SM1"}, sms.StateRead, 0},
		"sent":                   {sms.Receipt{ID: "SM1"}, sms.StateSent, 1},
		"found as sent":          {sms.Receipt{ID: "SM1", Sent: true}, "", 1},
		"found as delivered":     {sms.Receipt{ID: "SM1", Sent: true, Arrived: true}, "", 0},
		"found as sent, arrived": {sms.Receipt{ID: "SM1", Sent: true}, sms.StateDelivered, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := texted(t)
			w.send = func(sms.Text) (sms.Receipt, error) { return c.receipt, nil }
			if c.word != "" {
				w.at(day+time.Minute, func() { w.textIs(holdID, c.word, 0) })
			}
			w.until(t, contract.EntryExpired)
			require.Equal(t, c.undelivered, w.undelivered)
		})
	}
}

// A word on another text than the present offer's is told apart by its hold.
func TestEntryTextOfAnotherOffer(t *testing.T) {
	w := texted(t)
	w.at(10*day, func() { w.offers(secondHold) })
	w.at(10*day+time.Minute, func() {
		w.textIs(holdID, sms.StateSent, 0)
		w.textIs(holdID, sms.StateUndelivered, 30005)
	})
	w.at(10*day+2*time.Minute, func() {
		s := w.entryStatus()
		require.Equal(t, contract.EntryOffered, s.State)
		require.Equal(t, w.hold.Deadline, *s.OfferUntil)
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(10*day+16*time.Minute), w.hold.EndedAt)
	require.Zero(t, w.called("sent ok"))
}

// The joined text's loss says of the number what an offer's would; once a text has
// come through, it is old news.
func TestEntryJoinedTextIsLost(t *testing.T) {
	t.Run("for ever", func(t *testing.T) {
		w := joined(t)
		w.at(time.Hour, func() { w.textIs("", sms.StateUndelivered, 30006) })
		require.Equal(t, contract.EntryUnreachable, w.runEntry().State)
		require.Equal(t, began.Add(time.Hour), w.Now())
	})
	t.Run("for now", func(t *testing.T) {
		w := joined(t)
		w.at(time.Hour, func() { w.textIs("", sms.StateUndelivered, 30003) })
		require.Equal(t, contract.EntryExpired, w.runEntry().State)
	})
	t.Run("after a text has come through", func(t *testing.T) {
		w := texted(t)
		w.at(day+time.Minute, func() {
			w.textIs(holdID, sms.StateDelivered, 0)
			w.textIs("", sms.StateUndelivered, 30006)
		})
		require.Equal(t, contract.EntryExpired, w.runEntry().State)
	})
	t.Run("by a STOP", func(t *testing.T) {
		w := joined(t)
		w.at(time.Hour, func() { w.textIs("", sms.StateFailed, 21610) })
		require.Equal(t, contract.EntryOptedOut, w.runEntry().State)
	})
}

// Who has pressed is not thrown out by a word on a text; one who says STOP keeps the
// hold, and the entry ends with it.
func TestEntryTextIsLostWhileItHolds(t *testing.T) {
	for code, want := range map[int]contract.EntryState{30005: contract.EntryWaiting, 21610: contract.EntryLeft} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := texted(t)
			w.at(day+time.Minute, func() {
				w.press()
				w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: holdID, ExpiresAt: w.hold.Deadline})
			})
			w.at(day+2*time.Minute, func() { w.textIs(holdID, sms.StateUndelivered, code) })
			w.at(day+3*time.Minute, func() {
				require.Equal(t, contract.EntryHolding, w.entryStatus().State)
				w.holdEnds(contract.HoldReleased, contract.ReasonPaymentFailed)
			})
			w.at(day+4*time.Minute, func() { require.Equal(t, want, w.entry.State) })
			w.runEntry()
		})
	}
}

package workflows_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/quiet"
	"holdfast/sms"
)

func utc(t *testing.T, s string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", s)
	require.NoError(t, err)
	return at
}

// asleep is a world that begins at an instant, with an entry that joined right then
// and quiet hours in a zone. Its clock is local nowhere.
func asleep(t *testing.T, begins, zone, from, to string, maxWait time.Duration) *world {
	w := joined(t)
	start := utc(t, begins)
	w.SetStartTime(start)
	w.entry.JoinedAt = start
	hours, err := quiet.New(from, to, zone)
	require.NoError(t, err)
	*w.sleeps = activities.QuietHours{Hours: hours, MaxWait: maxWait, Now: w.Now}
	return w
}

func (w *world) runEntryOf() contract.EntryResult {
	in := entryInput()
	in.JoinedAt = w.entry.JoinedAt
	w.ExecuteWorkflow(contract.WaitlistEntryWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var out contract.EntryResult
	require.NoError(w.t, w.GetWorkflowResult(&out))
	return out
}

// when runs something at an instant.
func (w *world) when(at time.Time, do func()) { w.at(at.Sub(w.entry.JoinedAt), do) }

// B88: a unit comes back at half past two at night, or where there is no half past
// two, and the clocks change in that night. The text goes out in the morning, once,
// and the window runs from it.
func TestQuietHoursHoldTheTextBackAndTheWindow(t *testing.T) {
	for _, night := range []struct{ what, joined, zone, from, to, restock, morning string }{
		{"New York in spring", "2027-03-13 18:00", "America/New_York", "21:00", "09:00", "2027-03-14 07:30", "2027-03-14 13:00"},
		{"New York in spring, before the change", "2027-03-13 18:00", "America/New_York", "21:00", "09:00", "2027-03-14 06:30", "2027-03-14 13:00"},
		{"New York in autumn", "2027-11-06 18:00", "America/New_York", "21:00", "09:00", "2027-11-07 07:30", "2027-11-07 14:00"},
		{"New York in autumn, in the hour that comes twice", "2027-11-06 18:00", "America/New_York", "22:00", "01:30", "2027-11-07 05:45", "2027-11-07 06:30"},
		{"London in spring", "2027-03-27 18:00", "Europe/London", "22:00", "08:00", "2027-03-28 01:30", "2027-03-28 07:00"},
		{"London in autumn", "2027-10-30 18:00", "Europe/London", "22:00", "08:00", "2027-10-31 02:30", "2027-10-31 08:00"},
		{"Lord Howe", "2027-04-03 09:00", "Australia/Lord_Howe", "21:00", "08:00", "2027-04-03 16:00", "2027-04-03 21:30"},
	} {
		t.Run(night.what, func(t *testing.T) {
			w := asleep(t, night.joined, night.zone, night.from, night.to, 12*time.Hour)
			restock, morning := utc(t, night.restock), utc(t, night.morning)
			w.when(restock, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
			w.when(restock.Add(time.Minute), func() {
				s := w.entryStatus()
				require.Equal(t, contract.EntryOffered, s.State)
				require.Equal(t, &contract.TextWait{Why: contract.WhyQuietHours, Until: morning}, s.TextWaits)
				require.False(t, s.OfferSent)
				require.Nil(t, s.OfferUntil)
				w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID}) // handed out again
			})
			w.when(morning.Add(-time.Second), func() {
				require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
				require.Zero(t, w.called("told ok"), "the gate is not told of a text that waits")
			})
			w.when(morning.Add(time.Minute), func() {
				require.Nil(t, w.entryStatus().TextWaits)
				require.Equal(t, morning.Add(15*time.Minute), w.entryStatus().OfferUntil.UTC())
			})
			require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
			require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
			require.Equal(t, []time.Time{w.entry.JoinedAt, morning}, w.textedAt)
			require.Equal(t, morning.Add(15*time.Minute), w.hold.EndedAt)
			require.Equal(t, []string{"adopt entry ok", "adopt offer ok", "told ok", "sent ok", "lapse ok", "adopt entry ok"}, w.calls)
			require.Empty(t, w.looked, "nothing can have been sent")
		})
	}
}

// Who joins at night is told of the place in the morning, unless it is gone by then.
func TestQuietHoursHoldTheJoinedTextBack(t *testing.T) {
	join := func(t *testing.T) *world {
		return asleep(t, "2027-01-10 23:10", "Europe/London", "22:00", "08:00", 12*time.Hour)
	}
	t.Run("sent in the morning", func(t *testing.T) {
		w := join(t)
		w.at(20*time.Hour, func() { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) })
		require.Equal(t, contract.EntryLeft, w.runEntryOf().State)
		require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
		require.Equal(t, []time.Time{utc(t, "2027-01-11 08:00")}, w.textedAt)
	})
	t.Run("left in the night", func(t *testing.T) {
		w := join(t)
		w.at(time.Hour, func() { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) })
		require.Equal(t, contract.EntryLeft, w.runEntryOf().State)
		require.Equal(t, utc(t, "2027-01-11 00:10"), w.Now().Truncate(time.Minute), "it closes at once")
		require.Empty(t, w.texts)
	})
	t.Run("pressed on the page in the night", func(t *testing.T) {
		w := join(t)
		w.at(time.Hour, func() {
			w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
			w.press()
		})
		w.at(10*time.Hour, func() {
			w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
		})
		require.Equal(t, contract.EntryBought, w.runEntryOf().State)
		require.Empty(t, w.texts)
	})
}

// Hours longer than quiet.max_wait: the unit goes on, without a text and without a
// missed turn, and the sleeper is told of the next unit.
func TestQuietHoursPassTheUnitOn(t *testing.T) {
	w := asleep(t, "2027-01-10 12:00", "Europe/London", "18:00", "09:00", 12*time.Hour)
	offered, passes := utc(t, "2027-01-10 19:30"), utc(t, "2027-01-11 07:30")
	w.when(offered, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.when(passes.Add(-time.Minute), func() {
		s := w.entryStatus()
		require.Equal(t, &contract.TextWait{Why: contract.WhyQuietHours, Until: utc(t, "2027-01-11 09:00")}, s.TextWaits)
		require.Equal(t, passes, s.OfferUntil.UTC())
		require.Zero(t, w.free)
	})
	w.when(passes.Add(time.Minute), func() {
		require.EqualValues(t, 1, w.free)
		require.Equal(t, [2]any{contract.HoldLapsed, contract.ReasonNotTold}, [2]any{w.hold.State, w.hold.Reason})
		require.Equal(t, passes, w.hold.EndedAt)
		s := w.entryStatus()
		require.Equal(t, contract.EntryWaiting, s.State, "the place is kept")
		require.Nil(t, s.TextWaits)
		require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
	})
	next := "hold_bbbbbbbbbbbbbbbbbbbbbbbbbb"
	w.when(utc(t, "2027-01-11 10:00"), func() { w.SignalWorkflow(contract.SignalOffered, w.offer(next)) })
	require.Equal(t, next, w.runEntryOf().HoldID)
	require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
	require.Equal(t, utc(t, "2027-01-11 10:00"), w.textedAt[1])
	require.Equal(t, 1, w.called("lapse not told ok"))
}

// An offer that can be told just in time is, and one after midnight as well: it
// waits its own time, not that of the offers before it.
func TestQuietHoursThatAreNotTooLong(t *testing.T) {
	for _, offered := range []string{"2027-01-10 21:00", "2027-01-11 02:30"} {
		w := asleep(t, "2027-01-10 12:00", "Europe/London", "18:00", "09:00", 12*time.Hour)
		w.when(utc(t, offered), func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
		require.Equal(t, utc(t, "2027-01-11 09:00"), w.textedAt[1])
	}
}

// offer.max_age bounds the wait as it bounds everything else of an offer.
func TestQuietHoursAreNotLongerThanAnOfferLives(t *testing.T) {
	w := asleep(t, "2027-01-10 12:00", "Europe/London", "18:00", "09:00", 7*day)
	w.when(utc(t, "2027-01-10 19:00"), func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.when(utc(t, "2027-01-10 20:00").Add(time.Minute), func() {
		require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
		w.SignalWorkflow(contract.SignalLeave, contract.Leave{})
	})
	in := entryInput()
	in.JoinedAt, in.Settings.MaxAgeSeconds = w.entry.JoinedAt, 3600
	w.ExecuteWorkflow(contract.WaitlistEntryWorkflow, in)
	require.NoError(t, w.GetWorkflowError())
	require.Equal(t, utc(t, "2027-01-10 20:00"), w.hold.EndedAt)
}

func TestWhatEndsAnOfferInQuietHours(t *testing.T) {
	night := func(t *testing.T) *world {
		w := asleep(t, "2027-01-10 12:00", "Europe/London", "22:00", "08:00", 12*time.Hour)
		w.when(utc(t, "2027-01-10 23:00"), func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		return w
	}
	t.Run("its person leaves", func(t *testing.T) {
		w := night(t)
		w.when(utc(t, "2027-01-11 01:00"), func() { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) })
		require.Equal(t, contract.EntryLeft, w.runEntryOf().State)
		require.EqualValues(t, 1, w.free, "at once, not in the morning")
		require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
	})
	t.Run("it is withdrawn, and another comes", func(t *testing.T) {
		w := night(t)
		next := "hold_bbbbbbbbbbbbbbbbbbbbbbbbbb"
		w.when(utc(t, "2027-01-11 01:00"), func() {
			w.endHold(contract.HoldReleased, contract.ReasonShop)
			w.entry.State = contract.EntryWaiting
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
		})
		w.when(utc(t, "2027-01-11 02:00"), func() {
			require.Nil(t, w.entryStatus().TextWaits)
			w.SignalWorkflow(contract.SignalOffered, w.offer(next))
		})
		require.Equal(t, next, w.runEntryOf().HoldID)
		require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts(), "one text, of the offer that stands")
		require.Equal(t, next, w.texts[1].HoldID)
	})
	t.Run("its SKU is paused until noon", func(t *testing.T) {
		w := night(t)
		w.when(utc(t, "2027-01-11 01:00"), func() { w.paused = true })
		w.when(utc(t, "2027-01-11 12:00"), func() {
			require.Equal(t, 1, w.called("told paused"))
			w.paused = false
			w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID})
		})
		require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
		require.Equal(t, utc(t, "2027-01-11 12:00"), w.textedAt[1])
	})
}

// An answer that was lost right before the quiet hours: the text may be out there.
// In the morning it is looked for before another is sent, and until then its offer
// is not passed on.
func TestQuietHoursAfterALostAnswer(t *testing.T) {
	w := asleep(t, "2027-01-10 12:00", "Europe/London", "22:00", "08:00", time.Hour)
	w.when(utc(t, "2027-01-10 22:00").Add(-2*time.Second), func() {
		w.send = func(sms.Text) (sms.Receipt, error) {
			w.send = nil
			return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "no answer", MaybeSent: true}
		}
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
	require.Len(t, w.looked, 1, "in the morning the provider is asked first")
	require.False(t, w.looked[0].IsZero())
	require.Equal(t, utc(t, "2027-01-11 08:00"), w.textedAt[1])
	require.Zero(t, w.called("lapse not told ok"))
}

// A worker whose clock is behind asks again a second later, not in a loop.
func TestQuietHoursByAClockThatIsBehind(t *testing.T) {
	w := asleep(t, "2027-01-10 23:00", "Europe/London", "22:00", "08:00", 12*time.Hour)
	var asked atomic.Int32 // by activities side by side
	w.sleeps.Now = func() time.Time {
		asked.Add(1)
		return w.Now().Add(-2500 * time.Millisecond)
	}
	w.at(12*time.Hour, func() { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) })
	require.Equal(t, contract.EntryLeft, w.runEntryOf().State)
	require.Equal(t, []time.Time{utc(t, "2027-01-11 08:00").Add(3 * time.Second)}, w.textedAt)
	require.EqualValues(t, 5, asked.Load())
}

// The callback of a text whose answer was lost comes in the night, or right before the
// attempt that finds the night: it was sent, so its window runs and nothing more is sent.
func TestQuietHoursAndACallbackOfALostAnswer(t *testing.T) {
	night := utc(t, "2027-01-10 22:00")
	for _, sent := range []time.Time{night, night.Add(time.Minute)} {
		w := asleep(t, "2027-01-10 12:00", "Europe/London", "22:00", "08:00", 12*time.Hour)
		w.when(night.Add(-2*time.Second), func() {
			w.send = func(sms.Text) (sms.Receipt, error) {
				w.send = nil
				return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "no answer", MaybeSent: true}
			}
			w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
		})
		w.when(sent, func() {
			require.Equal(t, sent.After(night), w.entryStatus().TextWaits != nil)
			w.SignalWorkflow(contract.SignalTextStatus, contract.TextStatus{HoldID: holdID, Status: string(sms.StateSent)})
		})
		w.when(sent.Add(time.Minute), func() {
			s := w.entryStatus()
			require.Nil(t, s.TextWaits)
			require.True(t, s.OfferSent)
		})
		require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
		require.Equal(t, sent.Add(15*time.Minute), w.hold.EndedAt)
		require.Equal(t, 1, w.called("lapse ok"), "a turn that was told")
		require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts(), "no second one")
	}
}

// Clocks that differ by minutes cost a few more asks, not one a second.
func TestQuietHoursByAClockThatIsFarBehind(t *testing.T) {
	w := asleep(t, "2027-01-10 23:00", "Europe/London", "22:00", "08:00", 12*time.Hour)
	var asked atomic.Int32 // by activities side by side
	w.sleeps.Now = func() time.Time {
		asked.Add(1)
		return w.Now().Add(-5 * time.Minute)
	}
	w.at(time.Hour, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
	require.ElementsMatch(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
	for _, at := range w.textedAt {
		require.WithinRange(t, at, utc(t, "2027-01-11 08:05"), utc(t, "2027-01-11 08:10"))
	}
	require.LessOrEqual(t, asked.Load(), int32(2*14))
}

// The greatest age of the SKU's own policy bounds the wait: a text of the morning would
// tell of an offer that is over.
func TestQuietHoursUnderAPolicy(t *testing.T) {
	w := asleep(t, "2027-01-10 12:00", "Europe/London", "18:00", "09:00", 12*time.Hour)
	w.policy.OfferMaxAgeSeconds = new(int64)
	*w.policy.OfferMaxAgeSeconds = 3 * 3600
	w.when(utc(t, "2027-01-10 22:00"), func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.when(utc(t, "2027-01-11 01:00").Add(time.Minute), func() {
		require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
		require.Equal(t, utc(t, "2027-01-11 01:00"), w.hold.EndedAt)
		w.SignalWorkflow(contract.SignalLeave, contract.Leave{})
	})
	require.Equal(t, contract.EntryLeft, w.runEntryOf().State)
	require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
}

// In the morning it is no longer the night that keeps a text.
func TestWhatKeepsATextAfterTheNight(t *testing.T) {
	w := asleep(t, "2027-01-10 12:00", "Europe/London", "22:00", "08:00", 12*time.Hour)
	morning := utc(t, "2027-01-11 08:00")
	w.when(utc(t, "2027-01-10 23:00"), func() {
		w.send = func(sms.Text) (sms.Receipt, error) { return sms.Receipt{}, &sms.Error{Class: sms.StopAll, Status: 401} }
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	w.when(morning.Add(-time.Second), func() { require.NotNil(t, w.entryStatus().TextWaits) })
	w.when(morning.Add(time.Second), func() {
		require.Nil(t, w.entryStatus().TextWaits)
		require.NotContains(t, w.currentDetails(), "quiet-hours")
		w.SignalWorkflow(contract.SignalTextWaits, contract.TextWait{Why: contract.WhySenderDown})
	})
	w.when(morning.Add(2*time.Second), func() {
		require.Equal(t, contract.WhySenderDown, w.entryStatus().TextWaits.Why)
		w.press() // the link stands on no page; its person has it all the same
		w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: holdID, ExpiresAt: w.hold.Deadline})
	})
	w.when(morning.Add(3*time.Second), func() {
		w.SignalWorkflow(contract.SignalTextWaits, contract.TextWait{Why: contract.WhySenderDown}) // of an attempt before the press
	})
	w.when(morning.Add(4*time.Second), func() {
		require.Nil(t, w.entryStatus().TextWaits)
		w.holdEnds(contract.HoldReleased, contract.ReasonShop)
	})
	require.Equal(t, contract.EntryLapsed, w.runEntryOf().State)
}

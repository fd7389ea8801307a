package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

const (
	entryID = "entry_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	phone   = "+12025550123"
	day     = 24 * time.Hour
)

func joined(t *testing.T) *world {
	w := newWorld(t)
	w.entry = &redis.Entry{ID: entryID, SKU: chair, State: contract.EntryWaiting, Units: 1, JoinedAt: began}
	return w
}

func entryInput() contract.EntryInput {
	return contract.EntryInput{
		EntryID: entryID, SKU: chair, Quantity: 1, Person: "p1", Phone: phone, JoinedAt: began, Position: 5,
		Settings: contract.EntrySettings{TTLSeconds: 180 * 86400, WindowSeconds: 900, SentGraceSeconds: 60, MaxAgeSeconds: 48 * 3600},
	}
}

func (w *world) runEntry() contract.EntryResult {
	w.ExecuteWorkflow(contract.WaitlistEntryWorkflow, entryInput())
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var out contract.EntryResult
	require.NoError(w.t, w.GetWorkflowResult(&out))
	return out
}

func (w *world) causesOfTexts() (out []string) {
	for _, text := range w.texts {
		out = append(out, text.Cause)
	}
	return out
}

// B106: half a year is one timer and two calls of the gate.
func TestEntryExpiresAfterHalfAYearWithoutAnotherText(t *testing.T) {
	w := joined(t)
	w.at(200*day, func() { t.Error("the entry should have closed") })
	w.at(179*day, func() { require.Equal(t, contract.EntryWaiting, w.entry.State) })
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, began.Add(180*day), w.Now())
	require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
	require.Equal(t, "Nordlicht: you are no. 5 in line for Windsor chair. Your place: https://nordlicht.example/w/"+entryID+" Reply STOP to stop.", w.texts[0].Body)
	require.Equal(t, phone, w.texts[0].To)
	require.Equal(t, []string{"adopt entry ok", "leave expired ok"}, w.calls)
}

func TestEntryOfferLapses(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Minute, func() { w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID}) }) // handed out again
	require.Equal(t, contract.EntryResult{EntryID: entryID, State: contract.EntryLapsed, HoldID: holdID}, w.runEntry())
	require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts(), "one text a cause")
	link := "https://nordlicht.example/r/" + holdID + ".20260304T121000"
	require.Equal(t, "Nordlicht: "+link+" holds your Windsor chair for 15 min. STOP to stop.", w.texts[1].Body)
	require.Equal(t, 15*time.Minute, w.texts[1].Validity)
	require.Equal(t, began.Add(day+15*time.Minute), w.hold.EndedAt)
	require.Equal(t, []string{"adopt entry ok", "adopt offer ok", "told ok", "sent ok", "lapse ok", "adopt entry ok"}, w.calls)
}

func TestEntryWindowStartsAfterTheGraceOfAnAcceptance(t *testing.T) {
	w := joined(t)
	w.send = func(sms.Text) (sms.Receipt, error) { return sms.Receipt{ID: "SM1"}, nil }
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+16*time.Minute), w.hold.EndedAt)
	require.Zero(t, w.called("sent ok"))
}

func TestEntryPressedAndBought(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+5*time.Minute, w.press)
	w.at(day+14*time.Minute, func() {
		w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
		w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
	})
	require.Equal(t, contract.EntryBought, w.runEntry().State)
	require.Zero(t, w.called("lapse claimed"))
}

func TestEntryLapseMeetsAPress(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+14*time.Minute, w.press)
	w.at(day+24*time.Minute+30*time.Second, func() {
		v, err := w.QueryWorkflow(contract.QueryStatus)
		require.NoError(t, err)
		var s contract.EntryStatus
		require.NoError(t, v.Get(&s))
		require.Equal(t, contract.EntryHolding, s.State)
		w.endHold(contract.HoldReleased, contract.ReasonShopper)
		w.entry.State = contract.EntryLeft
		w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
	})
	require.Equal(t, contract.EntryLeft, w.runEntry().State)
	require.Equal(t, 1, w.called("lapse claimed"), "it waits for a message, it does not poll")
}

func TestEntryPressThatDiedGivesTheOfferBack(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+15*time.Minute-time.Second, func() {
		w.hold.State, w.hold.Deadline = contract.HoldProvisional, w.Now().Add(10*time.Second)
		w.entry.State = contract.EntryHolding
	})
	w.at(day+15*time.Minute+9*time.Second, func() {
		w.hold.State, w.hold.Deadline = contract.HoldOffered, w.Now().Add(2*time.Minute)
		w.entry.State = contract.EntryOffered
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+17*time.Minute+9*time.Second), w.hold.EndedAt)
}

func TestEntryHoldEndIsLearnedWithoutAMessage(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+14*time.Minute, w.press)
	w.at(day+20*time.Minute, func() { w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought })
	require.Equal(t, contract.EntryBought, w.runEntry().State)
}

func TestEntryLeaves(t *testing.T) {
	leave := func(w *world) { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) }
	t.Run("while waiting", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() { leave(w) })
		require.Equal(t, contract.EntryLeft, w.runEntry().State)
		require.Equal(t, began.Add(day), w.Now())
	})
	t.Run("while offered", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		w.at(day+time.Minute, func() { leave(w) })
		require.Equal(t, contract.EntryLeft, w.runEntry().State)
		require.EqualValues(t, 1, w.free)
	})
	t.Run("before its offer was texted", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() {
			w.send = func(sms.Text) (sms.Receipt, error) {
				return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "busy"}
			}
			w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
		})
		w.at(day+3*time.Second, func() {
			w.send = nil
			leave(w)
		})
		w.at(day+time.Hour, func() { t.Error("the entry should have closed") })
		require.Equal(t, contract.EntryLeft, w.runEntry().State)
		require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
	})
	t.Run("before the joined text", func(t *testing.T) {
		w := joined(t)
		w.send = func(sms.Text) (sms.Receipt, error) {
			return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "busy"}
		}
		w.at(3*time.Second, func() {
			w.send = nil
			leave(w)
		})
		require.Equal(t, contract.EntryLeft, w.runEntry().State)
		require.Empty(t, w.texts)
	})
	t.Run("while holding", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		w.at(day+time.Minute, w.press)
		w.at(day+2*time.Minute, func() { leave(w) })
		w.at(day+5*time.Minute, func() {
			require.False(t, w.IsWorkflowCompleted(), "the hold runs on")
			w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
		})
		require.Equal(t, contract.EntryBought, w.runEntry().State)
	})
	t.Run("at the door", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() {
			w.entry.State = contract.EntryLeft
			w.SignalWorkflow(contract.SignalEnded, contract.EntryEnded{State: contract.EntryLeft})
		})
		require.Equal(t, contract.EntryLeft, w.runEntry().State)
		require.Equal(t, 2, w.called("adopt entry ok"), "the end is acknowledged")
	})
	t.Run("cancelled", func(t *testing.T) {
		w := joined(t)
		w.at(day, w.CancelWorkflow)
		require.Equal(t, contract.EntryRemoved, w.runEntry().State)
	})
}

func TestEntryThatNobodyCanReach(t *testing.T) {
	for code, want := range map[int]contract.EntryState{21614: contract.EntryUnreachable, 21610: contract.EntryOptedOut} {
		never := func(sms.Text) (sms.Receipt, error) {
			return sms.Receipt{}, &sms.Error{Class: sms.Never, Code: code, Reason: "refused"}
		}
		t.Run(fmt.Sprint(code, " at the joined text"), func(t *testing.T) {
			w := joined(t)
			w.send = never
			require.Equal(t, want, w.runEntry().State)
		})
		t.Run(fmt.Sprint(code, " at the offer"), func(t *testing.T) {
			w := joined(t)
			w.at(day, func() {
				w.send = never
				w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
			})
			require.Equal(t, want, w.runEntry().State)
			require.EqualValues(t, 1, w.free, "the unit passes on at once")
			require.Equal(t, began.Add(day), w.hold.EndedAt)
		})
	}
}

func TestEntryTextIsTriedAgain(t *testing.T) {
	w := joined(t)
	w.at(day, func() {
		attempts := 0
		w.send = func(sms.Text) (sms.Receipt, error) {
			if attempts++; attempts < 3 {
				return sms.Receipt{}, &sms.Error{Class: sms.Later, Status: 429, Reason: "busy"}
			}
			return sms.Receipt{ID: "SM1", Sent: true}, nil
		}
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, 3, w.called("told ok"), "told before each attempt")
	require.Equal(t, began.Add(day+15*time.Second+15*time.Minute), w.hold.EndedAt, "the window runs from the text, not from the offer")
}

func TestEntryTTLWaitsForTheOffer(t *testing.T) {
	w := joined(t)
	w.at(180*day-time.Minute, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(180*day+14*time.Minute), w.hold.EndedAt)
	require.Zero(t, w.called("leave expired ok"))
}

func TestEntryThatHadEndedSendsNothing(t *testing.T) {
	for _, state := range []contract.EntryState{contract.EntryLeft, contract.EntryExpired} {
		w := joined(t)
		w.entry.State = state
		require.Equal(t, state, w.runEntry().State)
		require.Empty(t, w.texts)
	}
	w := newWorld(t) // no record at all
	require.Equal(t, contract.EntryRemoved, w.runEntry().State)
	require.Empty(t, w.texts)
}

func TestEntryKeepsThePhoneToItself(t *testing.T) {
	w := joined(t)
	verbs := 0
	w.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, args []any) {
		verbs++
		require.NotContains(t, fmt.Sprintf("%+v", args), phone[1:], info.ActivityType.Name)
	})
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.runEntry()
	require.Equal(t, 5, verbs)
}

// Whoever joined in a language is texted in it.
func TestTextsAreInTheLanguageOfTheJoin(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	in := entryInput()
	in.Locale = "de-AT"
	w.ExecuteWorkflow(contract.WaitlistEntryWorkflow, in)
	require.NoError(t, w.GetWorkflowError())
	require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
	for _, text := range w.texts {
		require.Contains(t, text.Body, "Abmelden mit STOP.")
	}
}

package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

const secondHold = "hold_bbbbbbbbbbbbbbbbbbbbbbbbbb"

func (w *world) entryStatus() (s contract.EntryStatus) {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	require.NoError(w.t, v.Get(&s))
	return s
}

func (w *world) offers(id string) { w.SignalWorkflow(contract.SignalOffered, w.offer(id)) }

func (w *world) holdEnds(state contract.HoldState, reason string) {
	w.mu.Lock()
	w.endHold(state, reason)
	w.missTurn()
	w.mu.Unlock()
	w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: w.hold.ID})
}

// A turn that was missed keeps the place once; the next restock asks again, with a
// text of its own, and a second missed turn is the end.
func TestEntryKeepsItsPlaceAfterAMissedTurn(t *testing.T) {
	missed := map[string]func(w *world){
		"the offer lapses": func(*world) {},
		"the payment fails": func(w *world) {
			w.at(day+5*time.Minute, w.press)
			w.at(day+9*time.Minute, func() { w.holdEnds(contract.HoldReleased, contract.ReasonPaymentFailed) })
		},
		"the shop releases, and the entry knew of the press": func(w *world) {
			w.at(day+5*time.Minute, func() {
				w.press()
				w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: holdID, ExpiresAt: w.hold.Deadline})
			})
			w.at(day+9*time.Minute, func() { w.holdEnds(contract.HoldReleased, contract.ReasonShop) })
		},
		"the hold expires": func(w *world) {
			w.at(day+5*time.Minute, w.press)
			w.at(day+15*time.Minute, func() { w.holdEnds(contract.HoldReleased, contract.ReasonExpired) })
		},
	}
	for name, miss := range missed {
		t.Run(name, func(t *testing.T) {
			w := joined(t)
			w.missedKeep = 1
			w.at(day, func() { w.offers(holdID) })
			miss(w)
			w.at(2*day, func() {
				s := w.entryStatus()
				require.Equal(t, contract.EntryWaiting, s.State)
				require.EqualValues(t, 1, s.Missed)
				require.Nil(t, s.OfferUntil)
				require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer}, w.causesOfTexts())
			})
			w.at(10*day, func() { w.offers(secondHold) })
			require.Equal(t, contract.EntryResult{EntryID: entryID, State: contract.EntryLapsed, HoldID: secondHold}, w.runEntry())
			require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer, sms.CauseOffer}, w.causesOfTexts())
			require.Contains(t, w.texts[2].Body, secondHold)
			require.Equal(t, began.Add(10*day+15*time.Minute), w.hold.EndedAt)
		})
	}
}

// The gate offers anew before the workflow has heard how the last hold ended: what
// it learns first must not make it ignore the offer.
func TestEntryIsOfferedAnewBeforeItKnowsOfTheEnd(t *testing.T) {
	for name, news := range map[string]func(w *world){
		"the end is told first": func(w *world) {
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
			w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: secondHold})
		},
		"the offer is told first": func(w *world) {
			w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: secondHold})
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
		},
		"only the offer is told": func(w *world) {
			w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: secondHold})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := joined(t)
			w.missedKeep = 1
			w.at(day, func() { w.offers(holdID) })
			w.at(day+time.Minute, w.press)
			w.at(day+2*time.Minute, func() {
				w.mu.Lock()
				w.endHold(contract.HoldReleased, contract.ReasonShop)
				w.missTurn()
				w.mu.Unlock()
				w.offer(secondHold)
				news(w)
			})
			require.Equal(t, secondHold, w.runEntry().HoldID)
			require.Equal(t, []string{sms.CauseJoined, sms.CauseOffer, sms.CauseOffer}, w.causesOfTexts())
			require.Equal(t, began.Add(day+17*time.Minute), w.hold.EndedAt, "its own window")
		})
	}
}

// A place runs out only while it waits; parked is waiting.
func TestEntryExpiresWhileParked(t *testing.T) {
	w := joined(t)
	w.missedKeep = 1
	w.at(180*day-time.Minute, func() { w.offers(holdID) })
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, began.Add(180*day+14*time.Minute), w.Now(), "as soon as the offer has ended")
	require.Equal(t, 1, w.called("leave expired ok"))
}

// B41: texts cannot be sent. The offer is kept for its greatest age and no longer,
// costs no turn, and the unit is passed on once in that time: a fault of the sender
// does not walk through the line. When it has passed, the next offer is told.
func TestEntryOfferThatCannotBeToldCostsNoTurn(t *testing.T) {
	for name, refusal := range map[string]*sms.Error{
		"later":    {Class: sms.Later, Reason: "busy"},
		"stop all": {Class: sms.StopAll, Code: 20003, Reason: "wrong credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			w := joined(t)
			w.at(day, func() {
				w.send = func(sms.Text) (sms.Receipt, error) { return sms.Receipt{}, refusal }
				w.offers(holdID)
			})
			w.at(3*day-time.Minute, func() { require.Equal(t, contract.HoldOffered, w.hold.State, "kept until then") })
			w.at(3*day+time.Minute, func() {
				require.Equal(t, contract.HoldLapsed, w.hold.State)
				require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
				s := w.entryStatus()
				require.Equal(t, contract.EntryWaiting, s.State)
				require.Zero(t, s.Missed)
			})
			w.at(4*day, func() {
				w.send = nil
				w.offers(secondHold)
			})
			require.Equal(t, contract.EntryLapsed, w.runEntry().State)
			require.Equal(t, began.Add(4*day+15*time.Minute), w.hold.EndedAt)
			require.Equal(t, 1, w.called("lapse not told ok"))
		})
	}
}

// A fault of ours that no repetition mends (here no link can be made) is kept to the
// greatest age as well: it would meet everybody in line.
func TestEntryKeepsAnOfferWhoseTextCannotBeMade(t *testing.T) {
	w := joined(t)
	w.noLinks = true
	w.at(day, func() { w.offers(holdID) })
	w.at(3*day-time.Minute, func() { require.Equal(t, contract.HoldOffered, w.hold.State) })
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, began.Add(3*day), w.hold.EndedAt)
	require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
}

// Paused before, or in the middle of, telling: the offer goes back to the outbox,
// which brings it when the SKU resumes, and is told then. Nobody's turn is missed by
// a long pause.
func TestEntryOfferOfAPausedSKU(t *testing.T) {
	busy := func(sms.Text) (sms.Receipt, error) {
		return sms.Receipt{}, &sms.Error{Class: sms.Later, Reason: "busy"}
	}
	for name, before := range map[string]func(w *world){
		"paused before the first attempt": func(w *world) { w.paused = true },
		"paused after an attempt failed": func(w *world) {
			w.send = busy
			w.at(time.Second, func() { w.paused, w.send = true, nil })
		},
	} {
		t.Run(name+", and resumed", func(t *testing.T) {
			w := joined(t)
			w.at(day, func() {
				before(w)
				w.offers(holdID)
			})
			w.at(day+time.Hour, func() {
				require.NotContains(t, w.causesOfTexts(), sms.CauseOffer)
				require.Equal(t, contract.HoldOffered, w.hold.State, "its deadline is not the one of the attempt")
				w.paused = false
				w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID})
			})
			require.Equal(t, contract.EntryLapsed, w.runEntry().State)
			require.Equal(t, began.Add(day+time.Hour+15*time.Minute), w.hold.EndedAt)
			require.Contains(t, w.causesOfTexts(), sms.CauseOffer)
		})
		t.Run(name+", for longer than an offer may be kept", func(t *testing.T) {
			w := joined(t)
			w.at(day, func() {
				before(w)
				w.offers(holdID)
			})
			require.Equal(t, contract.EntryExpired, w.runEntry().State)
			require.Equal(t, began.Add(3*day), w.hold.EndedAt)
			require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
			require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
		})
	}
}

// A pause does not touch who was told.
func TestEntryToldBeforeThePauseGoesOn(t *testing.T) {
	w := joined(t)
	w.at(day, func() { w.offers(holdID) })
	w.at(day+time.Minute, func() { w.paused = true })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+15*time.Minute), w.hold.EndedAt)
}

// After the end of the sale nobody is told any more: the unit is left over at once,
// and no turn was missed.
func TestEntryOfferAfterTheSaleIsNotTold(t *testing.T) {
	w := joined(t)
	w.at(day, func() {
		w.saleEnds = true
		w.offers(holdID)
	})
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, began.Add(day), w.hold.EndedAt)
	require.Equal(t, contract.ReasonNotTold, w.hold.Reason)
	require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
}

// Cancelled in each state: a place or an offer ends at once, a hold that was pressed
// runs on and the entry ends with it.
func TestEntryIsCancelledInEachState(t *testing.T) {
	t.Run("offered", func(t *testing.T) {
		w := joined(t)
		w.at(day, func() { w.offers(holdID) })
		w.at(day+time.Minute, w.CancelWorkflow)
		require.Equal(t, contract.EntryRemoved, w.runEntry().State)
		require.EqualValues(t, 1, w.free)
	})
	t.Run("parked", func(t *testing.T) {
		w := joined(t)
		w.missedKeep = 1
		w.at(day, func() { w.offers(holdID) })
		w.at(2*day, w.CancelWorkflow)
		require.Equal(t, contract.EntryRemoved, w.runEntry().State)
		require.Equal(t, began.Add(2*day), w.Now())
	})
	t.Run("holding", func(t *testing.T) {
		w := joined(t)
		w.missedKeep = 1
		w.at(day, func() { w.offers(holdID) })
		w.at(day+time.Minute, w.press)
		w.at(day+2*time.Minute, w.CancelWorkflow)
		w.at(day+5*time.Minute, func() {
			require.False(t, w.IsWorkflowCompleted(), "the hold runs on")
			require.True(t, w.entryStatus().Leaving)
			w.holdEnds(contract.HoldReleased, contract.ReasonPaymentFailed)
		})
		require.Equal(t, contract.EntryLeft, w.runEntry().State, "nothing is parked after it")
	})
}

// The gate's answer to the ending is lost with the worker: it is asked again, and the
// record answers.
func TestEntryLapseIsAskedAgain(t *testing.T) {
	w := joined(t)
	w.missedKeep = 1
	lost := 0
	w.down = func(verb string) error {
		if verb == "lapse" && w.hold.State == contract.HoldLapsed {
			lost++
		}
		return nil
	}
	w.at(day, func() { w.offers(holdID) })
	w.at(day+15*time.Minute-time.Second, func() { // another attempt of the same step was first
		w.mu.Lock()
		defer w.mu.Unlock()
		w.endHold(contract.HoldLapsed, "lapsed")
		w.missTurn()
	})
	require.Equal(t, contract.EntryExpired, w.runEntry().State)
	require.Equal(t, 1, lost)
	require.Equal(t, 1, w.called("lapse existing"))
	require.EqualValues(t, 1, w.entry.Missed, fmt.Sprint(redis.Existing))
}

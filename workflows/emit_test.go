package workflows_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/payment"
	"holdfast/redis"
	"holdfast/sms"
)

// dataOf is what the event of a type tells.
func dataOf[T any](w *world, kind string) T {
	var out T
	for _, e := range w.told {
		if e.Type == kind {
			require.NoError(w.t, json.Unmarshal(e.Data, &out))
			return out
		}
	}
	require.Fail(w.t, "not told", "%s; told are %v", kind, w.toldOf())
	return out
}

// stories are one of each workflow, with all that it can tell.
var stories = map[string]struct {
	play func(t *testing.T, w *world)
	want []string
}{
	"a hold that is paid": {func(_ *testing.T, w *world) {
		reserve(w)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(4900, "EUR")) })
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 4900, "EUR")) })
		w.runHold()
	}, []string{"hold.created", "hold.extended", "hold.confirmed"}},
	"a hold that is given back": {func(_ *testing.T, w *world) {
		reserve(w)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShopper}) })
		w.runHold()
	}, []string{"hold.created", "hold.released"}},
	"a hold that is cancelled": {func(t *testing.T, w *world) {
		reserve(w)
		w.at(time.Minute, w.CancelWorkflow)
		w.ExecuteWorkflow(contract.HoldWorkflow, holdInput())
		require.Error(t, w.GetWorkflowError())
	}, []string{"hold.created", "hold.released"}},
	"a hold that expires": {func(_ *testing.T, w *world) {
		reserve(w)
		w.runHold()
	}, []string{"hold.created", "hold.expired"}},
	"a hold without a unit was never promised": {func(t *testing.T, w *world) {
		w.hold = &redis.Hold{ID: holdID, State: contract.HoldSwept, Units: 1}
		require.Equal(t, contract.HoldRefused, w.runHold().State)
	}, nil},
	"a hold that was sold before its workflow first looked": {func(t *testing.T, w *world) {
		w.hold = &redis.Hold{ID: holdID, State: contract.HoldSold, Units: 1, PaymentRef: "P1", CreatedAt: began.Add(-time.Minute), EndedAt: began}
		require.Equal(t, contract.HoldSold, w.runHold().State)
	}, []string{"hold.created", "hold.confirmed"}},
	"a press, which is news of the entry": {func(t *testing.T, w *world) {
		reserve(w)
		in := holdInput()
		in.EntryID, in.Generation = entryID, 3
		w.ExecuteWorkflow(contract.HoldWorkflow, in)
		require.NoError(t, w.GetWorkflowError())
	}, []string{"waitlist.claimed", "hold.created", "hold.expired"}},

	"an offer that lapses": {func(_ *testing.T, w *world) {
		waits(w)
		w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		w.at(day+time.Minute, func() { w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: holdID}) })
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.offered", "waitlist.lapsed"}},
	"an offer that is bought": {func(_ *testing.T, w *world) {
		waits(w)
		w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
		w.at(day+5*time.Minute, w.press)
		w.at(day+14*time.Minute, func() {
			w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
			w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
		})
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.offered"}},
	"an entry that leaves": {func(_ *testing.T, w *world) {
		waits(w)
		w.at(day, func() { w.SignalWorkflow(contract.SignalLeave, contract.Leave{}) })
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.left"}},
	"an entry that left before its workflow first looked": {func(_ *testing.T, w *world) {
		waits(w)
		w.entry.State, w.entry.EndedAt = contract.EntryLeft, began.Add(time.Millisecond)
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.left"}},
	"an entry that no text reaches": {func(_ *testing.T, w *world) {
		waits(w)
		w.send = func(sms.Text) (sms.Receipt, error) {
			return sms.Receipt{}, &sms.Error{Class: sms.Never, Reason: "landline"}
		}
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.left"}},
	"an entry that expires": {func(_ *testing.T, w *world) {
		waits(w)
		w.runEntry()
	}, []string{"waitlist.joined", "waitlist.expired"}},

	"stock that moves": {func(_ *testing.T, w *world) {
		w.at(time.Minute, func() {
			w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5))
			w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "e2", Kind: contract.StockCorrection, Delta: -9})
			w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "e3", Kind: contract.StockCorrection, Delta: -7, AllowShortfall: true})
			w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5))
		})
		w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	}, []string{"stock.changed", "stock.rejected", "stock.changed", "stock.shortfall"}},

	"money that goes back": {func(_ *testing.T, w *world) {
		w.hold = &redis.Hold{ID: holdID, State: contract.HoldExpired, Units: 1}
		w.runPayment(paymentOf("P1", contract.CauseLate))
	}, []string{"refund.settled"}},
	"money that goes back at once": {func(t *testing.T, w *world) {
		w.hold = &redis.Hold{ID: holdID, State: contract.HoldExpired, Units: 1}
		w.provider.answers = []func() (payment.Receipt, error){takes("re_9", true)}
		w.ExecuteWorkflow(contract.PaymentWorkflow, paymentOf("P1", contract.CauseLate))
		require.NoError(t, w.GetWorkflowError())
	}, []string{"refund.settled"}},
	"money that makes the sale after all": {func(_ *testing.T, w *world) {
		w.hold = &redis.Hold{ID: holdID, State: contract.HoldHeld, Units: 1}
		w.runPayment(paymentOf("P1", contract.CauseLate))
	}, []string{"hold.confirmed"}},
	"money for a hold that nobody knows": {func(_ *testing.T, w *world) {
		w.noRecord = true
		w.runPayment(paymentOf("P1", contract.CauseUnknown))
	}, []string{"payment.unmatched", "refund.settled"}},
}

func reserve(w *world) {
	w.hold = &redis.Hold{ID: holdID, State: contract.HoldProvisional, Units: 1, CreatedAt: began, Deadline: began.Add(10 * time.Second)}
}

func waits(w *world) {
	w.entry = &redis.Entry{ID: entryID, SKU: chair, State: contract.EntryWaiting, Units: 1, JoinedAt: began}
}

// Each workflow tells what happened, once, in its order.
func TestWhatEachWorkflowTells(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tells()
			story.play(t, w)
			require.Equal(t, story.want, w.toldOf())
			require.Equal(t, len(story.want), w.starts, "nothing is told twice")
			last := map[string]contract.EventInput{}
			for _, e := range w.told {
				require.Greater(t, e.Sequence, last[e.Subject].Sequence, e.Type)
				require.False(t, e.At.Before(last[e.Subject].At), e.Type)
				last[e.Subject] = e
				require.NotContains(t, string(e.Data), phone)
			}
		})
	}
}

// A shop without an endpoint pays nothing: no activity of its workflows is about
// events.
func TestWithoutAnEndpointNothingIsTold(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var asked []string
			w.onActivity(func(name string) { asked = append(asked, name) })
			story.play(t, w)
			require.NotEmpty(t, asked, "the look sees activities")
			require.NotContains(t, asked, "StartEvents")
			require.Zero(t, w.starts)
		})
	}
}

// The same happening is the same event, whichever run tells of it.
func TestTheSameHappeningIsTheSameEvent(t *testing.T) {
	ids := func() (out []string) {
		w := newWorld(t)
		w.tells()
		stories["a hold that is paid"].play(t, w)
		for _, e := range w.told {
			out = append(out, e.EventID)
			require.True(t, contract.ValidEventID(e.EventID))
		}
		return out
	}
	first := ids()
	require.Equal(t, first, ids())
	w := newWorld(t)
	w.tells()
	stories["money that makes the sale after all"].play(t, w)
	require.Equal(t, first[2], w.told[0].EventID, "the Hold and the Payment tell of one sale")
}

// Neither the buyer nor the unit waits for a message, and the hold does not close
// before the message has its owner.
func TestAnEventThatFindsNoOwnerYet(t *testing.T) {
	w := newWorld(t)
	w.tells()
	reserve(w)
	blocked := true
	w.noOwners = func() error {
		if blocked {
			return errors.New("the server does not answer")
		}
		return nil
	}
	var a *answer[contract.ConfirmResult]
	w.at(20*time.Second, func() {
		a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "a", contract.ConfirmRequest{PaymentRef: "P1"})
	})
	w.at(21*time.Second, func() {
		require.True(t, a.done, "the buyer has the answer")
		require.False(t, w.IsWorkflowCompleted())
		require.Empty(t, w.told)
		w.mu.Lock()
		blocked = false
		w.mu.Unlock()
	})
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.Equal(t, []string{"hold.created", "hold.confirmed"}, w.toldOf())
}

// An endpoint that is configured while a workflow runs is noticed at its next
// step; and so is one that has gone.
func TestAnEndpointThatComesLater(t *testing.T) {
	w := newWorld(t)
	waits(w)
	w.at(day, func() {
		w.tells()
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	w.runEntry()
	require.Equal(t, []string{"waitlist.joined", "waitlist.offered", "waitlist.lapsed"}[1:], w.toldOf())

	w = newWorld(t)
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	w.at(2*time.Minute, func() {
		w.tells()
		w.SignalWorkflow(contract.SignalStockEvent, restock("e2", 1))
	})
	w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Equal(t, []string{"stock.changed"}, w.toldOf())
	require.Equal(t, "e2", dataOf[contract.StockDecision](w, contract.EventStockChanged).EventID)
}

// The sequence of a book grows over its runs.
func TestTheSequenceOfABookGoesOn(t *testing.T) {
	w := newWorld(t)
	w.tells()
	book := openBook()
	book.Told = began.Add(day).UnixMicro() // by a clock that was ahead
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	next := w.runStock(contract.StockInput{SKU: chair, Book: book}, time.Hour)
	require.Equal(t, book.Told+1, w.told[0].Sequence)
	require.Equal(t, book.Told+1, next.Book.Told)
}

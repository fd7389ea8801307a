package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// alarms are the events stock.shortfall that were told, in their order.
func (w *world) alarms() (out []contract.TripwireEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.told {
		if in.Type == contract.EventStockShortfall {
			var e contract.TripwireEvent
			require.NoError(w.t, json.Unmarshal(in.Data, &e))
			out = append(out, e)
		}
	}
	return out
}

// states are the alarms' states and wires.
func statesOf(alarms []contract.TripwireEvent) (out []string) {
	for _, a := range alarms {
		s := a.State
		for _, r := range a.Rings {
			s += " " + r.Wire
		}
		out = append(out, s)
	}
	return out
}

func ring(wire string) contract.Ring { return contract.Ring{Wire: wire, Says: "seen"} }

// A shortfall that a stock event brings about is told at once, once however many say
// that they see it, and again when it is over.
func TestAShortfallIsToldOnceAndWhenItIsOver(t *testing.T) {
	w := newWorld(t)
	w.tells()
	w.free = 1
	w.at(time.Minute, func() {
		w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -3, AllowShortfall: true})
	})
	for i := range 20 {
		w.at(2*time.Minute+time.Duration(i)*time.Minute, func() {
			w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: []contract.Ring{ring(contract.WireShortfall)}, At: w.Now()})
		})
	}
	w.at(10*time.Minute+time.Second, func() { // one more unit is missing: the same alarm
		w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "again", Kind: contract.StockCorrection, Delta: -1, AllowShortfall: true})
	})
	w.at(30*time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	next := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)

	alarms := w.alarms()
	require.Equal(t, []string{"ringing shortfall", "over"}, statesOf(alarms))
	require.Equal(t, contract.Instant(began.Add(time.Minute)), alarms[0].Since)
	require.Equal(t, alarms[0].Since, alarms[1].Since)
	require.Equal(t, []int64{2, 0}, []int64{alarms[0].Stock.Shortfall, alarms[1].Stock.Shortfall})
	require.Nil(t, next.Book.Alarm)
	require.NotEmpty(t, next.Book.AlarmEvent)
	require.Empty(t, w.settings, "nothing is paused unless it is configured so")
}

// What only others see, and what had been mended before the book could look, is an
// alarm as well; what was seen before the last look is none.
func TestWhatOthersHaveSeenRings(t *testing.T) {
	w := newWorld(t)
	w.tells()
	var seen time.Time
	w.at(time.Minute, func() {
		seen = w.Now()
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: []contract.Ring{ring(contract.WireNegative)}, At: seen})
	})
	w.at(2*time.Minute, func() { // another process, late
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: []contract.Ring{ring(contract.WireNegative)}, At: seen})
	})
	w.at(3*time.Minute, func() {
		w.rings = []contract.Ring{ring(contract.WireOversold)}
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: w.rings, At: w.Now()})
	})
	w.at(4*time.Minute, func() {
		w.rings = []contract.Ring{ring(contract.WireOversold), ring(contract.WireLedger)}
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: w.rings, At: w.Now()})
	})
	w.at(5*time.Minute, func() {
		w.rings = []contract.Ring{ring(contract.WireLedger)}
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: w.rings, At: w.Now()})
	})
	next := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Equal(t, []string{"ringing negative", "over", "ringing oversold", "ringing oversold ledger"}, statesOf(w.alarms()))
	require.Equal(t, []contract.Ring{ring(contract.WireLedger)}, next.Book.Alarm.Rings)

	// The next run looks for itself, and knows the alarm.
	again := newWorld(t)
	again.tells()
	again.SetStartTime(began.Add(2 * time.Hour))
	again.rings = []contract.Ring{ring(contract.WireLedger)}
	again.at(time.Minute, func() {
		again.rings = nil
		again.SignalWorkflow(contract.SignalTripwire, contract.Rung{At: again.Now()})
	})
	after := again.runStock(next, time.Hour)
	require.Equal(t, []string{"over"}, statesOf(again.alarms()))
	require.Nil(t, after.Book.Alarm)
}

// When it is configured so, an alarm pauses the SKU. A person resumes it, and the alarm
// that goes on does not pause it again; neither does its end resume anything.
func TestAnAlarmPausesOnce(t *testing.T) {
	w := newWorld(t)
	w.tells()
	w.pausesOnTrip()
	rings := func(at time.Duration, wires ...string) {
		w.at(at, func() {
			w.rings = nil
			for _, wire := range wires {
				w.rings = append(w.rings, ring(wire))
			}
			w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: w.rings, At: w.Now()})
		})
	}
	rings(1*time.Minute, contract.WireShortfall)
	w.at(2*time.Minute, func() {
		update[contract.PauseResult](w, contract.UpdatePause, "resume", contract.PauseRequest{Paused: false, Actor: "mia"})
	})
	rings(3*time.Minute, contract.WireShortfall)
	w.at(4*time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 1)) })
	rings(5 * time.Minute)
	rings(6*time.Minute, contract.WireShortfall)
	rings(7 * time.Minute)
	next := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	var moves []string
	for _, s := range w.settings {
		moves = append(moves, map[bool]string{true: "pause by ", false: "resume by "}[*s.Paused]+s.Actor)
	}
	require.Equal(t, []string{"pause by tripwire", "resume by mia", "pause by tripwire"}, moves)
	require.True(t, next.Book.Paused, "the end of an alarm resumes nothing")
	alarms := w.alarms()
	require.Equal(t, []string{"ringing shortfall", "over", "ringing shortfall", "over"}, statesOf(alarms))
	require.Equal(t, []bool{true, false, true, true}, []bool{alarms[0].Paused, alarms[1].Paused, alarms[2].Paused, alarms[3].Paused})
}

// A SKU that somebody had paused is left so, and nobody is told twice.
func TestAnAlarmLeavesAPausedSKU(t *testing.T) {
	w := newWorld(t)
	w.pausesOnTrip()
	book := openBook()
	book.Paused = true
	w.at(time.Minute, func() {
		w.rings = []contract.Ring{ring(contract.WireLedger)}
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: w.rings, At: w.Now()})
	})
	next := w.runStock(contract.StockInput{SKU: chair, Book: book}, time.Hour)
	require.Empty(t, w.settings)
	require.NotNil(t, next.Book.Alarm)
	require.Empty(t, w.told, "the shop has no endpoint")
	require.Empty(t, next.Book.AlarmEvent)
}

// A gate that does not answer keeps the look waiting, and what was seen is kept.
func TestALookAtTheTripwireWaitsForTheGate(t *testing.T) {
	w := newWorld(t)
	w.tells()
	var back time.Time
	w.down = func(verb string) error {
		if verb == "tripwire" && w.Now().Before(back) {
			return redis.ErrUnavailable
		}
		return nil
	}
	w.at(time.Minute, func() {
		back = w.Now().Add(10 * time.Minute)
		w.SignalWorkflow(contract.SignalTripwire, contract.Rung{Rings: []contract.Ring{ring(contract.WireNegative)}, At: w.Now()})
	})
	w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Equal(t, []string{"ringing negative", "over"}, statesOf(w.alarms()))
}

// A book that is continued before it could look at what a stock event has brought about
// looks in its next run, though nobody else has said anything.
func TestALookAtTheTripwireOutlivesItsRun(t *testing.T) {
	w := newWorld(t)
	w.tells()
	w.free = 1
	w.down = func(verb string) error {
		if verb == "tripwire" {
			return redis.ErrUnavailable
		}
		return nil
	}
	w.at(time.Minute, func() {
		w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -3, AllowShortfall: true})
	})
	next := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, 2*time.Minute)
	require.Empty(t, w.alarms())
	require.Nil(t, next.Book.Alarm)

	again := newWorld(t)
	again.tells()
	again.SetStartTime(began.Add(time.Hour))
	again.rings = []contract.Ring{ring(contract.WireShortfall)}
	after := again.runStock(next, time.Hour)
	require.Equal(t, []string{"ringing shortfall"}, statesOf(again.alarms()))
	require.False(t, after.Book.Look, "it has looked")
}

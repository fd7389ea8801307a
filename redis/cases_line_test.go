package redis

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B39: freed units are as many offers, to as many of the first in line.
func TestFreedUnitsAreAsManyOffers(t *testing.T) {
	for _, c := range []struct{ waiting, freed int }{{2, 1}, {10, 3}} {
		f := open(t, int64(c.freed))
		var held []string
		for range c.freed {
			held = append(held, f.held())
		}
		entries := f.line(c.waiting)
		lines := f.lines()
		require.Equal(t, map[Verdict]int{OK: c.freed}, verdicts(t, c.freed, func(i int) (HoldOutcome, error) {
			return f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: held[i], Reason: contract.ReasonShop})
		}))
		require.Len(t, f.moves(lines), 2*c.freed)
		require.Equal(t, entries[:c.freed], f.toldNow())
		require.Equal(t, [4]int64{int64(c.freed), 0, int64(c.freed), 0}, f.parts())
		require.Equal(t, int64(c.waiting-c.freed), f.counters().Waiting)
	}
}

// B41: a unit is free, somebody waits and is offered nothing: the records say
// why, and when the cause ends the offer comes by itself, with a wake.
func TestAnOfferComesWhenWhatHeldItBackEnds(t *testing.T) {
	nothing := func(*fixture, string) {}
	silent := func(f *fixture, head string) bool { return !f.entry(head).Acknowledged }
	for name, c := range map[string]struct {
		before func(f *fixture)
		hold   func(f *fixture, head string)
		why    func(f *fixture, head string) bool
		end    func(f *fixture, head string)
		silent bool // the head's workflow does not answer
		next   bool // the offer goes to the next in line
	}{
		"paused": {
			hold: func(f *fixture, _ string) { f.pause(true) },
			why:  func(f *fixture, _ string) bool { return f.counters().State == contract.SKUPaused },
			end:  func(f *fixture, _ string) { f.pause(false) },
		},
		"ended": {
			hold: func(f *fixture, _ string) { f.ends(0) },
			why:  func(f *fixture, _ string) bool { return f.counters().State == contract.SKUEnded },
			end: func(f *fixture, _ string) {
				never := time.Time{}
				must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, Ends: &never}))
			},
		},
		"at the limit": {
			before: func(f *fixture) {
				id := f.id(contract.HoldID)
				f.restock("own", 1)
				f.reserveAs("head", id, 1)
				f.adopt(id, true)
				f.limit(1)
			},
			hold: nothing,
			why:  func(f *fixture, _ string) bool { return f.counters().Limit == 1 && f.counters().OpenToAll == 1 },
			end:  func(f *fixture, _ string) { f.limit(2) },
		},
		"the head is silent": {
			hold: nothing, why: silent, silent: true,
			end: func(f *fixture, head string) { f.ack(head) },
		},
		"the head has opted out": {
			hold: nothing, why: silent, silent: true, next: true,
			end: func(f *fixture, head string) { f.leave(head, contract.EntryOptedOut) },
		},
		"the head cannot be reached": {
			hold: nothing, why: silent, silent: true, next: true,
			end: func(f *fixture, head string) { f.leave(head, contract.EntryUnreachable) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 0)
			if c.before != nil {
				c.before(f)
			}
			head := f.joinAs("head", 1).Entry.ID
			if !c.silent {
				f.ack(head)
			}
			to := head
			if c.next {
				to = f.waits("next", 1)
			}
			c.hold(f, head)
			f.restock("e1", 1)
			require.Equal(t, contract.EntryWaiting, f.entry(head).State)
			require.True(t, c.why(f, head))
			f.drain()
			f.pass(2 * time.Second)
			lines := f.lines()
			c.end(f, head)
			require.Equal(t, contract.EntryOffered, f.entry(to).State)
			moves := f.moves(lines)
			require.Contains(t, moves[len(moves)-1], "offered 1: ")
			require.Equal(t, []string{to}, f.toldNow())
		})
	}
}

// B42: A has bought and sends it back; B is next. A's entry is closed, A's link
// is dead, and the unit is B's.
func TestARefundedBuyerIsOut(t *testing.T) {
	f := open(t, 0)
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.restock("e1", 1)
	link := f.claimed(a)
	f.ackOffers()
	f.confirm(link, "pi")
	require.True(t, f.comesBack(link, 1, true).Applied)
	require.Equal(t, contract.EntryBought, f.entry(a).State)
	require.Equal(t, Existing, f.press(link).Verdict)
	require.Equal(t, contract.HoldSold, f.hold(link).State)
	require.Equal(t, []string{b}, f.toldNow())
	require.Equal(t, [4]int64{1, 0, 1, 0}, f.parts())
	again := f.joinAs("a", 1)
	require.True(t, again.Created, "a new wish is a new entry, at the back")
	require.NotEqual(t, a, again.Entry.ID)
}

// B43: the line is a SKU's own. A freed unit of Y goes to who waits for Y,
// however long somebody waits for X; the same person, with even the same ids, may
// stand in both.
func TestEachSKUHasItsOwnLine(t *testing.T) {
	x, y := open(t, 0), open(t, 0)
	older := x.waits("older", 1)
	x.pass(time.Hour)
	y.pass(time.Hour)
	newer := y.waits("newer", 1)
	both := x.id(contract.EntryID)
	for _, f := range []*fixture{x, y} {
		require.True(t, must[JoinOutcome](f)(f.g.Join(t.Context(), JoinRequest{SKU: f.sku, EntryID: both, Person: "both", Units: 1})).Created)
		f.ack(both)
	}
	x.unmoved(func() {
		require.True(t, y.restock("e1", 2).Applied)
		require.Equal(t, []string{newer, both}, y.toldNow())
		require.Equal(t, OK, y.press(y.offered(both)).Verdict)
		require.Equal(t, contract.EntryHolding, y.entry(both).State)
	})
	require.Equal(t, []contract.EntryState{contract.EntryWaiting, contract.EntryWaiting}, x.states([]string{older, both}))
	x.leave(both, contract.EntryLeft)
	require.Equal(t, contract.EntryHolding, y.entry(both).State)
}

// B44: the policy when the head wants more than is free: it is offered what there
// is, in strict order, the same each time. Claiming that ends the entry; missing
// it parks the entry at its place, and the next restock asks it first.
func TestTheHeadThatWantsTwo(t *testing.T) {
	for range 5 {
		f := open(t, 2)
		held := []string{f.held(), f.held()}
		a, b := f.waits("a", 2), f.waits("b", 1)
		f.release(held[0], contract.ReasonShop)
		require.Equal(t, []contract.EntryState{contract.EntryOffered, contract.EntryWaiting}, f.states([]string{a, b}))
		require.Equal(t, int64(1), f.hold(f.offered(a)).Units)
		f.release(held[1], contract.ReasonShop)
		require.Equal(t, []contract.EntryState{contract.EntryOffered, contract.EntryOffered}, f.states([]string{a, b}), "an offer never grows")
		require.Equal(t, OK, f.confirm(f.claimed(a), "pi").Verdict)
		require.Equal(t, contract.EntryBought, f.entry(a).State)
		require.Equal(t, [4]int64{1, 0, 1, 1}, f.parts())
	}
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	a, b := f.waits("a", 2), f.waits("b", 1)
	f.restock("e1", 1)
	f.pass(48 * time.Hour)
	require.Equal(t, OK, f.lapse(f.offered(a)).Verdict)
	require.Equal(t, []contract.EntryState{contract.EntryWaiting, contract.EntryOffered}, f.states([]string{a, b}))
	require.Equal(t, int64(1), f.entry(a).Position)
	f.restock("e2", 2)
	require.Equal(t, int64(2), f.hold(f.offered(a)).Units, "it does not starve")
}

// B45: eight walk-ins poll while ten units come back one by one. None of them
// ever gets one or sees one that the line claims.
func TestAWalkInNeverOvertakesTheLine(t *testing.T) {
	f := open(t, 10)
	var held []string
	for range 10 {
		held = append(held, f.held())
	}
	entries := f.line(10)
	var done atomic.Bool
	var polls atomic.Int64
	atOnce(9, func(door int) {
		if door == 0 {
			for i, id := range held {
				for polls.Load() < int64(20*i) {
					runtime.Gosched() // so that the polls are spread over the releases
				}
				if _, err := f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonShop, Actor: "operator"}); err != nil {
					t.Error(err)
				}
			}
			done.Store(true)
			return
		}
		for n := 0; !done.Load() || n < 20; n++ {
			c, _, err := f.g.Snapshot(t.Context(), f.sku)
			if err != nil || c.OpenToAll != 0 || c.State == contract.SKUAvailable {
				t.Errorf("a walk-in sees %d: %v", c.OpenToAll, err)
			}
			id := contract.HoldID(f.sku, fmt.Appendf(nil, "door%02d %07d", door, n))
			out, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
			if err != nil || out.Verdict != ReservedForLine {
				t.Errorf("a walk-in gets %s: %v", out.Verdict, err)
			}
			polls.Add(1)
		}
	})
	require.Equal(t, entries, f.toldNow())
	require.Equal(t, [4]int64{10, 0, 10, 0}, f.parts())

	// Nor the one whose own call finds the unit that a dead lease left.
	f = open(t, 1)
	f.reserve(f.id(contract.HoldID), 1)
	entry := f.waits("next", 1)
	f.pass(testLease)
	require.Equal(t, int64(0), f.counters().OpenToAll)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
}

// B46: whatever frees a unit wakes the line.
func TestEveryRouteWakesTheLine(t *testing.T) {
	routes := map[string]func(f *fixture, id, entry string){
		"expiry": func(f *fixture, id, _ string) {
			f.pass(10 * time.Minute)
			f.release(id, contract.ReasonExpired)
		},
		"buyer cancels":    func(f *fixture, id, _ string) { f.release(id, contract.ReasonShopper) },
		"operator cancels": func(f *fixture, id, _ string) { f.release(id, contract.ReasonShop) },
		"payment fails":    func(f *fixture, id, _ string) { f.release(id, contract.ReasonPaymentFailed) },
		"return":           func(f *fixture, id, _ string) { f.confirm(id, "pi"); f.comesBack(id, 1, true) },
		"restock":          func(f *fixture, _, _ string) { f.restock("e2", 1) },
		"correction":       func(f *fixture, _, _ string) { f.correct("c", 1, false) },
		"level": func(f *fixture, _, _ string) {
			f.event(contract.StockEvent{EventID: "l", Kind: contract.StockLevel, Version: 1, Units: 3})
		},
		"an offer lapses":  func(f *fixture, _, entry string) { f.pass(48 * time.Hour); f.lapse(f.offered(entry)) },
		"an offer is left": func(f *fixture, _, entry string) { f.leave(entry, contract.EntryLeft) },
		"a retake is undone": func(f *fixture, id, entry string) {
			f.leave(f.waiting(), contract.EntryLeft) // nobody eligible for a moment
			f.pass(10 * time.Minute)
			f.release(id, contract.ReasonExpired)
			f.retake(id, "pi")
			f.waits("next", 1)
			must[HoldOutcome](f)(f.g.Unconfirm(f.t.Context(), f.sku, id, "pi", "cart"))
		},
		"a dead lease": func(f *fixture, id, _ string) {
			f.release(id, contract.ReasonShop)
			f.leave(f.waiting(), contract.EntryLeft)
			f.reserve(f.id(contract.HoldID), 1)
			f.waits("next", 1)
			f.pass(testLease)
		},
	}
	for name, free := range routes {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			id := f.held()
			entry := f.waits("offered", 1)
			f.restock("e1", 1)
			f.waits("next", 1)
			f.drain()
			f.pass(time.Second)
			offered := f.counters().Offered
			free(f, id, entry)
			woke, err := shared.HGet(t.Context(), key(f.sku, "stock"), "woke").Int64()
			require.NoError(t, err)
			if name != "a dead lease" { // nobody calls then: the drain comes by itself
				require.NotZero(t, woke, "a verb has asked for a drain since the last one")
			}
			told := f.toldNow() // the wake's drain
			require.NotEmpty(t, told)
			require.Contains(t, fmt.Sprint(f.entry(told[len(told)-1])), "next")
			require.GreaterOrEqual(t, f.counters().Offered, offered)
			require.Equal(t, int64(0), f.counters().Waiting)
		})
	}
}

// waiting is the first entry in line.
func (f *fixture) waiting() string {
	f.t.Helper()
	line, err := shared.ZRange(f.t.Context(), key(f.sku, "line"), 0, 0).Result()
	require.NoError(f.t, err)
	if len(line) == 0 {
		return f.id(contract.EntryID)
	}
	return line[0]
}

package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B1: three units, fifty people who click at once at four doors: three holds,
// and 47 who keep their place.
func TestThreeUnitsAndFiftyPeopleAtFourDoors(t *testing.T) {
	f := open(t, 0)
	entries := f.line(50)
	f.restock("e1", 3)
	var doors []*Gate
	for range 4 {
		g := New(shared, f.g.opts)
		g.testClock = f.g.testClock
		doors = append(doors, g)
	}
	presses := make([]string, len(entries)) // what each person's click names
	for i, id := range entries {
		presses[i] = f.id(contract.HoldID)
		if i < 3 {
			presses[i] = f.offered(id)
		}
	}
	lines := f.lines()
	got := verdicts(t, 4*len(entries), func(i int) (HoldOutcome, error) {
		person := i / 4
		req := ReserveRequest{SKU: f.sku, HoldID: presses[person], Press: person < 3}
		if !req.Press {
			req.Units, req.Person = 1, fmt.Sprint("waits", person)
		}
		out, err := doors[i%4].Reserve(t.Context(), req)
		if out.Verdict == ReservedForLine && out.Waiting != 47 {
			t.Errorf("%d wait", out.Waiting)
		}
		return out, err
	})
	require.Equal(t, map[Verdict]int{OK: 12, ReservedForLine: 4 * 47}, got, "each of three presses at four doors, and nobody else")
	require.Equal(t, []string{"press 1: 3 1 2 0", "press 1: 3 2 1 0", "press 1: 3 3 0 0"}, f.moves(lines))
	require.Equal(t, [4]int64{3, 3, 0, 0}, f.parts())
	for i, id := range entries[3:] {
		require.Equal(t, int64(i+1), f.entry(id).Position)
	}
}

// B2: the shop's count falls while somebody pays. Held units count: unasked it is
// refused; forced it is a named shortfall, first to pay wins, and the next units
// make it good before anybody in the line gets one.
func TestTheCountFallsWhileSomebodyPays(t *testing.T) {
	for kind, ev := range map[string]contract.StockEvent{
		"correction": {Kind: contract.StockCorrection, Delta: -2},
		"level":      {Kind: contract.StockLevel, Version: 1, Units: 0},
	} {
		t.Run(kind, func(t *testing.T) {
			f := open(t, 2)
			a := f.id(contract.HoldID)
			require.Equal(t, OK, f.reserve(a, 2).Verdict)
			require.Equal(t, OK, f.adopt(a, true).Verdict)
			next := f.waits("next", 1)
			ev := ev
			ev.EventID = "unasked"
			f.unmoved(func() {
				out := f.event(ev)
				require.False(t, out.Applied)
				require.Equal(t, string(WouldOversell), out.Reason)
			})
			ev.EventID, ev.AllowShortfall = "forced", true
			out := f.event(ev)
			require.True(t, out.Applied)
			require.Equal(t, [3]int64{-2, 2, -2}, [3]int64{out.Delta, out.Counters.Shortfall, out.Counters.Available})
			require.Equal(t, Shortfall, f.confirm(a, "pi").Verdict)
			require.Equal(t, contract.HoldHeld, f.hold(a).State, "a refusal ends nothing")
			require.Equal(t, [4]int64{0, 2, 0, 0}, f.parts())

			lines := f.lines()
			require.Equal(t, int64(1), f.restock("e2", 1).Counters.Shortfall)
			require.Equal(t, int64(0), f.restock("e3", 1).Counters.Shortfall)
			require.Equal(t, contract.EntryWaiting, f.entry(next).State, "the shortfall first")
			require.Equal(t, OK, f.confirm(a, "pi").Verdict)
			f.restock("e4", 2)
			require.Equal(t, contract.EntryOffered, f.entry(next).State, "then the line")
			require.Equal(t, int64(1), f.counters().OpenToAll, "then everybody")
			require.Equal(t, []string{"restock 1: 1 2 0 0", "restock 1: 2 2 0 0", "sold 2: 0 0 0 2", "restock 2: 2 0 0 2", "offered 1: 2 0 1 2"}, f.moves(lines))
		})
	}
}

// B3: the step after the reservation fails. The units come back once, however
// the door gives up, and go to the next in line with nobody between.
func TestAFailedStartGivesTheUnitBackOnce(t *testing.T) {
	for name, giveUp := range map[string]func(t *testing.T, f *fixture, id string){
		"the door gives it back, three times at once": func(t *testing.T, f *fixture, id string) {
			require.Equal(t, map[Verdict]int{OK: 1, Existing: 2}, verdicts(t, 3, func(int) (HoldOutcome, error) {
				return f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonShop})
			}))
		},
		"the door is dead and the lease ends": func(t *testing.T, f *fixture, id string) {
			f.pass(testLease)
			f.drain()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			id := f.id(contract.HoldID)
			require.Equal(t, OK, f.reserve(id, 1).Verdict)
			next := f.waits("next", 1)
			f.unmoved(func() { require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict) })
			lines := f.lines()
			giveUp(t, f, id)
			require.Equal(t, contract.EntryOffered, f.entry(next).State)
			require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
			require.Equal(t, Gone, must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
				SKU: f.sku, HoldID: f.id(contract.HoldID), HoldFor: time.Minute,
			})).Verdict, "and no second reservation")
			require.Len(t, f.moves(lines), 2, "one giving back and one offer")
			require.Equal(t, [4]int64{1, 0, 1, 0}, f.parts())
		})
	}
}

// B4: A's hold has expired and B has the unit; A, whose payment page is still
// open, pays. A is refused, also as a late payment, and B notices nothing.
func TestAPaymentAfterExpiryLeavesTheNextAlone(t *testing.T) {
	f := open(t, 1)
	a := f.held()
	entry := f.waits("b", 1)
	f.pass(10 * time.Minute)
	require.Equal(t, OK, f.release(a, contract.ReasonExpired).Verdict)
	b := f.claimed(entry)
	f.unmoved(func() {
		out := f.confirm(a, "pi_a")
		require.Equal(t, HoldEnded, out.Verdict)
		require.Equal(t, contract.HoldExpired, out.Hold.State)
		require.Equal(t, HoldEnded, f.retake(a, "pi_a").Verdict)
		require.Equal(t, HoldEnded, f.confirm(a, "pi_a").Verdict, "however often")
	})
	require.Equal(t, OK, must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, a, "pi_a", "test")).Verdict)
	require.Equal(t, OK, f.confirm(b, "pi_b").Verdict)
	require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
	require.Empty(t, f.hold(a).PaymentRef)
}

// B5: the loser of the race for the last unit gets a clean answer: among
// walk-ins sold-out, and with two links pressed and one unit left for both,
// shortfall for whoever pays second.
func TestTheLoserOfTheLastUnitGetsAnAnswer(t *testing.T) {
	for range 20 {
		f := open(t, 1)
		ids := []string{f.id(contract.HoldID), f.id(contract.HoldID)}
		require.Equal(t, map[Verdict]int{OK: 1, SoldOut: 1}, verdicts(t, 2, func(i int) (HoldOutcome, error) {
			return f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: ids[i], Units: 1, Person: ids[i]})
		}))
		require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())

		f = open(t, 0)
		entries := f.line(2)
		f.restock("e1", 2)
		links := []string{f.offered(entries[0]), f.offered(entries[1])}
		require.True(t, f.correct("broken", -1, true).Applied)
		require.Equal(t, map[Verdict]int{OK: 2}, verdicts(t, 2, func(i int) (HoldOutcome, error) {
			return f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: links[i], Press: true})
		}), "both were promised a unit")
		f.adopt(links[0], true)
		f.adopt(links[1], true)
		require.Equal(t, map[Verdict]int{OK: 1, Shortfall: 1}, verdicts(t, 2, func(i int) (HoldOutcome, error) {
			return f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: links[i], PaymentRef: "pi" + links[i]})
		}))
		require.Equal(t, [4]int64{0, 1, 0, 1}, f.parts())
	}
}

// B6: one authority for the count. Whatever the shop's count does under five
// live holds, the counters are what the records add up to, and each record has
// its owner.
func TestTheCountMovesUnderLiveHolds(t *testing.T) {
	f := open(t, 9)
	var held []string
	for range 5 {
		held = append(held, f.held())
	}
	for i, ev := range []contract.StockEvent{
		{Kind: contract.StockCorrection, Delta: -4},
		{Kind: contract.StockCorrection, Delta: -1},
		{Kind: contract.StockCorrection, Delta: -3, AllowShortfall: true},
		{Kind: contract.StockLevel, Version: 2, Units: 1},
		{Kind: contract.StockLevel, Version: 3, Units: 4, AllowShortfall: true},
		{Kind: contract.StockLevel, Version: 1, Units: 99},
		{Kind: contract.StockLevel, Version: 3, Units: 99},
		{Kind: contract.StockRestock, Units: 6},
		{Kind: contract.StockLevel, Version: 4, Units: 5},
	} {
		ev.EventID = fmt.Sprint("m", i)
		out := f.event(ev)
		in, err := f.g.Inspect(t.Context(), f.sku)
		require.NoError(t, err)
		require.Empty(t, in.Problems)
		require.Equal(t, int64(5), in.Counters.Held)
		require.ElementsMatch(t, held, in.Owned)
		require.Equal(t, []int64{5, 5, 2, 2, 4, 4, 4, 10, 5}[i], out.Counters.OnHand, "after %d", i)
		require.Equal(t, []bool{true, false, true, false, true, false, false, true, true}[i], out.Applied, "event %d", i)
	}
	for _, id := range held {
		require.Equal(t, OK, f.confirm(id, "pi"+id).Verdict)
	}
	require.Equal(t, [4]int64{0, 0, 0, 5}, f.parts())
}

package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B48: who leaves between the restock and the text gets none; and a person who
// joined twice has one entry to leave.
func TestALeaveBeforeTheText(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	require.Equal(t, entry, f.joinAs("ada", 2).Entry.ID)
	f.restock("e1", 1)
	items := f.drain().Items
	require.Len(t, items, 1)
	f.leave(entry, contract.EntryLeft)
	out := f.told(items[0].HoldID, false)
	require.Equal(t, Gone, out.Verdict, "asked right before the text")
	require.Equal(t, contract.HoldReleased, out.Hold.State)
	f.ack(entry)
	f.pass(time.Hour)
	f.restock("e2", 1)
	require.Empty(t, f.drain().Items)
	require.Equal(t, int64(2), f.counters().OpenToAll)
	require.Equal(t, int64(0), f.counters().Waiting)
}

// B49: two restocks 10 ms apart for one who waits: one offer, one text.
func TestTwoRestocksAreOneOfferForOne(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	f.pass(10 * time.Millisecond)
	f.restock("e2", 1)
	require.Equal(t, []string{entry}, f.toldNow())
	require.Equal(t, int64(1), f.entry(entry).Generation)
	require.Equal(t, [4]int64{2, 0, 1, 0}, f.parts())
	require.Equal(t, int64(1), f.counters().OpenToAll)
}

// B51: the sale has ended. A unit freed after it is offered to nobody and stays;
// what was promised before goes on.
func TestNoOfferAfterTheSale(t *testing.T) {
	f := open(t, 2)
	id, paid := f.held(), f.held()
	told, waits := f.waits("told", 1), f.waits("waits", 1)
	f.restock("e1", 1)
	link := f.offered(told)
	f.told(link, true)
	f.ackOffers()
	f.ends(5 * time.Minute)
	f.pass(5*time.Minute - time.Millisecond)
	require.Equal(t, contract.SKULine, f.counters().State)
	f.pass(15 * time.Minute)
	require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(waits).State)
	require.Empty(t, f.drain().Items)
	require.Equal(t, Ended, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, Ended, f.joinAs("late", 1).Verdict)
	require.Equal(t, HoldEnded, f.retake(id, "pi").Verdict)
	require.Equal(t, Ended, f.told(link, false).Verdict)
	require.Equal(t, OK, f.confirm(paid, "pi").Verdict)
	require.Equal(t, OK, f.confirm(f.claimed(told), "pi_2").Verdict)
	c := f.counters()
	require.Equal(t, [5]int64{1, 0, 0, 2, 0}, [5]int64{c.OnHand, c.Held, c.Offered, c.Sold, c.OpenToAll}, "one is left over")
	require.Equal(t, contract.SKUEnded, c.State)
}

// B52: who holds the last unit joins the line: a separate second wish by policy,
// and at a limit of one no offer before the first hold has ended.
func TestJoiningWhileHoldingTheLastUnit(t *testing.T) {
	for _, limit := range []int64{0, 1} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			f := open(t, 1)
			f.limit(limit)
			id := f.id(contract.HoldID)
			f.reserveAs("ada", id, 1)
			f.adopt(id, true)
			entry := f.waits("ada", 1)
			bob := f.waits("bob", 1)
			require.Empty(t, f.drain().Items, "the own hold is no free unit")
			f.restock("e1", 1)
			first, other := entry, bob
			if limit == 1 {
				first, other = bob, entry
			}
			require.Equal(t, contract.EntryOffered, f.entry(first).State)
			require.Equal(t, contract.EntryWaiting, f.entry(other).State)
			require.Equal(t, OK, f.confirm(id, "pi").Verdict)
			f.restock("e2", 1)
			want := contract.EntryOffered
			if limit == 1 {
				want = contract.EntryWaiting // the sale counts
			}
			require.Equal(t, want, f.entry(other).State)
			require.Equal(t, limit == 1, f.counters().OpenToAll == 1)
		})
	}
}

// B54: paused. Five units come, three more join: nobody is told, live holds go
// on, and on resuming the order is the line's.
func TestAPauseKeepsTheOrder(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	promised := f.waits("promised", 1)
	f.restock("e0", 1)
	f.told(f.offered(promised), true)
	f.ackOffers()
	entries := f.line(3)
	f.pause(true)
	f.restock("e1", 5)
	for i := range 3 {
		entries = append(entries, f.waits(fmt.Sprint("late", i), 1))
	}
	f.pass(time.Minute)
	require.Empty(t, f.drain().Items)
	require.Equal(t, Paused, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, f.confirm(id, "pi").Verdict)
	require.Equal(t, OK, f.confirm(f.claimed(promised), "pi_2").Verdict, "an offer told before is kept")
	f.pass(time.Second)
	require.True(t, f.pause(false).Wake)
	require.Equal(t, entries[:5], f.toldNow())
	require.Equal(t, contract.EntryWaiting, f.entry(entries[5]).State)
	require.Equal(t, [4]int64{5, 0, 5, 2}, f.parts())
}

// A turn that was missed by the hold, not the offer, is a missed turn too: a
// failed payment, a release by the shop, an expiry. Who gives it back leaves, and
// nothing is parked after a leave.
func TestAMissedHoldIsAMissedTurn(t *testing.T) {
	for reason, want := range map[string]contract.EntryState{
		contract.ReasonPaymentFailed: contract.EntryWaiting,
		contract.ReasonShop:          contract.EntryWaiting,
		contract.ReasonExpired:       contract.EntryWaiting,
		contract.ReasonShopper:       contract.EntryLeft,
	} {
		for _, leaving := range []bool{false, true} {
			t.Run(fmt.Sprint(reason, " leaving ", leaving), func(t *testing.T) {
				f := open(t, 0)
				f.g.opts.MissedKeep = 1
				want := want
				entry := f.waits("ada", 1)
				f.restock("e1", 1)
				id := f.claimed(entry)
				if leaving {
					require.Equal(t, contract.EntryHolding, f.leave(entry, contract.EntryLeft).Entry.State)
					want = contract.EntryLeft
				}
				f.pass(10 * time.Minute)
				f.release(id, reason)
				require.Equal(t, want, f.entry(entry).State)
				require.Equal(t, int64(1), f.counters().OpenToAll, "parked or gone, nobody is eligible")
				f.restock("e2", 1)
				if want == contract.EntryWaiting {
					require.Equal(t, contract.EntryOffered, f.entry(entry).State)
					f.pass(48 * time.Hour)
					f.lapse(f.offered(entry))
					require.Equal(t, contract.EntryLapsed, f.entry(entry).State, "one missed turn, not two")
				}
				require.Equal(t, int64(2), f.counters().OpenToAll)
			})
		}
	}
}

// Who missed a turn is offered nothing more in that generation, also when another
// claim of theirs ends.
func TestNobodyIsOfferedTwiceInOneRestock(t *testing.T) {
	f := open(t, 1)
	f.g.opts.MissedKeep = 1
	f.limit(2)
	id := f.id(contract.HoldID)
	f.reserveAs("ada", id, 1)
	f.adopt(id, true)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	f.pass(48 * time.Hour)
	f.lapse(f.offered(entry))
	f.release(id, contract.ReasonShop)
	f.limit(3)
	require.Equal(t, contract.EntryWaiting, f.entry(entry).State)
	require.Equal(t, int64(2), f.counters().OpenToAll)
	f.restock("e2", 1)
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
}

// Place and length of the line count who still waits: acknowledged or not, parked
// or not. Who has an offer or a hold, and who has ended, stands in no line.
func TestPlaceAndLengthCountWhoWaits(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	parked, lapsing := f.waits("parked", 1), f.waits("offered", 1)
	holding, bought := f.waits("holding", 1), f.waits("bought", 1)
	left, waits := f.waits("left", 1), f.waits("waits", 1)
	fresh := f.joinAs("fresh", 1).Entry.ID
	last := f.waits("last", 1)
	f.restock("e1", 4)
	f.claimed(holding)
	f.confirm(f.claimed(bought), "pi")
	f.leave(left, contract.EntryLeft)
	f.pass(48 * time.Hour)
	f.lapse(f.offered(parked)) // its unit goes on, to who waits
	require.Equal(t, []contract.EntryState{
		contract.EntryWaiting, contract.EntryOffered, contract.EntryHolding, contract.EntryBought,
		contract.EntryLeft, contract.EntryOffered, contract.EntryWaiting, contract.EntryWaiting,
	}, f.states([]string{parked, lapsing, holding, bought, left, waits, fresh, last}))
	var places []int64
	for _, id := range []string{parked, lapsing, holding, bought, left, waits, fresh, last} {
		places = append(places, f.entry(id).Position)
	}
	require.Equal(t, []int64{1, 0, 0, 0, 0, 0, 2, 3}, places)
	require.Equal(t, int64(3), f.counters().Waiting)
	require.Equal(t, int64(4), f.joinAs("new", 1).Entry.Position)
}

// The place of a person is that of the entry they have now, wherever an older link
// leads.
func TestThePlaceOfAPerson(t *testing.T) {
	f := open(t, 0)
	place := func(person string) (Entry, bool) {
		t.Helper()
		e, ok, err := f.g.ReadPlace(t.Context(), f.sku, person)
		require.NoError(t, err)
		return e, ok
	}
	_, ok := place("ada")
	require.False(t, ok, "not in line yet")
	first := f.waits("ada", 1)
	f.waits("bea", 1)
	e, ok := place("ada")
	require.True(t, ok)
	require.Equal(t, f.entry(first), e)
	f.leave(first, contract.EntryLeft)
	_, ok = place("ada")
	require.False(t, ok, "not in line any more")
	second := f.waits("ada", 1)
	e, ok = place("ada")
	require.True(t, ok)
	require.Equal(t, []any{second, int64(2)}, []any{e.ID, e.Position})
}

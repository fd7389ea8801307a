package redis

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestFreedUnitsGoToTheLineInOrderOfArrival(t *testing.T) {
	f := open(t, 0)
	var entries []string
	for i := range 5 {
		entries = append(entries, f.waits(fmt.Sprint("p", i), 1))
	}
	require.Equal(t, int64(5), f.entry(entries[4]).Position)
	out := f.restock("e1", 3)
	require.True(t, out.Wake)
	require.Equal(t, int64(0), out.Counters.OpenToAll)
	require.Equal(t, int64(3), out.Counters.Offered)
	for i, id := range entries {
		want := contract.EntryOffered
		if i >= 3 {
			want = contract.EntryWaiting
		}
		require.Equal(t, want, f.entry(id).State, "entry %d", i)
	}
	require.Equal(t, int64(1), f.entry(entries[3]).Position, "offered entries are not in the line")

	refused := f.reserve(f.id(contract.HoldID), 1)
	require.Equal(t, ReservedForLine, refused.Verdict)
	require.Equal(t, int64(2), refused.Waiting)

	var told []string
	for _, item := range f.drain().Items {
		require.Equal(t, ItemOffer, item.Kind)
		require.Equal(t, item.EntryID, item.Hold.EntryID)
		told = append(told, item.EntryID)
	}
	require.Equal(t, entries[:3], told, "told in order of arrival")
}

func TestOneFreedUnitIsOneOffer(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.release(id, contract.ReasonShop)
	require.Equal(t, contract.EntryOffered, f.entry(a).State)
	require.Equal(t, contract.EntryWaiting, f.entry(b).State)
	f.restock("e2", 1)
	f.restock("e3", 1)
	require.Equal(t, contract.EntryOffered, f.entry(b).State)
	require.Equal(t, int64(1), f.counters().OpenToAll, "with nobody left waiting, units open to all")
}

func TestAPersonHasOnePlace(t *testing.T) {
	f := open(t, 0)
	first := f.joinAs("ada", 1)
	require.True(t, first.Created)
	second := f.joinAs("ada", 3)
	require.False(t, second.Created)
	require.Equal(t, first.Entry.ID, second.Entry.ID)
	require.Equal(t, int64(1), second.Entry.Units)
	f.joinAs("bob", 1)
	require.Equal(t, contract.EntryLeft, f.leave(first.Entry.ID, contract.EntryLeft).Entry.State)
	again := f.joinAs("ada", 1)
	require.True(t, again.Created)
	require.Equal(t, int64(2), again.Entry.Position, "rejoining goes to the back")
	require.Equal(t, int64(2), f.counters().Waiting, "the line counts live entries only")
}

func TestSimultaneousJoinsHaveStrictlyGrowingArrivals(t *testing.T) {
	f := open(t, 0)
	var wg sync.WaitGroup
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = f.id(contract.EntryID)
	}
	for i, id := range ids {
		wg.Go(func() {
			_, err := f.g.Join(t.Context(), JoinRequest{SKU: f.sku, EntryID: id, Person: fmt.Sprint("p", i), Units: 1})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for _, id := range ids {
		seen[f.entry(id).Position] = true
	}
	require.Len(t, seen, 100)
}

// The language of an entry's pages stays on its record, whatever happens to it.
func TestAnEntryKeepsItsLanguage(t *testing.T) {
	f := open(t, 0)
	id := f.id(contract.EntryID)
	out := must[JoinOutcome](f)(f.g.Join(t.Context(), JoinRequest{SKU: f.sku, EntryID: id, Person: "p", Units: 1, Language: "de"}))
	require.Equal(t, "de", out.Entry.Language)
	again := must[JoinOutcome](f)(f.g.Join(t.Context(), JoinRequest{SKU: f.sku, EntryID: f.id(contract.EntryID), Person: "p", Units: 1, Language: "en"}))
	require.Equal(t, "de", again.Entry.Language, "a repeat changes nothing")
	f.ack(id)
	f.restock("r1", 1)
	require.Equal(t, "de", f.entry(id).Language)
	require.Equal(t, OK, f.lapseNotTold(f.offered(id)).Verdict)
	require.Equal(t, "de", f.entry(id).Language)
	f.leave(id, contract.EntryLeft)
	require.Equal(t, "de", f.entry(id).Language)
	require.Empty(t, f.joinAs("q", 1).Entry.Language)
}

func TestAnUnacknowledgedEntryKeepsItsTurnForOneLease(t *testing.T) {
	f := open(t, 1)
	late := f.joinAs("late", 1).Entry.ID
	prompt := f.waits("prompt", 1)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(prompt).State, "the line stops at the first")
	d := f.drain()
	require.Empty(t, d.Items)
	require.Equal(t, startDelay, d.Next)

	f.pass(testLease)
	f.drain()
	require.Equal(t, contract.EntryOffered, f.entry(prompt).State, "then it is passed over: somebody later has answered")
	f.restock("e2", 1)
	require.Equal(t, int64(1), f.counters().OpenToAll, "a passed-over entry keeps nobody out")
	require.Equal(t, int64(1), f.entry(late).Position)
	f.ack(late)
	require.Equal(t, contract.EntryOffered, f.entry(late).State)
}

// While nobody acknowledges it is our workers that are silent: the line stands
// still, and no walk-in gets past it.
func TestAnOutageOfTheWorkersCostsNobodyATurn(t *testing.T) {
	f := open(t, 0)
	var entries []string
	for i := range 4 {
		entries = append(entries, f.joinAs(fmt.Sprint("p", i), 1).Entry.ID)
	}
	f.restock("e1", 2)
	f.pass(4 * time.Minute)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	// They come back in any order.
	for _, i := range []int{3, 1, 2} {
		f.ack(entries[i])
		require.Equal(t, int64(0), f.counters().Offered, "no. 1 may still come")
	}
	f.ack(entries[0])
	for i, want := range []contract.EntryState{contract.EntryOffered, contract.EntryOffered, contract.EntryWaiting, contract.EntryWaiting} {
		require.Equal(t, want, f.entry(entries[i]).State, "no. %d", i+1)
	}
}

func TestAnOutageDoesNotCloseTheSaleForGood(t *testing.T) {
	f := open(t, 1)
	f.joinAs("nobody comes", 1)
	f.pass(5*time.Minute - time.Millisecond)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.pass(time.Millisecond)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
}

func TestALateAcknowledgementReturnsToItsOwnPlace(t *testing.T) {
	f := open(t, 0)
	first := f.joinAs("first", 1).Entry.ID
	second := f.waits("second", 1)
	f.pass(2 * testLease)
	f.ack(first)
	f.restock("e1", 1)
	require.Equal(t, contract.EntryOffered, f.entry(first).State)
	require.Equal(t, contract.EntryWaiting, f.entry(second).State)
}

func TestLeaving(t *testing.T) {
	f := open(t, 0)
	waiting, offered, next := f.waits("b", 1), f.waits("a", 1), f.waits("c", 1)
	f.leave(waiting, contract.EntryLeft)
	f.restock("e1", 1)
	require.Equal(t, contract.EntryOffered, f.entry(offered).State)
	require.Equal(t, contract.EntryOffered, f.leave(offered, contract.EntryExpired).Entry.State, "an entry expires only while waiting")
	offer := f.entry(offered).HoldID
	f.leave(offered, contract.EntryLeft)
	require.Equal(t, contract.HoldReleased, f.hold(offer).State, "the offer ends at once")
	require.Equal(t, contract.EntryOffered, f.entry(next).State)
	lines := f.lines()
	f.leave(offered, contract.EntryRemoved)
	f.leave(waiting, contract.EntryLeft)
	require.Equal(t, lines, f.lines())
	require.Equal(t, contract.EntryLeft, f.entry(offered).State)

	held := f.entry(next).HoldID
	f.press(held)
	f.adopt(held, true)
	e := f.leave(next, contract.EntryLeft).Entry
	require.Equal(t, contract.EntryHolding, e.State, "a hold already pressed runs on")
	require.True(t, e.Leaving)
	f.release(held, contract.ReasonPaymentFailed)
	require.Equal(t, contract.EntryLeft, f.entry(next).State)
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
	missing := must[EntryOutcome](f)(f.g.Leave(t.Context(), LeaveRequest{SKU: f.sku, EntryID: f.id(contract.EntryID), State: contract.EntryLeft}))
	require.Equal(t, Unknown, missing.Verdict)
}

func TestTheHeadThatWantsMoreIsOfferedWhatThereIs(t *testing.T) {
	f := open(t, 0)
	a, b := f.waits("a", 2), f.waits("b", 1)
	f.restock("e1", 1)
	require.Equal(t, int64(1), f.hold(f.entry(a).HoldID).Units)
	require.Equal(t, contract.EntryWaiting, f.entry(b).State, "nobody skips the head")
}

func TestOutboxHandsOutUntilAcknowledged(t *testing.T) {
	f := open(t, 0)
	joined := f.joinAs("ada", 1).Entry
	require.Empty(t, f.drain().Items, "the door starts it first")
	f.pass(startDelay)
	items := f.drain().Items
	require.Len(t, items, 1)
	require.Equal(t, ItemStart, items[0].Kind)
	require.Equal(t, []byte("sealed\x00ada"), items[0].Sealed)
	require.Equal(t, "ada", items[0].Entry.Person)
	require.Empty(t, f.drain().Items)
	for range 22 {
		f.pass(30 * time.Second)
		items = f.drain().Items
		if len(items) == 1 && items[0].Handed == 20 {
			break
		}
	}
	require.Equal(t, int64(20), items[0].Handed)
	f.pass(30 * time.Second)
	require.Empty(t, f.drain().Items, "after 20 handings it comes last")
	f.ack(joined.ID)
	f.pass(time.Hour)
	require.Empty(t, f.drain().Items)
	sealed, err := shared.HLen(t.Context(), key(f.sku, "parcels")).Result()
	require.NoError(t, err)
	require.Zero(t, sealed, "the number's sealed copy is gone")
}

func TestABigRestockIsOfferedInBoundedBites(t *testing.T) {
	f := open(t, 0)
	var entries []string
	for i := range 100 {
		entries = append(entries, f.waits(fmt.Sprint("p", i), 1))
	}
	out := f.restock("e1", 100)
	require.Equal(t, int64(16), out.Counters.Offered)
	require.Equal(t, int64(0), out.Counters.OpenToAll, "what is not yet offered is the line's")
	require.True(t, out.Wake)
	var told []string
	for range 7 {
		for _, item := range f.drain().Items {
			told = append(told, item.EntryID)
		}
	}
	require.Equal(t, entries, told)
}

// A restock for more people than can take note at once: 500 offers are on their way at
// a time, each that is known makes room for one, and nobody is handed out twice.
func TestABigRestockIsHandedOutAsItIsTakenNoteOf(t *testing.T) {
	const people, most = 600, 500
	f := open(t, 0)
	entries := make([]string, people)
	for i := range entries {
		entries[i] = f.waits(fmt.Sprint("p", i), 1)
	}
	f.restock("e1", people)
	var told, holds []string
	drained := func() DrainOutcome {
		out := must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 10))
		for _, item := range out.Items {
			require.Equal(t, ItemOffer, item.Kind)
			require.Zero(t, item.Handed, "handed out before it was due again")
			told, holds = append(told, item.EntryID), append(holds, item.HoldID)
		}
		return out
	}
	for f.counters().Offered < people || len(told) < most {
		drained()
	}
	require.Equal(t, entries[:most], told)
	out := drained()
	require.Len(t, told, most, "the rest waits")
	require.False(t, out.AtOnce)
	require.Equal(t, 200*time.Millisecond, out.Next)
	for i := range 30 {
		must[HoldOutcome](f)(f.g.AdoptOffer(t.Context(), f.sku, holds[i]))
	}
	for range 3 {
		drained()
	}
	require.Equal(t, entries[:most+30], told, "in the order of the line")
	require.Equal(t, 200*time.Millisecond, drained().Next)

	// Whoever takes note of nothing keeps nobody back for good: after the 30 s all
	// come, who was never handed out first. (Where the clock stands still, stamps are
	// ahead of it by a microsecond for each of 1,200 joins and offers.)
	f.pass(30*time.Second + 2*time.Millisecond)
	for len(told) < people {
		drained()
	}
	require.Equal(t, entries, told)
	again := f.drain()
	require.Equal(t, entries[30], again.Items[0].EntryID)
	require.EqualValues(t, 1, again.Items[0].Handed)
}

func TestWakeComesAtMostOnceASecondAndNeverStrandsTheOutbox(t *testing.T) {
	f := open(t, 0)
	f.waits("a", 1)
	f.waits("b", 1)
	require.True(t, f.restock("e1", 1).Wake)
	require.False(t, f.restock("e2", 1).Wake)
	f.pass(time.Second)
	require.True(t, f.restock("e3", 1).Wake, "a lost wake is repeated by the next call")
	f.drain()
	require.False(t, f.restock("e4", 1).Wake, "nothing is due")
	joined := f.joinAs("c", 1)
	require.True(t, joined.Wake, "free units wait for an acknowledgement: someone must come back")
	require.Equal(t, startDelay, f.drain().Next)
	out := f.ack(joined.Entry.ID)
	require.Equal(t, contract.EntryOffered, out.Entry.State)
	require.True(t, out.Wake, "a drain makes the next wake due at once")
}

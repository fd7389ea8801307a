package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/e2e/check"
)

// aged is when a record may be mended: a lease and a minute after it came.
const aged = testLease + time.Minute

func (f *fixture) gone(id string, version int64) Verdict {
	f.t.Helper()
	return must[Base](f)(f.g.RepairGone(f.t.Context(), f.sku, id, version)).Verdict
}

func (f *fixture) place(id string, untold bool) Verdict {
	f.t.Helper()
	return must[Base](f)(f.g.RepairPlace(f.t.Context(), f.sku, id, untold)).Verdict
}

func (f *fixture) statement() Statement {
	f.t.Helper()
	st, ok, err := f.g.ReadStatement(f.t.Context(), f.sku)
	require.NoError(f.t, err)
	require.True(f.t, ok)
	return st
}

// whole asserts that nothing is left to be mended, and that the stories' judge, who
// shares no code with the gate, agrees.
func (f *fixture) whole() {
	f.t.Helper()
	f.sound()
	st := f.statement()
	require.Empty(f.t, st.Drift)
	require.Empty(f.t, st.Faults)
	facts, err := (&check.Checker{Redis: shared, Lease: testLease}).Gate(f.t.Context(), f.sku)
	require.NoError(f.t, err)
	require.Empty(f.t, check.JudgeGate(facts))
}

// A hold whose owner is gone gives its unit to the line, once, and only if it still
// is what it was when its owner was looked for.
func TestAHoldWhoseOwnerIsGoneGoesBackOnce(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	entry := f.waits("ada", 1)
	version := f.hold(id).Version
	require.Equal(t, Young, f.gone(id, version))
	f.pass(aged - time.Millisecond)
	require.Equal(t, Young, f.gone(id, version))
	f.pass(time.Millisecond)
	require.Equal(t, Changed, f.gone(id, version-1), "it moved after its owner was looked for")
	require.Equal(t, Unknown, f.gone(f.id(contract.HoldID), 1))
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())

	require.Equal(t, OK, f.gone(id, version))
	h := f.hold(id)
	require.Equal(t, [2]any{contract.HoldReleased, contract.ReasonReconcile}, [2]any{h.State, h.Reason})
	require.Equal(t, [4]int64{1, 0, 1, 0}, f.parts())
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	lines := f.lines()
	require.Equal(t, Changed, f.gone(id, h.Version))
	require.Equal(t, Changed, f.gone(id, version))
	require.Equal(t, lines, f.lines())
	f.whole()
}

// An owner that is started between the look for it and the repair keeps its hold: it
// adopts before anybody hears of it.
func TestAnOwnerThatComesLateKeepsItsHold(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	version := f.hold(id).Version
	f.adopt(id, true)
	require.Equal(t, version, f.hold(id).Version, "a repeat right after costs no write")
	f.pass(aged)
	f.adopt(id, false)
	require.Equal(t, Changed, f.gone(id, version))
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
	require.Equal(t, OK, f.gone(id, f.hold(id).Version))
	f.whole()
}

// What is no owner's to lose is left alone: a lease ends by itself, and a sale stays.
func TestOnlyWhatNeedsAnOwnerIsGone(t *testing.T) {
	f := open(t, 3)
	sold := f.held()
	f.confirm(sold, "pi_1")
	f.pass(aged)
	leased := f.id(contract.HoldID)
	f.reserve(leased, 1)
	joined := f.joinAs("ada", 1).Entry.ID
	for _, id := range []string{sold, leased} {
		require.Equal(t, Changed, f.gone(id, f.hold(id).Version), id)
	}
	f.pass(aged + time.Millisecond) // arrivals are in microseconds
	require.Equal(t, Changed, f.gone(joined, f.entry(joined).Version), "its start is in the outbox yet")
	require.NoError(t, shared.Del(t.Context(), key(f.sku, "parcels"), key(f.sku, "outbox")).Err())
	require.Equal(t, OK, f.gone(joined, f.entry(joined).Version), "nobody can start it any more")
	require.Equal(t, contract.EntryRemoved, f.entry(joined).State)
	require.Equal(t, [4]int64{2, 0, 0, 1}, f.parts())
	f.whole()
}

// An entry without an owner leaves the line. Its offer goes to the next; a hold that
// it pressed runs on and ends it.
func TestAnEntryWhoseOwnerIsGoneLeavesTheLine(t *testing.T) {
	f := open(t, 0)
	offered, holding, waits, next := f.waits("a", 1), f.waits("b", 1), f.waits("c", 1), f.waits("d", 1)
	f.restock("e1", 2)
	offer, hold := f.entry(offered).HoldID, f.entry(holding).HoldID
	f.press(hold)
	f.adopt(hold, true)
	require.Equal(t, Young, f.gone(waits, f.entry(waits).Version))
	f.pass(aged + time.Millisecond)
	for _, id := range []string{waits, offered, holding} {
		require.Equal(t, Changed, f.gone(id, f.entry(id).Version+1))
		require.Equal(t, OK, f.gone(id, f.entry(id).Version))
	}
	require.Equal(t, Changed, f.gone(holding, f.entry(holding).Version), "a second run finds nothing")
	require.Equal(t, [2]contract.EntryState{contract.EntryRemoved, contract.EntryRemoved}, [2]contract.EntryState{f.entry(waits).State, f.entry(offered).State})
	require.Equal(t, contract.HoldReleased, f.hold(offer).State)
	require.Equal(t, contract.EntryOffered, f.entry(next).State)
	require.Equal(t, contract.HoldHeld, f.hold(hold).State)
	f.release(hold, contract.ReasonShop)
	require.Equal(t, contract.EntryLeft, f.entry(holding).State)
	f.whole()
}

// A hand deletes the record of one live hold and makes up another. The first comes
// back from its Hold, which then sells it; the other goes. A second look finds nothing.
func TestALostHoldComesBackAndAStrayGoes(t *testing.T) {
	f := open(t, 3)
	id := f.id(contract.HoldID)
	f.reserve(id, 2)
	f.adopt(id, true)
	lost := f.hold(id)
	f.pass(aged)
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "holds"), id).Err())
	require.Equal(t, []Drift{{PartHeld, 2, AgainstRecords, 0}}, f.statement().Drift)
	mend := func(created time.Time) Verdict {
		return must[Base](f)(f.g.RepairHold(t.Context(), f.sku, LostHold{
			ID: id, Person: lost.Person, Units: 2, CreatedAt: created, ExpiresAt: lost.Deadline, Cart: []contract.Line{{SKU: f.sku, Quantity: 2}, {SKU: "other", Quantity: 1}},
		})).Verdict
	}
	require.Equal(t, Young, mend(time.UnixMicro(f.g.testClock).Add(-aged+time.Millisecond)), "its own adopt may be on its way")
	require.Equal(t, OK, mend(lost.CreatedAt))
	require.Equal(t, Existing, mend(lost.CreatedAt))
	got := f.hold(id)
	require.Equal(t, [4]any{contract.HoldHeld, lost.Units, lost.Deadline, lost.CreatedAt}, [4]any{got.State, got.Units, got.Deadline, got.CreatedAt})
	require.Len(t, got.Cart, 2)
	require.Empty(t, f.statement().Drift)

	stray := f.id(contract.HoldID)
	raw, err := shared.HGet(t.Context(), key(f.sku, "holds"), id).Result()
	require.NoError(t, err)
	require.NoError(t, shared.HSet(t.Context(), key(f.sku, "holds"), stray, raw).Err())
	st := f.statement()
	require.Equal(t, []Drift{{PartHeld, 2, AgainstRecords, 4}}, st.Drift)
	require.Equal(t, OK, f.count(PartHeld, 2, st.Mended))
	require.NoError(t, shared.HIncrBy(t.Context(), key(f.sku, "tally"), lost.Person, 2).Err())
	require.Equal(t, OK, f.gone(stray, f.hold(stray).Version))
	require.Equal(t, [4]int64{3, 2, 0, 0}, f.parts())
	require.Equal(t, OK, f.confirm(id, "pi_1").Verdict)
	require.Empty(t, f.statement().Drift)
	require.Empty(t, f.statement().Faults)
}

// A hold whose units were freed because its record was lost, and that comes back
// after all, holds them again: they are not freed once more when it ends, and nobody
// is sold what somebody else holds.
func TestAHoldThatComesBackTooLateFreesNothingTwice(t *testing.T) {
	f := open(t, 1)
	late := f.held()
	lost := f.hold(late)
	f.pass(aged)
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "holds"), late).Err())
	require.Equal(t, OK, f.count(PartHeld, -1, f.statement().Mended))
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "tally"), lost.Person).Err())
	other := f.held()
	require.Equal(t, OK, must[Base](f)(f.g.RepairHold(t.Context(), f.sku, LostHold{
		ID: late, Person: lost.Person, Units: 1, CreatedAt: lost.CreatedAt, ExpiresAt: lost.Deadline,
	})).Verdict)
	require.Empty(t, f.statement().Drift)
	require.Equal(t, int64(1), f.counters().Shortfall, "two hold the one unit, and it is said")
	require.Equal(t, OK, f.release(late, contract.ReasonShop).Verdict)
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
	require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, f.confirm(other, "pi_1").Verdict)
	require.Empty(t, f.statement().Drift)
	require.Empty(t, f.statement().Faults)

	// Freed once, held again once: the next one that is lost is as it was.
	require.Equal(t, "0", shared.HGet(t.Context(), key(f.sku, "stock"), "freed").Val())
}

func (f *fixture) count(part string, delta, mended int64) Verdict {
	f.t.Helper()
	return must[Base](f)(f.g.RepairCount(f.t.Context(), f.sku, part, delta, mended, "the parts add up to less")).Verdict
}

// How far a counter is from its parts stays the same while the SKU moves, so it is
// corrected by that, once.
func TestACounterIsCorrectedWhileTheSKUMoves(t *testing.T) {
	for part, spoil := range map[string]int64{PartHeld: 2, PartOffered: 1} {
		t.Run(part, func(t *testing.T) {
			f := open(t, 20)
			f.held()
			require.NoError(t, shared.HIncrBy(t.Context(), key(f.sku, "stock"), part, spoil).Err())
			st := f.statement()
			found := st.Drift[0]
			require.Equal(t, [3]any{part, AgainstRecords, spoil}, [3]any{found.Part, found.Against, found.Counter - found.Adds})
			f.release(f.held(), contract.ReasonShop)
			f.confirm(f.held(), "pi_1")
			f.held()
			require.Equal(t, Changed, f.count(part, -100, st.Mended), "no counter below 0")
			require.Equal(t, OK, f.count(part, found.Adds-found.Counter, st.Mended))
			require.Equal(t, Changed, f.count(part, found.Adds-found.Counter, st.Mended), "what was seen has been mended")
			require.Equal(t, [4]int64{19, 2, 0, 1}, f.parts())
			st = f.statement()
			require.Empty(t, st.Drift)
			require.Equal(t, int64(1), st.Mended)
			f.held()
			require.Empty(t, f.statement().Drift, "and stays so")
			line := must[[]LedgerLine](f)(f.g.Ledger(t.Context(), f.sku, "", 1000))
			counted := line[len(line)-3] // a reserve and an adopt follow
			require.Equal(t, [5]any{"repair", "counted", part, -spoil, ActorReconcile}, [5]any{counted.Verb, counted.Kind, counted.OtherID, counted.Units, counted.Actor})
			require.NotEmpty(t, counted.Reason)
		})
	}
	t.Run("sold", func(t *testing.T) {
		f := open(t, 3)
		f.confirm(f.held(), "pi_1")
		require.NoError(t, shared.HSet(t.Context(), key(f.sku, "stock"), "sold", 0, "on_hand", 3).Err())
		require.Equal(t, OK, f.count(PartSold, 1, f.statement().Mended), "a sale that is on record is sold")
		require.Equal(t, [4]int64{2, 0, 0, 1}, f.parts())
		require.Empty(t, f.statement().Drift)
	})
	t.Run("on hand", func(t *testing.T) {
		f := open(t, 3)
		require.NoError(t, shared.HSet(t.Context(), key(f.sku, "stock"), "on_hand", 5).Err())
		require.Equal(t, OK, f.count(PartOnHand, -2, f.statement().Mended))
		require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
		require.Empty(t, f.statement().Drift)
	})
	_, err := open(t, 0).g.RepairCount(t.Context(), "X", "fence", 1, 0, "why")
	require.ErrorContains(t, err, `"fence" is no counter`)
}

// An entry whose record was lost comes back at its place, as what its offer is now.
func TestALostEntryComesBackAtItsPlace(t *testing.T) {
	f := open(t, 0)
	first, second := f.waits("a", 1), f.waits("b", 1)
	lost := map[string]Entry{first: f.entry(first), second: f.entry(second)}
	f.pass(aged + time.Millisecond)
	lose := func(ids ...string) {
		for _, id := range ids {
			require.NoError(t, shared.HDel(t.Context(), key(f.sku, "entries"), id).Err())
			require.NoError(t, shared.ZRem(t.Context(), key(f.sku, "line"), id).Err())
			require.NoError(t, shared.HDel(t.Context(), key(f.sku, "people"), lost[id].Person).Err())
		}
	}
	mend := func(id string) Verdict {
		e := lost[id]
		return must[Base](f)(f.g.RepairEntry(t.Context(), f.sku, LostEntry{
			ID: id, Person: e.Person, Units: 1, JoinedAt: e.JoinedAt, HoldID: e.HoldID, Generation: e.Generation,
		})).Verdict
	}
	lose(first, second)
	require.Equal(t, OK, mend(second))
	require.Equal(t, OK, mend(first))
	require.Equal(t, Existing, mend(first))
	require.Equal(t, []int64{1, 2}, []int64{f.entry(first).Position, f.entry(second).Position})
	f.whole()

	f.restock("e1", 1)
	offer := f.entry(first).HoldID
	lost[first] = f.entry(first)
	lose(first)
	require.Equal(t, OK, mend(first))
	require.Equal(t, contract.EntryOffered, f.entry(first).State)
	f.press(offer)
	f.adopt(offer, true)
	lose(first)
	require.Equal(t, OK, mend(first))
	require.Equal(t, contract.EntryHolding, f.entry(first).State)
	f.whole()
	f.release(offer, contract.ReasonShop)

	require.Equal(t, contract.EntryOffered, f.entry(second).State)
	lost[second] = f.entry(second)
	lose(second)
	again := f.waits("b", 1)
	require.Equal(t, OK, mend(second))
	require.Equal(t, contract.EntryRemoved, f.entry(second).State, "who has joined anew keeps the new place")
	require.Equal(t, contract.EntryOffered, f.entry(again).State, "the old one's offer has passed on")
	require.Equal(t, second, func() string {
		for _, item := range f.drain().Items {
			if item.Kind == ItemEnd && item.EntryID == second {
				return item.EntryID
			}
		}
		return ""
	}(), "and the old one's workflow is told")
	f.whole()
}

// Nothing of a SKU that is closed, or that was never opened, is mended as if it were
// open.
func TestRepairsKeepToTheFence(t *testing.T) {
	f := open(t, 2)
	id := f.held()
	f.pass(aged)
	version := f.hold(id).Version
	require.NoError(t, shared.Rename(t.Context(), key(f.sku, "stock"), key(f.sku, "kept")).Err())
	for n, verb := range []func() (Base, error){
		func() (Base, error) { return f.g.RepairGone(t.Context(), f.sku, id, version) },
		func() (Base, error) {
			return f.g.RepairHold(t.Context(), f.sku, LostHold{ID: "hold_x", Person: "p", Units: 1, CreatedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0)})
		},
		func() (Base, error) {
			return f.g.RepairEntry(t.Context(), f.sku, LostEntry{ID: "entry_x", Person: "p", Units: 1, JoinedAt: time.Unix(1, 0)})
		},
		func() (Base, error) { return f.g.RepairPlace(t.Context(), f.sku, id, false) },
		func() (Base, error) { return f.g.RepairCount(t.Context(), f.sku, PartHeld, 1, 0, "why") },
	} {
		_, err := verb()
		require.True(t, closedBy(t, err).Missing, fmt.Sprint("verb ", n))
	}
	require.NoError(t, shared.Rename(t.Context(), key(f.sku, "kept"), key(f.sku, "stock")).Err())
	f.whole()
}

// An entry whose press dies in the very call that would end it has moved since its
// owner was looked for.
func TestAnEntryThatMovesInTheVeryCallIsKept(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	f.press(f.offered(entry))
	f.pass(aged + time.Second)
	seen := f.entry(entry)
	require.Equal(t, contract.EntryHolding, seen.State)
	require.Equal(t, Changed, f.gone(entry, seen.Version))
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	require.Equal(t, OK, f.gone(entry, f.entry(entry).Version))
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
}

// An entry that has its record again speaks the language that it spoke.
func TestALostEntryKeepsItsLanguage(t *testing.T) {
	f := open(t, 0)
	for _, language := range []string{"de", ""} {
		id := f.id(contract.EntryID)
		base := must[Base](f)(f.g.RepairEntry(t.Context(), f.sku, LostEntry{ID: id, Person: id, Units: 1, JoinedAt: time.Unix(1, 0), Language: language}))
		require.Equal(t, OK, base.Verdict)
		require.Equal(t, language, f.entry(id).Language)
	}
	f.whole()
}

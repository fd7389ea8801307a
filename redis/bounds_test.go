package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestMoreLeasesThanOneSweepAnswersAgainNeverSoldOut(t *testing.T) {
	f := open(t, 200)
	for range 200 {
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	}
	f.pass(testLease)
	id, agains := f.id(contract.HoldID), 0
	out := f.reserve(id, 1)
	for ; out.Verdict == Again; out = f.reserve(id, 1) {
		agains++
	}
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, 12, agains, "16 a call")
	require.Equal(t, [4]int64{200, 1, 0, 0}, f.parts())
}

// A refusal that nobody repeats must count the units of every ended lease, also
// of more than one sweep takes.
func TestAFinalRefusalCountsEveryEndedLease(t *testing.T) {
	// crowd leaves n leases that have ended and that nobody has swept.
	crowd := func(f *fixture, n int) {
		for range n {
			require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		}
		f.pass(testLease)
	}
	t.Run("correction", func(t *testing.T) {
		f := open(t, 200)
		crowd(f, 200)
		require.True(t, f.correct("c", -150, false).Applied)
		require.Equal(t, [4]int64{50, 0, 0, 0}, f.parts())
	})
	t.Run("correction before a line", func(t *testing.T) {
		f := open(t, 50)
		for range 50 {
			require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		}
		entry := f.waits("ada", 50)
		f.pass(testLease)
		require.True(t, f.correct("c", -50, false).Applied)
		require.Equal(t, contract.EntryWaiting, f.entry(entry).State)
		require.Equal(t, [4]int64{}, f.parts())
	})
	t.Run("level", func(t *testing.T) {
		f := open(t, 200)
		crowd(f, 200)
		out := must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{EventID: "l", Kind: contract.StockLevel, Version: 1, Units: 3}))
		require.True(t, out.Applied, out.Reason)
		require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
	})
	t.Run("adopt", func(t *testing.T) {
		f := open(t, 100)
		crowd(f, 100)
		out := must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
			SKU: f.sku, HoldID: f.id(contract.HoldID), HoldFor: time.Minute, ByWorkflow: true, Units: 100, Person: "p",
		}))
		require.Equal(t, OK, out.Verdict)
		require.Equal(t, [4]int64{100, 100, 0, 0}, f.parts())
	})
	t.Run("retake", func(t *testing.T) {
		f := open(t, 100)
		id := f.id(contract.HoldID)
		f.reserve(id, 100)
		f.adopt(id, true)
		f.pass(10 * time.Minute)
		require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
		crowd(f, 100)
		out := must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi", Retake: true}))
		require.Equal(t, OK, out.Verdict)
		require.Equal(t, [4]int64{0, 0, 0, 100}, f.parts())
	})
}

// Thousands of ended leases under a correction cost no call more than a bite: the
// gate asks again until all are swept.
func TestAFinalRefusalSweepsInBites(t *testing.T) {
	rdb := ownServer(t)
	f := openSKU(t, rdb, "BITES", 0)
	f.g.testClock = time.Now().UnixMicro()
	f.fillHolds(1000, false)
	f.pass(2 * testLease)
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	require.True(t, f.correct("c", -1000, false).Applied)
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.Contains(t, stats, "cmdstat_evalsha:calls=63,", "16 a call")
	require.Equal(t, [4]int64{}, f.parts())
}

// A snapshot of a SKU with thousands of ended leases costs no call more than a bite,
// and shows none of them. Those after it find nothing to sweep, and write nothing.
func TestASnapshotSweepsInBites(t *testing.T) {
	rdb := ownServer(t)
	f := openSKU(t, rdb, "SNAPSHOTS", 0)
	f.g.testClock = time.Now().UnixMicro()
	f.fillHolds(1000, false)
	f.pass(2 * testLease)
	calls := func(n int) {
		t.Helper()
		stats, err := rdb.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		require.Contains(t, stats, fmt.Sprintf("cmdstat_evalsha:calls=%d,", n))
	}
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	require.Equal(t, [4]int64{1000, 0, 0, 0}, f.parts())
	calls(63)
	lines := f.lines()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { require.Equal(t, int64(1000), f.counters().OpenToAll) })
	}
	wg.Wait()
	calls(63 + 16)
	require.Equal(t, lines, f.lines())

	// One whose caller has no more time is given up, and what it swept stays swept.
	f.fillHolds(999, false)
	f.pass(2 * testLease)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := f.g.Snapshot(gone, f.sku)
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, int64(1999), f.counters().OpenToAll)
}

// What a snapshot frees is the line's.
func TestWhatASnapshotFreesIsTheLines(t *testing.T) {
	f := open(t, 1)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	entry := f.waits("ada", 1)
	f.pass(testLease)
	c := f.counters()
	require.Equal(t, [3]int64{1, 0, 0}, [3]int64{c.Offered, c.Held, c.OpenToAll})
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	require.True(t, f.pause(false).Wake, "the next verb asks for somebody to tell them")
}

// crowded leaves n people in line who have as much as one may, and one unit free.
func crowded(t *testing.T, n int) *fixture {
	f := open(t, int64(n)+1)
	for i := range n {
		id := f.id(contract.HoldID)
		require.Equal(t, OK, f.reserveAs(fmt.Sprint("p", i), id, 1).Verdict)
		f.adopt(id, false)
	}
	f.limit(1)
	dead := f.id(contract.HoldID)
	require.Equal(t, OK, f.reserve(dead, 1).Verdict)
	for i := range n {
		f.waits(fmt.Sprint("p", i), 1)
	}
	f.takeBack(dead)
	return f
}

// Who is at the limit is met once, whatever comes back meanwhile: a walk-in behind
// a long line of them is served while each call brings a new generation.
func TestALineAtTheLimitStarvesNobody(t *testing.T) {
	const n = 100
	f := crowded(t, n)
	behind := f.joinAs("last", 2).Entry.ID
	f.ack(behind)
	verdicts := map[Verdict]int{}
	for i := 0; verdicts[OK] == 0; i++ {
		require.Less(t, i, n/16+2, "each call has met sixteen, and none of them again")
		f.correct(fmt.Sprint("more", i), 1, false)
		verdicts[f.reserve(f.id(contract.HoldID), 1).Verdict]++
	}
	require.Equal(t, contract.EntryOffered, f.entry(behind).State)
	require.Zero(t, verdicts[SoldOut])
}

// Another limit looks at all who were at the old one, in bites and in their order.
// Until that is done nobody who came later is served, and no walk-in.
func TestAChangedLimitLooksInBites(t *testing.T) {
	const n = 250
	f := crowded(t, n)
	for shared.ZCard(t.Context(), key(f.sku, "line")).Val() > 0 {
		f.drain()
	}
	require.Equal(t, int64(n), shared.ZCard(t.Context(), key(f.sku, "limited")).Val())
	require.Equal(t, int64(1), f.counters().OpenToAll, "nobody else waits")
	last := f.waits("last", 1)
	require.Equal(t, contract.EntryOffered, f.entry(last).State)
	f.correct("more", 1, false)

	// The first bite, whose caller then dies.
	asks := func() string {
		return must[reply](f)(f.g.run(t.Context(), verbSettings, f.sku, "", 0, "", "test", 2, "", "", "", "")).str(0)
	}
	require.Equal(t, string(Again), asks())
	require.Equal(t, int64(100), shared.ZCard(t.Context(), key(f.sku, "line")).Val())
	require.Zero(t, f.counters().OpenToAll)
	require.Equal(t, contract.SKULine, f.counters().State)
	first := f.entry(shared.ZRange(t.Context(), key(f.sku, "line"), 0, 0).Val()[0])
	require.Equal(t, contract.EntryWaiting, first.State)
	require.Equal(t, int64(1), first.Position)

	// Whoever calls next goes on.
	require.True(t, f.drain().AtOnce)
	require.Equal(t, contract.EntryWaiting, f.entry(first.ID).State)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Zero(t, shared.ZCard(t.Context(), key(f.sku, "limited")).Val())
	require.Equal(t, contract.EntryOffered, f.entry(first.ID).State)
	require.Equal(t, string(OK), asks())
}

// Nobody waits for a limit that is changed where everything is taken.
func TestALimitIsChangedWhereNothingIsFree(t *testing.T) {
	f := crowded(t, 150)
	for shared.ZCard(t.Context(), key(f.sku, "line")).Val() > 0 {
		f.drain()
	}
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.pause(true)
	f.limit(0)
	require.Zero(t, shared.ZCard(t.Context(), key(f.sku, "limited")).Val())
	f.pause(false)
	require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
}

// What one call's own sweep frees is the line's first; what the line does not take
// is of whoever made the call.
func TestACallGetsWhatItsOwnSweepLeft(t *testing.T) {
	// freed leaves two ended leases under a line of one, who has not had a turn.
	freed := func(t *testing.T) (*fixture, string) {
		f := open(t, 2)
		for range 2 {
			require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		}
		entry := f.waits("ada", 1)
		f.pass(testLease)
		return f, entry
	}
	t.Run("walk-in", func(t *testing.T) {
		f, entry := freed(t)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		require.Equal(t, contract.EntryOffered, f.entry(entry).State)
		require.Equal(t, [4]int64{2, 1, 1, 0}, f.parts())
		require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
	})
	t.Run("adopt", func(t *testing.T) {
		f, entry := freed(t)
		require.Equal(t, OK, f.adopt(f.id(contract.HoldID), true).Verdict)
		require.Equal(t, contract.EntryOffered, f.entry(entry).State)
		require.Equal(t, [4]int64{2, 1, 1, 0}, f.parts())
	})
	t.Run("retake", func(t *testing.T) {
		f := open(t, 1)
		late := f.held()
		f.pass(10 * time.Minute)
		require.Equal(t, OK, f.release(late, contract.ReasonExpired).Verdict)
		f.restock("e1", 1)
		for range 2 {
			require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		}
		entry := f.waits("ada", 1)
		f.pass(testLease)
		require.Equal(t, OK, f.retake(late, "pi").Verdict)
		require.Equal(t, contract.EntryOffered, f.entry(entry).State)
		require.Equal(t, [4]int64{1, 0, 1, 1}, f.parts())
	})
	// The line's own bound is no refusal either: at the limit nobody takes anything.
	t.Run("a long line at the limit", func(t *testing.T) {
		f := open(t, 21)
		for i := range 20 {
			id := f.id(contract.HoldID)
			require.Equal(t, OK, f.reserveAs(fmt.Sprint("p", i), id, 1).Verdict)
			f.adopt(id, false)
		}
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		for i := range 20 {
			f.waits(fmt.Sprint("p", i), 1)
		}
		f.limit(1)
		f.pass(testLease)
		out := f.reserve(f.id(contract.HoldID), 1)
		for ; out.Verdict == Again; out = f.reserve(f.id(contract.HoldID), 1) {
		}
		require.Equal(t, OK, out.Verdict)
	})
}

// One call sweeps, offers and hands out so much together, however much is due.
func TestADrainDoesSoMuchOfEverythingTogether(t *testing.T) {
	const leases = 40
	f := open(t, leases)
	for range leases {
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	}
	for i := range leases {
		f.waits(fmt.Sprint("p", i), 1)
	}
	f.pass(testLease)
	handed := 0
	for n := 0; handed < leases; n++ {
		require.Less(t, n, 20)
		before := f.lines()
		out := must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 20))
		handed += len(out.Items)
		require.LessOrEqual(t, f.lines()-before+len(out.Items), 21, "leases, offers and items")
		require.Equal(t, handed < leases, out.AtOnce)
	}
	require.Equal(t, [4]int64{leases, 0, leases, 0}, f.parts())
}

package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The page of a link reads an offer whose press died, before anybody has swept
// the lease: it shows the offer, and as long as lapse leaves it.
func TestADeadPressReadsAsTheOfferItIs(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	read := func() HoldOutcome {
		out, ok, err := f.g.ReadHold(t.Context(), f.sku, offer)
		require.NoError(t, err)
		require.True(t, ok)
		return out
	}
	f.told(offer, true)
	f.pass(15*time.Minute - time.Second)
	for _, left := range []time.Duration{2 * time.Minute, 2*time.Minute - testLease} { // the deadline moves once
		f.press(offer)
		f.pass(testLease)
		out := read()
		require.Equal(t, contract.HoldOffered, out.Hold.State)
		require.Equal(t, left, out.Left)
		require.Equal(t, left, f.lapse(offer).Left)
		require.Equal(t, out.Hold.Deadline, read().Hold.Deadline)
	}
}

// B89: one clock decides. Redis TIME may be put back with the machine's clock. Nothing is
// lost or taken twice, the line keeps its order, and what was due in ten minutes still is.
func TestAClockThatIsPutBack(t *testing.T) {
	f := open(t, 1)
	held := f.held()
	deadline := f.hold(held).Deadline
	f.waits("a", 1)
	f.waits("b", 1)
	require.True(t, f.restock("e1", 1).Wake)
	f.pass(-time.Hour)
	f.restock("e2", 1)
	f.pass(2 * time.Second)
	require.True(t, f.restock("e3", 1).Wake, "an earlier wake holds back none of today")
	var last time.Time
	for i := range 5 {
		e := f.joinAs(fmt.Sprint("p", i), 1).Entry
		require.Equal(t, int64(max(1, i)), e.Position)
		require.True(t, e.JoinedAt.After(last), "arrivals grow whatever the clock does")
		last = e.JoinedAt
		f.ack(e.ID)
	}
	var told []string
	for _, item := range f.drain().Items {
		told = append(told, item.Entry.Person)
	}
	require.Equal(t, []string{"a", "b", "p0"}, told)
	out := f.release(held, contract.ReasonExpired)
	require.Equal(t, Early, out.Verdict)
	require.Equal(t, deadline, out.Hold.Deadline)
	require.Equal(t, 10*time.Minute-1800*time.Millisecond, out.Left, "as far as it was, less nine tenths of two seconds")
	require.Equal(t, OK, f.confirm(held, "pi").Verdict)
	require.Equal(t, [4]int64{3, 0, 3, 1}, f.parts())
}

// Whatever is due after a while is due after that while and a tenth of it, also
// when the clock was put back an hour in between.
func TestNothingWaitsForAClockThatWasPutBack(t *testing.T) {
	t.Run("what was handed out once", func(t *testing.T) {
		f := open(t, 0)
		f.waits("a", 1)
		f.restock("e1", 1)
		require.Len(t, f.drain().Items, 1)
		f.pass(-time.Hour)
		require.Empty(t, f.drain().Items)
		f.pass(30 * time.Second)
		require.Empty(t, f.drain().Items, "not sooner either")
		f.pass(4 * time.Second)
		require.Len(t, f.drain().Items, 1)
	})
	t.Run("a walk-in's lease, while all others are refused", func(t *testing.T) {
		f := open(t, 1)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		f.pass(-time.Hour)
		require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
		f.pass(testLease)
		require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
		f.pass(2 * time.Second)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	})
	t.Run("a renewed lease", func(t *testing.T) {
		f := open(t, 1)
		id := f.id(contract.HoldID)
		f.reserve(id, 1)
		f.pass(5 * time.Second)
		f.reserve(id, 1)
		f.pass(-time.Hour)
		require.Equal(t, testLease, f.reserve(id, 1).Left)
		f.pass(12 * time.Second)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	})
	t.Run("the turn of an entry that nobody acknowledged", func(t *testing.T) {
		f := open(t, 0)
		f.joinAs("silent", 1)
		second := f.waits("b", 1)
		f.pass(-time.Hour)
		f.restock("e1", 1)
		require.Equal(t, contract.EntryWaiting, f.entry(second).State)
		f.pass(12 * time.Second)
		f.ack(f.joinAs("c", 1).Entry.ID)
		f.pass(12 * time.Second)
		f.drain()
		require.Equal(t, contract.EntryOffered, f.entry(second).State)
	})
	t.Run("an offer", func(t *testing.T) {
		f := open(t, 0)
		entry := f.waits("a", 1)
		f.restock("e1", 1)
		offer := f.entry(entry).HoldID
		f.told(offer, true)
		f.pass(-time.Hour)
		require.Equal(t, 15*time.Minute, f.lapse(offer).Left)
		f.pass(17 * time.Minute)
		require.Equal(t, OK, f.lapse(offer).Verdict)
	})
	t.Run("the end of a sale, which is an instant", func(t *testing.T) {
		f := open(t, 1)
		f.ends(time.Minute)
		f.pass(time.Hour)
		require.Equal(t, Ended, f.reserve(f.id(contract.HoldID), 1).Verdict)
		f.pass(-time.Hour)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	})
}

// The time of a SKU never goes back, runs at nine tenths at least, and is Redis
// TIME again when that has caught up.
func TestTheTimeOfASKUNeverGoesBack(t *testing.T) {
	f := open(t, 0)
	begin := f.g.testClock
	now := func() int64 { return f.counters().AsOf.UnixMilli() }
	f.pass(-time.Hour)
	require.Equal(t, begin/1000, now())
	f.pass(time.Hour)
	require.Equal(t, begin/1000, now(), "set right again before anybody wrote")
	f.pass(-time.Hour)
	f.restock("e1", 1)
	last := now()
	for range 10 * 60 {
		f.pass(time.Minute)
		want := last + 54_000
		if there := f.g.testClock / 1000; there >= last {
			want = there
		}
		require.InDelta(t, want, now(), 1)
		last = now()
		f.restock(fmt.Sprint("e", last), 1)
	}
	require.Equal(t, f.g.testClock/1000, last, "ten hours bring an hour back")
	f.pass(-5 * time.Millisecond)
	require.Equal(t, last, now(), "what lies behind is forgotten")

	written := last
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		step := time.Duration(draw.Int64N(int64(time.Minute)))
		switch draw.IntN(20) {
		case 0:
			step = -time.Duration(draw.Int64N(int64(time.Hour)))
		case 1:
			step *= 60
		}
		before := now()
		f.pass(step)
		require.GreaterOrEqual(t, now(), written)
		require.GreaterOrEqual(t, now(), f.g.testClock/1000)
		if step > 0 {
			require.LessOrEqual(t, now(), max(f.g.testClock/1000, before+step.Milliseconds()+1))
		}
		if draw.IntN(2) == 0 {
			f.restock(fmt.Sprint("r", i), 1)
			written = now()
		}
	}
}

// Our outage costs nobody a place: for a minute after a gate was opened again
// neither a lapse nor an expiry is accepted. Everything else is.
func TestNothingLapsesRightAfterAnOpening(t *testing.T) {
	f := open(t, 2)
	id, given := f.held(), f.held()
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.offered(entry)
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "stock"), "fence").Err())
	in, err := f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	f.pass(49 * time.Hour)
	require.Equal(t, OK, must[Base](f)(f.g.Open(t.Context(), OpenRequest{SKU: f.sku, ReplID: in.ReplID})).Verdict)
	for _, left := range []time.Duration{time.Minute, time.Millisecond} {
		for _, out := range []HoldOutcome{f.lapse(offer), f.release(id, contract.ReasonExpired)} {
			require.Equal(t, Early, out.Verdict)
			require.Equal(t, left, out.Left)
		}
		f.pass(time.Minute - time.Millisecond)
	}
	require.Equal(t, OK, f.release(given, contract.ReasonShopper).Verdict)
	f.pass(time.Millisecond)
	require.Equal(t, OK, f.lapse(offer).Verdict)
	require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
}

// What has outlived its retention goes a few records a call, so that no call
// pays for a whole sale.
func TestPurgesGoInBites(t *testing.T) {
	f := open(t, 1)
	for range 20 {
		f.release(f.held(), contract.ReasonShop)
	}
	f.pass(31 * 24 * time.Hour)
	for want := int64(20); want >= 0; want -= 4 {
		left, err := shared.HLen(t.Context(), key(f.sku, "holds")).Result()
		require.NoError(t, err)
		require.LessOrEqual(t, left, want)
		require.GreaterOrEqual(t, left, want-4)
		f.drain()
	}
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
}

// A wake that was lost, then the clock put back, and nothing but refusals come:
// one of them wakes.
func TestRefusalsWakeAfterTheClockWasPutBack(t *testing.T) {
	f := open(t, 0)
	f.waits("a", 1)
	require.True(t, f.restock("e1", 1).Wake)
	f.pass(-time.Hour)
	out := f.reserve(f.id(contract.HoldID), 1)
	require.Equal(t, ReservedForLine, out.Verdict)
	require.False(t, out.Wake, "at most once a second")
	f.pass(2 * time.Second)
	require.True(t, f.reserve(f.id(contract.HoldID), 1).Wake)
	require.False(t, f.reserve(f.id(contract.HoldID), 1).Wake, "at most once a second")
}

// Joins in a flash sale are many, and leases are always there.
func TestAcknowledgementsWakeAtMostOnceASecond(t *testing.T) {
	f := open(t, 1)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	wakes := 0
	for i := range 20 {
		e := f.joinAs(fmt.Sprint("p", i), 1).Entry
		if f.ack(e.ID).Wake {
			wakes++
		}
	}
	require.LessOrEqual(t, wakes, 1)
	f.pass(time.Second)
	require.True(t, f.ack(f.joinAs("late", 1).Entry.ID).Wake)
}

package redis

import (
	"fmt"
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

// Redis TIME may jump back with the machine's clock. Nothing is lost or taken
// twice, the line keeps its order, and nobody waits an hour for a wake.
func TestAClockThatIsPutBack(t *testing.T) {
	f := open(t, 1)
	held := f.held()
	deadline := f.hold(held).Deadline
	f.waits("a", 1)
	f.waits("b", 1)
	require.True(t, f.restock("e1", 1).Wake)
	f.pass(-time.Hour)
	require.True(t, f.restock("e2", 1).Wake, "a wake of the future holds back none of today")
	var last time.Time
	for i := range 5 {
		e := f.joinAs(fmt.Sprint("p", i), 1).Entry
		require.Equal(t, int64(i+1), e.Position)
		require.True(t, e.JoinedAt.After(last), "arrivals grow whatever the clock does")
		last = e.JoinedAt
		f.ack(e.ID)
	}
	var told []string
	for _, item := range f.drain().Items {
		told = append(told, item.Entry.Person)
	}
	require.Equal(t, []string{"a", "b"}, told)
	out := f.release(held, contract.ReasonExpired)
	require.Equal(t, Early, out.Verdict, "a deadline is an instant")
	require.Equal(t, deadline, out.Hold.Deadline)
	require.Equal(t, time.Hour+10*time.Minute, out.Left)
	require.Equal(t, OK, f.confirm(held, "pi").Verdict)
	require.Equal(t, [4]int64{2, 0, 2, 1}, f.parts())
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
	require.True(t, out.Wake)
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

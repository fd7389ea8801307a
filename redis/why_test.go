package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func (f *fixture) why(entry string) Standing {
	f.t.Helper()
	lines := f.lines()
	s := must[Standing](f)(f.g.Why(f.t.Context(), f.sku, entry, 3))
	require.Equal(f.t, lines, f.lines(), "it only reads")
	return s
}

// places are the heads with where they stand.
func (s Standing) places() (out []string) {
	for _, w := range s.Heads {
		out = append(out, w.ID+" "+string(w.In))
	}
	return out
}

func TestWhyTellsHowTheLineStands(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	s := f.why("")
	require.Empty(t, s.Heads)
	require.Nil(t, s.Entry)

	a, b := f.waits("a", 1), f.waits("b", 1)
	c := f.joinAs("c", 1).Entry.ID
	d := f.waits("d", 1)
	s = f.why(d)
	require.Equal(t, []string{a + " line", b + " line", c + " fresh"}, s.places(), "by arrival, three of four")
	require.Equal(t, PlaceLine, s.Entry.In)
	require.EqualValues(t, 3, s.Ahead, "the line waits for c")
	require.EqualValues(t, 4, s.Counters.Waiting)
	require.Zero(t, s.Counters.Available)
	require.Equal(t, PlaceFresh, f.why(c).Entry.In)

	f.restock("one", 1)
	s = f.why(a)
	require.Equal(t, PlaceOffer, s.Entry.In, "nobody has acknowledged the offer")
	require.Equal(t, []string{a}, s.Unknown)
	require.Equal(t, contract.HoldOffered, s.Hold.State)
	must[HoldOutcome](f)(f.g.AdoptOffer(t.Context(), f.sku, s.Entry.HoldID))
	s = f.why(a)
	require.Equal(t, PlaceNone, s.Entry.In)
	require.Empty(t, s.Unknown)

	f.lapseNotTold(s.Entry.HoldID)
	s = f.why(a)
	require.Equal(t, PlaceParked, s.Entry.In)
	require.Equal(t, [2]any{int64(1), a}, [2]any{s.Parked, s.FirstParked})
	require.Equal(t, contract.ReasonNotTold, s.Hold.Reason)

	// The turn of c is passed over when its lease is over and d was acknowledged.
	f.pass(f.g.opts.Lease + time.Second)
	require.EqualValues(t, 0, f.why(d).Ahead, "b has the offer now, and nobody waits for c")

	unknown := f.why("entry_" + c[6:31] + "a")
	require.Nil(t, unknown.Entry)
	require.Equal(t, PlaceNone, f.left(d).In)
}

func (f *fixture) left(entry string) Waiter {
	f.t.Helper()
	f.leave(entry, contract.EntryLeft)
	s := f.why(entry)
	require.Equal(f.t, contract.EntryLeft, s.Entry.State)
	return *s.Entry
}

// Who is at the limit is told so, before the line has met them and after.
func TestWhyTellsOfTheLimit(t *testing.T) {
	f := open(t, 1)
	limit := int64(1)
	must[Base](f)(f.g.Settings(t.Context(), SettingsRequest{SKU: f.sku, Limit: &limit, Actor: "test"}))
	hold := f.id(contract.HoldID)
	require.Equal(t, OK, must[HoldOutcome](f)(f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: hold, Units: 1, Person: "a"})).Verdict)
	f.adopt(hold, false)
	a := f.waits("a", 1)
	require.Equal(t, PlaceLimit, f.why(a).Entry.In)
	require.Equal(t, []string{a + " limit"}, f.why("").places())
	f.restock("more", 1)
	require.Equal(t, PlaceLimit, f.why(a).Entry.In)
	require.EqualValues(t, 1, f.why("").Parked)
}

// An ended lease is swept by whoever looks first, however many there are, and what it
// frees is the line's. With nobody in line it is free.
func TestWhyCountsEndedLeasesAsFree(t *testing.T) {
	const n = 40
	f := open(t, n)
	for range n {
		f.reserve(f.id(contract.HoldID), 1)
	}
	require.Zero(t, f.why("").Counters.Available)
	a := f.waits("a", 1)
	f.pass(f.g.opts.Lease)
	s := must[Standing](f)(f.g.Why(t.Context(), f.sku, a, 3))
	require.Equal(t, [3]int64{n - 1, 1, 0}, [3]int64{s.Counters.Available, s.Counters.Offered, s.Counters.Held})
	require.Equal(t, PlaceOffer, s.Entry.In)
	require.Equal(t, s, f.why(a), "the second look writes nothing")
}

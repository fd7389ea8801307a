package redis

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestPausedOffersStayInTheOutboxAndReturnToIt(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("a", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.pause(true)
	require.Empty(t, f.drain().Items)
	f.pause(false)
	require.Len(t, f.drain().Items, 1)
	_, err := f.g.AdoptOffer(t.Context(), f.sku, offer)
	require.NoError(t, err)
	f.pause(true)
	require.Equal(t, Paused, f.told(offer, false).Verdict)
	f.pause(false)
	require.Len(t, f.drain().Items, 1, "told again when the SKU resumes")
}

// A pause that comes right after a restock costs nobody an offer: it goes back
// to the outbox, is not due there, and wakes nobody.
func TestAPauseAfterARestockKeepsTheOffers(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("a", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.ackOffers()
	f.pause(true)
	out := f.told(offer, false)
	require.Equal(t, Paused, out.Verdict)
	require.Equal(t, 48*time.Hour, out.Left, "it lapses by its greatest age, not now")
	require.Equal(t, Early, f.lapse(offer).Verdict)
	f.pass(time.Minute)
	f.drain()
	require.False(t, f.reserve(f.id(contract.HoldID), 1).Wake, "nothing is due while it is paused")
	require.True(t, f.pause(false).Wake)
}

// Offers of a paused SKU keep nothing else from being handed out.
func TestPausedOffersDoNotStarveTheOutbox(t *testing.T) {
	f := open(t, 0)
	for i := range 300 {
		f.waits(fmt.Sprint("p", i), 1)
	}
	f.restock("e1", 300)
	for f.drainUntilIdle(); f.counters().Offered < 300; f.drainUntilIdle() {
	}
	f.pass(31 * time.Second)
	f.pause(true)
	joined := f.joinAs("late", 1).Entry.ID
	f.pass(startDelay)
	d := must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 10))
	require.Len(t, d.Items, 1)
	require.Equal(t, joined, d.Items[0].EntryID)
}

// Nobody is told while the SKU is paused, and afterwards everybody once, in the
// order of the line: those who were told before the pause and those who were not.
func TestAPauseKeepsTheOrderOfOffers(t *testing.T) {
	f := open(t, 0)
	var entries []string
	for i := range 300 {
		entries = append(entries, f.waits(fmt.Sprint("p", i), 1))
	}
	f.restock("e1", 300)
	told := func() (ids []string) {
		for _, item := range must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 20)).Items {
			require.Equal(t, ItemOffer, item.Kind)
			must[HoldOutcome](f)(f.g.AdoptOffer(t.Context(), f.sku, item.HoldID))
			ids = append(ids, item.EntryID)
		}
		return ids
	}
	before := append(told(), told()...)
	f.pause(true)
	for range 30 {
		f.pass(time.Minute)
		out := must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 20))
		require.Empty(t, out.Items, "nobody is told while it is paused")
		require.Zero(t, out.Next, "and nobody has to come again for it")
	}
	f.pause(false)
	after := told()
	for some := told(); len(some) > 0; some = told() {
		after = append(after, some...)
	}
	require.Equal(t, entries, append(before, after...))
}

// What waits for the end of a pause costs no call anything: with thousands of
// offers in the outbox each call takes the server as long as with none.
func TestAPausedSKUPaysNothingForItsOffers(t *testing.T) {
	const calls, limit = 100, time.Millisecond
	waiting := 5_000
	if long {
		waiting = 50_000
	}
	rdb := ownServer(t)
	f := openSKU(t, rdb, "PAUSED", 0)
	f.fillOffers(waiting)
	f.pause(true)
	require.NoError(t, rdb.ConfigSet(t.Context(), "slowlog-max-len", "10000").Err())
	require.NoError(t, rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", fmt.Sprint(limit.Microseconds())).Err())
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	require.NoError(t, rdb.Do(t.Context(), "SLOWLOG", "RESET").Err())
	for range calls {
		require.Empty(t, must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 20)).Items)
		require.Equal(t, Paused, overALine[0].run(f, ""))
		f.restock(nextEvent(), 1)
	}
	slow, err := rdb.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	runs := 0
	for _, l := range slow {
		if l.Args[0] == "evalsha" {
			runs++
		}
	}
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	t.Logf("%d paused offers: %d of %d calls took the server %s or more: %s", waiting, runs, 3*calls, limit, evalStats.FindString(stats))
	require.Less(t, runs, calls/2)
	f.pause(false)
	require.Len(t, must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 20)).Items, 20)
}

var evalStats = regexp.MustCompile(`cmdstat_evalsha:[^\r\n]*`)

func (f *fixture) drainUntilIdle() {
	for len(f.drain().Items) > 0 {
	}
}

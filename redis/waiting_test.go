package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// Who waits is listed in the order of arrival, whatever place they have, page by page.
func TestWhoWaitsIsListedByArrival(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	list := func(after time.Time, limit int) (rows []string, next time.Time) {
		waiting, next, err := f.g.ReadWaiting(t.Context(), f.sku, after, limit)
		require.NoError(t, err)
		for _, w := range waiting {
			rows = append(rows, w.ID+" "+string(w.In))
		}
		return rows, next
	}
	rows, next := list(time.Time{}, 10)
	require.Empty(t, rows)
	require.Zero(t, next)

	missed, a := f.waits("missed", 1), f.waits("a", 1)
	fresh := f.joinAs("fresh", 2).Entry.ID
	b := f.waits("b", 1)
	f.restock("one", 1)
	offered := f.why(missed).Entry
	require.Equal(t, contract.EntryOffered, offered.State)
	must[HoldOutcome](f)(f.g.AdoptOffer(t.Context(), f.sku, offered.HoldID))
	rows, _ = list(time.Time{}, 10)
	require.Equal(t, []string{a + " line", fresh + " fresh", b + " line"}, rows, "who has an offer does not wait")

	f.lapseNotTold(offered.HoldID)
	want := []string{missed + " parked", fresh + " fresh", b + " line"} // a has the offer now
	rows, next = list(time.Time{}, 10)
	require.Equal(t, want, rows)
	require.Zero(t, next)

	var pages []string
	for next = (time.Time{}); ; {
		rows, next = list(next, 1)
		pages = append(pages, rows...)
		if next.IsZero() {
			break
		}
	}
	require.Equal(t, want, pages)
}

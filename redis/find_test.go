package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// Lines are found among the newest ones, and it is said when older ones were not read.
func TestFindLines(t *testing.T) {
	f := open(t, 5)
	first := f.held()
	for range findPage / 2 {
		f.pause(true)
		f.pause(false)
	}
	last := f.held()
	all, err := f.g.Ledger(t.Context(), f.sku, "", 10_000)
	require.NoError(t, err)
	ofHolds := func(l LedgerLine) bool { return l.RefID == first || l.RefID == last }
	find := func(since time.Time, most int) ([]LedgerLine, bool) {
		t.Helper()
		lines, whole, err := f.g.FindLines(t.Context(), f.sku, since, most, ofHolds)
		require.NoError(t, err)
		return lines, whole
	}
	var want []LedgerLine
	for _, l := range all {
		if ofHolds(l) {
			want = append(want, l)
		}
	}
	require.Len(t, want, 4, "each hold was taken and adopted")
	lines, whole := find(time.Time{}, 100_000)
	require.True(t, whole)
	require.Equal(t, want, lines, "oldest first, over two pages")
	for most, n := range map[int]int{len(all): 4, len(all) - 1: 4, findPage: 2, 2: 2, 1: 1} {
		lines, whole := find(time.Time{}, most)
		require.Len(t, lines, n, most)
		require.False(t, whole, "that there is no older line was not seen: %d of %d", most, len(all))
		require.Equal(t, want[4-n:], lines)
	}
	lines, whole = find(want[3].At.Add(time.Hour), 10)
	require.Empty(t, lines)
	require.True(t, whole)
}

// What was trimmed was not looked at.
func TestFindLinesOfATrimmedLedger(t *testing.T) {
	f := open(t, 5)
	f.held()
	f.pass(testOptions().SaleRetention + time.Millisecond)
	f.pause(true)
	young, err := f.g.Ledger(t.Context(), f.sku, "", 10_000)
	require.NoError(t, err)
	_, _, err = f.g.TrimLedger(t.Context(), f.sku)
	require.NoError(t, err)
	all := func(LedgerLine) bool { return true }
	_, whole, err := f.g.FindLines(t.Context(), f.sku, time.Time{}, 100, all)
	require.NoError(t, err)
	require.False(t, whole)
	at, ok := parseStreamID(young[len(young)-1].ID)
	require.True(t, ok)
	_, whole, err = f.g.FindLines(t.Context(), f.sku, time.UnixMilli(at.ms+1), 100, all)
	require.NoError(t, err)
	require.True(t, whole, "nothing since then was trimmed")
}

func TestWhoIsMeant(t *testing.T) {
	f := open(t, 2)
	hold := f.held()
	ref, order := "pay of "+hold, "print of "+hold
	found, err := f.g.HoldOfPayment(t.Context(), ref)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = f.g.ClaimPayment(t.Context(), hold, ref)
	require.NoError(t, err)
	found, err = f.g.HoldOfPayment(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, hold, found)

	require.NoError(t, f.g.NoteHold(t.Context(), hold, order, order+" again"))
	require.NoError(t, f.g.NoteHold(t.Context(), hold, order, order+" again"), "a repeat is the same")
	holds, err := f.g.HoldsNamed(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, []string{hold}, holds)
	left, err := f.g.rdb.PTTL(t.Context(), keyNamed+order).Result()
	require.NoError(t, err)
	require.InDelta(t, testOptions().SaleRetention, left, float64(time.Minute), "kept as long as a sale")
	require.NoError(t, f.g.NotePaying(t.Context(), hold, "print of "+ref))
	holds, err = f.g.HoldsNamed(t.Context(), "print of "+ref)
	require.NoError(t, err)
	require.Equal(t, []string{hold}, holds)
	left, err = f.g.rdb.PTTL(t.Context(), keyNamed+"print of "+ref).Result()
	require.NoError(t, err)
	require.InDelta(t, testOptions().RecordRetention, left, float64(time.Minute), "kept as long as a hold that has ended")
}

// What became of a stock event is answered for the SKUs that have decided it.
func TestOutcomesOfAStockEvent(t *testing.T) {
	f := open(t, 2)
	id := "event of " + f.sku
	out, err := f.g.Stock(t.Context(), f.sku, contract.StockEvent{EventID: id, Kind: contract.StockCorrection, Delta: -9, Reason: "counted"})
	require.NoError(t, err)
	require.False(t, out.Applied)
	found, err := f.g.OutcomesOf(t.Context(), id, []string{f.sku, "other-" + f.sku})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, string(WouldOversell), found[f.sku].Reason)

	_, err = f.g.ClaimKey(t.Context(), id, Claim{BodyHash: "b"}, time.Minute)
	require.NoError(t, err)
	claimed, err := f.g.Claimed(t.Context(), []string{id, "other " + id})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{id: true}, claimed)
}

package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However much the ledger has grown since, what had been sold at an instant is right, and
// whoever reads so much is given a rest between pages.
func TestSalesAreReadAsFarBackAsAsked(t *testing.T) {
	f := open(t, 10)
	sold := make([]time.Time, 3)
	for i := range sold {
		f.pass(time.Second)
		require.Equal(t, OK, f.confirm(f.held(), fmt.Sprint("pi_", i)).Verdict)
		sold[i] = f.counters().AsOf
	}
	for i := range 2*findPage + 50 {
		f.pass(time.Second)
		f.restock(fmt.Sprint("r", i), 1)
	}
	rests := 0
	rest := func(began time.Time) error {
		require.False(t, began.IsZero())
		rests++
		return nil
	}
	s, ok, err := f.g.ReadSales(t.Context(), f.sku, time.Time{}, rest)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(3), s.Sold)
	require.Len(t, s.Moves, 3)
	require.Equal(t, 2, rests)
	for i, at := range sold {
		for before, want := range map[time.Time]int64{at.Add(-time.Millisecond): int64(i), at: int64(i + 1)} {
			got, ok := s.Before(before)
			require.True(t, ok)
			require.Equal(t, want, got, "%d", i)
		}
	}

	rests = 0
	s, ok, err = f.g.ReadSales(t.Context(), f.sku, f.counters().AsOf.Add(-time.Minute), rest)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, s.Moves, "it reads no further than it must")
	require.Zero(t, rests)

	over := errors.New("no time any more")
	_, _, err = f.g.ReadSales(t.Context(), f.sku, time.Time{}, func(time.Time) error { return over })
	require.ErrorIs(t, err, over)
}

package redis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestTheLiveEntriesOfAPerson(t *testing.T) {
	a, b, none := open(t, 0), open(t, 0), open(t, 0)
	of := func(person string) map[string]string {
		skus := []string{a.sku, b.sku, none.sku}
		for i := range 2 * skuBatch { // more than are asked in one go, and unknown
			skus = append(skus, fmt.Sprint("unknown-", i))
		}
		found, err := a.g.LiveEntries(t.Context(), person, append(skus[3:], skus[:3]...))
		require.NoError(t, err)
		return found
	}
	require.Empty(t, of("ada"))
	inA, inB := a.waits("ada", 1), b.waits("ada", 1)
	none.waits("ben", 1)
	require.Equal(t, map[string]string{a.sku: inA, b.sku: inB}, of("ada"))
	place, ok, err := b.g.ReadPlace(t.Context(), b.sku, "ada")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, b.entry(inB), place)
	a.leave(inA, contract.EntryOptedOut)
	require.Equal(t, map[string]string{b.sku: inB}, of("ada"), "what has ended is not live")
	for _, sku := range []string{a.sku, none.sku} {
		_, ok, err = a.g.ReadPlace(t.Context(), sku, "ada")
		require.NoError(t, err)
		require.False(t, ok)
	}
}

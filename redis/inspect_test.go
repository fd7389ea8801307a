package redis

import (
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A SKU is not opened again while an entry waits outside the line: everybody
// would pass it. Nor while a place is of somebody who does not wait.
func TestInspectFindsWhoLostTheirPlace(t *testing.T) {
	for n, c := range []struct {
		name  string
		spoil func(f *fixture, acked, fresh, left string) error
		says  string
	}{
		{"the line is gone", func(f *fixture, _, _, _ string) error {
			return f.g.rdb.Del(f.t.Context(), key(f.sku, "line")).Err()
		}, "1 entries wait and have no place"},
		{"an unacknowledged place is gone", func(f *fixture, _, fresh, _ string) error {
			return f.g.rdb.ZRem(f.t.Context(), key(f.sku, "fresh"), fresh).Err()
		}, "1 entries wait and have no place"},
		{"a place of somebody who left", func(f *fixture, _, _, left string) error {
			return f.g.rdb.ZAdd(f.t.Context(), key(f.sku, "line"), goredis.Z{Score: 1, Member: left}).Err()
		}, "1 places in the line are of nobody who waits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := openSKU(t, shared, fmt.Sprint("INSPECT-", n), 0)
			left := f.waits("left", 1)
			f.leave(left, "left")
			acked, unacked := f.waits("a", 1), f.joinAs("b", 1).Entry.ID
			in, err := f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Empty(t, in.Problems)
			require.NoError(t, c.spoil(f, acked, unacked, left))
			in, err = f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Len(t, in.Problems, 1)
			require.Contains(t, in.Problems[0], c.says)
		})
	}
}

// A whole key that a hand has deleted closes the SKU at the next drain, and stays
// closed: the check finds whose records it belonged to. Put back, it opens.
func TestADeletedKeyClosesTheSKU(t *testing.T) {
	for name, says := range map[string]string{
		"tally": "the units of 1 persons", "people": "the live entry of 1 persons",
		"holds": "held is 1, the parts add up to 0", "entries": "1 places in the line",
		"ledger": "is not the ledger's newest",
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			f.held()
			f.waits("ada", 1)
			f.drain()
			kept, err := shared.Dump(t.Context(), key(f.sku, name)).Result()
			require.NoError(t, err)
			require.NoError(t, shared.Del(t.Context(), key(f.sku, name)).Err())
			_, err = f.g.Drain(t.Context(), f.sku, 10)
			shut := closedBy(t, err)
			require.False(t, shut.Missing)
			_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
			closedBy(t, err)
			in, err := f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Equal(t, shut.ReplID, in.ReplID)
			require.NotEmpty(t, in.Problems)
			require.Contains(t, strings.Join(in.Problems, "\n"), says)
			require.NoError(t, shared.Restore(t.Context(), key(f.sku, name), 0, kept).Err())
			in, err = f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Empty(t, in.Problems)
			require.Equal(t, OK, must[Base](f)(f.g.Open(t.Context(), OpenRequest{SKU: f.sku, ReplID: in.ReplID})).Verdict)
			f.drain()
		})
	}
}

// One person's place or tally that was lost, or is somebody else's, is found by the
// check as well.
func TestInspectFindsWhatPersonsHave(t *testing.T) {
	for n, c := range []struct {
		key, person, value, says string
	}{
		{"tally", "ada", "1", `ada has "1" in place of "2"`},
		{"tally", "eve", "1", `eve has "1" in place of ""`},
		{"people", "ada", "entry_x", `ada has "entry_x" in place of "entry_`},
	} {
		t.Run(fmt.Sprint(c.key, " ", c.person), func(t *testing.T) {
			f := openSKU(t, shared, fmt.Sprint("CLAIMS-", n), 3)
			for _, id := range []string{f.id(contract.HoldID), f.id(contract.HoldID)} {
				require.Equal(t, OK, f.reserveAs("ada", id, 1).Verdict)
				f.adopt(id, false)
			}
			f.held()
			f.waits("ada", 1)
			in, err := f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Empty(t, in.Problems)
			require.NoError(t, shared.HSet(t.Context(), key(f.sku, c.key), c.person, c.value).Err())
			in, err = f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Len(t, in.Problems, 1)
			require.Contains(t, in.Problems[0], c.says)
		})
	}
}

package redis

import (
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
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

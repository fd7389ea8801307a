package redis

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A SKU in another layout, older or newer, is refused by every verb with both
// numbers, also when it is closed, and nothing is written.
func TestEveryVerbRefusesAnotherLayout(t *testing.T) {
	for name, found := range map[string]int64{"before layouts had numbers": 0, "older": layout - 1, "newer": layout + 1} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			f.held()
			f.joinAs("ada", 1)
			stock := key(f.sku, "stock")
			require.NoError(t, shared.HSet(t.Context(), stock, "layout", found).Err())
			if found == 0 {
				require.NoError(t, shared.HDel(t.Context(), stock, "layout").Err())
			}
			refuses := func(what string, err error) {
				t.Helper()
				var other *LayoutError
				require.ErrorAs(t, err, &other, what)
				require.Equal(t, LayoutError{SKU: f.sku, Found: found, Ours: layout}, *other, what)
				require.ErrorContains(t, err, "layout "+strconv.FormatInt(found, 10)+" and this build knows layout "+strconv.Itoa(layout))
				require.ErrorIs(t, err, ErrUnavailable, "a build that knows it answers")
				var shut *ClosedError
				require.NotErrorAs(t, err, &shut, "nothing was lost: there is nothing to check")
			}
			ask := func() {
				before := f.everything()
				for _, v := range all {
					_, err := f.g.run(t.Context(), v, f.sku, "hold", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1")
					refuses(v.name, err)
				}
				for _, req := range []OpenRequest{{SKU: f.sku, New: true}, {SKU: f.sku, ReplID: "0123"}} {
					_, err := f.g.Open(t.Context(), req)
					refuses("open", err)
				}
				_, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
				refuses("reserve", err)
				_, err = f.g.Inspect(t.Context(), f.sku)
				refuses("inspect", err)
				_, _, err = f.g.ReadStatement(t.Context(), f.sku)
				refuses("statement", err)
				require.Equal(t, before, f.everything())
			}
			ask()
			fence, err := shared.HGet(t.Context(), stock, "fence").Result()
			require.NoError(t, err)
			require.NoError(t, shared.HDel(t.Context(), stock, "fence").Err())
			ask()
			require.NoError(t, shared.HSet(t.Context(), stock, "fence", fence, "layout", layout).Err())
		})
	}
}

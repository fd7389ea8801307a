package redis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The in-process stand-in of `make dev` runs the same scripts without a fence.
func TestTheStandInRunsTheWholeChain(t *testing.T) {
	server := miniredis.RunT(t)
	rdb := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	t.Cleanup(func() { rdb.Close() })
	opts := testOptions()
	opts.FenceOff = true
	f := &fixture{t: t, g: New(rdb, opts), sku: "STAND-IN"}
	base, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)

	a, b := f.waits("a", 1), f.waits("b", 1)
	require.True(t, f.restock("e1", 1).Wake)
	items := f.drain().Items
	require.Len(t, items, 1)
	require.Equal(t, a, items[0].EntryID)
	offer := items[0].HoldID
	require.Equal(t, OK, f.told(offer, true).Verdict)
	require.Equal(t, OK, f.press(offer).Verdict)
	require.Equal(t, OK, f.adopt(offer, true).Verdict)
	require.Equal(t, OK, f.release(offer, contract.ReasonPaymentFailed).Verdict)
	second := f.entry(b).HoldID
	f.press(second)
	f.adopt(second, true)
	require.Equal(t, OK, f.confirm(second, "pi_1").Verdict)
	require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
	f.adds()
}

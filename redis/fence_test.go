package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

func closedBy(t *testing.T, err error) *ClosedError {
	t.Helper()
	var shut *ClosedError
	require.True(t, errors.As(err, &shut), "want a closed gate, got %v", err)
	return shut
}

func TestARestartClosesTheGateUntilItWasChecked(t *testing.T) {
	server, err := redistest.Start("--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { rdb.Close() })
	f := newFixture(t, rdb, 2)
	id := f.held()
	server.Kill()
	_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
	require.ErrorIs(t, err, ErrUnavailable)
	require.NoError(t, server.Run())

	lines := f.lines()
	_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
	shut := closedBy(t, err)
	require.False(t, shut.Missing)
	_, err = f.g.Stock(t.Context(), f.sku, contract.StockEvent{EventID: "e9", Kind: contract.StockRestock, Units: 1})
	closedBy(t, err)
	_, _, err = f.g.Snapshot(t.Context(), f.sku)
	closedBy(t, err)
	require.Equal(t, lines, f.lines(), "a closed gate writes nothing")

	in, err := f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems)
	require.Equal(t, shut.ReplID, in.ReplID)
	missing, err := f.g.InspectRecords(t.Context(), f.sku, []string{id, "hold_nothere", "entry_nothere"})
	require.NoError(t, err)
	require.Equal(t, []string{"hold_nothere", "entry_nothere"}, missing)

	moved, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, ReplID: "0123"})
	require.NoError(t, err)
	require.Equal(t, Moved, moved.Verdict, "only the server that was checked is opened")
	f.pass(20 * time.Minute)
	base, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, ReplID: in.ReplID})
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)
	require.Equal(t, contract.HoldHeld, f.hold(id).State)
	out := f.release(id, contract.ReasonExpired)
	require.Equal(t, Early, out.Verdict, "for a minute after opening nothing expires")
	require.Equal(t, time.Minute, out.Left)
	require.Equal(t, OK, f.confirm(id, "pi_1").Verdict)
}

func TestALostStockKeyIsClosedNotNew(t *testing.T) {
	f := open(t, 1)
	stock := key(f.sku, "stock")
	kept, err := shared.Dump(t.Context(), stock).Result()
	require.NoError(t, err)
	require.NoError(t, shared.Del(t.Context(), stock).Err())
	_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
	require.True(t, closedBy(t, err).Missing)
	_, err = f.g.Open(t.Context(), OpenRequest{SKU: f.sku, New: true})
	require.True(t, closedBy(t, err).Missing, "other keys of the SKU are there: a loss")
	require.NoError(t, shared.Restore(t.Context(), stock, 0, kept).Err())
}

func TestAScriptErrorClosesTheSKU(t *testing.T) {
	f := open(t, 1)
	good := f.held()
	bad := f.id(contract.HoldID)
	require.NoError(t, shared.HSet(t.Context(), key(f.sku, "holds"), bad, "not json").Err())
	_, err := f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: bad, PaymentRef: "pi"})
	closedBy(t, err)
	_, err = f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: good, PaymentRef: "pi"})
	closedBy(t, err)
	in, err := f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	require.Len(t, in.Problems, 1)
	require.Contains(t, in.Problems[0], bad)
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "holds"), bad).Err())
}

func TestScriptFlushIsNotNoticed(t *testing.T) {
	f := open(t, 2)
	f.held()
	require.NoError(t, shared.ScriptFlush(t.Context()).Err())
	f.held()
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
}

func TestOpenIsIdempotent(t *testing.T) {
	f := open(t, 1)
	base, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(t, err)
	require.Equal(t, Existing, base.Verdict)
	require.Equal(t, int64(1), f.counters().OnHand)
	_, _, err = f.g.Snapshot(t.Context(), "NEVER-OPENED")
	require.True(t, closedBy(t, err).Missing)
}

func TestRegistry(t *testing.T) {
	g := New(shared, testOptions())
	owner, err := g.RegisterSKU(t.Context(), "ONE")
	require.NoError(t, err)
	require.Equal(t, "ONE", owner)
	require.NoError(t, shared.HSet(t.Context(), keySKUs, contract.SKUNumber("TWO"), "OTHER").Err())
	owner, err = g.RegisterSKU(t.Context(), "TWO")
	require.NoError(t, err)
	require.Equal(t, "OTHER", owner, "a number has one owner")

	require.NoError(t, shared.HDel(t.Context(), keySKUs, mapWhole).Err())
	sku, whole, err := g.LookupSKU(t.Context(), contract.SKUNumber("ONE"))
	require.NoError(t, err)
	require.Equal(t, "ONE", sku)
	require.False(t, whole)
	require.NoError(t, g.MarkMapWhole(t.Context()))
	sku, whole, err = g.LookupSKU(t.Context(), "zzzzzzzz")
	require.NoError(t, err)
	require.Empty(t, sku)
	require.True(t, whole)
	skus, err := g.SKUs(t.Context())
	require.NoError(t, err)
	require.Subset(t, skus, []string{"ONE", "OTHER"})
	require.NotContains(t, skus, "1")

	claim, err := g.ClaimKey(t.Context(), "caller key", Claim{BodyHash: "h1", HoldID: "hold_1"}, testLease)
	require.NoError(t, err)
	require.Equal(t, Claim{"h1", "hold_1"}, claim)
	claim, err = g.ClaimKey(t.Context(), "caller key", Claim{BodyHash: "h2", HoldID: "hold_2"}, testLease)
	require.NoError(t, err)
	require.Equal(t, Claim{"h1", "hold_1"}, claim)
}

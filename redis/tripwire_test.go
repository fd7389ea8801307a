package redis

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A broken counter in Redis, which no verb brings about, rings its wire, also in the
// reading of the ledger's last line alone. A forced correction is the one thing that may.
func TestEachWireOfTheTripwireRings(t *testing.T) {
	ctx := context.Background()
	bend := func(fields ...any) func(*fixture) {
		return func(f *fixture) {
			for i := 0; i < len(fields); i += 2 {
				require.NoError(f.t, shared.HIncrBy(ctx, key(f.sku, "stock"), fields[i].(string), int64(fields[i+1].(int))).Err())
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(f *fixture)
		wires []string
	}{
		"sold above received":                      {bend("sold", 6, "on_hand", -6), []string{contract.WireOversold, contract.WireShortfall, contract.WireNegative, contract.WireLedger}},
		"sold above received, and units are there": {bend("sold", 6), []string{contract.WireOversold, contract.WireLedger}},
		"a shortfall": {func(f *fixture) {
			out, err := f.g.Stock(ctx, f.sku, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -4, AllowShortfall: true})
			require.NoError(f.t, err)
			require.True(f.t, out.Applied)
		}, []string{contract.WireShortfall}},
		"a negative part":            {bend("held", -3), []string{contract.WireNegative, contract.WireLedger}},
		"a sum that does not add up": {bend("received", 1), []string{contract.WireLedger}},
		"a last line that is gone": {func(f *fixture) {
			f.reserve(f.id(contract.HoldID), 1)
			newest := shared.XRevRangeN(ctx, key(f.sku, "ledger"), "+", "-", 1).Val()[0]
			require.NoError(f.t, shared.XDel(ctx, key(f.sku, "ledger"), newest.ID).Err())
		}, []string{contract.WireLedger}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, shared, 5)
			defer spoilt(f)
			f.held()
			f.held()
			for _, read := range []func(context.Context, string) (Counters, []contract.Ring, error){f.g.Tripwire, f.g.TripwireAndLedger} {
				_, rings, err := read(ctx, f.sku)
				require.NoError(t, err)
				require.Empty(t, rings)
			}
			c.spoil(f)
			for _, read := range []func(context.Context, string) (Counters, []contract.Ring, error){f.g.Tripwire, f.g.TripwireAndLedger} {
				_, rings, err := read(ctx, f.sku)
				require.NoError(t, err)
				var wires []string
				for _, r := range rings {
					wires = append(wires, r.Wire)
					require.NotEmpty(t, r.Says)
				}
				require.Equal(t, c.wires, wires)
			}
		})
	}
}

// A line that is gone from the middle is found by whoever reads the lines.
func TestAGapInTheLedgerRings(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, shared, 5)
	defer spoilt(f)
	f.held()
	f.held()
	ids := shared.XRange(ctx, key(f.sku, "ledger"), "-", "+").Val()
	require.NoError(t, shared.XDel(ctx, key(f.sku, "ledger"), ids[2].ID).Err())
	_, rings, err := f.g.Tripwire(ctx, f.sku)
	require.NoError(t, err)
	require.Empty(t, rings)
	_, rings, err = f.g.TripwireAndLedger(ctx, f.sku)
	require.NoError(t, err)
	require.Len(t, rings, 1)
	require.Equal(t, contract.WireLedger, rings[0].Wire)
	require.Contains(t, rings[0].Says, "is followed by no.")

	// What was counted anew since is history; the statement still shows it.
	require.NoError(t, shared.HIncrBy(ctx, key(f.sku, "stock"), "held", 1).Err())
	st, _, err := f.g.CompareCounters(ctx, f.sku)
	require.NoError(t, err)
	base, err := f.g.RepairCount(ctx, f.sku, PartHeld, -1, st.Mended, "a hand")
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)
	_, rings, err = f.g.TripwireAndLedger(ctx, f.sku)
	require.NoError(t, err)
	require.Empty(t, rings)
	st, _, err = f.g.CompareCounters(ctx, f.sku)
	require.NoError(t, err)
	require.NotEmpty(t, st.Faults)
}

// A closed SKU has no wires: its check and its rebuild look at the counters.
func TestAClosedSKUHasNoTripwire(t *testing.T) {
	f := newFixture(t, shared, 1)
	defer spoilt(f)
	require.NoError(t, shared.HSet(t.Context(), key(f.sku, "stock"), "fence", "another").Err())
	for _, read := range []func(context.Context, string) (Counters, []contract.Ring, error){f.g.Tripwire, f.g.TripwireAndLedger} {
		_, _, err := read(t.Context(), f.sku)
		var closed *ClosedError
		require.ErrorAs(t, err, &closed)
	}
}

// spoilt drops a SKU whose books do not add up, which the fixture would complain of.
func spoilt(f *fixture) {
	shared.Del(context.Background(), keysOf(f.sku)...)
	f.sku += "-n"
	base, err := f.g.Open(context.Background(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(f.t, err)
	require.Equal(f.t, OK, base.Verdict)
	f.restock("first", 1)
}

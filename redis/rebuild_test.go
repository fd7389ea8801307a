package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// What is written while a SKU is closed is refused once it is open. Package
// activities has the rebuild itself.
func TestARebuildTouchesNoOpenSKU(t *testing.T) {
	f := open(t, 2)
	id := f.held()
	before, lines := f.parts(), f.lines()
	g := f.g.Rebuilding("another server")
	_, err := g.RebuildBegin(t.Context(), f.sku, RebuildStart{})
	require.ErrorIs(t, err, ErrOpen)
	for _, verb := range []func() (Base, error){
		func() (Base, error) {
			return g.RebuildHold(t.Context(), f.sku, RebuiltHold{
				LostHold: LostHold{ID: id, Person: "p", Units: 1, CreatedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0)},
				Version:  f.hold(id).Version, State: contract.HoldSold, PaymentRef: "pi", Uncounted: true,
			})
		},
		func() (Base, error) { return g.RebuildOpen(t.Context(), f.sku, Totals{OnHand: 9}) },
	} {
		base, err := verb()
		require.NoError(t, err)
		require.Equal(t, Changed, base.Verdict)
	}
	require.NoError(t, g.RebuildClaims(t.Context(), f.sku, nil, nil))
	require.Equal(t, before, f.parts())
	require.Equal(t, lines, f.lines())
	require.Equal(t, contract.HoldHeld, f.hold(id).State)
	f.whole()
}

// A rebuild writes over the record that it has read and over no other, and over no sale.
func TestARebuildWritesOverWhatItRead(t *testing.T) {
	f := open(t, 3)
	held, sold := f.held(), f.held()
	f.confirm(sold, "pi")
	version, last := f.hold(held).Version, f.hold(sold).Version
	in := must[Inspection](f)(f.g.Inspect(t.Context(), f.sku))
	require.NoError(t, shared.HDel(t.Context(), key(f.sku, "stock"), "fence").Err())
	g := f.g.Rebuilding(in.ReplID)
	_, err := g.RebuildBegin(t.Context(), f.sku, RebuildStart{})
	require.NoError(t, err)
	write := func(id string, version int64, state contract.HoldState) Verdict {
		h := RebuiltHold{
			LostHold: LostHold{ID: id, Person: "p", Units: 1, CreatedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0)}, Version: version, State: state, EndedAt: time.Unix(3, 0),
		}
		return must[Base](f)(g.RebuildHold(t.Context(), f.sku, h)).Verdict
	}
	require.Equal(t, Changed, write(held, 0, contract.HoldReleased), "it is there")
	require.Equal(t, Changed, write(held, version+1, contract.HoldReleased))
	require.Equal(t, Changed, write(sold, last, contract.HoldReleased), "a sale stays one")
	require.Equal(t, OK, write(held, version, contract.HoldReleased))
	require.Equal(t, Changed, write(held, version, contract.HoldReleased), "a repeat")
	records, err := g.ReadRecords(t.Context(), f.sku)
	require.NoError(t, err)
	require.NoError(t, g.RebuildClaims(t.Context(), f.sku, records.Holds, records.Entries))
	require.Equal(t, OK, must[Base](f)(g.RebuildOpen(t.Context(), f.sku, Totals{OnHand: 2, Sold: 1, Received: 3})).Verdict)
	require.Equal(t, [4]int64{2, 0, 0, 1}, f.parts())
}

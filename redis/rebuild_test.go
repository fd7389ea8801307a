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

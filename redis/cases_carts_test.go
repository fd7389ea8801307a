package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B55: two are free, A asks for two and hesitates, B takes one, A clicks: all or
// nothing, never three.
func TestAQuantityIsTakenWholeOrNotAtAll(t *testing.T) {
	f := open(t, 2)
	require.Equal(t, int64(2), f.counters().OpenToAll, "what A sees")
	b := f.held()
	a := f.id(contract.HoldID)
	f.unmoved(func() { require.Equal(t, SoldOut, f.reserve(a, 2).Verdict) })
	require.Equal(t, OK, f.reserve(a, 1).Verdict, "the id is not spent by a refusal")
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
	f.unmoved(func() { require.Equal(t, Existing, f.reserve(b, 2).Verdict, "nor does a live hold grow") })
	again := f.reserve(a, 2)
	require.Equal(t, int64(1), again.Hold.Units)
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
}

// cart is one hold id in several SKUs.
type cart struct {
	id    string
	lines []*fixture
	units []int64
}

func (c cart) reserve(ctx context.Context, i int) (HoldOutcome, error) {
	f := c.lines[i]
	return f.g.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: c.id, Units: c.units[i], Person: "p-" + c.id})
}

func (c cart) giveBack(ctx context.Context, i int) (HoldOutcome, error) {
	f := c.lines[i]
	return f.g.Release(ctx, ReleaseRequest{SKU: f.sku, HoldID: c.id, Reason: contract.ReasonShop})
}

// B56: a cart of five A and three B takes five and three, and a sale that its
// second line refuses is undone in the first.
func TestACartTakesOfEachWhatItNames(t *testing.T) {
	a, b := open(t, 9), open(t, 9)
	c := cart{id: a.id(contract.HoldID), lines: []*fixture{a, b}, units: []int64{5, 3}}
	for i, f := range c.lines {
		out, err := c.reserve(t.Context(), i)
		require.NoError(t, err)
		require.Equal(t, OK, out.Verdict)
		require.Equal(t, OK, f.adopt(c.id, true).Verdict)
	}
	require.Equal(t, [4]int64{9, 5, 0, 0}, a.parts())
	require.Equal(t, [4]int64{9, 3, 0, 0}, b.parts())

	require.True(t, b.correct("broken", -7, true).Applied)
	require.Equal(t, OK, a.confirm(c.id, "pi").Verdict)
	require.Equal(t, Shortfall, b.confirm(c.id, "pi").Verdict)
	require.Equal(t, OK, must[HoldOutcome](a)(a.g.Unconfirm(t.Context(), a.sku, c.id, "pi", "cart")).Verdict)
	require.Equal(t, [4]int64{9, 5, 0, 0}, a.parts())
	require.Equal(t, [4]int64{2, 3, 0, 0}, b.parts())

	b.restock("e2", 1)
	require.Equal(t, OK, a.confirm(c.id, "pi_2").Verdict)
	require.Equal(t, OK, b.confirm(c.id, "pi_2").Verdict)
	require.Equal(t, [4]int64{4, 0, 0, 5}, a.parts())
	require.Equal(t, [4]int64{0, 0, 0, 3}, b.parts())
}

// B58: two hundred carts at once name the same three SKUs. Each call locks one SKU
// for one script, so nothing ever waits for anything; and taken in the order of
// the SKUs, as a cart takes its lines, no cart is refused for units that another
// gives back: fifty of fifty are sold.
func TestCartsNeverBlockEachOther(t *testing.T) {
	for _, inOrder := range []bool{true, false} {
		t.Run(fmt.Sprint("in order ", inOrder), func(t *testing.T) {
			skus := []*fixture{open(t, 50), open(t, 50), open(t, 50)}
			ids := make([]string, 200)
			for i := range ids {
				ids[i] = skus[0].id(contract.HoldID)
			}
			var whole atomic.Int64
			atOnce(len(ids), func(n int) {
				c := cart{id: ids[n], lines: skus, units: []int64{1, 1, 1}}
				if !inOrder {
					c.lines = nil
					for _, i := range rand.Perm(len(skus)) {
						c.lines = append(c.lines, skus[i])
					}
				}
				for i := range c.lines {
					out, err := c.reserve(t.Context(), i)
					if err != nil {
						t.Error(err)
						return
					}
					if out.Verdict == OK {
						continue
					}
					for j := range i {
						if back, err := c.giveBack(t.Context(), j); err != nil || back.Verdict != OK {
							t.Errorf("giving back answers %s, %v", back.Verdict, err)
						}
					}
					return
				}
				whole.Add(1)
			})
			won := whole.Load()
			if inOrder {
				require.Equal(t, int64(50), won)
			}
			for _, f := range skus {
				require.Equal(t, [4]int64{50, won, 0, 0}, f.parts())
			}
			for range 50 - won {
				c := cart{id: skus[0].id(contract.HoldID), lines: skus, units: []int64{1, 1, 1}}
				for i := range skus {
					out, err := c.reserve(t.Context(), i)
					require.NoError(t, err)
					require.Equal(t, OK, out.Verdict, "what was given back can be taken")
				}
			}
		})
	}
}

// B59: the third of four reservations times out, before it reached the gate or
// after. Giving all four back, the end of the lease of a dead door, and a retry
// by the same ids each leave nothing or all four; so does a call that arrives
// after the giving back.
func TestACartIsReservedWholeOrNotAtAll(t *testing.T) {
	lost, cancel := context.WithCancel(t.Context())
	cancel()
	for _, done := range []bool{false, true} {
		for _, after := range []string{"given back", "the door is dead", "retried", "given back, and the call comes late"} {
			t.Run(fmt.Sprint("done ", done, " ", after), func(t *testing.T) {
				c := cart{units: []int64{2, 3, 1, 4}}
				for range c.units {
					c.lines = append(c.lines, open(t, 5))
				}
				c.id = c.lines[0].id(contract.HoldID)
				for i := range 2 {
					out, err := c.reserve(t.Context(), i)
					require.NoError(t, err)
					require.Equal(t, OK, out.Verdict)
				}
				if done {
					_, err := c.reserve(t.Context(), 2)
					require.NoError(t, err)
				}
				_, err := c.reserve(lost, 2)
				require.ErrorIs(t, err, ErrUnavailable, "the door does not know")
				want := [4]int64{}
				switch after {
				case "retried":
					for i := range c.lines {
						out, err := c.reserve(t.Context(), i)
						require.NoError(t, err)
						require.Equal(t, OK, out.Verdict)
						require.Equal(t, OK, c.lines[i].adopt(c.id, true).Verdict)
						want[i] = c.units[i]
					}
				case "the door is dead":
					for _, f := range c.lines {
						f.pass(testLease)
						f.drain()
					}
				default:
					for i := range c.lines {
						_, err := c.giveBack(t.Context(), i)
						require.NoError(t, err)
					}
					if after != "given back" {
						out, err := c.reserve(t.Context(), 2)
						require.NoError(t, err)
						if done {
							require.Equal(t, Existing, out.Verdict, "given back is given back")
						} else {
							require.Equal(t, OK, out.Verdict, "under a lease that nobody adopts")
							c.lines[2].pass(testLease)
							c.lines[2].drain()
							require.Equal(t, Gone, c.lines[2].adopt(c.id, false).Verdict)
						}
					}
				}
				for i, f := range c.lines {
					require.Equal(t, [4]int64{5, want[i], 0, 0}, f.parts(), "line %d", i)
				}
			})
		}
	}
}

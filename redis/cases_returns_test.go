package redis

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// sale is a hold of so many units that was paid.
func (f *fixture) sale(units int64) string {
	f.t.Helper()
	id := f.id(contract.HoldID)
	require.Equal(f.t, OK, f.reserve(id, units).Verdict)
	require.Equal(f.t, OK, f.adopt(id, true).Verdict)
	require.Equal(f.t, OK, f.confirm(id, "pi"+id).Verdict)
	return id
}

// B60: whether a unit that came back can be sold again is said each time. If so
// the next in line is offered it; if not it is noted on the sale and moves
// nothing.
func TestAReturnSaysWhetherItCanBeSoldAgain(t *testing.T) {
	for _, resell := range []bool{true, false} {
		t.Run(fmt.Sprint("resell ", resell), func(t *testing.T) {
			f := open(t, 1)
			id := f.sale(1)
			next := f.waits("next", 1)
			before := f.counters()
			lines := f.lines()
			out := f.comesBack(id, 1, resell)
			require.True(t, out.Applied)
			require.Equal(t, int64(1), f.hold(id).Returned)
			require.Equal(t, contract.HoldSold, f.hold(id).State)
			if !resell {
				require.Equal(t, int64(0), out.Delta)
				require.Len(t, f.moves(lines), 1, "the ledger has it")
				require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
				require.Equal(t, before.Generation, f.counters().Generation)
				require.Equal(t, contract.EntryWaiting, f.entry(next).State)
				return
			}
			require.Equal(t, int64(1), out.Delta)
			require.Equal(t, []string{"return 1: 1 0 0 0", "offered 1: 1 0 1 0"}, f.moves(lines))
			require.Equal(t, []string{next}, f.toldNow())
			c := f.counters()
			require.Equal(t, [3]int64{1, 0, before.Generation + 1}, [3]int64{c.Returned, c.Sold, c.Generation})
			require.Equal(t, c.Received+c.Corrected, c.OnHand+c.Sold)
		})
	}
}

// B62: ten come back, once, however often the event is delivered: +10, not +20.
// Of ten held, seven are paid and three cancelled: +3, not +10.
func TestWhatComesBackIsWhatWasSold(t *testing.T) {
	f := open(t, 10)
	id := f.sale(10)
	atOnce(10, func(i int) {
		out, err := f.g.Stock(t.Context(), f.sku, contract.StockEvent{
			EventID: fmt.Sprint("delivery", i%2), Kind: contract.StockReturn, ReturnID: "rma", HoldID: id, Units: 10, Resell: true,
		})
		if err != nil || !out.Applied || out.Delta != 10 {
			t.Errorf("delivery %d answers %+v, %v", i, out, err)
		}
	})
	require.Equal(t, [4]int64{10, 0, 0, 0}, f.parts())
	require.Equal(t, int64(10), f.counters().Returned)

	paid, rest := f.id(contract.HoldID), f.id(contract.HoldID)
	f.reserve(paid, 7)
	f.reserve(rest, 3)
	f.adopt(paid, true)
	f.adopt(rest, true)
	f.confirm(paid, "pi_2")
	require.Equal(t, OK, f.release(rest, contract.ReasonShop).Verdict)
	require.Equal(t, Existing, f.release(paid, contract.ReasonShop).Verdict)
	require.Equal(t, [4]int64{3, 0, 0, 7}, f.parts())
}

// B63: of three sold two come back, then two again: +2, and the second is refused
// above one. Ten returns of one at once are three.
func TestNoMoreComesBackThanWasSold(t *testing.T) {
	f := open(t, 3)
	id := f.sale(3)
	require.Equal(t, int64(2), f.comesBack(id, 2, true).Delta)
	f.unmoved(func() {
		out := f.comesBack(id, 2, true)
		require.False(t, out.Applied)
		require.Equal(t, "more-than-sold", out.Reason)
	})
	require.True(t, f.comesBack(id, 1, false).Applied)
	f.unmoved(func() { require.False(t, f.comesBack(id, 1, true).Applied, "also when one could not be sold again") })
	require.Equal(t, [4]int64{2, 0, 0, 1}, f.parts())
	require.Equal(t, int64(3), f.hold(id).Returned)

	f = open(t, 3)
	id = f.sale(3)
	var applied atomic.Int64
	atOnce(10, func(i int) {
		out, err := f.g.Stock(t.Context(), f.sku, contract.StockEvent{
			EventID: fmt.Sprint("e", i), Kind: contract.StockReturn, ReturnID: fmt.Sprint("r", i), HoldID: id, Units: 1, Resell: true,
		})
		if err != nil {
			t.Error(err)
		}
		if out.Applied {
			applied.Add(1)
		}
	})
	require.Equal(t, int64(3), applied.Load())
	require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
}

// What is no sale has no return: an unknown id, another SKU's sale, a hold, one
// that ended. The repeat of a return counts for as long as its sale is kept, also
// a year later, in its own event and in another.
func TestOnlyASaleComesBackAndOnce(t *testing.T) {
	f, other := open(t, 5), open(t, 1)
	held, released := f.held(), f.held()
	f.release(released, contract.ReasonShop)
	foreign := other.sale(1)
	for id, reason := range map[string]string{f.id(contract.HoldID): "unknown-hold", foreign: "unknown-hold", held: "not-sold", released: "not-sold"} {
		f.unmoved(func() { require.Equal(t, reason, f.comesBack(id, 1, true).Reason) })
	}
	sold := f.sale(2)
	ev := contract.StockEvent{EventID: "e", Kind: contract.StockReturn, ReturnID: "rma", HoldID: sold, Units: 1, Resell: true}
	require.True(t, f.event(ev).Applied)
	for range 10 { // purges go in bites
		f.pass(35 * 24 * time.Hour)
		for range 5 {
			f.drain()
		}
	}
	_, decided, err := f.g.EventOutcome(t.Context(), f.sku, "e")
	require.NoError(t, err)
	require.True(t, decided, "what was applied is remembered as long as its sale")
	f.unmoved(func() { require.Equal(t, int64(1), f.event(ev).Delta) })
	ev.EventID = "told once more"
	f.unmoved(func() { require.Equal(t, int64(1), f.event(ev).Delta, "and so is the return") })
	require.Equal(t, [4]int64{4, 1, 0, 1}, f.parts())
}

package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// limit sets the most units of a person.
func (f *fixture) limit(n int64) {
	f.t.Helper()
	must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, Limit: &n, Actor: "test"}))
}

func (f *fixture) reserveAs(person, id string, units int64) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Reserve(f.t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: units, Person: person}))
}

// Somebody at the limit waits at the head of the line: a unit that a dead door
// left behind is a walk-in's, in the very call that finds it.
func TestWhoIsAtTheLimitKeepsNobodyOut(t *testing.T) {
	f := open(t, 2)
	f.limit(1)
	mine, dead, paid := f.id(contract.HoldID), f.id(contract.HoldID), f.id(contract.HoldID)
	f.reserveAs("ada", mine, 1)
	f.adopt(mine, true)
	f.reserve(dead, 1)
	entry := f.waits("ada", 1)
	f.pass(testLease)
	require.Equal(t, int64(1), f.counters().OpenToAll)
	require.Equal(t, contract.SKUAvailable, f.counters().State)
	require.Equal(t, OK, f.reserve(paid, 1).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(entry).State)
	require.Equal(t, int64(1), f.entry(entry).Position)

	// The same for a late payment.
	f.adopt(paid, true)
	f.pass(10 * time.Minute)
	f.restock("e", 1)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, f.release(paid, contract.ReasonExpired).Verdict)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.pass(testLease)
	out := must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: paid, PaymentRef: "pi", Retake: true}))
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(entry).State)

	// A hold of theirs ends: they are next.
	require.Equal(t, OK, f.release(mine, contract.ReasonShop).Verdict)
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
}

func TestTheLimitHoldsForOnePersonInManyPlaces(t *testing.T) {
	f := open(t, 10)
	f.limit(3)
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = f.id(contract.HoldID)
	}
	got := make([]Verdict, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			out, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: "ada"})
			if err != nil {
				t.Error(err)
			}
			got[i] = out.Verdict
		})
	}
	wg.Wait()
	count := map[Verdict]int{}
	for _, v := range got {
		count[v]++
	}
	require.Equal(t, map[Verdict]int{OK: 3, LimitReached: 47}, count)
	require.Equal(t, [4]int64{10, 3, 0, 0}, f.parts())
}

// The limit counts live claims, offers and sales that did not come back. Lowered
// below what somebody has it takes nothing away, and gives nothing more.
func TestTheLimitLoweredBelowWhatSomebodyHas(t *testing.T) {
	f := open(t, 4)
	a, b := f.id(contract.HoldID), f.id(contract.HoldID)
	f.reserveAs("ada", a, 1)
	f.adopt(a, true)
	f.reserveAs("ada", b, 1)
	f.adopt(b, true)
	f.limit(1)
	require.Equal(t, [4]int64{4, 2, 0, 0}, f.parts())
	require.Equal(t, LimitReached, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, f.confirm(a, "pi").Verdict, "what is held can be paid")
	require.Equal(t, LimitReached, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, f.release(b, contract.ReasonShopper).Verdict)
	require.Equal(t, LimitReached, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict, "a sale counts")
	out := must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{
		EventID: "r", Kind: contract.StockReturn, ReturnID: "rma", HoldID: a, Units: 1, Resell: true,
	}))
	require.True(t, out.Applied)
	require.Equal(t, OK, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict, "one that came back does not")
	require.Equal(t, [4]int64{4, 1, 0, 0}, f.parts())
}

// Parked at the limit an entry keeps its place; it is offered no more than the
// limit leaves, and a raised limit looks at everybody again in order.
func TestARaisedLimitLooksAtTheParkedAgain(t *testing.T) {
	f := open(t, 2)
	f.limit(1)
	var entries []string
	for _, person := range []string{"ada", "bob"} {
		id := f.id(contract.HoldID)
		f.reserveAs(person, id, 1)
		f.adopt(id, true)
		entries = append(entries, f.waits(person, 2))
	}
	cyd := f.waits("cyd", 3)
	f.restock("e1", 2)
	require.Equal(t, contract.EntryWaiting, f.entry(entries[0]).State)
	require.Equal(t, int64(1), f.hold(f.entry(cyd).HoldID).Units, "as much as the limit leaves")
	require.Equal(t, int64(1), f.counters().OpenToAll)
	require.Equal(t, int64(2), f.counters().Waiting)
	f.limit(2)
	require.Equal(t, contract.EntryOffered, f.entry(entries[0]).State)
	require.Equal(t, contract.EntryWaiting, f.entry(entries[1]).State, "one unit, one offer, the first in line")
	require.Equal(t, [4]int64{4, 2, 2, 0}, f.parts())
}

// Nobody calls when the lease of somebody parked at the limit ends: the drain
// says when to come back.
func TestTheDrainComesBackForWhoIsParkedAtTheLimit(t *testing.T) {
	f := open(t, 2)
	f.limit(1)
	mine, other := f.id(contract.HoldID), f.id(contract.HoldID)
	f.reserve(other, 1)
	f.adopt(other, true)
	f.pass(time.Second)
	f.reserveAs("ada", mine, 1)
	entry := f.waits("ada", 1)
	f.release(other, contract.ReasonShop)
	require.Equal(t, int64(1), f.counters().OpenToAll)
	d := f.drain()
	require.Equal(t, testLease, d.Next)
	f.pass(d.Next)
	d = f.drain()
	require.Equal(t, contract.HoldSwept, f.hold(mine).State)
	require.Len(t, d.Items, 1)
	require.Equal(t, entry, d.Items[0].EntryID)
	require.Equal(t, [4]int64{2, 0, 1, 0}, f.parts())
}

// A sale that is on record no longer leaves its person room again. Whoever stands at
// the limit then has their turn at the next drain, which that call asks for.
func TestRoomThatARetentionMakesIsTheLines(t *testing.T) {
	for name, purges := range map[string]func(f *fixture) bool{
		"any verb": func(f *fixture) bool { return f.pause(false).Wake },
		"a drain":  func(f *fixture) bool { return f.drain().AtOnce },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 2)
			f.limit(1)
			hold := f.id(contract.HoldID)
			require.Equal(t, OK, f.reserveAs("ada", hold, 1).Verdict)
			f.adopt(hold, false)
			require.Equal(t, OK, f.confirm(hold, "pi_1").Verdict)
			entry := f.waits("ada", 1)
			require.Equal(t, int64(1), f.counters().OpenToAll, "she has as much as one may")
			f.pass(testOptions().SaleRetention)
			require.True(t, purges(f))
			f.drain()
			require.Equal(t, contract.EntryOffered, f.entry(entry).State)
		})
	}
}

// Who joins while a lease of their own keeps them at the limit has their turn when it
// ends, with no call of anybody's but the drain that their joining asked for.
func TestALeaseOfOnesOwnIsWaitedFor(t *testing.T) {
	f := open(t, 2)
	f.limit(1)
	require.Equal(t, OK, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict)
	entry := f.joinAs("ada", 1).Entry.ID
	f.pass(2 * time.Second)
	require.True(t, f.ack(entry).Wake)
	require.Equal(t, testLease-2*time.Second, f.drain().Next)
	f.pass(testLease - 2*time.Second)
	f.drain()
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
}

package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestReserveTakesUnitsOnceHoweverOftenItRepeats(t *testing.T) {
	f := open(t, 3)
	id := f.id(contract.HoldID)
	first := f.reserve(id, 2)
	require.Equal(t, OK, first.Verdict)
	require.Equal(t, contract.HoldProvisional, first.Hold.State)
	require.Equal(t, testLease, first.Left)
	lines := f.lines()
	f.pass(4 * time.Second)
	again := f.reserve(id, 2)
	require.Equal(t, OK, again.Verdict)
	require.Equal(t, testLease, again.Left, "a repeat renews the lease")
	require.Equal(t, [4]int64{3, 2, 0, 0}, f.parts())
	require.Equal(t, lines, f.lines(), "a repeat moves nothing")

	require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 2).Verdict, "all or nothing")
	require.Equal(t, lines, f.lines(), "a refusal leaves nothing behind")
}

// B1: the same for walk-ins.
func TestLastUnitGoesToOneOfMany(t *testing.T) {
	f := open(t, 5)
	var wg sync.WaitGroup
	ids := make([]string, 200)
	won := make([]Verdict, len(ids))
	for i := range ids {
		ids[i] = f.id(contract.HoldID)
	}
	for i, id := range ids {
		wg.Go(func() {
			out, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
			if err == nil {
				won[i] = out.Verdict
			}
		})
	}
	wg.Wait()
	count := map[Verdict]int{}
	for _, v := range won {
		count[v]++
	}
	require.Equal(t, map[Verdict]int{OK: 5, SoldOut: 195}, count)
	require.Equal(t, [4]int64{5, 5, 0, 0}, f.parts())
}

func TestLeaseThatEndsWasNeverPromised(t *testing.T) {
	f := open(t, 1)
	id := f.id(contract.HoldID)
	f.reserve(id, 1)
	f.pass(testLease - time.Millisecond)
	require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.pass(time.Millisecond)
	require.Equal(t, int64(1), f.counters().OpenToAll)
	require.Equal(t, contract.HoldSwept, f.hold(id).State)
	require.Equal(t, Gone, f.adopt(id, false).Verdict, "the door never revives it")
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())

	require.Equal(t, OK, f.reserve(id, 1).Verdict, "a repeat tries afresh")
	f.pass(testLease)
	other := f.held()
	require.Equal(t, SoldOut, f.reserve(id, 1).Verdict)
	out := f.adopt(id, true)
	require.Equal(t, SoldOut, out.Verdict)
	require.Equal(t, contract.HoldRefused, out.Hold.State)
	f.release(other, contract.ReasonShop)
	require.Equal(t, Existing, f.reserve(id, 1).Verdict, "the id is spent")
	require.Equal(t, Existing, f.adopt(id, true).Verdict)
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
}

func TestHoldWorkflowAdoptsAfreshWhenAUnitIsFree(t *testing.T) {
	f := open(t, 1)
	id := f.id(contract.HoldID)
	f.reserve(id, 1)
	f.pass(2 * testLease)
	out := f.adopt(id, true)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.HoldHeld, out.Hold.State)
	require.Equal(t, 10*time.Minute, out.Left)
	f.pass(time.Minute)
	require.Equal(t, out.Hold.Deadline, f.adopt(id, false).Hold.Deadline, "the deadline stays the first one")
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
}

func TestExtensionHappensOnce(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	extend := func() HoldOutcome {
		return must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
			SKU: f.sku, HoldID: id, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: "p",
			Extend: &Extension{By: 5 * time.Minute, Amount: &contract.Money{Amount: 123456789012345678, Currency: "EUR"}},
		}))
	}
	before := f.hold(id).Deadline
	require.Equal(t, before.Add(5*time.Minute), extend().Hold.Deadline)
	out := extend()
	require.Equal(t, before.Add(5*time.Minute), out.Hold.Deadline)
	require.True(t, out.Hold.Extended)
	require.Equal(t, &contract.Money{Amount: 123456789012345678, Currency: "EUR"}, out.Hold.Amount, "every digit is kept")
}

// B20: a confirm moves a unit from held to sold in one step, and what is left is
// free at once.
func TestConfirmIsOneSale(t *testing.T) {
	f := open(t, 2)
	id := f.held()
	require.Equal(t, OK, f.confirm(id, `pi_"1|\`).Verdict)
	require.Equal(t, [4]int64{1, 0, 0, 1}, f.parts(), "available counts at once")
	require.Equal(t, int64(1), f.counters().OpenToAll)
	lines := f.lines()
	out := f.confirm(id, `pi_"1|\`)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, `pi_"1|\`, out.Hold.PaymentRef)
	require.Equal(t, Conflict, f.confirm(id, "pi_2").Verdict)
	require.Equal(t, Existing, f.release(id, contract.ReasonShop).Verdict)
	require.Equal(t, Existing, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, Existing, f.reserve(id, 1).Verdict)
	require.Equal(t, Existing, f.lapse(id).Verdict)
	require.Equal(t, lines, f.lines())
	require.Equal(t, Unknown, f.confirm(f.id(contract.HoldID), "pi_1").Verdict)
}

func TestConfirmCanInsistOnTheAnnouncedAmount(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
		SKU: f.sku, HoldID: id, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: "p", Extend: &Extension{By: time.Minute, Amount: &contract.Money{Amount: 10000, Currency: "EUR"}},
	}))
	confirm := func(amount int64) Verdict {
		return must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{
			SKU: f.sku, HoldID: id, PaymentRef: "pi", Amount: &contract.Money{Amount: amount, Currency: "EUR"}, SameAmount: true,
		})).Verdict
	}
	require.Equal(t, AmountMismatch, confirm(1))
	require.Equal(t, OK, confirm(10000))
}

func TestReleaseGivesBackOnce(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	require.Equal(t, OK, f.release(id, contract.ReasonShopper).Verdict)
	require.Equal(t, Existing, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
	require.Equal(t, HoldEnded, f.confirm(id, "pi_1").Verdict)
	require.Equal(t, contract.HoldReleased, f.hold(id).State)
	require.Equal(t, Unknown, f.release(f.id(contract.HoldID), contract.ReasonShop).Verdict)
}

// A door that takes back its lease leaves nothing behind: the id is tried afresh.
// What has its owner by then stays.
func TestALeaseIsTakenBack(t *testing.T) {
	f := open(t, 1)
	id := f.id(contract.HoldID)
	require.Equal(t, Unknown, f.takeBack(id).Verdict)
	require.Equal(t, OK, f.reserve(id, 1).Verdict)
	require.Equal(t, OK, f.takeBack(id).Verdict)
	require.Equal(t, contract.HoldSwept, f.hold(id).State)
	require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts(), "the unit is free at once")
	f.unmoved(func() { require.Equal(t, Existing, f.takeBack(id).Verdict) })
	require.Equal(t, OK, f.reserve(id, 1).Verdict, "the id is not spent")
	require.Equal(t, OK, f.adopt(id, true).Verdict)
	f.unmoved(func() { require.Equal(t, Existing, f.takeBack(id).Verdict, "it has its owner") })
	require.Equal(t, contract.HoldHeld, f.hold(id).State)
}

// The record of a cart's first line names all of them, whoever made the record and
// whatever becomes of it.
func TestTheFirstLineNamesItsCart(t *testing.T) {
	cart := []contract.Line{{SKU: "a.b-c_1", Quantity: 1}, {SKU: "Z", Quantity: mostUnits}}
	for name, quiet := range map[string]bool{"walk-in": true, "after a sweep": false, "by its workflow": false} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 2)
			id := f.id(contract.HoldID)
			req := ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: "p", Cart: cart}
			if !quiet {
				f.reserve(id, 1)
				f.pass(testLease)
			}
			if name != "by its workflow" {
				out := must[HoldOutcome](f)(f.g.Reserve(t.Context(), req))
				require.Equal(t, OK, out.Verdict)
				require.Equal(t, cart, out.Hold.Cart)
			}
			out := must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
				SKU: f.sku, HoldID: id, HoldFor: time.Minute, ByWorkflow: true, Units: 1, Person: "p", Cart: cart,
			}))
			require.Equal(t, cart, out.Hold.Cart)
			f.confirm(id, "pi")
			require.Equal(t, cart, f.hold(id).Cart)
		})
	}
	f := open(t, 1)
	require.Nil(t, f.hold(f.held()).Cart, "a hold of one line is no cart")
	_, err := parseCart("hold", "A:1,B")
	require.ErrorContains(t, err, `"B"`)
}

func TestExpiryIsRefusedEarlyAndPaymentWinsUntilItComes(t *testing.T) {
	f := open(t, 2)
	id, paid := f.held(), f.held()
	f.pass(10*time.Minute - 5*time.Millisecond)
	out := f.release(id, contract.ReasonExpired)
	require.Equal(t, Early, out.Verdict)
	require.Equal(t, 5*time.Millisecond, out.Left)
	f.pass(5 * time.Millisecond)
	early, err := f.g.Release(t.Context(), ReleaseRequest{
		SKU: f.sku, HoldID: id, Reason: contract.ReasonExpired, Deadline: out.Hold.Deadline.Add(time.Minute),
	})
	require.NoError(t, err)
	require.Equal(t, Early, early.Verdict, "the caller's later deadline (grace) counts")
	require.Equal(t, OK, f.confirm(paid, "pi_1").Verdict, "past its deadline, before its ending")
	require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, contract.HoldExpired, f.hold(id).State)
	require.Equal(t, [4]int64{1, 0, 0, 1}, f.parts())
}

// A payment that goes back sells nothing later, also when its hold had been swept
// and was taken afresh.
func TestARefundMarkOutlivesItsLease(t *testing.T) {
	for name, take := range map[string]func(f *fixture, id string) HoldOutcome{
		"by the door":     func(f *fixture, id string) HoldOutcome { return f.reserve(id, 1) },
		"by its workflow": func(f *fixture, id string) HoldOutcome { return f.adopt(id, true) },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			id := f.id(contract.HoldID)
			f.reserve(id, 1)
			f.pass(testLease)
			require.Equal(t, HoldEnded, f.confirm(id, "pi_late").Verdict)
			require.Equal(t, OK, must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, "pi_late", "test")).Verdict)
			require.Equal(t, OK, take(f, id).Verdict)
			require.Equal(t, Refunded, f.confirm(id, "pi_late").Verdict)
			require.Equal(t, OK, f.confirm(id, "pi_new").Verdict)
			require.Equal(t, []string{"pi_late"}, f.hold(id).Refunded)
		})
	}
}

func TestRefundMarkAndSaleExcludeEachOther(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	refund := func(ref string) Verdict {
		return must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, ref, "test")).Verdict
	}
	require.Equal(t, OK, refund("pi_late"))
	lines := f.lines()
	require.Equal(t, OK, refund("pi_late"))
	require.Equal(t, lines, f.lines())
	require.Equal(t, Refunded, f.confirm(id, "pi_late").Verdict, "a marked payment never sells")
	require.Equal(t, OK, f.confirm(id, "pi_good").Verdict)
	require.Equal(t, MadeSale, refund("pi_good"), "the payment that sold is never refunded")
	require.Equal(t, OK, refund("pi_second"))
	require.Equal(t, []string{"pi_late", "pi_second"}, f.hold(id).Refunded)
	unknown := must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, f.id(contract.HoldID), "pi", "test"))
	require.Equal(t, Unknown, unknown.Verdict)
}

func TestEndedRecordsArePurgedAfterTheirRetention(t *testing.T) {
	f := open(t, 3)
	released, sold, live := f.held(), f.held(), f.held()
	f.release(released, contract.ReasonShop)
	f.confirm(sold, "pi_1")
	f.pass(31 * 24 * time.Hour)
	f.drain()
	_, ok, err := f.g.ReadHold(t.Context(), f.sku, released)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, contract.HoldSold, f.hold(sold).State)
	f.pass(400 * 24 * time.Hour)
	f.drain()
	_, ok, err = f.g.ReadHold(t.Context(), f.sku, sold)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, contract.HoldHeld, f.hold(live).State, "a live record never goes")
	require.Equal(t, [4]int64{2, 1, 0, 1}, f.parts())
}

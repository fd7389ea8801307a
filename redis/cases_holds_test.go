package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B7: nobody pays. Five expired holds are five offers to the next five, or free
// when nobody waits; and five leases that nobody adopted end with no traffic but
// the drain, which says itself when to come.
func TestFiveUnpaidHoldsGoToTheNextFive(t *testing.T) {
	t.Run("a line", func(t *testing.T) {
		f := open(t, 5)
		var held []string
		for range 5 {
			held = append(held, f.held())
		}
		entries := f.line(7)
		f.pass(10*time.Minute + 5*time.Second)
		lines := f.lines()
		for _, id := range held {
			require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
			require.Equal(t, Existing, f.release(id, contract.ReasonExpired).Verdict)
		}
		require.Len(t, f.moves(lines), 10, "five ends, five offers")
		require.Equal(t, entries[:5], f.toldNow())
		require.Equal(t, [4]int64{5, 0, 5, 0}, f.parts())
	})
	t.Run("nobody waits", func(t *testing.T) {
		f := open(t, 5)
		var held []string
		for range 5 {
			held = append(held, f.held())
		}
		f.pass(10*time.Minute + 5*time.Second)
		for _, id := range held {
			require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
		}
		require.Equal(t, int64(5), f.counters().OpenToAll)
		require.Empty(t, f.drain().Items)
	})
	t.Run("leases, and only the drain comes", func(t *testing.T) {
		f := open(t, 5)
		for range 5 {
			f.reserve(f.id(contract.HoldID), 1)
			f.pass(time.Second)
		}
		entries := f.line(7)
		var told []string
		for range 10 {
			d := f.drain()
			for _, item := range d.Items {
				told = append(told, item.EntryID)
				_, err := f.g.AdoptOffer(t.Context(), f.sku, item.HoldID)
				require.NoError(t, err)
			}
			if d.Next == 0 {
				break
			}
			f.pass(d.Next)
		}
		require.Equal(t, entries[:5], told)
		require.Equal(t, [4]int64{5, 0, 5, 0}, f.parts())
	})
}

// B8: the workers were away when five holds came due, and end them ten minutes
// late, in any order and each twice: once each, and the line is served in its own
// order.
func TestOverdueHoldsServeTheLineInItsOrder(t *testing.T) {
	f := open(t, 5)
	var held []string
	for range 5 {
		held = append(held, f.held())
	}
	entries := f.line(7)
	f.pass(20 * time.Minute)
	got := verdicts(t, 10, func(i int) (HoldOutcome, error) {
		return f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: held[(7*i)%5], Reason: contract.ReasonExpired, Actor: ActorHoldTimer})
	})
	require.Equal(t, map[Verdict]int{OK: 5, Existing: 5}, got)
	require.Equal(t, entries[:5], f.toldNow())
	require.Equal(t, int64(1), f.entry(entries[5]).Position)
	require.Equal(t, [4]int64{5, 0, 5, 0}, f.parts())
	for _, id := range held {
		require.Equal(t, contract.HoldExpired, f.hold(id).State, "none is stuck")
	}
}

// B9: whatever is clicked, reloaded or started again, with whatever times, the
// deadline stays the first one; one bounded extension moves it later, never
// earlier.
func TestTheDeadlineStaysTheFirstOne(t *testing.T) {
	f := open(t, 0)
	id := f.claimed(func() string { e := f.waits("ada", 1); f.restock("e1", 1); return e }())
	first := f.hold(id).Deadline
	again := func(holdFor time.Duration, byWorkflow bool, by time.Duration) {
		req := AdoptHoldRequest{SKU: f.sku, HoldID: id, HoldFor: holdFor, ByWorkflow: byWorkflow, Units: 1, Person: "ada"}
		if by > 0 {
			req.Extend = &Extension{By: by}
		}
		require.Equal(t, OK, must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), req)).Verdict)
	}
	for _, want := range []time.Time{first, first.Add(5 * time.Minute)} {
		f.pass(time.Minute)
		require.Equal(t, want, f.press(id).Hold.Deadline)
		require.Equal(t, want, f.reserve(id, 1).Hold.Deadline)
		again(time.Second, false, 0)
		again(time.Hour, true, 0)
		require.Equal(t, want, f.hold(id).Deadline)
		again(time.Minute, true, 5*time.Minute)
	}
	again(time.Hour, true, time.Hour)
	require.Equal(t, first.Add(5*time.Minute), f.hold(id).Deadline)
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
}

// B11: every hold has a deadline and lapses at it, whatever made it.
func TestEveryHoldLapsesWhateverMadeIt(t *testing.T) {
	f := open(t, 3)
	walkIn, byShop, afresh := f.held(), f.id(contract.HoldID), f.id(contract.HoldID)
	must[HoldOutcome](f)(f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: byShop, Units: 1, Person: "counter", Actor: "operator"}))
	f.adopt(byShop, false)
	f.adopt(afresh, true)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	all := []string{walkIn, byShop, afresh, f.claimed(entry)}
	require.Equal(t, [4]int64{4, 4, 0, 0}, f.parts())
	f.pass(10*time.Minute - time.Millisecond)
	for _, id := range all {
		out := f.release(id, contract.ReasonExpired)
		require.Equal(t, Early, out.Verdict)
		require.Equal(t, time.Millisecond, out.Left)
	}
	f.pass(time.Millisecond)
	for _, id := range all {
		require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
		require.Equal(t, contract.HoldExpired, f.hold(id).State)
	}
	require.Equal(t, [4]int64{4, 0, 0, 0}, f.parts())
	require.Equal(t, int64(4), f.counters().OpenToAll)
}

// B13: one rule at the boundary. Before the deadline no ending is accepted, at it
// and after it one is; and until the ending has come the payment, or the press,
// wins. Whichever is first is the only outcome.
func TestOneRuleAtTheDeadline(t *testing.T) {
	for _, off := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
		for _, endFirst := range []bool{true, false} {
			t.Run(fmt.Sprint("hold ", off, " ending first ", endFirst), func(t *testing.T) {
				f := open(t, 1)
				id := f.held()
				f.pass(10*time.Minute + off)
				ended := endFirst && off >= 0
				if endFirst {
					want := OK
					if !ended {
						want = Early
					}
					require.Equal(t, want, f.release(id, contract.ReasonExpired).Verdict)
				}
				if ended {
					require.Equal(t, HoldEnded, f.confirm(id, "pi").Verdict)
					require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
					return
				}
				require.Equal(t, OK, f.confirm(id, "pi").Verdict)
				require.Equal(t, Existing, f.release(id, contract.ReasonExpired).Verdict)
				require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
			})
			t.Run(fmt.Sprint("offer ", off, " ending first ", endFirst), func(t *testing.T) {
				f := open(t, 0)
				entry := f.waits("ada", 1)
				f.restock("e1", 1)
				id := f.offered(entry)
				f.told(id, true)
				f.pass(15*time.Minute + off)
				ended := endFirst && off >= 0
				if endFirst {
					want := OK
					if !ended {
						want = Early
					}
					require.Equal(t, want, f.lapse(id).Verdict)
				}
				if ended {
					require.Equal(t, Existing, f.press(id).Verdict)
					require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
					return
				}
				require.Equal(t, OK, f.press(id).Verdict)
				claimed := f.lapse(id)
				require.Equal(t, Claimed, claimed.Verdict)
				require.Equal(t, testLease, claimed.Left, "and says until when")
				require.Equal(t, Gone, f.told(id, false).Verdict, "pressed: no text")
				require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
			})
		}
	}
	for range 20 { // both in the same instant
		f := open(t, 1)
		id := f.held()
		f.pass(10 * time.Minute)
		lines := f.lines()
		got := verdicts(t, 8, func(i int) (HoldOutcome, error) {
			if i%2 == 0 {
				return f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi"})
			}
			return f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonExpired})
		})
		require.Len(t, f.moves(lines), 1, "one outcome")
		if f.hold(id).State == contract.HoldSold {
			require.Equal(t, map[Verdict]int{OK: 4, Existing: 4}, got)
			require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
		} else {
			require.Equal(t, map[Verdict]int{OK: 1, Existing: 3, HoldEnded: 4}, got)
			require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
		}
	}
}

// B15: a payment failed. The same link shows the same hold with the same
// deadline, on a second device too, and a second payment sells it; nobody is
// blocked by their own reservation.
func TestAFailedPaymentIsTriedAgainOnTheSameHold(t *testing.T) {
	f := open(t, 0)
	f.limit(1)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	id := f.claimed(entry)
	first := f.hold(id)
	f.pass(time.Minute)
	f.unmoved(func() {
		got := verdicts(t, 10, func(i int) (HoldOutcome, error) {
			out, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Press: true, Actor: ActorShopper})
			if out.Hold.State != contract.HoldHeld || !out.Hold.Deadline.Equal(first.Deadline) || out.Left != 9*time.Minute {
				t.Errorf("press %d shows %s until %s", i, out.Hold.State, out.Hold.Deadline)
			}
			return out, err
		})
		require.Equal(t, map[Verdict]int{Existing: 10}, got)
	})
	require.Equal(t, OK, f.confirm(id, "second card").Verdict)
	require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
	require.Equal(t, contract.EntryBought, f.entry(entry).State)
}

// B16: who has the maximum sees their hold, not an empty shop; giving it back
// frees the units at once, for the line and for themselves.
func TestTheMaximumIsSeenAndGivenBack(t *testing.T) {
	f := open(t, 2)
	f.limit(2)
	id := f.id(contract.HoldID)
	require.Equal(t, OK, f.reserveAs("ada", id, 2).Verdict)
	f.adopt(id, true)
	f.unmoved(func() { require.Equal(t, LimitReached, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict) })
	again := f.reserveAs("ada", id, 2)
	require.Equal(t, Existing, again.Verdict)
	require.Equal(t, contract.HoldHeld, again.Hold.State)
	bob := f.waits("bob", 1)
	require.Equal(t, OK, f.release(id, contract.ReasonShopper).Verdict)
	require.Equal(t, contract.EntryOffered, f.entry(bob).State)
	require.Equal(t, int64(1), f.counters().OpenToAll)
	require.Equal(t, OK, f.reserveAs("ada", f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, [4]int64{2, 1, 1, 0}, f.parts())
}

// B18: "payment started" came, and nothing ever after it: one bounded extension,
// the grace that the caller names, then the unit goes on. The late money meets an
// ended hold.
func TestAPaymentThatNeverComesBack(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	next := f.waits("next", 1)
	started := func() HoldOutcome {
		return must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
			SKU: f.sku, HoldID: id, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: "p", Extend: &Extension{By: 5 * time.Minute},
		}))
	}
	require.Equal(t, 15*time.Minute, started().Left)
	f.pass(14 * time.Minute)
	require.Equal(t, time.Minute, started().Left, "a second one does not extend again")
	grace := f.hold(id).Deadline.Add(time.Minute)
	expire := func() HoldOutcome {
		return must[HoldOutcome](f)(f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonExpired, Deadline: grace}))
	}
	f.pass(2*time.Minute - time.Millisecond)
	require.Equal(t, time.Millisecond, expire().Left)
	f.pass(time.Millisecond)
	require.Equal(t, OK, expire().Verdict)
	require.Equal(t, contract.EntryOffered, f.entry(next).State)
	require.Equal(t, HoldEnded, f.confirm(id, "pi").Verdict)
	require.Equal(t, HoldEnded, f.retake(id, "pi").Verdict, "the unit is the line's")
	require.Equal(t, [4]int64{1, 0, 1, 0}, f.parts())
}

// B19: dead holds never count against what is free: not a lease that nobody has
// swept yet, not a hold that expired.
func TestDeadHoldsDoNotCount(t *testing.T) {
	f := open(t, 10)
	for range 10 {
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	}
	f.pass(testLease)
	c := f.counters()
	require.Equal(t, [4]int64{10, 0, 10, 10}, [4]int64{c.OnHand, c.Held, c.Available, c.OpenToAll})
	require.Equal(t, contract.SKUAvailable, c.State)
	var held []string
	for range 10 {
		held = append(held, f.held())
	}
	require.Equal(t, contract.SKUSoldOut, f.counters().State)
	f.pass(10 * time.Minute)
	for _, id := range held {
		f.release(id, contract.ReasonExpired)
	}
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 10).Verdict)
	require.Equal(t, [4]int64{10, 10, 0, 0}, f.parts())
}

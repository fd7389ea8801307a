package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// refusals of a later line.
var refusals = map[string]struct {
	world   func(w *world, sku string)
	verdict string
}{
	"shortfall": {func(w *world, sku string) { w.on(sku).free = -1 }, "shortfall"},
	"given back": {func(w *world, sku string) {
		w.on(sku).end(w.Now(), contract.HoldReleased, contract.ReasonShop)
	}, "hold-ended"},
	"swept":       {func(w *world, sku string) { w.on(sku).hold.State = contract.HoldSwept }, "hold-ended"},
	"another's":   {func(w *world, sku string) { w.on(sku).hold.State, w.on(sku).hold.PaymentRef = contract.HoldSold, "P9" }, "payment-conflict"},
	"marked once": {func(w *world, sku string) { w.on(sku).hold.Refunded = []string{"P1"} }, "refunded"},
}

// A later line refuses: the lines before it are held again, the last one first, and
// the payment is marked at each, before it gets its owner and any unit is free.
func TestCartRefusedAtALaterLine(t *testing.T) {
	undo := map[string][]string{
		lamp:  {"unconfirm CHAIR ok"},
		table: {"unconfirm LAMP ok", "unconfirm CHAIR ok"},
	}
	sold := map[string][]string{
		lamp:  {"confirm CHAIR ok"},
		table: {"confirm CHAIR ok", "confirm LAMP ok"},
	}
	for name, r := range refusals {
		for _, sku := range []string{lamp, table} {
			t.Run(name+" at "+sku, func(t *testing.T) {
				w := cart(t)
				var a *answer[contract.ConfirmResult]
				w.at(time.Minute, func() {
					w.mu.Lock()
					r.world(w, sku)
					w.mu.Unlock()
					a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", contract.ConfirmRequest{PaymentRef: "P1"})
				})
				w.at(2*time.Minute, func() { // the other's payment is undone by whoever made it
					w.mu.Lock()
					if h := w.on(sku).hold; name == "another's" {
						h.State, h.PaymentRef = contract.HoldReleased, ""
					}
					w.mu.Unlock()
				})
				out := w.runCart()
				steps := calls(adopted, sold[sku], []string{"confirm " + sku + " " + r.verdict}, undo[sku])
				require.Equal(t, steps, w.calls[:len(steps)])
				require.Equal(t, []string{contract.CauseLate}, w.causes())
				require.Equal(t, contract.PaymentID(holdID, "P1"), w.payments[0].PaymentID)
				require.Equal(t, chair, w.payments[0].SKU, "the first line decides")
				require.Equal(t, []int64{0}, w.freeAt, "its owner came before the first unit was free")
				require.Contains(t, w.hold.Refunded, "P1")
				require.Equal(t, contract.ConfirmHoldEnded, a.result.Outcome)
				require.NotNil(t, a.result.Refund)
				rest := w.since(len(steps))
				switch name {
				case "marked once": // the hold goes on, and may be paid by another
					require.Equal(t, reversed("release expired"), rest)
					require.Equal(t, contract.HoldExpired, out.State)
				case "shortfall":
					require.Equal(t, reversed("release shop"), rest)
					require.Equal(t, contract.HoldReleased, out.State)
				default:
					require.Equal(t, contract.HoldReleased, out.State)
				}
				for _, l := range cartLines() {
					if l.SKU != sku {
						require.Equal(t, l.Quantity, w.on(l.SKU).free, "%s is back exactly once", l.SKU)
					}
				}
			})
		}
	}
}

// The first line refuses: nothing was sold. A cart that ran short has its payment
// marked, so that its Payment does not sell the lines that are being given back.
func TestCartRefusedAtItsFirstLine(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		steps []string
		state contract.HoldState
	}{
		"shortfall":   {contract.CauseLate, calls([]string{"confirm CHAIR shortfall", "refund CHAIR ok"}, reversed("release shop")), contract.HoldReleased},
		"marked once": {contract.CauseLate, calls([]string{"confirm CHAIR refunded"}, reversed("release expired")), contract.HoldExpired},
		"given back": {contract.CauseLate, []string{
			"confirm CHAIR hold-ended", "release compensation TABLE ok", "release compensation LAMP ok", "release compensation CHAIR existing",
		}, contract.HoldReleased},
	} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			w.at(time.Minute, func() {
				w.mu.Lock()
				refusals[name].world(w, chair)
				w.mu.Unlock()
				w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
			})
			require.Equal(t, c.state, w.runCart().State)
			require.Equal(t, calls(adopted, c.steps), w.calls)
			require.Equal(t, []string{c.cause}, w.causes())
			require.Equal(t, []int64{1, 1}, w.freeUnits()[1:])
		})
	}
	t.Run("sold by another", func(t *testing.T) {
		w := cart(t)
		w.at(time.Minute, func() {
			for _, l := range cartLines() {
				w.on(l.SKU).hold.State, w.on(l.SKU).hold.PaymentRef = contract.HoldSold, "P9"
			}
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, "P9", w.runCart().PaymentRef)
		require.Equal(t, []string{contract.CauseSecond}, w.causes())
		require.Equal(t, []int64{0, 0, 0}, w.freeUnits())
	})
}

// The repeat of a refused payment makes no second sale and no second undoing, and
// another one may still buy the cart.
func TestCartPaidByAnotherAfterARefusal(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.on(table).hold.Refunded = []string{"P1"}
		for range 2 {
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		}
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2"))
	})
	require.Equal(t, "P2", w.runCart().PaymentRef)
	require.Len(t, w.payments, 1)
	require.Equal(t, 1, w.called("unconfirm CHAIR ok"))
	require.Equal(t, each(contract.HoldSold), w.states())
}

// B28: confirm and signal in one task, and again later.
func TestCartConfirmedTwice(t *testing.T) {
	w := cart(t)
	var first, repeat *answer[contract.ConfirmResult]
	req := contract.ConfirmRequest{PaymentRef: "P1"}
	w.at(time.Minute, func() {
		first = update[contract.ConfirmResult](w, contract.UpdateConfirm, "a", req)
		repeat = update[contract.ConfirmResult](w, contract.UpdateConfirm, "b", req)
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	require.Equal(t, contract.HoldSold, w.runCart().State)
	for _, a := range []*answer[contract.ConfirmResult]{first, repeat} {
		require.Equal(t, contract.ConfirmSold, a.result.Outcome)
	}
	require.Equal(t, 1, w.called("confirm CHAIR ok"))
	require.Equal(t, 1, w.called("confirm TABLE ok"))
}

// The worker died between two lines: the task is repeated, and the gate answers
// what it knows.
func TestCartResumesWhereAWorkerDied(t *testing.T) {
	t.Run("between two confirms", func(t *testing.T) {
		w := cart(t)
		w.at(time.Minute, func() {
			w.hold.State, w.hold.PaymentRef, w.hold.EndedAt = contract.HoldSold, "P1", w.Now()
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, contract.HoldSold, w.runCart().State)
		require.Equal(t, each(contract.HoldSold), w.states())
		require.Empty(t, w.payments)
	})
	t.Run("while a sale was undone", func(t *testing.T) {
		w := cart(t)
		w.at(time.Minute, func() { // the lamp's line is undone already, the chairs' is not
			w.hold.State, w.hold.PaymentRef, w.hold.EndedAt = contract.HoldSold, "P1", w.Now()
			w.on(lamp).hold.Refunded = []string{"P1"}
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		requireUndone(t, w, w.runCart(), contract.HoldExpired)
		require.Equal(t, 1, w.called("unconfirm CHAIR ok"))
		require.Equal(t, []string{contract.CauseLate}, w.causes())
	})
	t.Run("between two releases", func(t *testing.T) {
		w := cart(t)
		w.at(10*time.Minute-time.Millisecond, func() {
			w.on(table).end(w.Now(), contract.HoldExpired, contract.ReasonExpired)
		})
		requireUndone(t, w, w.runCart(), contract.HoldExpired)
		require.Equal(t, 1, w.called("release expired TABLE existing"))
	})
}

// Payment and timer come in one task; the worker was stopped over the deadline.
func TestCartPaymentAndTimerInOneTask(t *testing.T) {
	at := func(w *world, gate func()) {
		w.at(10*time.Minute-time.Millisecond, func() {
			w.mu.Lock()
			gate()
			w.mu.Unlock()
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		})
	}
	expire := func(w *world, skus ...string) {
		for _, sku := range skus {
			w.on(sku).end(w.Now(), contract.HoldExpired, contract.ReasonExpired)
		}
	}
	t.Run("the payment reaches the gate first", func(t *testing.T) {
		w := cart(t)
		at(w, func() {})
		require.Equal(t, contract.HoldSold, w.runCart().State)
		require.Empty(t, w.payments)
	})
	t.Run("the release was done, its answer lost", func(t *testing.T) {
		w := cart(t)
		at(w, func() { expire(w, table, lamp, chair) })
		requireUndone(t, w, w.runCart(), contract.HoldExpired)
		require.Equal(t, []string{contract.CauseLate}, w.causes())
		require.Equal(t, [][]string{nil, nil, nil}, w.marks(), "its Payment may sell them again")
	})
	t.Run("the release was half done", func(t *testing.T) {
		w := cart(t)
		at(w, func() { expire(w, table) })
		out := w.runCart()
		requireUndone(t, w, out, contract.HoldReleased)
		require.Equal(t, []string{"unconfirm LAMP ok", "unconfirm CHAIR ok"}, w.since(6)[:2])
		require.Equal(t, []string{contract.CauseLate}, w.causes())
	})
}

// retaking is a Payment of P1 that has sold the first lines of an expired cart
// again.
func retaking(w *world, skus ...string) {
	for _, sku := range skus {
		s := w.on(sku)
		s.hold.State, s.hold.PaymentRef, s.hold.Retaken = contract.HoldSold, "P1", true
		s.free -= s.hold.Units
	}
}

// The release was done and its answer lost, and a Payment sells the cart again, line
// by line. The Hold touches nothing, whatever it is told, and ends as its lines do.
func TestCartLeavesAPaymentAlone(t *testing.T) {
	for name, c := range map[string]struct {
		signal string // besides the timer
		undone bool
		state  contract.HoldState
	}{
		"by its timer, sold":              {"", false, contract.HoldSold},
		"by its timer, undone":            {"", true, contract.HoldExpired},
		"by the same payment, sold":       {"P1", false, contract.HoldSold},
		"by the same payment, undone":     {"P1", true, contract.HoldExpired},
		"by another payment, sold":        {"P2", false, contract.HoldSold},
		"by another payment, then undone": {"P2", true, contract.HoldExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			w.at(10*time.Minute-time.Millisecond, func() {
				w.mu.Lock()
				for _, sku := range []string{table, lamp, chair} {
					w.on(sku).end(w.Now(), contract.HoldExpired, contract.ReasonExpired)
				}
				retaking(w, chair)
				w.mu.Unlock()
				if c.signal != "" {
					w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid(c.signal))
				}
			})
			w.at(10*time.Minute+10*time.Second, func() {
				require.Equal(t, contract.HoldHeld, w.holdStatus().State, "neither sold nor ended")
				require.Equal(t, []contract.HoldState{contract.HoldSold, contract.HoldExpired, contract.HoldExpired}, w.states())
				w.mu.Lock()
				defer w.mu.Unlock()
				if !c.undone {
					retaking(w, lamp, table)
					return
				}
				w.hold.State, w.hold.PaymentRef, w.hold.Reason = contract.HoldExpired, "", contract.ReasonExpired
				w.free += w.hold.Units
			})
			out := w.runCart()
			require.Equal(t, c.state, out.State)
			for _, call := range w.calls {
				require.NotContains(t, call, "unconfirm")
			}
			if c.undone {
				require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
			} else {
				require.Equal(t, "P1", out.PaymentRef)
				require.Equal(t, []int64{0, 0, 0}, w.freeUnits())
			}
			want := map[string][]string{"": nil, "P1": {contract.CauseLate}, "P2": {contract.CauseSecond}}
			require.Equal(t, want[c.signal], w.causes())
		})
	}
}

// A Payment that had to undo a live line leaves it held: the Hold, which looks
// again, gives it back.
func TestCartGivesBackWhatAPaymentUndid(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.mu.Lock()
		w.on(table).end(w.Now(), contract.HoldReleased, contract.ReasonShop)
		w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P1"
		w.mu.Unlock()
		w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop})
	})
	w.at(2*time.Minute, func() {
		w.mu.Lock()
		w.hold.State, w.hold.PaymentRef, w.hold.Refunded = contract.HoldHeld, "", []string{"P1"}
		w.mu.Unlock()
	})
	requireUndone(t, w, w.runCart(), contract.HoldReleased)
	require.True(t, w.hold.EndedAt.Before(began.Add(3*time.Minute+10*time.Second)), "%s", w.hold.EndedAt)
}

func TestCartMismatchedMoneyIsMarkedAtTheFirstLine(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 50, "EUR")) })
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
	require.Equal(t, []string{contract.CauseMismatched}, w.causes())
	require.Equal(t, []int64{0}, w.freeAt)
}

func TestCartWaitsForALineThatIsNotOnRecord(t *testing.T) {
	w := cart(t)
	lost := w.on(lamp).hold
	w.at(time.Minute, func() {
		w.on(lamp).hold = nil
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.down = func(verb string) error {
		if verb == "confirm LAMP" && w.Now().After(began.Add(outage)) {
			w.on(lamp).hold = lost
		}
		return nil
	}
	require.Equal(t, contract.HoldSold, w.runCart().State)
	require.Equal(t, each(contract.HoldSold), w.states())
	require.Zero(t, w.called("unconfirm CHAIR ok"), "a record that must exist is waited for")
	require.NotZero(t, w.called("confirm LAMP "+string(redis.Unknown)))
}

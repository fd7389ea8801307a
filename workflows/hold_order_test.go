package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The messages of one payment, or of two, in every order in which they may come.

func startedOf(ref string, amount int64) contract.PaymentStarted {
	m := contract.PaymentStarted{PaymentRef: ref}
	m.Amount, m.Currency = money(amount, "EUR")
	return m
}

// Money may be told before it is announced. What the last announcement makes right is a
// sale, as it would be in the other order.
func TestHoldPaidBeforeItsAmountIsAnnounced(t *testing.T) {
	for name, in := range map[string]contract.HoldInput{"one line": holdInput(), "a cart": cartInput()} {
		t.Run(name, func(t *testing.T) {
			begin := func(t *testing.T) *world {
				w := reserved(t)
				if len(in.Lines) > 1 {
					w = cart(t)
				}
				w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P1", 500)) })
				w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P2", 700, "EUR")) })
				return w
			}
			w := begin(t)
			w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P2", 700)) })
			require.Equal(t, "P2", w.runHoldOf(in).PaymentRef)
			require.Empty(t, w.payments)

			t.Run("and the announcement is of another amount", func(t *testing.T) {
				w := begin(t)
				w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P2", 600)) })
				require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
				require.Equal(t, []string{contract.CauseMismatched}, w.causes())
			})
			t.Run("and the sale is refused", func(t *testing.T) {
				w := begin(t)
				w.hold.Refunded = []string{"P2"}
				w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P2", 700)) })
				require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
				require.Equal(t, []string{contract.CauseLate}, w.causes(), "it has one owner")
			})
			t.Run("and its gate is closed", func(t *testing.T) {
				w := begin(t)
				w.shut("", 2*time.Minute+30*time.Second, 3*time.Minute+30*time.Second)
				w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P2", 700)) })
				require.Equal(t, "P2", w.runHoldOf(in).PaymentRef)
				require.Empty(t, w.payments)
			})
		})
	}
}

// Whose amount has no name of its own is right by the last one that was announced.
func TestHoldPaidByANamelessAnnouncement(t *testing.T) {
	w := reserved(t)
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P1", 500)) })
	w.at(2*time.Minute, func() {
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P2", 700, "EUR"))
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P3", 700, "EUR"))
	})
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("", 700)) })
	require.Equal(t, "P2", w.runHold().PaymentRef, "the first of two")
	require.Equal(t, []string{contract.CauseMismatched}, w.causes())
	require.Equal(t, "P3", w.payments[0].PaymentRef)
}

// A payment that failed takes the grace of no other: the shopper has gone on, and the
// word of the first may be the last to come.
func TestHoldKeepsTheGraceOfAnotherPayment(t *testing.T) {
	const extended = 15 * time.Minute
	failed := func(ref string) func(w *world) {
		return func(w *world) {
			w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: ref})
		}
	}
	started := func(ref string) func(w *world) {
		return func(w *world) { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf(ref, 500)) }
	}
	for name, c := range map[string]struct {
		said  []func(w *world)
		grace bool
	}{
		"the first fails, the second runs":      {[]func(w *world){started("P1"), started("P2"), failed("P1")}, true},
		"the second fails, the first may run":   {[]func(w *world){started("P1"), started("P2"), failed("P2")}, true},
		"both fail":                             {[]func(w *world){started("P1"), started("P2"), failed("P2"), failed("P1")}, false},
		"one fails twice":                       {[]func(w *world){started("P1"), started("P2"), failed("P1"), failed("P1")}, true},
		"a failure without a name is of all":    {[]func(w *world){started("P1"), started("P2"), failed("")}, false},
		"a start without a name is of any":      {[]func(w *world){started(""), failed("P1")}, false},
		"one fails and is tried again":          {[]func(w *world){started("P1"), failed("P1"), started("P1")}, true},
		"one that never started fails":          {[]func(w *world){started("P1"), failed("P7")}, true},
		"it fails before it is said to start":   {[]func(w *world){failed("P1"), started("P1")}, true},
		"a repeat of the start changes nothing": {[]func(w *world){started("P1"), started("P1"), failed("P1")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			for i, say := range c.said {
				w.at(time.Duration(i+1)*time.Minute, func() { say(w) })
			}
			end := extended
			if c.grace {
				end += time.Minute
			}
			require.Equal(t, contract.HoldExpired, w.runHold().State)
			require.Equal(t, began.Add(end), w.hold.EndedAt)
		})
	}
}

// Two of a payment's messages, or three, in each order and all at once: one sale, and
// money only goes where the hold was given back before it came.
func TestHoldHearsAPaymentInEveryOrder(t *testing.T) {
	say := map[string]func(w *world){
		"started":   func(w *world) { w.SignalWorkflow(contract.SignalPaymentStarted, startedOf("P1", 500)) },
		"succeeded": func(w *world) { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR")) },
		"confirm": func(w *world) {
			req := contract.ConfirmRequest{PaymentRef: "P1"}
			req.Amount, req.Currency = money(500, "EUR")
			update[contract.ConfirmResult](w, contract.UpdateConfirm, "", req)
		},
		"failed": func(w *world) {
			w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1"})
		},
		"ended": func(w *world) {
			w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1", Final: true})
		},
		"release": func(w *world) {
			w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShopper})
		},
		"cancel": func(w *world) { w.CancelWorkflow() },
	}
	names := []string{"started", "succeeded", "confirm", "failed", "ended", "release", "cancel"}
	money := map[string]bool{"succeeded": true, "confirm": true}
	ends := map[string]bool{"ended": true, "release": true, "cancel": true}
	for _, pause := range []time.Duration{0, time.Second} {
		for _, shut := range []bool{false, true} {
			for _, a := range names {
				for _, b := range names {
					for _, c := range names {
						order := []string{a, b, c}
						w := cart(t)
						if shut { // of the last line, while all of them come
							w.shut(table, 59*time.Second, 100*time.Second)
						}
						var heard []string // the others came after its end, and the door knows whose they are
						for i, name := range order {
							w.at(time.Minute+time.Duration(i)*pause, func() {
								heard = append(heard, name)
								say[name](w)
							})
						}
						w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
						require.True(t, w.IsWorkflowCompleted(), order)
						sold, told, ended := w.hold.State == contract.HoldSold, false, false
						mustSell := false
						for _, name := range heard {
							told = told || money[name]
							mustSell = mustSell || money[name] && !ended
							ended = ended || ends[name]
						}
						if !told {
							require.False(t, sold, order)
							require.Empty(t, w.payments, order)
							require.Equal(t, []int64{2, 1, 1}, w.freeUnits(), order)
							continue
						}
						owned := 0
						if sold {
							owned++
							require.Equal(t, each(contract.HoldSold), w.states(), order)
							require.Equal(t, []int64{0, 0, 0}, w.freeUnits(), order)
						} else {
							require.Equal(t, []int64{2, 1, 1}, w.freeUnits(), order)
						}
						owned += len(w.payments)
						require.Equal(t, 1, owned, "%v pause %s shut %t: one outcome of one payment", order, pause, shut)
						require.True(t, sold || !mustSell, "%v pause %s shut %t: the money was first", order, pause, shut)
					}
				}
			}
		}
	}
}

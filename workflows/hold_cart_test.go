package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

func TestCartIsSoldLineByLine(t *testing.T) {
	w := cart(t)
	w.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil).Once()
	w.at(time.Minute, func() {
		require.Contains(t, w.currentDetails(), "- **Lines**: 2 × `CHAIR`, 1 × `LAMP`, 1 × `TABLE`\n")
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	require.Equal(t, contract.HoldResult{HoldID: holdID, State: contract.HoldSold, PaymentRef: "P1"}, w.runCart())
	require.Equal(t, calls(adopted, []string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE ok"}), w.calls)
	for _, l := range cartLines() {
		require.Equal(t, "P1", w.on(l.SKU).hold.PaymentRef)
	}
	require.Equal(t, []int64{0, 0, 0}, w.freeUnits())
	require.Empty(t, w.payments)
	require.Equal(t, cartLines(), w.holdStatus().Lines)
}

// Lines come merged from the door; a stranger's client may send them as it likes.
func TestCartTakesItsLinesInTheOrderOfTheirSKUs(t *testing.T) {
	w := newWorld(t)
	w.free, w.more = 3, map[string]*shelf{lamp: {free: 1}}
	in := holdInput()
	in.Lines = []contract.Line{{SKU: lamp, Quantity: 1}, {SKU: chair, Quantity: 1}, {SKU: chair, Quantity: 2}}
	out := w.runHoldOf(in)
	require.Equal(t, contract.HoldExpired, out.State)
	require.Equal(t, []string{"adopt CHAIR ok", "adopt LAMP ok", "release expired LAMP ok", "release expired CHAIR ok"}, w.calls)
	merged := []contract.Line{{SKU: chair, Quantity: 3}, {SKU: lamp, Quantity: 1}}
	require.Equal(t, merged, w.hold.Cart, "the first line's record names the cart")
	require.Nil(t, w.on(lamp).hold.Cart)
	require.Equal(t, merged, w.holdStatus().Lines)
}

func TestCartThatIsNone(t *testing.T) {
	var many []contract.Line
	for i := range contract.MaxLines + 1 {
		many = append(many, contract.Line{SKU: fmt.Sprint("sku-", i), Quantity: 1})
	}
	t.Run("the id of another SKU", func(t *testing.T) {
		w := cart(t)
		in := cartInput()
		in.HoldID = contract.HoldID(lamp, []byte("a hold of a test"))
		w.ExecuteWorkflow(contract.HoldWorkflow, in)
		require.ErrorContains(t, w.GetWorkflowError(), "the number of its first SKU, CHAIR")
		require.Empty(t, w.calls)
	})
	for want, lines := range map[string][]contract.Line{
		"at least one": nil, "at most 20": many, "0 units": {{SKU: chair}},
	} {
		w := newWorld(t)
		in := holdInput()
		in.Lines = lines
		w.ExecuteWorkflow(contract.HoldWorkflow, in)
		require.ErrorContains(t, w.GetWorkflowError(), want)
		require.Empty(t, w.calls, "nothing was taken")
	}
}

// One line is not to be had: the door has taken a lease of each, so all the others
// are given back, the last first.
func TestCartRefusedAtItsStart(t *testing.T) {
	for gone, want := range map[string][]string{
		chair: {"adopt CHAIR sold-out", "release compensation TABLE ok", "release compensation LAMP ok"},
		lamp:  {"adopt CHAIR ok", "adopt LAMP sold-out", "release compensation TABLE ok", "release compensation CHAIR ok"},
		table: {"adopt CHAIR ok", "adopt LAMP ok", "adopt TABLE sold-out", "release compensation LAMP ok", "release compensation CHAIR ok"},
	} {
		t.Run(gone, func(t *testing.T) {
			w := cart(t)
			w.on(gone).hold.State = contract.HoldSwept
			out := w.runCart()
			require.Equal(t, contract.HoldRefused, out.State)
			require.Equal(t, want, w.calls)
			for _, l := range cartLines() {
				if l.SKU == gone {
					require.Equal(t, contract.HoldRefused, w.on(l.SKU).hold.State)
					require.Zero(t, w.on(l.SKU).free)
					continue
				}
				require.Equal(t, contract.HoldReleased, w.on(l.SKU).hold.State)
				require.Equal(t, l.Quantity, w.on(l.SKU).free, "given back exactly once")
			}
			require.NotNil(t, w.holdStatus().EndedAt)
		})
	}
	t.Run("a line was given back before", func(t *testing.T) {
		w := cart(t)
		s := w.on(lamp)
		s.end(began, contract.HoldReleased, contract.ReasonShop)
		requireUndone(t, w, w.runCart(), contract.HoldReleased)
		require.Equal(t, []string{
			"adopt CHAIR ok", "adopt LAMP existing", "release compensation TABLE ok", "release compensation LAMP existing", "release compensation CHAIR ok",
		}, w.calls)
	})
}

func TestCartExpires(t *testing.T) {
	w := cart(t)
	out := w.runCart()
	requireUndone(t, w, out, contract.HoldExpired)
	require.Equal(t, contract.ReasonExpired, out.Reason)
	require.Equal(t, calls(adopted, reversed("release expired")), w.calls)
}

// The lines' deadlines differ by what the calls took. The earliest is what the
// shopper is told; nothing is given back before the latest.
func TestCartWithDeadlinesThatDiffer(t *testing.T) {
	w := cart(t)
	w.down = func(verb string) error {
		if verb == "adopt TABLE" && w.Now().Before(began.Add(time.Minute)) {
			return redis.ErrUnavailable
		}
		return nil
	}
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
	require.Equal(t, calls(adopted, reversed("release expired")), w.calls, "no line is early")
	require.Equal(t, w.hold.Deadline, w.holdStatus().ExpiresAt)
	require.True(t, w.on(table).hold.Deadline.After(w.hold.Deadline.Add(time.Minute)))
	require.False(t, w.hold.EndedAt.Before(w.on(table).hold.Deadline))
}

// A gate that reopened gives one line more time. The others are back by then, and
// the hold goes on until the last one is.
func TestCartWithAnEarlyLine(t *testing.T) {
	for _, late := range []string{chair, lamp, table} {
		t.Run(late, func(t *testing.T) {
			w := cart(t)
			w.at(5*time.Minute, func() {
				w.mu.Lock()
				w.on(late).hold.Deadline = w.on(late).hold.Deadline.Add(42 * time.Second)
				w.mu.Unlock()
			})
			w.at(10*time.Minute+20*time.Second, func() {
				require.Equal(t, contract.HoldHeld, w.holdStatus().State)
				require.Contains(t, w.currentDetails(), "its lines do not agree yet")
			})
			requireUndone(t, w, w.runCart(), contract.HoldExpired)
			require.Equal(t, began.Add(10*time.Minute+42*time.Second), w.on(late).hold.EndedAt)
			require.Equal(t, 1, w.called("release expired "+late+" early"))
			for _, l := range cartLines() {
				require.Equal(t, 1, w.called("release expired "+l.SKU+" ok"), "each is given back once")
			}
		})
	}
}

// Between a line that expired and one that was early, nothing is sold by the hold
// itself: its Payment sees to all lines at once.
func TestCartPaidWhileItsLinesDisagree(t *testing.T) {
	w := cart(t)
	w.at(5*time.Minute, func() {
		w.mu.Lock()
		w.hold.Deadline = w.hold.Deadline.Add(time.Minute)
		w.mu.Unlock()
	})
	w.at(10*time.Minute+30*time.Second, func() {
		w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(5, "EUR"))
		w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P0"})
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
	require.Equal(t, []string{contract.CauseLate}, w.causes())
	require.Zero(t, w.called("confirm CHAIR ok"))
	require.Equal(t, began.Add(11*time.Minute), w.hold.EndedAt)
}

func TestCartIsExtendedAsAWhole(t *testing.T) {
	w := cart(t)
	for _, minute := range []time.Duration{9, 12} {
		w.at(minute*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	}
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
	require.Equal(t, calls(adopted, adopted, reversed("release expired")), w.calls)
	for _, l := range cartLines() {
		h := w.on(l.SKU).hold
		require.Equal(t, began.Add(15*time.Minute), h.Deadline)
		require.Equal(t, began.Add(16*time.Minute), h.EndedAt, "10 min, one extension of 5, grace of 1")
	}
	require.Equal(t, &contract.Money{Amount: 500, Currency: "EUR"}, w.hold.Amount, "the money counts once")
	require.Nil(t, w.on(lamp).hold.Amount)
	require.Equal(t, began.Add(15*time.Minute), w.holdStatus().ExpiresAt)
}

// A line that was extended before has no second extension: what the others got
// stays, and the shopper is told the earliest.
func TestCartWithALineThatIsNotExtended(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.mu.Lock()
		w.on(lamp).hold.Extended = true
		w.mu.Unlock()
	})
	w.at(9*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	w.at(9*time.Minute+time.Second, func() {
		require.Equal(t, began.Add(10*time.Minute), w.holdStatus().ExpiresAt)
	})
	w.at(15*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR")) })
	require.Equal(t, contract.HoldSold, w.runCart().State, "nothing was shortened")
}

func TestCartLosesALineWhileItsShopperPays(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.mu.Lock()
		w.on(lamp).end(w.Now(), contract.HoldReleased, contract.ReasonShop)
		w.mu.Unlock()
		w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR"))
	})
	requireUndone(t, w, w.runCart(), contract.HoldReleased)
	require.Equal(t, began.Add(time.Minute), w.hold.EndedAt, "all or nothing")
}

// B27, B30: cancelled in every state before it is sold, in the same instant as its
// timer too, a cart gives each unit back exactly once.
func TestCartCancelledBeforeItIsSold(t *testing.T) {
	started := func(w *world) {
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	}
	for name, c := range map[string]struct {
		before func(w *world)
		when   time.Duration
	}{
		"at its start": {func(*world) {}, 0},
		"held":         {func(*world) {}, time.Minute},
		"paying":       {started, 2 * time.Minute},
		"with money of another amount": {func(w *world) {
			started(w)
			w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 1, "EUR")) })
		}, 3 * time.Minute},
		"while its second line is out of reach": {func(w *world) {
			w.down = func(verb string) error {
				if verb == "release cancelled LAMP" && w.Now().Before(began.Add(outage)) {
					return redis.ErrUnavailable
				}
				return nil
			}
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			c.before(w)
			w.at(c.when, w.CancelWorkflow)
			w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
			require.True(t, w.IsWorkflowCompleted())
			require.True(t, temporal.IsCanceledError(w.GetWorkflowError()), "%v", w.GetWorkflowError())
			require.Equal(t, each(contract.HoldReleased), w.states())
			require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
			want := reversed("release cancelled")
			if w.down != nil { // who does not answer keeps nobody
				slices.Reverse(want[1:])
			}
			require.Equal(t, want, w.changed("release "), "the last line first, and each once")
		})
	}
	t.Run("in the task of its timer", func(t *testing.T) {
		w := cart(t)
		w.at(10*time.Minute-time.Millisecond, w.CancelWorkflow)
		w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
		require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
	})
	t.Run("while an early line is waited for", func(t *testing.T) {
		w := cart(t)
		w.at(time.Minute, func() {
			w.mu.Lock()
			w.hold.Deadline = w.hold.Deadline.Add(time.Minute)
			w.mu.Unlock()
		})
		w.at(10*time.Minute+time.Second, w.CancelWorkflow)
		w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
		require.True(t, temporal.IsCanceledError(w.GetWorkflowError()))
		require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
		require.Equal(t, began.Add(10*time.Minute+time.Second), w.hold.EndedAt)
	})
}

func TestCartCancelledOnceSoldStaysSold(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		w.CancelWorkflow()
	})
	require.Equal(t, contract.HoldSold, w.runCart().State)
	require.Equal(t, []int64{0, 0, 0}, w.freeUnits())
}

// B25, B31: once sold, no ending changes anything, in whatever order it was told of;
// giving back a sold unit is a return.
func TestWhatIsSoldStaysSold(t *testing.T) {
	for name, in := range map[string]contract.HoldInput{"one line": holdInput(), "a cart": cartInput()} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			if len(in.Lines) > 1 {
				w = cart(t)
			}
			w.at(time.Minute, func() {
				w.SignalWorkflowSkippingWorkflowTask(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop})
				w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1", Final: true})
				w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
				w.CancelWorkflow()
			})
			require.Equal(t, contract.HoldSold, w.runHoldOf(in).State)
			require.Zero(t, w.free)
			require.Empty(t, w.released.Reason, "the gate is not even asked")
			require.Empty(t, w.payments)
		})
	}
}

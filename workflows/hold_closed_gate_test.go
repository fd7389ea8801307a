package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

// shut closes the gate of an SKU, or with "" every gate, for a while.
func (w *world) shut(sku string, from, to time.Duration) {
	w.down = func(verb string) error {
		if at := w.Now().Sub(began); strings.HasSuffix(verb, sku) && at >= from && at < to {
			return &redis.ClosedError{SKU: sku}
		}
		return nil
	}
}

// The test environment gives an activity ten attempts, which are 90 seconds.
const closes, opens = 9*time.Minute + 30*time.Second, 10*time.Minute + 40*time.Second

// others are the lines but one, as they are.
func (w *world) others(sku string) (states []contract.HoldState, free []int64) {
	for i, l := range cartLines() {
		if l.SKU != sku {
			states, free = append(states, w.states()[i]), append(free, w.freeUnits()[i])
		}
	}
	return states, free
}

// requireOthersBack says that the other lines are given back while one does not
// answer, and that the cart says what it waits for.
func requireOthersBack(t *testing.T, w *world, sku string, state contract.HoldState) {
	states, free := w.others(sku)
	require.Equal(t, []contract.HoldState{state, state}, states)
	require.NotContains(t, free, int64(0))
	require.Equal(t, contract.HoldHeld, w.on(sku).hold.State)
	require.Contains(t, w.currentDetails(), "the gate of `"+sku+"` is closed or out of reach")
}

func TestCartKeepsNoLineForOneThatDoesNotAnswer(t *testing.T) {
	for _, sku := range []string{chair, lamp, table} {
		t.Run(sku+" as it expires", func(t *testing.T) {
			w := cart(t)
			w.shut(sku, closes, opens)
			w.at(10*time.Minute+2*time.Second, func() { requireOthersBack(t, w, sku, contract.HoldExpired) })
			requireUndone(t, w, w.runCart(), contract.HoldExpired)
			require.WithinRange(t, w.on(sku).hold.EndedAt, began.Add(opens), began.Add(opens+16*time.Second))
			require.Equal(t, 3, w.called("release expired "+chair+" ok")+w.called("release expired "+lamp+" ok")+w.called("release expired "+table+" ok"))
		})
		t.Run(sku+" as it is cancelled", func(t *testing.T) {
			w := cart(t)
			w.shut(sku, closes, opens)
			w.at(closes+time.Second, w.CancelWorkflow)
			w.at(closes+3*time.Second, func() { requireOthersBack(t, w, sku, contract.HoldReleased) })
			w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
			require.True(t, temporal.IsCanceledError(w.GetWorkflowError()))
			require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
			require.Equal(t, contract.ReasonCancelled, w.on(sku).hold.Reason)
		})
		t.Run(sku+" as it is adopted", func(t *testing.T) {
			w := cart(t)
			w.shut(sku, 0, time.Minute)
			in := cartInput()
			in.Settings.HoldSeconds = 30
			w.at(40*time.Second, func() {
				states, _ := w.others(sku)
				require.Equal(t, []contract.HoldState{contract.HoldExpired, contract.HoldExpired}, states)
			})
			require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
			require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
		})
		t.Run(sku+" as it is extended", func(t *testing.T) {
			w := cart(t)
			w.shut(sku, closes, opens)
			w.at(closes+time.Second, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
			w.at(closes+3*time.Second, func() {
				for _, l := range cartLines() {
					require.Equal(t, l.SKU != sku, w.on(l.SKU).hold.Extended, l.SKU)
				}
				w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop})
			})
			w.at(closes+5*time.Second, func() { requireOthersBack(t, w, sku, contract.HoldReleased) })
			requireUndone(t, w, w.runCart(), contract.HoldReleased)
		})
	}
}

// The line that is extended late is extended all the same, and the timer waits for it.
func TestCartIsExtendedWhenALineAnswers(t *testing.T) {
	w := cart(t)
	w.shut(lamp, closes, opens)
	w.at(closes+time.Second, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
	for _, l := range cartLines() {
		require.Equal(t, began.Add(15*time.Minute), w.on(l.SKU).hold.Deadline)
		require.Equal(t, began.Add(16*time.Minute), w.on(l.SKU).hold.EndedAt)
	}
}

// A second reason to end overtakes the first, which a reopened gate would refuse as
// early.
func TestCartIsReleasedWhileItsExpiryIsNotHeard(t *testing.T) {
	w := cart(t)
	w.shut(lamp, closes, opens)
	w.at(10*time.Minute+10*time.Second, func() {
		w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) // too late to be extended
		w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop})
	})
	require.Equal(t, contract.HoldExpired, w.runCart().State)
	require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
	require.Equal(t, []contract.HoldState{contract.HoldExpired, contract.HoldReleased, contract.HoldExpired}, w.states())
	require.False(t, w.hold.Extended)
}

// Payment wins: an expiry that no gate has heard stops for it.
func TestHoldPaidWhileItsExpiryIsNotHeard(t *testing.T) {
	for name, in := range map[string]contract.HoldInput{"one line": holdInput(), "a cart": cartInput()} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			if len(in.Lines) > 1 {
				w = cart(t)
			}
			w.shut("", closes, opens)
			var asked *answer[contract.ConfirmResult]
			w.at(10*time.Minute+20*time.Second, func() {
				asked = update[contract.ConfirmResult](w, contract.UpdateConfirm, "u", contract.ConfirmRequest{PaymentRef: "P1"})
			})
			require.Equal(t, contract.HoldResult{HoldID: holdID, State: contract.HoldSold, PaymentRef: "P1"}, w.runHoldOf(in))
			require.Equal(t, contract.ConfirmSold, asked.result.Outcome)
			require.Empty(t, w.released.Reason, "no gate was asked any more")
			require.Empty(t, w.payments)
		})
	}
}

// Money of another amount neither stops the expiry nor is it lost.
func TestHoldPaidAnotherAmountWhileItsExpiryIsNotHeard(t *testing.T) {
	w := reserved(t)
	w.shut("", 10*time.Minute, 11*time.Minute+40*time.Second)
	in := holdInput()
	in.Settings.ExtensionSeconds = 0
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	w.at(11*time.Minute+20*time.Second, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 1, "EUR")) })
	require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
	require.Equal(t, []string{contract.CauseMismatched}, w.causes())
}

// Who asked first is first: money waits for a release that no gate has heard.
func TestHoldPaidWhileItsReleaseIsNotHeard(t *testing.T) {
	w := reserved(t)
	w.shut("", time.Minute, 2*time.Minute)
	w.at(time.Minute+time.Second, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop}) })
	var asked *answer[contract.ConfirmResult]
	w.at(time.Minute+20*time.Second, func() {
		asked = update[contract.ConfirmResult](w, contract.UpdateConfirm, "u", contract.ConfirmRequest{PaymentRef: "P1"})
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2"))
	})
	require.Equal(t, contract.HoldReleased, w.runHold().State)
	require.Equal(t, contract.ConfirmHoldEnded, asked.result.Outcome)
	require.ElementsMatch(t, []string{contract.CauseLate, contract.CauseLate}, w.causes())
	require.Equal(t, []string{"adopt ok", "release shop ok"}, w.calls)
}

// The others are back: no half of the cart is sold, and its Payment has the money.
func TestCartPaidWhileOneLineDoesNotAnswer(t *testing.T) {
	w := cart(t)
	w.shut(lamp, closes, opens)
	w.at(10*time.Minute+20*time.Second, func() {
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.at(10*time.Minute+22*time.Second, func() { require.Equal(t, []string{contract.CauseLate}, w.causes(), "at once") })
	requireUndone(t, w, w.runCart(), contract.HoldExpired)
}

// A line that was never adopted may have lost its lease: it is adopted before it is
// sold, and the units of the others are whoever's who has paid.
func TestCartPaidBeforeEveryLineIsAdopted(t *testing.T) {
	for name, free := range map[string]int64{"one is left": 1, "none is left": 0} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			w.shut(lamp, 0, time.Minute)
			w.on(lamp).hold.State, w.on(lamp).free = contract.HoldSwept, free
			w.at(10*time.Second, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
			out := w.runCart()
			if free > 0 {
				require.Equal(t, contract.HoldSold, out.State)
				require.Empty(t, w.payments)
				return
			}
			require.Equal(t, contract.HoldRefused, out.State)
			require.Equal(t, []int64{2, 0, 1}, w.freeUnits())
			require.Equal(t, []string{contract.CauseLate}, w.causes())
		})
	}
}

// Twenty lines of a Redis that is away are asked at once: seconds for each, in which
// nobody is heard, would add up to minutes.
func TestCartIsNotDeafForEachLine(t *testing.T) {
	w := cart(t)
	w.down = func(string) error {
		if at := w.Now().Sub(began); at >= closes && at < opens {
			return redis.ErrUnavailable
		}
		return nil
	}
	w.at(closes+time.Second, w.CancelWorkflow)
	w.at(closes+4*time.Second, func() {
		require.Contains(t, w.currentDetails(), "the gate of `CHAIR, LAMP, TABLE` is closed or out of reach")
	})
	w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
	require.True(t, temporal.IsCanceledError(w.GetWorkflowError()))
	require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
}

package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

var holdID = contract.HoldID(chair, []byte("a hold of a test"))

const (
	chair = "CHAIR"
	// An outage ends here; the test environment gives an activity ten attempts.
	outage = 2*time.Minute + 10*time.Second
)

func holdInput() contract.HoldInput {
	return contract.HoldInput{
		HoldID: holdID, Lines: []contract.Line{{SKU: chair, Quantity: 1}}, Customer: "ada", Person: "p1",
		Settings: contract.HoldSettings{HoldSeconds: 600, ExtensionSeconds: 300, GraceSeconds: 60},
	}
}

// reserved is a world in which the door has just taken the one unit.
func reserved(t *testing.T) *world {
	w := newWorld(t)
	w.hold = &redis.Hold{ID: holdID, State: contract.HoldProvisional, Units: 1, CreatedAt: began, Deadline: began.Add(10 * time.Second)}
	return w
}

func (w *world) runHold() contract.HoldResult { return w.runHoldOf(holdInput()) }

func (w *world) runHoldOf(in contract.HoldInput) contract.HoldResult {
	w.ExecuteWorkflow(contract.HoldWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var out contract.HoldResult
	require.NoError(w.t, w.GetWorkflowResult(&out))
	return out
}

func (w *world) holdStatus() contract.HoldStatus {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	var s contract.HoldStatus
	require.NoError(w.t, v.Get(&s))
	return s
}

func paid(ref string) contract.PaymentSucceeded { return contract.PaymentSucceeded{PaymentRef: ref} }

func paidAmount(ref string, amount int64, currency string) contract.PaymentSucceeded {
	m := contract.PaymentSucceeded{PaymentRef: ref}
	m.Amount, m.Currency = money(amount, currency)
	return m
}

func startedAmount(amount int64, currency string) contract.PaymentStarted {
	m := contract.PaymentStarted{PaymentRef: "P1"}
	m.Amount, m.Currency = money(amount, currency)
	return m
}

func (w *world) causes() (out []string) {
	for _, p := range w.payments {
		out = append(out, p.Cause)
	}
	return out
}

func TestHoldPaidBySignal(t *testing.T) {
	w := reserved(t)
	w.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil).Once()
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
	out := w.runHold()
	require.Equal(t, contract.HoldResult{HoldID: holdID, State: contract.HoldSold, PaymentRef: "P1"}, out)
	require.Equal(t, []string{"adopt ok", "confirm ok"}, w.calls)
	require.Zero(t, w.free)
	require.Empty(t, w.payments)
	s := w.holdStatus()
	require.Equal(t, began.Add(10*time.Minute), s.ExpiresAt)
	require.Equal(t, began.Add(time.Minute), *s.EndedAt)
}

func TestHoldPaidByUpdateAndRepeated(t *testing.T) {
	w := reserved(t)
	var first, repeat *answer[contract.ConfirmResult]
	req := contract.ConfirmRequest{PaymentRef: "P1"}
	w.at(time.Minute, func() {
		first = update[contract.ConfirmResult](w, contract.UpdateConfirm, "a", req)
		repeat = update[contract.ConfirmResult](w, contract.UpdateConfirm, "b", req)
	})
	require.Equal(t, contract.HoldSold, w.runHold().State)
	for _, a := range []*answer[contract.ConfirmResult]{first, repeat} {
		require.True(t, a.done)
		require.NoError(t, a.err)
		require.Equal(t, contract.ConfirmSold, a.result.Outcome)
		require.Equal(t, contract.HoldSold, a.result.Status.State)
		require.Nil(t, a.result.Refund)
	}
	require.Equal(t, 1, w.called("confirm ok"), "the gate is asked once")
	require.Empty(t, w.payments)
}

func TestHoldConfirmRefusesWhatIsNoPayment(t *testing.T) {
	amount, negative := int64(5), int64(-1)
	for name, req := range map[string]contract.ConfirmRequest{
		"payment_ref":        {},
		"without currency":   {PaymentRef: "P", Amount: &amount},
		"without amount":     {PaymentRef: "P", Currency: "EUR"},
		"below 0":            {PaymentRef: "P", Amount: &negative, Currency: "EUR"},
		"three capital lett": {PaymentRef: "P", Amount: &amount, Currency: "euro"},
	} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			var a *answer[contract.ConfirmResult]
			w.at(time.Minute, func() { a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", req) })
			require.Equal(t, contract.HoldExpired, w.runHold().State)
			require.ErrorContains(t, a.rejected, name)
			require.Empty(t, w.payments)
		})
	}
}

func TestHoldExpires(t *testing.T) {
	w := reserved(t)
	out := w.runHold()
	require.Equal(t, contract.HoldExpired, out.State)
	require.Equal(t, contract.ReasonExpired, out.Reason)
	require.Equal(t, began.Add(10*time.Minute), w.hold.EndedAt)
	require.EqualValues(t, 1, w.free)
	require.Equal(t, []string{"adopt ok", "release expired ok"}, w.calls)
}

func TestHoldRefusedAtItsStart(t *testing.T) {
	w := newWorld(t)
	w.hold = &redis.Hold{ID: holdID, State: contract.HoldSwept}
	require.Equal(t, contract.HoldRefused, w.runHold().State)
	require.Equal(t, []string{"adopt sold-out"}, w.calls)
}

func TestHoldSweptIsTriedAfresh(t *testing.T) {
	w := newWorld(t)
	w.free = 1
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.Zero(t, w.free)
}

func TestHoldEarlyAnswerWaitsForTheRest(t *testing.T) {
	w := reserved(t)
	w.at(5*time.Minute, func() {
		w.mu.Lock()
		w.hold.Deadline = w.hold.Deadline.Add(42 * time.Second) // a gate that reopened gives time
		w.mu.Unlock()
	})
	require.Equal(t, contract.HoldExpired, w.runHold().State)
	require.Equal(t, []string{"adopt ok", "release expired early", "release expired ok"}, w.calls)
	require.Equal(t, began.Add(10*time.Minute+42*time.Second), w.hold.EndedAt)
	require.EqualValues(t, 1, w.free)
}

// B24.
func TestHoldIsExtendedOnceAndKeptForGrace(t *testing.T) {
	w := reserved(t)
	for _, minute := range []time.Duration{9, 12, 14} {
		w.at(minute*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	}
	require.Equal(t, contract.HoldExpired, w.runHold().State)
	require.Equal(t, began.Add(16*time.Minute), w.hold.EndedAt, "10 min, one extension of 5, grace of 1")
	s := w.holdStatus()
	require.True(t, s.Extended)
	require.Equal(t, began.Add(15*time.Minute), s.ExpiresAt, "grace is not promised")
	require.Equal(t, []string{"adopt ok", "adopt ok", "release expired ok"}, w.calls)
	require.Equal(t, began.Add(16*time.Minute), w.released.Deadline, "the gate keeps the grace as well")
}

// B23: within its grace the unit is still the shopper's.
func TestHoldPaidInItsGrace(t *testing.T) {
	w := reserved(t)
	w.at(9*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	w.at(15*time.Minute+59*time.Second, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR")) })
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.Zero(t, w.free)
}

func TestHoldDeclined(t *testing.T) {
	t.Run("for good", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{Final: true}) })
		out := w.runHold()
		require.Equal(t, contract.HoldReleased, out.State)
		require.Equal(t, contract.ReasonPaymentFailed, out.Reason)
		require.Equal(t, began.Add(time.Minute), w.hold.EndedAt)
		require.EqualValues(t, 1, w.free)
	})
	t.Run("not for good, never tried again", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P1"}) })
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1"}) })
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, began.Add(15*time.Minute), w.hold.EndedAt, "the extension stays, the grace goes")
	})
	t.Run("not for good, then paid", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P1"}) })
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1"}) })
		w.at(14*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P2"}) })
		w.at(15*time.Minute+30*time.Second, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2")) })
		require.Equal(t, contract.HoldSold, w.runHold().State, "grace counts again, the deadline was not moved twice")
		require.Equal(t, began.Add(15*time.Minute), w.hold.Deadline)
	})
}

func TestHoldReleased(t *testing.T) {
	for given, want := range map[string]string{
		contract.ReasonShopper: contract.ReasonShopper,
		"":                     contract.ReasonShop,
		contract.ReasonExpired: contract.ReasonShop, // only the timer expires a hold
		"fraud":                "fraud",
		// No word: it would stand in the record, the ledger and every list.
		strings.Repeat("é", 65): contract.ReasonShop,
		"a\nb":                  contract.ReasonShop,
	} {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: given}) })
		out := w.runHold()
		require.Equal(t, contract.HoldReleased, out.State)
		require.Equal(t, want, out.Reason)
		require.EqualValues(t, 1, w.free)
	}
}

// B113: a cancelled hold gives its unit back, in whatever it was doing.
func TestHoldCancelledBeforeItIsSold(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"at its start": func(*world) {},
		"held":         func(*world) {},
		"paying": func(w *world) {
			w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
		},
		"with money of another amount": func(w *world) {
			w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
			w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 1, "EUR")) })
		},
		"while the gate is down": func(w *world) {
			w.at(time.Minute+30*time.Second, func() {
				w.down = func(verb string) error {
					if w.Now().Before(began.Add(outage)) {
						return redis.ErrUnavailable
					}
					return nil
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			before(w)
			when := 2*time.Minute + time.Second
			if name == "at its start" {
				when = 0
			}
			w.at(when, w.CancelWorkflow)
			w.ExecuteWorkflow(contract.HoldWorkflow, holdInput())
			require.True(t, w.IsWorkflowCompleted())
			require.True(t, temporal.IsCanceledError(w.GetWorkflowError()), "%v", w.GetWorkflowError())
			require.EqualValues(t, 1, w.free, "the unit is back exactly once")
			require.Equal(t, contract.HoldReleased, w.hold.State)
			require.Equal(t, 1, w.called("release cancelled ok"))
		})
	}
}

func TestHoldCancelledOnceSoldStaysSold(t *testing.T) {
	w := reserved(t)
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		w.CancelWorkflow()
	})
	require.Equal(t, contract.HoldSold, w.runHold().State)
	require.Zero(t, w.free)
}

func TestHoldPaymentAndTimerInOneTask(t *testing.T) {
	t.Run("the payment reaches the gate first", func(t *testing.T) {
		w := reserved(t)
		w.at(10*time.Minute-time.Millisecond, func() {
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, contract.HoldSold, w.runHold().State)
		require.Equal(t, []string{"adopt ok", "confirm ok"}, w.calls)
	})
	t.Run("the expiry had reached it", func(t *testing.T) {
		w := reserved(t)
		w.at(10*time.Minute-time.Millisecond, func() {
			w.endHold(contract.HoldExpired, contract.ReasonExpired)
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, []string{contract.CauseLate}, w.causes())
		require.EqualValues(t, 1, w.free)
	})
	t.Run("started meets the timer", func(t *testing.T) {
		w := reserved(t)
		w.at(10*time.Minute-time.Millisecond, func() {
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P1"})
		})
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, began.Add(16*time.Minute), w.hold.EndedAt)
	})
}

func TestHoldRidesOutAnOutage(t *testing.T) {
	for name, down := range map[string]error{"unavailable": redis.ErrUnavailable, "closed": &redis.ClosedError{SKU: chair}, "a bug": errors.New("script error")} {
		t.Run(name, func(t *testing.T) {
			w := reserved(t)
			w.down = func(verb string) error {
				if verb == "confirm" && w.Now().Before(began.Add(outage)) {
					return down
				}
				return nil
			}
			w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
			require.Equal(t, contract.HoldSold, w.runHold().State)
			require.True(t, w.hold.EndedAt.After(began.Add(outage)), "%s", w.hold.EndedAt)
			require.Equal(t, name == "closed", w.checks > 0, "who meets the closed gate starts its check")
		})
	}
}

func TestHoldWithoutARecord(t *testing.T) {
	t.Run("a payment waits for it", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() {
			w.noRecord = true
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		w.down = func(string) error {
			if w.Now().After(began.Add(outage)) {
				w.noRecord = false
			}
			return nil
		}
		require.Equal(t, contract.HoldSold, w.runHold().State)
	})
	t.Run("an expiry has nothing to give back", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() { w.noRecord = true })
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Zero(t, w.free)
	})
}

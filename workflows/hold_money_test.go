package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
)

func TestHoldLateAndSecondMoneyGetsAnOwner(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		w := reserved(t)
		var a *answer[contract.ConfirmResult]
		w.at(time.Minute, func() {
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalRelease, contract.Release{Reason: contract.ReasonShopper})
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentFailed, contract.PaymentFailed{Final: true})
		})
		w.at(time.Minute-time.Millisecond, func() { w.endHold(contract.HoldReleased, contract.ReasonShopper) })
		w.at(time.Minute, func() {
			a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", contract.ConfirmRequest{PaymentRef: "P1"})
		})
		require.Equal(t, contract.HoldReleased, w.runHold().State)
		require.Equal(t, contract.ConfirmHoldEnded, a.result.Outcome)
		require.Equal(t, contract.PaymentID(holdID, "P1"), a.result.Refund.PaymentID)
		require.Equal(t, []string{contract.CauseLate}, w.causes())
	})
	t.Run("late, twice", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() {
			w.endHold(contract.HoldReleased, contract.ReasonShopper)
			for range 2 {
				w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
			}
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2"))
		})
		w.runHold()
		require.Len(t, w.payments, 2, "a repeat is no third payment")
	})
	t.Run("second", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() {
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P1"))
			w.SignalWorkflowSkippingWorkflowTask(contract.SignalPaymentSucceeded, paid("P2"))
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		out := w.runHold()
		require.Equal(t, "P1", out.PaymentRef)
		require.Equal(t, []string{contract.CauseSecond}, w.causes(), "the repeat of P1 is the sale")
		require.Equal(t, contract.PaymentID(holdID, "P2"), w.payments[0].PaymentID)
		require.Equal(t, chair, w.payments[0].SKU)
	})
	t.Run("sold by another way", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() {
			w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P9"
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, "P9", w.runHold().PaymentRef)
		require.Equal(t, []string{contract.CauseSecond}, w.causes())
	})
	t.Run("already going back", func(t *testing.T) {
		w := reserved(t)
		w.hold.Refunded = []string{"P1"}
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
		require.Equal(t, contract.HoldExpired, w.runHold().State, "the hold goes on")
		require.Equal(t, []string{contract.CauseLate}, w.causes())
	})
}

func TestHoldMoneyOfAnotherAmount(t *testing.T) {
	begin := func(t *testing.T) *world {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
		return w
	}
	t.Run("goes back before the unit does", func(t *testing.T) {
		w := begin(t)
		var a *answer[contract.ConfirmResult]
		w.at(2*time.Minute, func() {
			req := contract.ConfirmRequest{PaymentRef: "P1"}
			req.Amount, req.Currency = money(50, "EUR")
			a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", req)
		})
		w.at(3*time.Minute, func() {
			require.Equal(t, contract.HoldHeld, w.hold.State)
			require.Empty(t, w.payments, "it is kept while the hold lives")
		})
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, contract.ConfirmAmountMismatch, a.result.Outcome)
		require.Nil(t, a.result.Refund)
		require.Equal(t, []string{contract.CauseMismatched}, w.causes())
		require.Equal(t, []int64{0}, w.freeAt, "its owner came before the unit was free")
		require.EqualValues(t, 50, *w.payments[0].Amount)
	})
	t.Run("is kept while a reopened gate gives more time", func(t *testing.T) {
		for name, in := range map[string]contract.HoldInput{"one line": holdInput(), "a cart": cartInput()} {
			w := reserved(t)
			if len(in.Lines) > 1 {
				w = cart(t)
			}
			w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
			w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 50, "EUR")) })
			w.at(3*time.Minute, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.reopened = began.Add(17 * time.Minute) // ten minutes, five more, a minute of grace
			})
			w.at(16*time.Minute+30*time.Second, func() {
				require.Empty(t, w.payments, name)
				w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR"))
			})
			require.Equal(t, "P1", w.runHoldOf(in).PaymentRef, name)
			require.Empty(t, w.payments, name)
		}
	})
	t.Run("one line of a cart may end", func(t *testing.T) {
		w := cart(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 50, "EUR")) })
		w.at(3*time.Minute, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hold.Deadline = w.hold.Deadline.Add(time.Minute)
		})
		w.at(16*time.Minute+time.Second, func() { require.Equal(t, []string{contract.CauseMismatched}, w.causes()) })
		require.Equal(t, contract.HoldExpired, w.runCart().State)
		require.Equal(t, []int64{0}, w.freeAt)
	})
	t.Run("the last amount that was named counts, also at the gate", func(t *testing.T) {
		w := begin(t)
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(700, "EUR")) })
		w.at(2*time.Minute+time.Second, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(700, "EUR")) })
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, &contract.Money{Amount: 700, Currency: "EUR"}, w.hold.Amount)
		require.Equal(t, began.Add(16*time.Minute), w.hold.EndedAt, "one extension")
		require.Equal(t, 3, w.called("adopt ok"), "the same amount is no news")
	})
	t.Run("named without an extension", func(t *testing.T) {
		w := begin(t)
		in := holdInput()
		in.Settings.ExtensionSeconds = 0
		require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
		require.Equal(t, &contract.Money{Amount: 500, Currency: "EUR"}, w.hold.Amount)
		require.False(t, w.hold.Extended)
	})
	t.Run("another currency is another amount", func(t *testing.T) {
		w := begin(t)
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "USD")) })
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, []string{contract.CauseMismatched}, w.causes())
	})
	t.Run("goes back when another payment sells", func(t *testing.T) {
		w := begin(t)
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 50, "EUR")) })
		w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P2", 500, "EUR")) })
		require.Equal(t, "P2", w.runHold().PaymentRef)
		require.Equal(t, []string{contract.CauseMismatched}, w.causes())
		require.Equal(t, "P1", w.payments[0].PaymentRef)
	})
	t.Run("each payment has its own amount", func(t *testing.T) {
		w := begin(t) // P1 of 500
		w.at(time.Minute+time.Second, func() {
			m := contract.PaymentStarted{PaymentRef: "P2"}
			m.Amount, m.Currency = money(700, "EUR")
			w.SignalWorkflow(contract.SignalPaymentStarted, m)
		})
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR")) })
		require.Equal(t, "P1", w.runHold().PaymentRef)
		require.Empty(t, w.payments)
	})
	t.Run("put right by the same payment", func(t *testing.T) {
		w := begin(t)
		w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 50, "EUR")) })
		w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR")) })
		require.Equal(t, "P1", w.runHold().PaymentRef)
		require.Empty(t, w.payments)
	})
}

func TestHoldParksWhatItCannotRead(t *testing.T) {
	raw := func(data string) converter.RawValue {
		return converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(data)})
	}
	for _, signal := range []string{contract.SignalPaymentStarted, contract.SignalPaymentSucceeded, contract.SignalPaymentFailed} {
		for _, data := range []string{`{"payment_ref":7}`, `not json`, `"12.50"`, ``} {
			w := reserved(t)
			w.at(time.Minute, func() { w.SignalWorkflow(signal, raw(data)) })
			w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
			require.Equal(t, contract.HoldSold, w.runHold().State, "the hold goes on after %s %q", signal, data)
			require.Equal(t, []string{contract.CauseUndecodable}, w.causes(), "%s %q", signal, data)
			require.Equal(t, data, string(w.payments[0].Raw))
			require.Regexp(t, "^raw-[0-9a-f]{64}$", w.payments[0].PaymentRef)
		}
	}
	// A payload of any size neither stops the hold nor travels on whole.
	huge := strings.Repeat("x", 1_600_000)
	big := reserved(t)
	big.at(time.Minute, func() { big.SignalWorkflow(contract.SignalPaymentSucceeded, raw(huge)) })
	big.at(2*time.Minute, func() { big.SignalWorkflow(contract.SignalPaymentSucceeded, paid(huge)) })
	big.at(3*time.Minute, func() { big.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
	require.Equal(t, "P1", big.runHold().PaymentRef, "a reference of a megabyte is no reference")
	require.Equal(t, []string{contract.CauseUndecodable, contract.CauseUndecodable}, big.causes())
	for _, p := range big.payments {
		require.Len(t, p.Raw, 32*1024)
	}
	// Readable, but no payment: nobody knows what it is worth.
	w := reserved(t)
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, raw(`{"payment_ref":"P","amount":5}`)) })
	require.Equal(t, contract.HoldExpired, w.runHold().State)
	require.Equal(t, []string{contract.CauseUndecodable}, w.causes())
}

func TestHoldShortfallGivesMoneyAndHoldBack(t *testing.T) {
	w := reserved(t)
	w.free = -1
	var a *answer[contract.ConfirmResult]
	w.at(time.Minute, func() {
		a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", contract.ConfirmRequest{PaymentRef: "P1"})
	})
	require.Equal(t, contract.HoldReleased, w.runHold().State)
	require.Equal(t, contract.ConfirmHoldEnded, a.result.Outcome)
	require.Equal(t, []string{contract.CauseLate}, w.causes())
	require.Equal(t, []int64{-1}, w.freeAt)
}

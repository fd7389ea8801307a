package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

func paymentOf(ref, cause string) contract.PaymentInput {
	return contract.PaymentInput{PaymentID: contract.PaymentID(holdID, ref), HoldID: holdID, SKU: chair, PaymentRef: ref, Cause: cause}
}

// withRecord is a world whose hold has come to a state.
func withRecord(t *testing.T, state contract.HoldState, ref string) *world {
	w := newWorld(t)
	w.hold = &redis.Hold{ID: holdID, State: state, Units: 1, PaymentRef: ref}
	return w
}

// runPayment asks for the decision twice, then settles after a day.
func (w *world) runPayment(in contract.PaymentInput) (decision contract.PaymentDecision, open bool, end contract.PaymentStatus) {
	var first, repeat *answer[contract.PaymentDecision]
	w.at(0, func() { first = update[contract.PaymentDecision](w, contract.UpdateDecide, "a", in) })
	w.at(day-time.Second, func() { repeat = update[contract.PaymentDecision](w, contract.UpdateDecide, "b", in) })
	w.at(day, func() {
		open = true
		w.SignalWorkflow(contract.SignalRefundSettled, contract.RefundSettled{Reference: "re_1", Actor: "ops"})
	})
	w.ExecuteWorkflow(contract.PaymentWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	require.NoError(w.t, w.GetWorkflowResult(&end))
	require.True(w.t, first.done)
	if open {
		require.Equal(w.t, first.result, repeat.result, "a repeat gets the same answer")
	}
	return first.result, open, end
}

func TestPaymentOfEachCause(t *testing.T) {
	for name, c := range map[string]struct {
		world   func(t *testing.T) *world
		cause   string
		state   string
		outcome string
		marked  bool
	}{
		"late":                  {func(t *testing.T) *world { return withRecord(t, contract.HoldExpired, "") }, contract.CauseLate, contract.PaymentRefundPending, contract.ConfirmHoldEnded, true},
		"late, the hold lives":  {func(t *testing.T) *world { return withRecord(t, contract.HoldHeld, "") }, contract.CauseLate, contract.PaymentSold, contract.ConfirmSold, false},
		"late, made the sale":   {func(t *testing.T) *world { return withRecord(t, contract.HoldSold, "P1") }, contract.CauseLate, contract.PaymentSold, contract.ConfirmSold, false},
		"second":                {func(t *testing.T) *world { return withRecord(t, contract.HoldSold, "P0") }, contract.CauseSecond, contract.PaymentRefundPending, contract.ConfirmConflict, true},
		"mismatched":            {func(t *testing.T) *world { return withRecord(t, contract.HoldHeld, "") }, contract.CauseMismatched, contract.PaymentRefundPending, contract.ConfirmAmountMismatch, true},
		"mismatched, made sale": {func(t *testing.T) *world { return withRecord(t, contract.HoldSold, "P1") }, contract.CauseMismatched, contract.PaymentSold, contract.ConfirmSold, false},
		"unknown hold": {func(t *testing.T) *world {
			w := newWorld(t)
			w.noRecord = true
			return w
		}, contract.CauseUnknown, contract.PaymentParked, contract.ConfirmHoldEnded, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			decision, open, end := w.runPayment(paymentOf("P1", c.cause))
			require.Equal(t, contract.PaymentDecision{State: c.state, Outcome: c.outcome}, decision)
			require.Equal(t, c.state != contract.PaymentSold, open, "money that made no sale keeps its owner")
			if c.marked {
				require.Equal(t, []string{"P1"}, w.hold.Refunded)
			} else if w.hold != nil {
				require.Empty(t, w.hold.Refunded)
			}
			if open {
				require.Equal(t, contract.PaymentRefundSettled, end.State)
				require.Equal(t, "re_1", end.Reference)
			}
		})
	}
}

func TestPaymentNobodyCanRead(t *testing.T) {
	w := withRecord(t, contract.HoldHeld, "")
	in := paymentOf("raw-ab", contract.CauseUndecodable)
	in.Raw = []byte("not json")
	decision, open, end := w.runPayment(in)
	require.Equal(t, contract.PaymentParked, decision.State)
	require.Equal(t, in.Raw, end.Raw)
	require.True(t, open)
	require.Empty(t, w.calls, "the gate has nothing to say about it")
	require.Equal(t, contract.HoldHeld, w.hold.State)
}

func TestPaymentOfAnUnknownSKU(t *testing.T) {
	w := newWorld(t)
	in := paymentOf("P1", contract.CauseUnknown)
	in.SKU = ""
	decision, open, _ := w.runPayment(in)
	require.Equal(t, contract.PaymentParked, decision.State)
	require.True(t, open)
}

// A stranger's start may name nothing that the gate can be asked about: a person must
// look, and the caller gets an answer.
func TestPaymentThatNamesNothing(t *testing.T) {
	for name, change := range map[string]func(in *contract.PaymentInput){
		"no reference":    func(in *contract.PaymentInput) { in.PaymentRef = "" },
		"a long one":      func(in *contract.PaymentInput) { in.PaymentRef = strings.Repeat("é", 201) },
		"no hold":         func(in *contract.PaymentInput) { in.HoldID = "" },
		"what is no SKU":  func(in *contract.PaymentInput) { in.SKU = "no sku" },
		"nothing at all":  func(in *contract.PaymentInput) { *in = contract.PaymentInput{} },
		"an unknown word": func(in *contract.PaymentInput) { in.SKU, in.Cause = "", "whatever" },
	} {
		t.Run(name, func(t *testing.T) {
			w := withRecord(t, contract.HoldExpired, "")
			in := paymentOf("P1", contract.CauseLate)
			change(&in)
			decision, open, _ := w.runPayment(in)
			require.Equal(t, contract.PaymentParked, decision.State)
			require.True(t, open)
			require.Empty(t, w.calls)
		})
	}
}

// Its number is no SKU's: there is no record to wait for.
func TestPaymentOfASKUThatThereIsNot(t *testing.T) {
	w := newWorld(t)
	w.ghosts = []string{chair}
	decision, open, _ := w.runPayment(paymentOf("P1", contract.CauseUnknown))
	require.Equal(t, contract.PaymentParked, decision.State)
	require.True(t, open)
}

func TestPaymentOutlivesACancellation(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	w.at(time.Hour, w.CancelWorkflow)
	_, open, end := w.runPayment(paymentOf("P1", contract.CauseLate))
	require.True(t, open)
	require.Equal(t, contract.PaymentRefundSettled, end.State)
}

func TestPaymentAnswersForItsOwnMoneyOnly(t *testing.T) {
	w := withRecord(t, contract.HoldExpired, "")
	var a *answer[contract.PaymentDecision]
	w.at(time.Hour, func() {
		a = update[contract.PaymentDecision](w, contract.UpdateDecide, "x", paymentOf("P2", contract.CauseLate))
	})
	w.runPayment(paymentOf("P1", contract.CauseLate))
	require.ErrorContains(t, a.rejected, "P2")
}

// The Hold's own confirm of the same money is under way while its Payment decides:
// whoever reaches the gate first wins, and both say the same.
func TestARefundMeetsASlowConfirm(t *testing.T) {
	t.Run("the confirm is first", func(t *testing.T) {
		w := withRecord(t, contract.HoldExpired, "")
		w.down = func(verb string) error {
			if verb == "refund" { // after the Payment's own look, before its mark
				w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P1"
			}
			return nil
		}
		decision, open, _ := w.runPayment(paymentOf("P1", contract.CauseLate))
		require.Equal(t, contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold}, decision)
		require.False(t, open)
		require.Empty(t, w.hold.Refunded)
		require.Empty(t, w.provider.asked, "the payment that made the sale is asked back by nobody")
	})
	t.Run("the mark is first", func(t *testing.T) {
		w := reserved(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
		w.down = func(verb string) error {
			if verb == "confirm" {
				w.hold.Refunded = []string{"P1"}
			}
			return nil
		}
		require.Equal(t, contract.HoldExpired, w.runHold().State)
		require.Equal(t, []string{contract.CauseLate}, w.causes(), "its Payment answers for it")
	})
}

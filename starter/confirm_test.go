package starter

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

func (h *house) confirm(holdID, ref string) answer {
	h.t.Helper()
	return h.call("POST", "/v1/holds/"+holdID+"/confirm", map[string]any{"payment_ref": ref})
}

func TestConfirm(t *testing.T) {
	h := newHouse(t, 2)
	v := h.hold()
	a := h.confirm(v.HoldID, "p1")
	require.Equal(t, http.StatusOK, a.status, a.body)
	sold := a.hold(t)
	require.Equal(t, []any{contract.HoldSold, "p1"}, []any{sold.State, sold.PaymentRef})
	require.Equal(t, [4]int64{1, 0, 0, 1}, h.parts())

	// The answer was lost: the same ref, also after the run has closed.
	h.untouched(func() {
		again := h.confirm(v.HoldID, "p1")
		require.Equal(t, http.StatusOK, again.status)
		same := again.hold(t)
		same.Now = sold.Now
		require.Equal(t, sold, same)
		require.Empty(t, h.wf.decided)
		exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil), 409, holdEnded)
		exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/payment-failed", map[string]any{"final": true}), 409, holdEnded)
	})

	// Another payment for the same sale is refunded.
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmConflict}
	h.untouched(func() {
		p := exact(t, h.confirm(v.HoldID, "p2"), 409, paymentConflict)
		require.Equal(t, &contract.RefundInfo{PaymentID: contract.PaymentID(v.HoldID, "p2"), PaymentRef: "p2", State: contract.PaymentRefundPending}, p.Refund)
	})
	require.Equal(t, contract.CauseSecond, h.wf.decided[0].Cause)
	require.Equal(t, h.sku, h.wf.decided[0].SKU)
}

func TestConfirmLate(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil)
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	p := exact(t, h.confirm(v.HoldID, "late"), 409, holdEnded)
	require.Equal(t, contract.PaymentRefundPending, p.Refund.State)
	require.Equal(t, contract.CauseLate, h.wf.decided[0].Cause)

	// The Payment found a way to sell it all the same.
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold}
	require.Equal(t, http.StatusOK, h.confirm(v.HoldID, "lucky").status)

	h.wf.fail["Decide"] = errTemporalDown
	exact(t, h.confirm(v.HoldID, "again"), 503, unavailable)
}

// The money has gone back: a checkout that repeats itself later is told so, and
// nobody is asked to pay it back once more.
func TestConfirmAfterASettledRefund(t *testing.T) {
	h := newHouse(t, 2)
	late, sold := h.hold(), h.askHold("another").hold(t)
	h.call("POST", "/v1/holds/"+late.HoldID+"/release", nil)
	h.confirm(sold.HoldID, "p1")
	for hold, code := range map[string]string{late.HoldID: holdEnded, sold.HoldID: paymentConflict} {
		run := PaymentRun{ID: contract.PaymentID(hold, "p2"), RunID: "run at " + hold, StartedAt: paidAt}
		h.closes(run, contract.PaymentStatus{State: contract.PaymentRefundSettled}, true)
		for range 2 {
			p := exact(t, h.confirm(hold, "p2"), 409, code)
			require.Equal(t, &contract.RefundInfo{PaymentID: run.ID, PaymentRef: "p2", State: contract.PaymentRefundSettled}, p.Refund)
		}
		require.Empty(t, h.wf.decided)
		// One that was terminated has settled nothing.
		h.closes(run, contract.PaymentStatus{State: contract.PaymentRefundPending}, false)
	}
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	exact(t, h.confirm(late.HoldID, "p2"), 409, holdEnded)
	require.Len(t, h.wf.decided, 1)
}

// The Hold has handed the money over, and its Payment may still make the sale: the
// answer is the Payment's.
func TestConfirmHandedOver(t *testing.T) {
	h := newHouse(t, 3)
	for outcome, cause := range map[string]string{
		contract.ConfirmHoldEnded: contract.CauseLate, contract.ConfirmConflict: contract.CauseSecond, contract.ConfirmAmountMismatch: contract.CauseMismatched,
	} {
		v := h.askHold(outcome).hold(t)
		h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
			return contract.ConfirmResult{Outcome: outcome, Refund: &contract.RefundInfo{
				PaymentID: contract.PaymentID(v.HoldID, "p"), PaymentRef: "p", State: contract.PaymentDeciding,
			}}, nil
		}
		h.wf.decided = nil
		h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
		require.Equal(t, contract.PaymentRefundPending, exact(t, h.confirm(v.HoldID, "p"), 409, holdEnded).Refund.State)
		require.Len(t, h.wf.decided, 1)
		require.Equal(t, []string{cause, h.sku, v.HoldID}, []string{h.wf.decided[0].Cause, h.wf.decided[0].SKU, h.wf.decided[0].HoldID})

		h.wf.decision = contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold}
		require.Equal(t, http.StatusOK, h.confirm(v.HoldID, "p").status)
	}
}

// No final word before the decision: the payment has its owner, a repeat finds out.
func TestConfirmUndecided(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil)
	h.wf.fail["Decide"] = context.DeadlineExceeded
	p := exact(t, h.confirm(v.HoldID, "p"), 503, unavailable)
	require.Contains(t, p.Detail, "it is recorded")
	require.Len(t, h.wf.payments, 1)
	require.Equal(t, contract.PaymentID(v.HoldID, "p"), h.wf.payments[0].PaymentID)
	require.Equal(t, []string{h.sku, contract.CauseLate}, []string{h.wf.payments[0].SKU, h.wf.payments[0].Cause})

	h.wf.fail["Payment"] = errTemporalDown
	require.Contains(t, exact(t, h.confirm(v.HoldID, "p"), 503, unavailable).Detail, "not recorded")
}

func TestConfirmUnknown(t *testing.T) {
	h := newHouse(t, 1)
	for _, id := range []string{contract.HoldID("NOBODY", []byte("eleven bytes")), "hold_x", "nonsense"} {
		exact(t, h.confirm(id, "p"), 404, unknownHold)
	}
	require.Empty(t, h.wf.decided)

	// Our SKU, but no record and no workflow: the money gets an owner.
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmHoldEnded}
	id := contract.HoldID(h.sku, []byte("eleven bytes"))
	p := exact(t, h.confirm(id, "p"), 409, holdEnded)
	require.Equal(t, contract.PaymentParked, p.Refund.State)
	require.Contains(t, p.Detail, "a person must find out what it is")
	require.Equal(t, contract.CauseUnknown, h.wf.decided[0].Cause)
}

// The hold is not sold and not over: nobody is told so of money that another one was
// told of before.
func TestConfirmByThePaymentOfAnotherHold(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmConflict}
	h.wf.onConfirm = func(_ context.Context, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{Outcome: contract.ConfirmHoldEnded, Refund: &contract.RefundInfo{State: contract.PaymentDeciding}}, nil
	}
	p := exact(t, h.confirm(v.HoldID, "of-another"), 409, paymentConflict)
	require.Equal(t, contract.PaymentParked, p.Refund.State)
	require.Contains(t, p.Detail, "told for another hold before")
	require.NotContains(t, p.Detail, "sold by another payment")
	require.Equal(t, contract.HoldHeld, h.record(v.HoldID).State)
}

// The hold ends between the look at its record and the update.
func TestConfirmRacesAnEnd(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil).status)
		return contract.ConfirmResult{}, launch.ErrNoOwner
	}
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	exact(t, h.confirm(v.HoldID, "p"), 409, holdEnded)
	require.Equal(t, contract.CauseLate, h.wf.decided[0].Cause)
}

// It was sold by this very payment meanwhile: no Payment is needed.
func TestConfirmRacesItsOwnSale(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.onConfirm = func(ctx context.Context, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
		_, err := h.gate.Confirm(ctx, redis.ConfirmRequest{SKU: h.sku, HoldID: v.HoldID, PaymentRef: req.PaymentRef})
		require.NoError(t, err)
		return contract.ConfirmResult{}, launch.ErrNoOwner
	}
	require.Equal(t, contract.HoldSold, h.confirm(v.HoldID, "p").hold(t).State)
	require.Empty(t, h.wf.decided)
}

// The record lives but its workflow is gone: the Payment decides by the gate.
func TestConfirmWithoutOwner(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.set(func() { delete(h.wf.holds, v.HoldID) })
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	exact(t, h.confirm(v.HoldID, "p"), 409, holdEnded)
	require.Len(t, h.wf.decided, 1)
}

func TestConfirmAnswersOfTheWorkflow(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	refund := &contract.RefundInfo{PaymentID: "payment_x", PaymentRef: "p", State: contract.PaymentRefundPending}
	for outcome, code := range map[string]string{
		contract.ConfirmHoldEnded: holdEnded, contract.ConfirmConflict: paymentConflict, contract.ConfirmAmountMismatch: amountMismatch,
	} {
		h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
			return contract.ConfirmResult{Outcome: outcome, Refund: refund}, nil
		}
		require.Equal(t, refund, exact(t, h.confirm(v.HoldID, "p"), 409, code).Refund)
	}
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{}, temporal.NewNonRetryableApplicationError("no payment", contract.ErrBadRequest, nil)
	}
	exact(t, h.confirm(v.HoldID, "p"), 422, validationFailed)
	require.Empty(t, h.wf.sent(), "what is no payment is not left as one")
}

// Each request is an update of its own: an amount that was refused may be right
// when it is asked again.
func TestConfirmUpdateID(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.set(func() { h.wf.updates = nil })
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{Outcome: contract.ConfirmAmountMismatch}, nil
	}
	for range 2 {
		h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "p", "amount": 1, "currency": "EUR"})
	}
	require.NotEqual(t, h.wf.updates[0], h.wf.updates[1])
}

// An update that stays unanswered leaves the payment as a signal.
func TestConfirmUnanswered(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.inert = true
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{}, context.DeadlineExceeded
	}
	p := exact(t, h.confirm(v.HoldID, "p"), 503, unavailable)
	require.Contains(t, p.Detail, "the payment is recorded")
	require.Equal(t, []sentSignal{{v.HoldID, contract.SignalPaymentSucceeded, contract.PaymentSucceeded{PaymentRef: "p"}}}, h.wf.sent())

	h.wf.fail["Signal"] = errors.New("down")
	p = exact(t, h.confirm(v.HoldID, "p"), 503, unavailable)
	require.Contains(t, p.Detail, "not recorded")
}

// While the gate is closed the payment is left for the hold's workflow, too.
func TestConfirmAtAClosedGate(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.inert = true
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", "another server").Err())
	p := exact(t, h.confirm(v.HoldID, "p"), 503, unavailable)
	require.Contains(t, p.Detail, "the payment is recorded")
	require.Equal(t, []sentSignal{{v.HoldID, contract.SignalPaymentSucceeded, contract.PaymentSucceeded{PaymentRef: "p"}}}, h.wf.sent())
}

package starter

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
)

func (h *house) retry(id string) answer {
	h.t.Helper()
	return h.call("POST", "/v1/refunds/"+id+"/retry", nil)
}

func TestRetry(t *testing.T) {
	h := newHouse(t, 0)
	run, s := h.payment("pay-1", contract.PaymentRefundPending)
	answers := true
	h.wf.onRetry = func(_ context.Context, id string, req contract.RefundRetry) (contract.PaymentStatus, bool, error) {
		require.Equal(t, run.ID, id)
		require.NotEmpty(t, req.Actor)
		s.ByHand = "401: set the key"
		h.wf.set(func() { h.wf.statuses[id] = s })
		return s, answers, nil
	}
	a := h.retry(run.ID)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var v refundView
	a.into(t, &v)
	require.Equal(t, []string{run.ID, contract.PaymentRefundPending, "401: set the key"}, []string{v.PaymentID, v.State, v.ByHand})

	answers = false
	require.Equal(t, http.StatusAccepted, h.retry(run.ID).status, "asked, and no answer yet")

	// It settled in this very moment, or before.
	h.wf.onRetry = func(context.Context, string, contract.RefundRetry) (contract.PaymentStatus, bool, error) {
		s.State, s.Reference = contract.PaymentRefundSettled, "re_1"
		h.closes(run, s, true)
		return s, false, launch.ErrNoOwner
	}
	for range 2 {
		a = h.retry(run.ID)
		require.Equal(t, http.StatusOK, a.status, a.body)
		a.into(t, &v)
		require.Equal(t, []string{contract.PaymentRefundSettled, "re_1"}, []string{v.State, v.Reference})
	}
	require.Equal(t, 3, h.wf.called("RetryRefund"))
}

func TestRetryRefusals(t *testing.T) {
	h := newHouse(t, 0)
	run, _ := h.payment("pay-1", contract.PaymentParked)
	h.wf.onRetry = func(context.Context, string, contract.RefundRetry) (contract.PaymentStatus, bool, error) {
		return contract.PaymentStatus{}, false, temporal.NewApplicationError("it is parked", "x")
	}
	p := exact(t, h.retry(run.ID), 422, validationFailed)
	require.Contains(t, p.Detail, "it is parked")
	h.wf.fail["RetryRefund"] = errTemporalDown
	exact(t, h.retry(run.ID), 503, unavailable)

	sold, s := h.payment("pay-2", contract.PaymentSold)
	h.closes(sold, s, true)
	exact(t, h.retry(sold.ID), 409, holdEnded)
	gone, s := h.payment("pay-3", contract.PaymentRefundPending)
	h.closes(gone, s, false)
	h.wf.fail["RetryRefund"] = launch.ErrNoOwner
	p = exact(t, h.retry(gone.ID), 409, holdEnded)
	require.Contains(t, p.Detail, `confirm payment "pay-3"`)
	for _, id := range []string{contract.PaymentID(s.HoldID, "never seen"), "payment_x"} {
		exact(t, h.retry(id), 404, unknownHold)
	}
	exact(t, h.call("POST", "/v1/refunds/"+run.ID+"/retry", map[string]any{"force": true}), 422, validationFailed, "/force")
	exact(t, h.call("POST", "/v1/refunds/"+run.ID+"/retry", nil, "Authorization", "Bearer wrong"), 401, unauthorized)
}

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
)

// Money in the hands of strangers and operators: a Payment that somebody starts, settles
// before its gate has decided, or terminates. It buys once, goes back once, or waits for a
// person, and never without an owner.
func TestMoneyInManyHands(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "8s"}}, 8*time.Second)
	t.Run("a Payment of a cart's other line", h.paidForAnotherLine)
	t.Run("settled while its gate is closed", h.settledAtAClosedGate)
	t.Run("terminated while its refund waits", h.terminatedWhileItWaits)
	t.Run("terminated while its gate is closed", h.terminatedAtAClosedGate)
}

// lateMoney is a released hold whose unit is free again, and the input of a Payment of it.
func (h *house) lateMoney(t *testing.T, sku, ref string) (hold string, in map[string]any) {
	t.Helper()
	ctx := t.Context()
	h.opened(t, sku, 1)
	taken, err := h.shop.Hold(ctx, sku, "late")
	require.NoError(t, err)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, taken.HoldID, "", "release", map[string]string{"reason": "shop"}))
	require.NoError(t, h.closed(ctx, taken.HoldID))
	return taken.HoldID, map[string]any{
		"payment_id": paymentID(taken.HoldID, ref), "hold_id": taken.HoldID, "sku": sku, "payment_ref": ref, "cause": "late",
	}
}

// begin starts a Payment as a stranger does.
func (h *house) begin(t *testing.T, in map[string]any) (id string) {
	t.Helper()
	id = in["payment_id"].(string)
	_, err := h.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "holdfast"}, "Payment", in)
	require.NoError(t, err)
	return id
}

func (h *house) shuts(t *testing.T, sku string) {
	t.Helper()
	require.NoError(t, h.redis.HSet(t.Context(), "hf:{"+sku+"}:stock", "fence", "elsewhere").Err())
}

func (h *house) settlesPayment(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, h.temporal.SignalWorkflow(t.Context(), id, "", "refund-settled", map[string]string{"reference": "re_1", "actor": "ops"}))
}

func (h *house) paidForAnotherLine(t *testing.T) {
	ctx := t.Context()
	skus := h.cartSKUs(t, "other-line", 1, 1, 1)
	cart, err := h.shop.Cart(ctx, skus, "ada")
	require.NoError(t, err)
	id := h.begin(t, map[string]any{
		"payment_id": paymentID(cart.HoldID, "pay_other"), "hold_id": cart.HoldID, "sku": skus[1], "payment_ref": "pay_other", "cause": "late",
	})
	h.status(t, id, "waits for a person", inState("parked"))
	h.requireCounts(t, skus, 1, 0)
	a, err := h.pay(ctx, cart.HoldID, "pay_other") // as its details say
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	h.settlesPayment(t, id)
	require.NoError(t, h.closed(ctx, id))
	require.NoError(t, h.closed(ctx, cart.HoldID))
	h.requireCounts(t, skus, 0, 1)
	h.judge(t, skus...)
}

func (h *house) settledAtAClosedGate(t *testing.T) {
	const sku = "settled-closed"
	_, in := h.lateMoney(t, sku, "pay_settled")
	h.shuts(t, sku)
	id := h.begin(t, in)
	h.happened(t, id, "the gate does not answer", scheduled("ConfirmHold"))
	h.settlesPayment(t, id)
	require.NoError(t, h.closed(t.Context(), id))
	h.status(t, id, "is settled", inState("refund-settled"))
	h.requireCounts(t, []string{sku}, 0, 0)
	a, err := h.pay(t.Context(), in["hold_id"].(string), "pay_settled")
	require.NoError(t, err)
	require.Equal(t, "refund-settled", a.Problem().Refund.State, "a repeat buys nothing and asks nobody: %s", a)
	h.judge(t, sku)
}

func (h *house) terminatedWhileItWaits(t *testing.T) {
	const sku = "ended-waiting"
	_, in := h.lateMoney(t, sku, "pay_ended")
	id := h.begin(t, in)
	h.status(t, id, "waits for its refund", inState("refund-pending"))
	h.revived(t, sku, id)
}

func (h *house) terminatedAtAClosedGate(t *testing.T) {
	const sku = "ended-closed"
	_, in := h.lateMoney(t, sku, "pay_closed")
	h.shuts(t, sku)
	id := h.begin(t, in)
	h.happened(t, id, "the gate does not answer", scheduled("ConfirmHold"))
	h.revived(t, sku, id)
}

// revived terminates a Payment. It has an owner again as soon as Reconcile has looked.
func (h *house) revived(t *testing.T, sku, id string) {
	t.Helper()
	ctx := t.Context()
	before, err := h.temporal.DescribeWorkflow(ctx, id, "")
	require.NoError(t, err)
	first := before.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	require.NoError(t, h.temporal.TerminateWorkflow(ctx, id, first, "by an operator"))
	require.NoError(t, until(ctx, "its money has an owner", func() error {
		h.reconcile(t, sku)
		now, err := h.temporal.DescribeWorkflow(ctx, id, "")
		if err == nil && now.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId() == first {
			err = errNotYet
		}
		return err
	}))
	h.status(t, id, "waits for its refund", inState("refund-pending"))
	h.settlesPayment(t, id)
	require.NoError(t, h.closed(ctx, id))
	require.Zero(t, h.reconcile(t, sku).Found, "a second look finds nothing")
	h.requireCounts(t, []string{sku}, 0, 0)
	h.judge(t, sku)
}

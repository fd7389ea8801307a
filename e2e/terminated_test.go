package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"holdfast/activities"
	"holdfast/codec"
	"holdfast/config"
	"holdfast/dev/stack"
	"holdfast/e2e/history"
	"holdfast/e2e/shop"
)

// An operator terminates holds that were told of money. What nobody has settled
// is in their histories, and comes out whole: no more and no less.
func TestATerminatedHoldLeavesItsMoney(t *testing.T) {
	t.Run("plain", func(t *testing.T) { terminatedHolds(t, "") })
	t.Run("encrypted", func(t *testing.T) { terminatedHolds(t, config.DevPayloadKey) })
}

func terminatedHolds(t *testing.T, key string) {
	ctx := t.Context()
	env := map[string]string{}
	var ring []codec.Key
	if key != "" {
		env["HOLDFAST_SECRETS_PAYLOAD_KEYS"] = key
		id, secret, ok := config.PayloadKey(key)
		require.True(t, ok)
		ring = append(ring, codec.Key{ID: id, Secret: secret})
	}
	payloads, err := codec.New(ring...)
	require.NoError(t, err)
	h := ownHouse(t, stack.Options{Env: env}, lease)
	plain := h.temporal
	t.Cleanup(plain.Close)
	h.temporal = privateStory{h: h, codec: payloads}.client(t)
	worker, redis := h.Child(stack.Worker), h.Child(stack.Redis)
	left := func(id, runID string) []string {
		t.Helper()
		all, err := activities.UnsettledPayments(ctx, plain, payloads, id, runID)
		require.NoError(t, err)
		out := []string{}
		for _, in := range all {
			require.Equal(t, paymentID(id, in.PaymentRef), in.PaymentID)
			ref := in.PaymentRef
			if in.Cause == "undecodable" {
				ref = string(in.Raw)
			}
			out = append(out, in.SKU+" "+ref+" "+in.Cause)
		}
		return out
	}
	terminate := func(id, runID string) {
		t.Helper()
		require.NoError(t, h.temporal.TerminateWorkflow(ctx, id, runID, "by an operator"))
	}
	hold := func(sku string) string {
		t.Helper()
		return (&play{house: h}).walkIn(t, h.shop, sku)
	}
	succeeded := func(id string, m any) {
		t.Helper()
		require.NoError(t, h.temporal.SignalWorkflow(ctx, id, "", "payment-succeeded", m))
	}

	// The gate does not answer: the update is accepted, and its sale not made.
	update := hold("by-update")
	require.NoError(t, redis.Suspend())
	_, err = h.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: update, UpdateName: "confirm", Args: []any{euros("pay_update", 500)}, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	require.NoError(t, err)
	h.happened(t, update, "the sale waits for Redis", scheduled("ConfirmHold"))
	terminate(update, "")
	require.NoError(t, redis.Resume())
	require.Equal(t, []string{"by-update pay_update late"}, left(update, ""))

	// The worker is away when the money comes, and when the operator does.
	signal, twice := hold("by-signal"), hold("twice")
	require.NoError(t, worker.Stop())
	succeeded(signal, euros("pay_signal", 500))
	succeeded(signal, money{"payment_ref": 17})
	terminate(signal, "")
	require.Equal(t, []string{"by-signal pay_signal late", `by-signal {"payment_ref":17} undecodable`}, left(signal, ""))

	// One payment made the sale, another has its Payment. The run has closed; an
	// operator resets it, and terminates what that began.
	succeeded(twice, euros("pay_first", 500))
	succeeded(twice, euros("pay_second", 500))
	require.NoError(t, worker.Start(ctx))
	require.NoError(t, h.closed(ctx, twice))
	require.Empty(t, left(twice, ""))
	require.NoError(t, worker.Stop())
	run, err := h.temporal.DescribeWorkflow(ctx, twice, "")
	require.NoError(t, err)
	again := h.reset(t, twice, run.WorkflowExecution.RunID)
	terminate(twice, again)
	require.Empty(t, left(twice, again), "sold by the first, and the second has its owner")
	again = h.reset(t, twice, run.WorkflowExecution.RunID)
	succeeded(twice, euros("pay_third", 500))
	terminate(twice, again)
	require.Equal(t, []string{"twice pay_third second"}, left(twice, again))
}

// reset begins a run again at its last workflow task, as a new run.
func (h *house) reset(t *testing.T, id, runID string) string {
	t.Helper()
	got, err := history.Of(t.Context(), h.temporal, id, runID)
	require.NoError(t, err)
	var last *historypb.HistoryEvent
	for _, e := range got.GetEvents() {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = e
		}
	}
	r, err := h.temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runID}, Reason: "story",
		WorkflowTaskFinishEventId: last.GetEventId(), RequestId: shop.Token(),
	})
	require.NoError(t, err)
	return r.GetRunId()
}

package starter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast/contract"
)

// payments stands for Temporal's frontend.
type payments struct {
	client.Client
	asked []*workflowservice.ListWorkflowExecutionsRequest
	info  *workflowpb.WorkflowExecutionInfo
	err   error
}

func (p *payments) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	p.asked = append(p.asked, r)
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{p.info}, NextPageToken: []byte("next")}, p.err
}

func (p *payments) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return &client.WorkflowExecutionDescription{
		RawResponse: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: p.info},
	}, p.err
}

func TestPaymentRunsOfVisibility(t *testing.T) {
	attribute := func(value any) *commonpb.Payload {
		p, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		return p
	}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "payment_1", RunId: "run"}, StartTime: timestamppb.New(paidAt),
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
			contract.SKUAttribute: attribute([]string{"CHAIR"}), contract.StateAttribute: attribute("parked"),
		}},
	}
	temporal := &payments{info: info}
	v := visibility{temporal, "shop"}
	want := PaymentRun{ID: "payment_1", RunID: "run", SKU: "CHAIR", State: "parked", StartedAt: paidAt}
	yes, no := true, false
	for _, c := range []struct {
		sku   string
		open  *bool
		query string
	}{
		{"", nil, "WorkflowType='Payment'"},
		{"CHAIR", &yes, "WorkflowType='Payment' AND HoldfastSku='CHAIR' AND ExecutionStatus!='Completed'"},
		{"", &no, "WorkflowType='Payment' AND ExecutionStatus='Completed'"},
	} {
		runs, next, err := v.Payments(t.Context(), c.sku, c.open, 7, []byte("cursor"))
		require.NoError(t, err)
		require.Equal(t, []PaymentRun{want}, runs)
		require.Equal(t, "next", string(next))
		asked := temporal.asked[len(temporal.asked)-1]
		require.Equal(t, []any{c.query, int32(7), "cursor"}, []any{asked.GetQuery(), asked.GetPageSize(), string(asked.GetNextPageToken())})
	}
	for status, completed := range map[enumspb.WorkflowExecutionStatus]bool{
		enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED: true, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: false, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED: false,
	} {
		info.Status, info.CloseTime = status, timestamppb.New(paidAt.Add(time.Hour))
		want.ClosedAt, want.Completed = paidAt.Add(time.Hour), completed
		run, ok, err := v.Payment(t.Context(), "payment_1")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, run)
	}
	// A stranger's start has no attributes.
	info.SearchAttributes = nil
	want.SKU, want.State = "", ""
	run, _, err := v.Payment(t.Context(), "payment_1")
	require.NoError(t, err)
	require.Equal(t, []string{"", ""}, []string{run.SKU, run.State})

	// What nobody can read is no Payment without a state.
	info.SearchAttributes = &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{contract.StateAttribute: attribute([]int{1})}}
	_, _, err = v.Payments(t.Context(), "", nil, 1, nil)
	require.ErrorContains(t, err, contract.StateAttribute)

	temporal.err = serviceerror.NewNotFound("none")
	_, ok, err := v.Payment(t.Context(), "payment_1")
	require.NoError(t, err)
	require.False(t, ok)
	temporal.err = errTemporalDown
	_, _, err = v.Payment(t.Context(), "payment_1")
	require.ErrorIs(t, err, errTemporalDown)
	_, _, err = v.Payments(t.Context(), "", nil, 1, nil)
	require.ErrorIs(t, err, errTemporalDown)
}

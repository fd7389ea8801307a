package launch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

// starts answers every start alike and keeps how it was asked.
type starts struct {
	client.Client
	err  error
	opts client.StartWorkflowOptions
}

func (s *starts) ExecuteWorkflow(_ context.Context, opts client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	s.opts = opts
	return nil, s.err
}

// An event that has its owner, or had it and was delivered, gets no second one.
func TestAnEventHasOneOwner(t *testing.T) {
	in := contract.EventInput{EventID: contract.EventID("hold_1", contract.EventHoldCreated, ""), Type: contract.EventHoldCreated, Subject: "hold_1", SKUs: []string{"CHAIR"}}
	s := &starts{}
	require.NoError(t, New(s).Event(t.Context(), in))
	require.Equal(t, in.EventID, s.opts.ID)
	require.Equal(t, contract.EventsTaskQueue, s.opts.TaskQueue)
	require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, s.opts.WorkflowIDReusePolicy)
	require.True(t, s.opts.WorkflowExecutionErrorWhenAlreadyStarted)

	s.err = serviceerror.NewWorkflowExecutionAlreadyStarted("it has", "", "run")
	require.NoError(t, New(s).Event(t.Context(), in))
	s.err = serviceerror.NewUnavailable("away")
	require.ErrorContains(t, New(s).Event(t.Context(), in), in.EventID)
}

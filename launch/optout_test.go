package launch

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
)

// lastRun is a Temporal that knows the last run of one OptOut.
type lastRun struct {
	client.Client
	client.WorkflowRun
	status enumspb.WorkflowExecutionStatus // 0: never started
	seen   []string
	byErr  error // of its result
	err    error // of every look

	signals []contract.Said
	inputs  []contract.OptOutInput
}

func (r *lastRun) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	switch {
	case r.err != nil:
		return nil, r.err
	case id != "optout_ada" || r.status == 0:
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
		Status: r.status, WorkflowExecution: workflow.Execution{ID: id, RunID: "run"},
	}}, nil
}

func (r *lastRun) GetWorkflow(context.Context, string, string) client.WorkflowRun { return r }

func (r *lastRun) GetWithOptions(_ context.Context, out any, _ client.WorkflowRunGetOptions) error {
	out.(*contract.OptOutResult).Seen = r.seen
	return r.byErr
}

func (r *lastRun) SignalWorkflow(_ context.Context, id, _, _ string, arg any) error {
	if id != "optout_ada" || r.status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return serviceerror.NewNotFound("it has closed")
	}
	r.signals = append(r.signals, arg.(contract.Said))
	return nil
}

func (r *lastRun) SignalWithStartWorkflow(_ context.Context, _, _ string, arg any, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	r.signals = append(r.signals, arg.(contract.Said))
	r.inputs = append(r.inputs, args[0].(contract.OptOutInput))
	return r, nil
}

func TestOpenMeansOptedOut(t *testing.T) {
	for status, want := range map[enumspb.WorkflowExecutionStatus]bool{
		0: false, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING: true, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED: false,
	} {
		out, err := New(&lastRun{status: status}).OptedOut(t.Context(), "ada")
		require.NoError(t, err)
		require.Equal(t, want, out, status)
	}
	_, err := New(&lastRun{err: serviceerror.NewUnavailable("away")}).OptedOut(t.Context(), "ada")
	require.ErrorContains(t, err, "away")
	_, err = New(&lastRun{err: serviceerror.NewNamespaceNotFound("shop")}).OptedOut(t.Context(), "ada")
	require.Error(t, err, "a missing namespace is an outage")
}

func TestAWordIsHeardOnce(t *testing.T) {
	stop := func(id string) contract.Said { return contract.Said{Word: contract.SaidStop, MessageID: id} }
	start := contract.Said{Word: contract.SaidStart, MessageID: "SM2"}

	r := &lastRun{status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, seen: []string{"SM1", "SM2"}}
	require.NoError(t, New(r).Said(t.Context(), "ada", stop("SM1")), "the last run has heard it")
	require.NoError(t, New(r).Said(t.Context(), "ada", start), "there is nothing to end")
	require.Empty(t, r.signals)
	require.NoError(t, New(r).Said(t.Context(), "ada", stop("SM3")))
	require.NoError(t, New(r).Said(t.Context(), "ada", stop("")), "a refusal has no message")
	require.Equal(t, []contract.OptOutInput{{Person: "ada", Seen: []string{"SM1", "SM2"}}, {Person: "ada"}}, r.inputs)

	r = &lastRun{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	require.NoError(t, New(r).Said(t.Context(), "ada", start))
	require.Equal(t, []contract.Said{start}, r.signals)

	r = &lastRun{status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, byErr: &temporal.WorkflowExecutionError{}}
	require.NoError(t, New(r).Said(t.Context(), "ada", stop("SM1")), "one ended by force has left no result")
	require.Len(t, r.signals, 1)

	r = &lastRun{err: errors.New("away")}
	require.ErrorContains(t, New(r).Said(t.Context(), "ada", stop("SM1")), "away")
}

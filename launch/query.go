package launch

import (
	"context"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
)

// Status answers the query status of a workflow, open or closed, into out;
// ErrNoOwner when Temporal does not know the id.
func (l *Launcher) Status(ctx context.Context, workflowID string, out any) error {
	v, err := l.c.QueryWorkflow(ctx, workflowID, "", contract.QueryStatus)
	if err != nil {
		return noOwner(err)
	}
	return v.Get(out)
}

// OpenStatus answers the query status of an open workflow into out; ErrNoOwner when
// it has closed or Temporal does not know the id.
func (l *Launcher) OpenStatus(ctx context.Context, workflowID string, out any) error {
	v, err := l.queryOpen(ctx, workflowID, contract.QueryStatus)
	if err != nil {
		return err
	}
	return v.Get(out)
}

func (l *Launcher) queryOpen(ctx context.Context, workflowID, query string) (converter.EncodedValue, error) {
	v, err := l.c.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: workflowID, QueryType: query, QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	switch {
	case err != nil:
		return nil, noOwner(err)
	case v.QueryRejected != nil:
		return nil, fmt.Errorf("%w: it is %s", ErrNoOwner, v.QueryRejected.GetStatus())
	}
	return v.QueryResult, nil
}

// Next answers what an open workflow shows an operator as its next step, in plain words,
// "" when it shows none; ErrNoOwner when it has closed or Temporal does not know the id.
func (l *Launcher) Next(ctx context.Context, workflowID string) (string, error) {
	v, err := l.queryOpen(ctx, workflowID, metadataQuery)
	if err != nil {
		return "", err
	}
	var m sdkpb.WorkflowMetadata
	if err := v.Get(&m); err != nil {
		return "", err
	}
	for line := range strings.Lines(m.GetCurrentDetails()) {
		if next, ok := strings.CutPrefix(line, "- **Next**: "); ok {
			return strings.TrimSpace(strings.ReplaceAll(next, "**", "")), nil
		}
	}
	return "", nil
}

// metadataQuery is answered by every workflow of the SDK.
const metadataQuery = "__temporal_workflow_metadata"

// Result answers what a run of a workflow that has completed returned, into out;
// no worker is needed. ErrNoOwner when Temporal does not know the run.
func (l *Launcher) Result(ctx context.Context, workflowID, runID string, out any) error {
	run := l.c.GetWorkflow(ctx, workflowID, runID)
	return noOwner(run.GetWithOptions(ctx, out, client.WorkflowRunGetOptions{DisableFollowingRuns: true}))
}

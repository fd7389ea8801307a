package launch

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

// Reconcile starts the check of a SKU whose gate is closed, or joins the one
// that runs.
func (l *Launcher) Reconcile(ctx context.Context, in contract.ReconcileInput) error {
	_, err := l.reconcile(ctx, in, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING)
	return err
}

// Pass looks through one SKU and waits for the report; of one that runs already, for
// that one's.
func (l *Launcher) Pass(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	var report contract.ReconcileReport
	run, err := l.reconcile(ctx, in, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING)
	if err == nil {
		err = run.Get(ctx, &report)
	}
	return report, err
}

// ErrRuns says that a workflow of that id runs and was not started again.
var ErrRuns = errors.New("it runs already")

// NewPass starts a pass over one SKU; ErrRuns when a Reconcile of it runs, which may
// have been asked for something else.
func (l *Launcher) NewPass(ctx context.Context, in contract.ReconcileInput) (runID string, err error) {
	run, err := l.reconcile(ctx, in, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return "", fmt.Errorf("%w: %w", ErrRuns, err)
	}
	if err != nil {
		return "", err
	}
	return run.GetRunID(), nil
}

func (l *Launcher) reconcile(ctx context.Context, in contract.ReconcileInput, conflict enumspb.WorkflowIdConflictPolicy) (client.WorkflowRun, error) {
	summary := "checks the closed gate of " + in.SKU
	if in.Pass {
		summary = "looks through " + in.SKU
	}
	opts := options(contract.ReconcileWorkflowID(in.SKU), contract.PriorityBook, "checking", summary, in.SKU)
	opts.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	opts.WorkflowIDConflictPolicy = conflict
	opts.WorkflowExecutionErrorWhenAlreadyStarted = conflict == enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	run, err := l.c.ExecuteWorkflow(ctx, opts, contract.ReconcileWorkflow, in)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.ID, err)
	}
	return run, nil
}

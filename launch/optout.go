package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
)

// OptedOut says whether a person has an open OptOut.
func (l *Launcher) OptedOut(ctx context.Context, person string) (bool, error) {
	d, err := l.c.DescribeWorkflow(ctx, contract.OptOutID(person), "")
	var unknown *serviceerror.NotFound
	switch {
	case errors.As(err, &unknown):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for an opt-out: %w", err)
	}
	return d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// Said tells a person's OptOut of their word. STOP starts one where there is none;
// START then changes nothing, nor does a word that the last run has heard.
func (l *Launcher) Said(ctx context.Context, person string, said contract.Said) error {
	id := contract.OptOutID(person)
	if said.Word != contract.SaidStop {
		if err := l.Signal(ctx, id, contract.SignalSaid, said); err != nil && !errors.Is(err, ErrNoOwner) {
			return fmt.Errorf("signal %s to %s: %w", contract.SignalSaid, id, err)
		}
		return nil
	}
	in := contract.OptOutInput{Person: person}
	if said.MessageID != "" {
		var err error
		if in.Seen, err = l.heard(ctx, id); err != nil {
			return err
		}
		if slices.Contains(in.Seen, said.MessageID) {
			return nil
		}
	}
	opts := options(id, contract.PriorityPerson, contract.OptedOut, "a person who wants no texts")
	opts.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	opts.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	opts.WorkflowExecutionErrorWhenAlreadyStarted = false
	if _, err := l.c.SignalWithStartWorkflow(ctx, id, contract.SignalSaid, said, opts, contract.OptOutWorkflow, in); err != nil {
		return fmt.Errorf("signal %s to %s: %w", contract.SignalSaid, id, err)
	}
	return nil
}

// heard is what the last run of an OptOut has heard, when it has closed; an open
// one knows itself.
func (l *Launcher) heard(ctx context.Context, id string) ([]string, error) {
	d, err := l.c.DescribeWorkflow(ctx, id, "")
	var unknown *serviceerror.NotFound
	switch {
	case errors.As(err, &unknown):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for the last opt-out: %w", err)
	case d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil, nil
	}
	var last contract.OptOutResult
	err = l.Result(ctx, id, d.WorkflowExecution.RunID, &last)
	var byForce *temporal.WorkflowExecutionError
	if errors.As(err, &byForce) || errors.Is(err, ErrNoOwner) { // it has left no result
		return nil, nil
	}
	return last.Seen, err
}

package launch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

// done is an update that has its answer.
type done struct {
	client.WorkflowUpdateHandle
	answer contract.ConfirmResult
}

func (d done) Get(_ context.Context, out any) error {
	*out.(*contract.ConfirmResult) = d.answer
	return nil
}

func TestAnUpdateIsAskedAgainWhileTheRunIsNotReady(t *testing.T) {
	asked := 0
	var out contract.ConfirmResult
	require.NoError(t, answered(t.Context(), &out, func() (client.WorkflowUpdateHandle, error) {
		if asked++; asked < 3 {
			return nil, serviceerror.NewWorkflowNotReady("not ready")
		}
		return done{answer: contract.ConfirmResult{Outcome: contract.ConfirmSold}}, nil
	}))
	require.Equal(t, 3, asked)
	require.Equal(t, contract.ConfirmSold, out.Outcome)

	asked = 0
	err := noOwner(answered(t.Context(), &out, func() (client.WorkflowUpdateHandle, error) {
		asked++
		return nil, serviceerror.NewNotFound("gone")
	}))
	require.ErrorIs(t, err, ErrNoOwner, "any other answer stands")
	require.Equal(t, 1, asked)

	ctx, cancel := context.WithCancel(t.Context())
	err = answered(ctx, &out, func() (client.WorkflowUpdateHandle, error) {
		cancel()
		return nil, serviceerror.NewWorkflowNotReady("not ready")
	})
	var notReady *serviceerror.WorkflowNotReady
	require.ErrorAs(t, err, &notReady, "it ends with its context")
}

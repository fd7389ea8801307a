package launch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

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

// oneRun is a run that has closed.
type oneRun struct {
	client.Client
	client.WorkflowRun
	t *testing.T
}

func (r oneRun) GetWorkflow(_ context.Context, workflowID, runID string) client.WorkflowRun {
	require.Equal(r.t, []string{"payment_1", "run"}, []string{workflowID, runID})
	return r
}

func (r oneRun) GetWithOptions(_ context.Context, out any, options client.WorkflowRunGetOptions) error {
	require.True(r.t, options.DisableFollowingRuns, "the run that was asked for answers")
	if out == nil {
		return serviceerror.NewNotFound("gone")
	}
	*out.(*string) = "its result"
	return nil
}

func TestResultOfARun(t *testing.T) {
	l := New(oneRun{t: t})
	var out string
	require.NoError(t, l.Result(t.Context(), "payment_1", "run", &out))
	require.Equal(t, "its result", out)
	require.ErrorIs(t, l.Result(t.Context(), "payment_1", "run", nil), ErrNoOwner)
}

// startOf notes the options of a start.
type startOf struct {
	client.Client
	opts client.StartWorkflowOptions
}

func (s *startOf) ExecuteWorkflow(_ context.Context, opts client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	s.opts = opts
	return nil, nil
}

// A server may refuse a start whose summary has more than 400 bytes, and a hold of
// twenty lines could never be started.
func TestASummaryIsBrief(t *testing.T) {
	var s startOf
	in := contract.HoldInput{HoldID: "hold_x", Customer: strings.Repeat("ü", 200)}
	for i := range contract.MaxLines {
		in.Lines = append(in.Lines, contract.Line{SKU: fmt.Sprint(strings.Repeat("x", 62), i), Quantity: contract.MaxUnits})
	}
	_, err := New(&s).Hold(t.Context(), in)
	require.NoError(t, err)
	require.LessOrEqual(t, len(s.opts.StaticSummary), maxSummary)
	require.True(t, utf8.ValidString(s.opts.StaticSummary))
	require.Contains(t, s.opts.StaticSummary, "1000000000 × xxx")
	require.True(t, strings.HasSuffix(s.opts.StaticSummary, "…"))

	in.Lines, in.Customer = []contract.Line{{SKU: "CHAIR", Quantity: 2}}, "ada"
	_, err = New(&s).Hold(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "2 × CHAIR for ada", s.opts.StaticSummary)
}

package launch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// shows is a workflow that shows an operator some lines.
type shows struct {
	client.Client
	t        *testing.T
	details  string
	rejected *querypb.QueryRejected
	err      error
}

func (s shows) HasValue() bool { return true }

func (s shows) Get(out any) error {
	out.(*sdkpb.WorkflowMetadata).CurrentDetails = s.details
	return nil
}

func (s shows) QueryWorkflowWithOptions(_ context.Context, req *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	require.Equal(s.t, "hold_x", req.WorkflowID)
	require.Equal(s.t, enumspb.QUERY_REJECT_CONDITION_NOT_OPEN, req.QueryRejectCondition)
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: s, QueryRejected: s.rejected}, s.err
}

func TestWhatAWorkflowShowsAsNext(t *testing.T) {
	for details, want := range map[string]string{
		"- **State**: held\n- **Next**: **a person should look**: 1 payment(s) of another amount\n": "a person should look: 1 payment(s) of another amount",
		"- **State**: held\n- **Next**: closes":                                                     "closes",
		"- **State**: held\n":                                                                       "",
		"":                                                                                          "",
	} {
		next, err := New(shows{t: t, details: details}).Next(t.Context(), "hold_x")
		require.NoError(t, err)
		require.Equal(t, want, next)
	}
	_, err := New(shows{t: t, rejected: &querypb.QueryRejected{}}).Next(t.Context(), "hold_x")
	require.ErrorIs(t, err, ErrNoOwner, "what it showed last is not what comes next")
	_, err = New(shows{t: t, err: serviceerror.NewNotFound("gone")}).Next(t.Context(), "hold_x")
	require.ErrorIs(t, err, ErrNoOwner)
	_, err = New(shows{t: t, err: context.DeadlineExceeded}).Next(t.Context(), "hold_x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

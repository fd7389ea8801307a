package launch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

// order keeps with which priority each workflow is started, however that is done.
type order struct {
	client.Client
	key map[string]int
}

func (o *order) ExecuteWorkflow(_ context.Context, opts client.StartWorkflowOptions, workflow any, _ ...any) (client.WorkflowRun, error) {
	o.key[workflow.(string)] = opts.Priority.PriorityKey
	return run{}, nil
}

type run struct{ client.WorkflowRun }

func (run) GetRunID() string { return "run" }

func (o *order) SignalWithStartWorkflow(ctx context.Context, _, _ string, _ any, opts client.StartWorkflowOptions, workflow any, _ ...any) (client.WorkflowRun, error) {
	return o.ExecuteWorkflow(ctx, opts, workflow)
}

// What there is once for a SKU goes first, then what units and money wait for, then
// what may come in any number.
func TestWhoGoesFirst(t *testing.T) {
	ctx := t.Context()
	o := &order{key: map[string]int{}}
	l := New(o)
	_, err := l.Hold(ctx, contract.HoldInput{HoldID: "hold_1"})
	require.NoError(t, err)
	_, err = l.Entry(ctx, contract.EntryInput{EntryID: "entry_1"})
	require.NoError(t, err)
	require.NoError(t, l.Wake(ctx, "CHAIR"))
	require.NoError(t, l.Payment(ctx, contract.PaymentInput{PaymentID: "payment_1"}))
	require.NoError(t, l.Event(ctx, contract.EventInput{EventID: "event_1"}))
	require.NoError(t, l.Said(ctx, "ada", contract.Said{Word: contract.SaidStop}))
	require.NoError(t, l.Reconcile(ctx, contract.ReconcileInput{SKU: "CHAIR"}))
	require.Equal(t, map[string]int{"Stock": 1, "Reconcile": 1, "Hold": 2, "Payment": 2, "OptOut": 3, "WaitlistEntry": 4, "Event": 5}, o.key)
}

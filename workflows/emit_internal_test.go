package workflows

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

// A payment that nobody can tell of is told of once, by its reference.
func TestAnUnresolvedPaymentIsTold(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	var told []contract.EventInput
	env.OnActivity(eventActivities.StartEvents, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.StartEventsInput) (activities.EventsStarted, error) {
		told = append(told, in.Events...)
		return activities.EventsStarted{Started: len(in.Events)}, nil
	})
	env.RegisterActivity(&activities.EventStarts{})
	money := &contract.Money{Amount: 4900, Currency: "EUR"}
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		h, err := newHold(ctx, contract.HoldInput{HoldID: "hold_1", Lines: []contract.Line{{SKU: "CHAIR", Quantity: 1}}})
		if err != nil {
			return err
		}
		h.told.on = true
		h.tellUnresolved("P1", money, "only the shop knows its payments")
		return workflow.Await(ctx, h.told.idle)
	})
	require.NoError(t, env.GetWorkflowError())
	require.Len(t, told, 1)
	require.Equal(t, contract.EventID("hold_1", "payment.unresolved", "P1"), told[0].EventID)
	require.JSONEq(t, `{"hold_id":"hold_1","payment_ref":"P1","amount":4900,"currency":"EUR","reason":"only the shop knows its payments"}`, string(told[0].Data))
}

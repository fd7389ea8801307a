package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	querypb "go.temporal.io/api/query/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"holdfast/e2e/leak"
)

// client is a client that encrypts as the product does.
func (s privateStory) client(t *testing.T) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort: s.h.TemporalAddr(), Logger: quiet{}, DataConverter: s.codec.DataConverter(), FailureConverter: s.codec.FailureConverter(),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func onQueue(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: "holdfast"}
}

// temporalSays asks Temporal for all that it has of every run: what its lists
// show, the description, every event, the answer of every query and of an update
// that is refused.
func (s privateStory) temporalSays(t *testing.T) temporalTold {
	t.Helper()
	ctx, service := t.Context(), s.h.temporal.WorkflowService()
	var told temporalTold
	find := leak.New(private)
	look := func(where string, m proto.Message) {
		told.hits = append(told.hits, find.Message(where, m)...)
		leak.Payloads(where, m, func(where string, p *commonpb.Payload) {
			if string(p.GetMetadata()["encoding"]) != "binary/holdfast-aes256gcm" && !strings.Contains(where, "search_attributes") {
				told.plain = append(told.plain, fmt.Sprintf("%s: %.60q", where, p.String()))
			}
		})
	}
	var runs []*commonpb.WorkflowExecution
	kinds := map[string]int{}
	require.NoError(t, until(ctx, "the list has caught up", func() error {
		list, err := service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default", PageSize: 1000})
		if err != nil {
			return err
		}
		runs, kinds = nil, map[string]int{}
		for _, e := range list.GetExecutions() {
			runs = append(runs, e.GetExecution())
			kinds[e.GetType().GetName()]++
		}
		// Ada's, Dan's and the broken Hold; three entries; the second, the late and
		// the unreadable payment.
		if kinds["Hold"] != 3 || kinds["WaitlistEntry"] != 3 || kinds["Payment"] != 3 || kinds["Stock"] != 1 {
			return fmt.Errorf("it has %v", kinds)
		}
		look("list", list)
		return nil
	}))
	for _, run := range runs {
		id := run.GetWorkflowId()
		described, err := service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{Namespace: "default", Execution: run})
		require.NoError(t, err)
		look(id+" described", described)
		for _, e := range s.history(t, id) {
			look(fmt.Sprintf("%s event %d", id, e.GetEventId()), e)
		}
		for _, query := range []string{"status", "__temporal_workflow_metadata", "__stack_trace"} {
			answer, err := service.QueryWorkflow(ctx, &workflowservice.QueryWorkflowRequest{
				Namespace: "default", Execution: run, Query: &querypb.WorkflowQuery{QueryType: query},
			})
			if id == "broken" { // it failed before it could answer
				continue
			}
			require.NoError(t, err, "%s %s", id, query)
			require.NotEmpty(t, answer.GetQueryResult().GetPayloads())
			look(id+" query "+query, answer)
		}
		if strings.HasPrefix(id, "payment_") && described.GetWorkflowExecutionInfo().GetCloseTime() == nil {
			look(id+" refused update", s.refusedUpdate(t, run))
		}
	}
	return told
}

// refusedUpdate asks a Payment about other money than its own; its refusal names
// both.
func (s privateStory) refusedUpdate(t *testing.T, run *commonpb.WorkflowExecution) proto.Message {
	t.Helper()
	args, err := s.codec.DataConverter().ToPayloads(map[string]any{"payment_ref": private["the payment that sells"], "hold_id": "hold_x"})
	require.NoError(t, err)
	answer, err := s.h.temporal.WorkflowService().UpdateWorkflowExecution(t.Context(), &workflowservice.UpdateWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: run,
		Request: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: "other money"}, Input: &updatepb.Input{Name: "decide", Args: args}},
	})
	require.NoError(t, err)
	require.NotNil(t, answer.GetOutcome().GetFailure(), answer)
	return answer
}

func (s privateStory) history(t *testing.T, id string) []*historypb.HistoryEvent {
	t.Helper()
	var events []*historypb.HistoryEvent
	all := s.h.temporal.GetWorkflowHistory(t.Context(), id, "", false, 0)
	for all.HasNext() {
		e, err := all.Next()
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

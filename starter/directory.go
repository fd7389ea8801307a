package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
	"holdfast/launch"
)

// visibility is the Directory over a Temporal client.
type visibility struct {
	c         client.Client
	namespace string
}

// pollerAge is how long ago a worker that polls may have asked last: each ask waits
// up to a minute. Temporal lists one that has gone for five minutes.
const pollerAge = 2 * time.Minute

func (v visibility) TextQueue(ctx context.Context) (TextQueue, error) {
	q, err := v.queue(ctx, contract.SMSTaskQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	return TextQueue{Waiting: q.Waiting, Polled: q.Polled}, err
}

func (v visibility) queue(ctx context.Context, name string, kind enumspb.TaskQueueType) (Queue, error) {
	out, err := v.c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: v.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name}, TaskQueueType: kind, ReportStats: true,
	})
	if err != nil {
		return Queue{}, fmt.Errorf("describe the queue %s: %w", name, err)
	}
	q := Queue{
		Name: name, Kind: strings.ToLower(kind.String()),
		Waiting: out.GetStats().GetApproximateBacklogCount(), Oldest: out.GetStats().GetApproximateBacklogAge().AsDuration(),
	}
	for _, p := range out.GetPollers() {
		q.Polled = q.Polled || time.Since(p.GetLastAccessTime().AsTime()) < pollerAge
	}
	return q, nil
}

func (v visibility) Queues(ctx context.Context) ([]Queue, error) {
	const workflow, activity = enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY
	asked := []struct {
		name string
		kind enumspb.TaskQueueType
	}{
		{contract.TaskQueue, workflow},
		{contract.TaskQueue, activity},
		{contract.SMSTaskQueue, activity},
		{contract.EventsTaskQueue, workflow},
		{contract.EventsTaskQueue, activity},
	}
	queues := make([]Queue, len(asked))
	group, ctx := errgroup.WithContext(ctx)
	for i, a := range asked {
		group.Go(func() (err error) {
			queues[i], err = v.queue(ctx, a.name, a.kind)
			return err
		})
	}
	return queues, group.Wait()
}

const mostPassPages = 5 // of 1,000: passes over a thousand SKUs in five minutes

func (v visibility) Passes(ctx context.Context, sku string, since time.Time, least time.Duration) ([]PassRun, error) {
	query := ofType(contract.ReconcileWorkflow) + ofSKU(sku)
	if sku == "" {
		query = "(" + query + " OR " + ofType(contract.ReconcileAllWorkflow) + ")"
	}
	query += " AND ExecutionStatus!='Running' AND CloseTime>'" + since.UTC().Format(time.RFC3339) + "'"
	if least > 0 {
		query += " AND ExecutionDuration>='" + least.String() + "'"
	}
	var runs []PassRun
	token := []byte(nil)
	for range mostPassPages {
		out, err := v.list(ctx, query, 1000, token)
		if err != nil {
			return nil, err
		}
		for _, e := range launch.OfSKU(sku, out.GetExecutions()) {
			run := PassRun{
				RunID: e.GetExecution().GetRunId(), ClosedAt: e.GetCloseTime().AsTime(),
				Completed: e.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
			}
			if run.SKU, run.State, err = attributesOf(e); err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
		if token = out.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	slices.SortStableFunc(runs, func(a, b PassRun) int { return b.ClosedAt.Compare(a.ClosedAt) })
	return runs, nil
}

const running = " AND ExecutionStatus='Running'"

func ofType(workflow string) string { return "WorkflowType='" + workflow + "'" }

// ofSKU is safe to build: a SKU has no character that needs escaping.
func ofSKU(sku string) string {
	if sku == "" {
		return ""
	}
	return " AND " + contract.SKUAttribute + "='" + sku + "'"
}

func (v visibility) list(ctx context.Context, query string, size int, token []byte) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out, err := v.c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: query, PageSize: int32(size), NextPageToken: token,
	})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return out, nil
}

// listOf lists workflows of a SKU, or of all for "". A page may be shorter than size.
func (v visibility) listOf(ctx context.Context, workflow, sku, and string, size int, token []byte) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out, err := v.list(ctx, ofType(workflow)+ofSKU(sku)+and, size, token)
	if err == nil {
		out.Executions = launch.OfSKU(sku, out.GetExecutions())
	}
	return out, err
}

func (v visibility) OpenSKUs(ctx context.Context) ([]string, error) {
	var skus []string
	for token := []byte(nil); ; {
		out, err := v.list(ctx, ofType(contract.StockWorkflow)+running, 500, token)
		if err != nil {
			return nil, err
		}
		for _, id := range workflowIDs(out.GetExecutions()) {
			if sku, ok := contract.SKUOfStockWorkflow(id); ok {
				skus = append(skus, sku)
			}
		}
		if token = out.GetNextPageToken(); len(token) == 0 {
			return skus, nil
		}
	}
}

func (v visibility) Holds(ctx context.Context, sku string, state contract.HoldState, limit int, cursor []byte) ([]string, []byte, error) {
	and := ""
	if state != "" {
		and = " AND " + contract.StateAttribute + "='" + string(state) + "'"
	}
	out, err := v.listOf(ctx, contract.HoldWorkflow, sku, and, limit, cursor)
	if err != nil {
		return nil, nil, err
	}
	return workflowIDs(out.GetExecutions()), out.GetNextPageToken(), nil
}

func (v visibility) Offered(ctx context.Context, sku string, limit int) ([]string, error) {
	offered := running + " AND " + contract.StateAttribute + "='" + string(contract.EntryOffered) + "'"
	out, err := v.listOf(ctx, contract.WaitlistEntryWorkflow, sku, offered, limit, nil)
	if err != nil {
		return nil, err
	}
	return workflowIDs(out.GetExecutions()), nil
}

func (v visibility) Events(ctx context.Context, state string, limit int, cursor []byte) ([]string, []byte, error) {
	query := ofType(contract.EventWorkflow) + running
	if state != "" {
		query += " AND " + contract.StateAttribute + "='" + state + "'"
	}
	out, err := v.list(ctx, query, limit, cursor)
	if err != nil {
		return nil, nil, err
	}
	return workflowIDs(out.GetExecutions()), out.GetNextPageToken(), nil
}

// eventLate is how long after it happened an event that the shop has not taken is late.
const eventLate = 10 * time.Minute

// untoldEvents counts the events that the shop has not taken: those that are late and
// still tried, and those that were given up.
func (v visibility) untoldEvents(ctx context.Context) (late, parked int64, err error) {
	inState := func(state string) string {
		return ofType(contract.EventWorkflow) + running + " AND " + contract.StateAttribute + "='" + state + "'"
	}
	late, err = v.count(ctx, inState(contract.EventSending)+" AND StartTime<'"+time.Now().Add(-eventLate).UTC().Format(time.RFC3339)+"'")
	if err == nil {
		parked, err = v.count(ctx, inState(contract.EventParked))
	}
	return late, parked, err
}

func (v visibility) OpenPayments(ctx context.Context, sku string) (int64, error) {
	return v.count(ctx, ofType(contract.PaymentWorkflow)+ofSKU(sku)+running)
}

func (v visibility) count(ctx context.Context, query string) (int64, error) {
	out, err := v.c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return 0, fmt.Errorf("count workflows: %w", err)
	}
	return out.GetCount(), nil
}

func (v visibility) Payments(ctx context.Context, sku string, open *bool, limit int, cursor []byte) ([]PaymentRun, []byte, error) {
	and := ""
	if open != nil {
		// A run that was terminated has settled nothing.
		is := "="
		if *open {
			is = "!="
		}
		and = " AND ExecutionStatus" + is + "'Completed'"
	}
	out, err := v.listOf(ctx, contract.PaymentWorkflow, sku, and, limit, cursor)
	if err != nil {
		return nil, nil, err
	}
	runs := make([]PaymentRun, len(out.GetExecutions()))
	for i, e := range out.GetExecutions() {
		if runs[i], err = paymentRun(e); err != nil {
			return nil, nil, err
		}
	}
	return runs, out.GetNextPageToken(), nil
}

func (v visibility) Payment(ctx context.Context, id string) (PaymentRun, bool, error) {
	d, err := v.c.DescribeWorkflow(ctx, id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return PaymentRun{}, false, nil
	case err != nil:
		return PaymentRun{}, false, fmt.Errorf("look up a payment: %w", err)
	}
	run, err := paymentRun(d.RawResponse.GetWorkflowExecutionInfo())
	return run, err == nil, err
}

func paymentRun(e *workflowpb.WorkflowExecutionInfo) (PaymentRun, error) {
	run := PaymentRun{
		ID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId(),
		StartedAt: e.GetStartTime().AsTime(),
		Completed: e.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	}
	if e.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		run.ClosedAt = e.GetCloseTime().AsTime()
	}
	var err error
	run.SKU, run.State, err = attributesOf(e)
	return run, err
}

// attributesOf reads the first SKU and the state of a workflow.
func attributesOf(e *workflowpb.WorkflowExecutionInfo) (sku, state string, err error) {
	attributes := e.GetSearchAttributes().GetIndexedFields()
	var skus []string
	for name, out := range map[string]any{contract.SKUAttribute: &skus, contract.StateAttribute: &state} {
		if payload := attributes[name]; payload != nil {
			if err := converter.GetDefaultDataConverter().FromPayload(payload, out); err != nil {
				return "", "", fmt.Errorf("search attribute %s of %s: %w", name, e.GetExecution().GetWorkflowId(), err)
			}
		}
	}
	if len(skus) > 0 {
		sku = skus[0]
	}
	return sku, state, nil
}

func workflowIDs(list []*workflowpb.WorkflowExecutionInfo) []string {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.GetExecution().GetWorkflowId()
	}
	return ids
}

package activities

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast/contract"
	"holdfast/launch"
)

// owning is what a pass asks of Temporal, made up.
type owning struct {
	t         *testing.T
	mu        sync.Mutex
	flows     map[string]*flow
	book      contract.StockBook
	paid      []string
	audits    int             // that the book was told
	rung      []contract.Rung // what the book was told of its tripwire
	down      error           // of lists
	downAsked error           // of a question for one workflow
	noBook    error
	asked     int             // for one workflow
	onAsk     func(id string) // before the answer is made
	onList    func()
	undecided error // of a Payment that is begun
}

type flow struct {
	kind      string
	open      bool
	unlisted  bool // the list is behind
	ofNoSKU   bool
	sku       string // that the list names; "" for none
	started   time.Time
	ended     time.Time
	state     string // as the list has it; "" for one that did not end by itself
	status    any
	histories []*historypb.HistoryEvent
}

func (w *owning) opens(id, kind string) *flow {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flows[id] = &flow{kind: kind, open: true, started: time.Now().Add(-2 * time.Minute)}
	return w.flows[id]
}

// ends terminates a Hold that was told of payments.
func (w *owning) ends(id string, refs ...string) {
	w.terminates(id, contract.HoldInput{HoldID: id, Lines: []contract.Line{{SKU: "CHAIR", Quantity: 1}}})
	for _, ref := range refs {
		w.hears(id, contract.SignalPaymentSucceeded, contract.PaymentSucceeded{PaymentRef: ref})
	}
}

// terminates ends a workflow that was begun with an input.
func (w *owning) terminates(id string, input any) {
	f := w.flows[id]
	f.open, f.ended = false, time.Now()
	f.histories = []*historypb.HistoryEvent{{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowId: id, Input: w.payload(input),
		}},
	}}
}

// hears adds a signal to the history of a workflow.
func (w *owning) hears(id, signal string, arg any) {
	w.flows[id].histories = append(w.flows[id].histories, &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: signal, Input: w.payload(arg),
		}},
	})
}

func (w *owning) payload(v any) *commonpb.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	require.NoError(w.t, err)
	return p
}

var queryPattern = regexp.MustCompile(`^WorkflowType = '(\w+)' AND HoldfastSku = 'CHAIR' AND (.*)$`)

// ListWorkflow answers three workflows a page.
func (w *owning) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if w.down != nil {
		return nil, w.down
	}
	if w.onList != nil {
		w.onList()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	res := &workflowservice.ListWorkflowExecutionsResponse{}
	if req.GetQuery() == "WorkflowType = 'Payment' AND ExecutionStatus = 'Running' AND HoldfastState IN ('deciding', 'sold')" {
		for id, f := range w.flows {
			if f.kind == contract.PaymentWorkflow && f.open && (f.state == "deciding" || f.state == "sold") {
				res.Executions = append(res.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id}, StartTime: timestamppb.New(f.started)})
			}
		}
		return res, nil
	}
	if strings.HasPrefix(req.GetQuery(), "WorkflowType = 'Payment' AND HoldfastSku IS NULL AND ExecutionStatus IN ('Terminated', 'Failed', 'TimedOut')") {
		for id, f := range w.flows {
			if f.kind == contract.PaymentWorkflow && !f.open && f.state == "" && f.ofNoSKU {
				res.Executions = append(res.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, StartTime: timestamppb.New(f.started)})
			}
		}
		return res, nil
	}
	if strings.HasPrefix(req.GetQuery(), "WorkflowType = 'Stock'") {
		return res, nil
	}
	m := queryPattern.FindStringSubmatch(req.GetQuery())
	require.NotNil(w.t, m, req.GetQuery())
	var since time.Time
	if _, after, ok := strings.Cut(m[2], " AND CloseTime >= '"); ok {
		var err error
		since, err = time.Parse(time.RFC3339, strings.TrimSuffix(after, "'"))
		require.NoError(w.t, err)
	}
	open, sold := m[2] == "ExecutionStatus = 'Running'", m[2] == "HoldfastState = 'sold'"
	going := strings.HasPrefix(m[2], "HoldfastState IN ('refund-")
	ended := strings.HasPrefix(m[2], "ExecutionStatus != 'Running' AND HoldfastState IN ('released', 'expired', 'refused')")
	if !open && !sold && !going && !ended {
		require.Contains(w.t, m[2], "ExecutionStatus IN ('Terminated', 'Failed', 'TimedOut')")
	}
	var ids []string
	for id, f := range w.flows {
		left := !open && !sold && !going && !ended && !f.open && f.state == ""
		if f.kind == m[1] && (left || open && f.open || sold && f.state == "sold" || going && strings.HasPrefix(f.state, "refund-") ||
			ended && !f.open && (f.state == "released" || f.state == "expired" || f.state == "refused")) && !f.unlisted && !f.ended.Before(since) && !f.ofNoSKU {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	from := len(req.GetNextPageToken())
	for _, id := range ids[from:min(from+3, len(ids))] {
		state, err := converter.GetDefaultDataConverter().ToPayload(w.flows[id].state)
		require.NoError(w.t, err)
		res.Executions = append(res.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, StartTime: timestamppb.New(w.flows[id].started),
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{contract.StateAttribute: state}},
		})
		if sku := w.flows[id].sku; sku != "" {
			named, err := converter.GetDefaultDataConverter().ToPayload([]string{sku})
			require.NoError(w.t, err)
			res.Executions[len(res.Executions)-1].SearchAttributes.IndexedFields[contract.SKUAttribute] = named
		}
	}
	if from+3 < len(ids) {
		res.NextPageToken = make([]byte, from+3)
	}
	return res, nil
}

func (w *owning) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if w.downAsked != nil {
		return nil, w.downAsked
	}
	if w.onAsk != nil {
		w.onAsk(id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	f := w.flows[id]
	if f == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	status := enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	if f.open {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, Status: status,
	}}, nil
}

// closes ends a workflow by itself.
func (w *owning) closes(id, state string, status any) {
	f := w.flows[id]
	f.open, f.ended, f.state, f.status = false, time.Now(), state, status
}

func (w *owning) Signal(_ context.Context, _, signal string, arg any) error {
	switch m := arg.(type) {
	case contract.Rung:
		require.Equal(w.t, contract.SignalTripwire, signal)
		w.rung = append(w.rung, m)
	case contract.StockEpoch:
		require.Equal(w.t, contract.SignalEpoch, signal)
		w.book.Epoch = m.Epoch
	case contract.StockAudit:
		require.Equal(w.t, contract.SignalAudit, signal)
		w.audits++
		if m.Epoch >= w.book.Audit.Epoch && m.Until.After(w.book.Audit.Until) {
			w.book.Audit = m
		}
	}
	return nil
}

func (w *owning) GetWorkflowHistory(_ context.Context, id, _ string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &iterator{w.flows[id].histories}
}

func (w *owning) Status(_ context.Context, id string, out any) error {
	var v any = w.book
	if id == contract.StockWorkflowID("CHAIR") && w.noBook != nil {
		return w.noBook
	}
	if id != contract.StockWorkflowID("CHAIR") {
		f := w.flows[id]
		if f == nil {
			return launch.ErrNoOwner
		}
		v = f.status
	}
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	return err
}

package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

// readWorkflows finds the workflows of a SKU by its search attribute and by the
// ids of its records, for the list may lag behind.
func readWorkflows(ctx context.Context, c *Checker, f *Facts) error {
	ids := map[string]bool{}
	for id := range f.Holds {
		ids[id] = true
	}
	for id := range f.Entries {
		ids[id] = true
	}
	listed, err := List(ctx, c.Temporal, fmt.Sprintf("HoldfastSku = '%s' AND WorkflowType IN ('Hold', 'WaitlistEntry')", f.SKU))
	if err != nil {
		return err
	}
	for _, id := range listed {
		ids[id] = true
	}
	f.Workflows = map[string]Workflow{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for id := range ids {
		group.Go(func() error {
			w, ok, err := c.workflow(ctx, id)
			if err != nil || !ok {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			f.Workflows[id] = w
			return nil
		})
	}
	return group.Wait()
}

// List answers the workflow ids that a visibility query finds.
func List(ctx context.Context, c client.Client, query string) ([]string, error) {
	var ids []string
	var page []byte
	for {
		res, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000, NextPageToken: page})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", query, err)
		}
		for _, e := range res.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}

func (c *Checker) workflow(ctx context.Context, id string) (Workflow, bool, error) {
	d, err := c.Temporal.DescribeWorkflow(ctx, id, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return Workflow{}, false, nil
	}
	if err != nil {
		return Workflow{}, false, fmt.Errorf("describe %s: %w", id, err)
	}
	w := Workflow{
		Type:    d.WorkflowType.Name,
		Status:  d.Status.String(),
		Started: d.WorkflowStartTime,
		Events:  int64(d.HistoryLength),
	}
	history := c.Temporal.GetWorkflowHistory(ctx, id, d.WorkflowExecution.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			return w, false, fmt.Errorf("history of %s: %w", id, err)
		}
		if err := w.read(e, c.json); err != nil {
			return w, false, fmt.Errorf("history of %s, event %d: %w", id, e.GetEventId(), err)
		}
	}
	return w, true, nil
}

// read takes from one event what the rules need. An answer of the gate shows
// as a completed activity, or as the marker of a local one that did not fail: a gate
// that did not answer leaves one, too.
func (w *Workflow) read(e *historypb.HistoryEvent, read func(*commonpb.Payloads, any) error) error {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in struct {
			Phone  string `json:"phone"`
			Person string `json:"person"`
			Lines  []struct {
				SKU      string `json:"sku"`
				Quantity int64  `json:"quantity"`
			} `json:"lines"`
		}
		if w.Type != "WaitlistEntry" && w.Type != "Hold" {
			return nil
		}
		if err := read(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in); err != nil {
			return err
		}
		w.Phone, w.Person = in.Phone, in.Person
		for _, l := range in.Lines {
			w.Lines = append(w.Lines, Part{SKU: l.SKU, Units: l.Quantity})
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_MARKER_RECORDED:
		if w.Knew.IsZero() && e.GetMarkerRecordedEventAttributes().GetFailure() == nil {
			w.Knew = e.GetEventTime().AsTime()
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		var out struct {
			State string `json:"state"`
		}
		if err := read(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &out); err != nil {
			return err
		}
		w.Result = out.State
	}
	return nil
}

// json reads the first of payloads, if there is one.
func (c *Checker) json(payloads *commonpb.Payloads, out any) error {
	all := payloads.GetPayloads()
	if len(all) == 0 {
		return nil
	}
	if c.Codec != nil {
		var err error
		if all, err = c.Codec.Decode(all[:1]); err != nil {
			return err
		}
	}
	return json.Unmarshal(all[0].GetData(), out)
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
	"holdfast/launch"
)

// listedFlow is a workflow of a list with the state that it wrote last.
type listedFlow struct{ id, state string }

// listFlows visits the pages of the workflows of a SKU that a query finds.
func listFlows(ctx context.Context, v Visibility, sku, query string, visit func([]listedFlow) error) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: listPage, Query: query}
	for {
		res, err := v.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		found := launch.OfSKU(sku, res.GetExecutions())
		page := make([]listedFlow, len(found))
		for i, e := range found {
			page[i] = listedFlow{e.GetExecution().GetWorkflowId(), stateOf(e)}
		}
		if err := visit(page); err != nil {
			return err
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

func (r *rebuild) listed(ctx context.Context, query string, visit func([]listedFlow) error) error {
	return listFlows(ctx, r.Owners, r.sku, query, visit)
}

func stateOf(e *workflowpb.WorkflowExecutionInfo) (state string) {
	p, ok := e.GetSearchAttributes().GetIndexedFields()[contract.StateAttribute]
	if !ok || converter.GetDefaultDataConverter().FromPayload(p, &state) != nil {
		return ""
	}
	return state
}

// ask answers the status of each of ids that Temporal knows, some side by side, in
// their order.
func ask[T any](ctx context.Context, books Books, ids []string) ([]T, error) {
	says, _, err := askSome[T](ctx, books, ids, askAtOnce, func(error) bool { return false })
	return says, err
}

// askSome is ask of which some may fail: bears says of an error that the workflow is to
// blame, which is then one of the silent.
func askSome[T any](ctx context.Context, books Books, ids []string, atOnce int, bears func(error) bool) (says []T, silent []string, err error) {
	found, mute := make([]*T, len(ids)), make([]bool, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, id := range ids {
		group.Go(func() error {
			var s T
			err := books.Status(ctx, id, &s)
			switch {
			case err == nil:
				found[i] = &s
			case errors.Is(err, launch.ErrNoOwner):
			case ctx.Err() == nil && bears(err):
				mute[i] = true
			default:
				return fmt.Errorf("ask %s: %w", id, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, s := range found {
		switch {
		case s != nil:
			says = append(says, *s)
		case mute[i]:
			silent = append(silent, ids[i])
		}
	}
	return says, silent, nil
}

func all(listedFlow) bool { return true }

// idsOf are those of a page that want says.
func idsOf(page []listedFlow, want func(listedFlow) bool) []string {
	var ids []string
	for _, w := range page {
		if want(w) && !slices.Contains(ids, w.id) {
			ids = append(ids, w.id)
		}
	}
	return ids
}

package activities

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/workflowservice/v1"

	"holdfast/contract"
)

// SKUMap is the gate's map of SKUs.
type SKUMap interface {
	SKUs(ctx context.Context) ([]string, error)
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
	MarkMapWhole(ctx context.Context) error
}

// everySKU lists the SKUs of the gate's map, which has every SKU with a book
// afterwards: a Redis that was emptied or went back has forgotten some, and its doors
// would say that these do not exist.
func (a *Passes) everySKU(ctx context.Context) ([]string, error) {
	known, err := a.SKUs.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, sku := range known {
		listed[sku] = true
	}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage, Query: fmt.Sprintf("WorkflowType = '%s' AND %s", contract.StockWorkflow, running),
	}
	for {
		res, err := a.Owners.ListWorkflow(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list books: %w", err)
		}
		for _, e := range res.GetExecutions() {
			sku, ok := contract.SKUOfStockWorkflow(e.GetExecution().GetWorkflowId())
			if !ok || listed[sku] {
				continue
			}
			if _, err := a.SKUs.RegisterSKU(ctx, sku); err != nil {
				return nil, err
			}
			listed[sku] = true
			known = append(known, sku)
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			slices.Sort(known)
			return known, a.SKUs.MarkMapWhole(ctx)
		}
	}
}

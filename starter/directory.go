package starter

import (
	"context"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

// visibility is the Directory over a Temporal client.
type visibility struct{ c client.Client }

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
	query := ofType(contract.HoldWorkflow) + ofSKU(sku)
	if state != "" {
		query += " AND " + contract.StateAttribute + "='" + string(state) + "'"
	}
	out, err := v.list(ctx, query, limit, cursor)
	if err != nil {
		return nil, nil, err
	}
	return workflowIDs(out.GetExecutions()), out.GetNextPageToken(), nil
}

func (v visibility) OpenPayments(ctx context.Context, sku string) (int64, error) {
	out, err := v.c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: ofType(contract.PaymentWorkflow) + ofSKU(sku) + running,
	})
	if err != nil {
		return 0, fmt.Errorf("count open payments: %w", err)
	}
	return out.GetCount(), nil
}

func workflowIDs(list []*workflowpb.WorkflowExecutionInfo) []string {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.GetExecution().GetWorkflowId()
	}
	return ids
}

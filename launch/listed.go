package launch

import (
	"slices"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
)

// OfSKU leaves out of a list those workflows that name other SKUs only: a server that
// keeps its lists in SQLite also finds those of one that differs in capitals. One that
// names none stays, and for the SKU "" all do. It changes found.
func OfSKU(sku string, found []*workflowpb.WorkflowExecutionInfo) []*workflowpb.WorkflowExecutionInfo {
	return slices.DeleteFunc(found, func(e *workflowpb.WorkflowExecutionInfo) bool {
		var skus []string
		p, ok := e.GetSearchAttributes().GetIndexedFields()[contract.SKUAttribute]
		return sku != "" && ok && converter.GetDefaultDataConverter().FromPayload(p, &skus) == nil && !slices.Contains(skus, sku)
	})
}

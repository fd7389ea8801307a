package workflows

import (
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
)

// Unresolved is the part of a Hold that tells of a payment which nobody knows.
func Unresolved(ctx workflow.Context, in contract.HoldInput) error {
	h, err := newHold(ctx, in)
	if err != nil {
		return err
	}
	h.told.on = true
	h.tellUnresolved("P1", &contract.Money{Amount: 4900, Currency: "EUR"}, "only the shop knows its payments")
	return workflow.Await(ctx, h.told.idle)
}

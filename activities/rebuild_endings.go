package activities

import (
	"context"
	"fmt"
	"time"

	"holdfast/contract"
)

// Holds that ended without a sale need no unit. Their records answer repeats, and money
// that comes late: it may still buy a free unit, and otherwise goes back by itself.
// Without a record a person must see to it. They are many, so only those are put in that
// somebody may still be paying for.
const (
	endedWithin = time.Hour
	mostEndings = 2000
)

// endings puts in the holds that have ended lately, the newest first.
func (r *rebuild) endings(ctx context.Context) error {
	left := mostEndings
	ended := fmt.Sprintf("ExecutionStatus != 'Running' AND %s IN ('%s', '%s', '%s') AND CloseTime >= '%s'", contract.StateAttribute,
		contract.HoldReleased, contract.HoldExpired, contract.HoldRefused, r.report.Checked.Add(-endedWithin).Format(time.RFC3339))
	return r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, ended), func(page []listedFlow) error {
		ids := idsOf(page, func(w listedFlow) bool { return r.Holds[w.id].State == "" })
		ids = ids[:min(len(ids), left)]
		left -= len(ids)
		return r.asHoldsSay(ctx, ids, true)
	})
}

package activities

import (
	"context"
	"fmt"
	"slices"

	"holdfast/contract"
	"holdfast/redis"
)

// open puts places, claims and counters right by the merged records, and opens the
// gate. The epoch is in the book before it is in the gate.
func (r *rebuild) open(ctx context.Context) error {
	survey, err := r.gate.ReadSurvey(ctx, r.sku)
	if err != nil {
		return err
	}
	slices.Sort(survey.Places)
	for _, id := range slices.Compact(survey.Places) {
		base, err := r.gate.RepairPlace(ctx, r.sku, id, false)
		if err != nil {
			return err
		}
		if base.Verdict == redis.OK {
			r.differ("%s had a place that was not its own, or none", id)
		}
	}
	totals, err := r.totals(ctx)
	if err != nil {
		return err
	}
	if totals.OnHand < 0 {
		return r.stays("%d more are sold than came in", -totals.OnHand)
	}
	if totals, err = r.leases(ctx, totals); err != nil {
		return err
	}
	if totals, err = r.withdraw(ctx, totals); err != nil {
		return err
	}
	if short := totals.Held + totals.Offered - totals.OnHand; short > 0 {
		r.report.Alarms = append(r.report.Alarms, "shortfall: more is held than there is; the next units make it good")
	}
	if err := r.gate.RebuildClaims(ctx, r.sku, r.Holds, r.Entries); err != nil {
		return err
	}
	if err := r.Epochs.Signal(ctx, contract.StockWorkflowID(r.sku), contract.SignalEpoch, contract.StockEpoch{Epoch: totals.Epoch}); err != nil {
		return err
	}
	if _, err := r.gate.RegisterSKU(ctx, r.sku); err != nil {
		return err
	}
	switch base, err := r.gate.RebuildOpen(ctx, r.sku, totals); {
	case err != nil:
		return err
	case base.Verdict != redis.OK:
		return fmt.Errorf("it was opened while it was rebuilt: %s", base.Verdict)
	}
	r.report.Opened, r.report.Repaired = true, r.report.Found
	return nil
}

// totals are the counters that records and book lead to. What was ever sold is told by
// up to three: the counters and what was put in; the last audit and every later sale;
// the records. Each may know less than there was (an old server, a forgotten workflow, a
// purged record) and none knows more.
func (r *rebuild) totals(ctx context.Context) (t redis.Totals, err error) {
	now, err := r.gate.Inspect(ctx, r.sku) // its count of sales has those that were put in
	if err != nil {
		return t, err
	}
	if r.Records, err = r.gate.ReadRecords(ctx, r.sku); err != nil {
		return t, err
	}
	var recorded int64
	audited := r.book.Audit.Sold
	for _, h := range r.Holds {
		switch h.State {
		case contract.HoldHeld, contract.HoldProvisional:
			t.Held += h.Units
		case contract.HoldOffered:
			t.Offered += h.Units
		case contract.HoldSold:
			recorded += h.Units
			if h.EndedAt.After(r.book.Audit.Until) {
				audited += h.Units
			}
		}
	}
	t.Received, t.Returned, t.Corrected = r.came.received, r.came.returned, r.came.corrected
	t.Sold = max(now.Counters.Sold+now.Counters.Returned, audited, recorded) - t.Returned
	t.OnHand = t.Received + t.Corrected - t.Sold
	t.Epoch = max(now.Counters.Epoch, r.book.Epoch) + 1
	t.Generation = max(r.gen, r.Generation)
	t.N = r.decided // or the book would take the next event for a repeat
	t.Level = r.book.Level
	return t, err
}

// withdraw takes offers back until what is promised is there: those that nobody was
// told of first, then the newest. Holds stay.
func (r *rebuild) withdraw(ctx context.Context, t redis.Totals) (redis.Totals, error) {
	var offers []redis.Hold
	for _, h := range r.Holds {
		if h.State == contract.HoldOffered {
			offers = append(offers, h)
		}
	}
	slices.SortFunc(offers, func(a, b redis.Hold) int {
		if a.ToldAt.IsZero() != b.ToldAt.IsZero() {
			if a.ToldAt.IsZero() {
				return -1
			}
			return 1
		}
		if c := b.ToldAt.Compare(a.ToldAt); c != 0 {
			return c
		}
		return b.Deadline.Compare(a.Deadline)
	})
	for _, h := range offers {
		if t.Held+t.Offered <= t.OnHand {
			break
		}
		withdrawn := as(h)
		withdrawn.State, withdrawn.EndedAt, withdrawn.Reason = contract.HoldReleased, r.report.Checked, contract.ReasonReconcile
		if err := r.write(ctx, withdrawn, h); err != nil {
			return t, err
		}
		t.Offered -= h.Units
	}
	var err error
	r.Records, err = r.gate.ReadRecords(ctx, r.sku)
	return t, err
}

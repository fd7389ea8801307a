package activities

import (
	"context"
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
	base, err := r.gate.RebuildOpen(ctx, r.sku, totals)
	if err != nil {
		return err
	}
	r.report.Opened = base.Verdict == redis.OK
	r.report.Repaired = r.report.Found
	return nil
}

// totals are the counters that records and book lead to.
func (r *rebuild) totals(ctx context.Context) (t redis.Totals, err error) {
	now, err := r.gate.Inspect(ctx, r.sku) // its count of sales has those that were put in
	if err != nil {
		return t, err
	}
	if r.Records, err = r.gate.ReadRecords(ctx, r.sku); err != nil {
		return t, err
	}
	var recorded int64
	for _, h := range r.Holds {
		switch h.State {
		case contract.HoldHeld, contract.HoldProvisional:
			t.Held += h.Units
		case contract.HoldOffered:
			t.Offered += h.Units
		case contract.HoldSold:
			recorded += h.Units
		}
	}
	t.Received, t.Returned, t.Corrected, err = r.came(ctx)
	// Old sales are purged: their records may add up to less.
	gross := max(now.Counters.Sold+now.Counters.Returned, recorded)
	t.Sold = gross - t.Returned
	t.OnHand = t.Received + t.Corrected - t.Sold
	t.Epoch = max(now.Counters.Epoch, r.book.Epoch) + 1
	t.Generation = max(r.gen, r.Generation)
	t.N = r.book.DecidedN // or the book would take the next event for a repeat
	return t, err
}

// came is what the book knows to have come in, and what of its pending events the
// gate has decided.
func (r *rebuild) came(ctx context.Context) (received, returned, corrected int64, err error) {
	received, returned, corrected = r.book.Received, r.book.Returned, r.book.Corrected
	ids := make([]string, len(r.book.Pending))
	for i, ev := range r.book.Pending {
		ids[i] = ev.EventID
	}
	for batch := range slices.Chunk(ids, checkBatch) {
		outcomes, err := r.gate.InspectEvents(ctx, r.sku, batch)
		if err != nil {
			return 0, 0, 0, err
		}
		for _, ev := range r.book.Pending {
			switch out := outcomes[ev.EventID]; {
			case out.N <= r.book.DecidedN:
			case ev.Kind == contract.StockRestock:
				received += out.Delta
			case ev.Kind == contract.StockReturn:
				returned += out.Delta
			default:
				corrected += out.Delta
			}
		}
	}
	return received, returned, corrected, nil
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
		return b.ToldAt.Compare(a.ToldAt)
	})
	for _, h := range offers {
		if t.Held+t.Offered <= t.OnHand {
			break
		}
		err := r.write(ctx, redis.RebuiltHold{
			LostHold: redis.LostHold{
				ID: h.ID, Person: h.Person, EntryID: h.EntryID, Units: h.Units, Generation: h.Generation, CreatedAt: h.CreatedAt, ExpiresAt: h.Deadline,
			},
			Version: h.Version, State: contract.HoldReleased, EndedAt: r.report.Checked, Reason: contract.ReasonReconcile,
		}, h)
		if err != nil {
			return t, err
		}
		t.Offered -= h.Units
	}
	var err error
	r.Records, err = r.gate.ReadRecords(ctx, r.sku)
	return t, err
}

package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/contract"
)

// sales puts in what Holds and Payments have sold, as far back as Temporal knows them.
func (r *rebuild) sales(ctx context.Context) error {
	sold := fmt.Sprintf("%s = '%s'", contract.StateAttribute, contract.HoldSold)
	err := r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, sold), func(page []listedFlow) error {
		return r.asHoldsSay(ctx, idsOf(page, func(w listedFlow) bool { return r.Holds[w.id].State != contract.HoldSold }), false)
	})
	if err != nil {
		return err
	}
	return r.listed(ctx, skuQuery(r.sku, contract.PaymentWorkflow, sold), func(page []listedFlow) error {
		all, err := ask[contract.PaymentStatus](ctx, r.Books, idsOf(page, func(listedFlow) bool { return true }))
		if err != nil {
			return err
		}
		for _, p := range all {
			// One that only found its sale made: whoever made it tells of it.
			if p.State != contract.PaymentSold || p.Sale == nil || r.Holds[p.HoldID].State == contract.HoldSold {
				continue
			}
			if err := r.merge(ctx, soldBy(p), false, p.Sale.Retaken); err != nil {
				return err
			}
		}
		return nil
	})
}

// soldBy is the hold as its Payment knows it, also when its Hold is forgotten.
func soldBy(p contract.PaymentStatus) contract.HoldStatus {
	last := slices.MaxFunc(p.Sale.SoldAt, func(a, b time.Time) int { return a.Compare(b) })
	return contract.HoldStatus{
		HoldID: p.HoldID, State: contract.HoldSold, Lines: p.Sale.Lines, Person: p.Sale.Person, EntryID: p.Sale.EntryID,
		Generation: p.Sale.Generation, PaymentRef: p.PaymentRef, CreatedAt: p.Sale.CreatedAt, EndedAt: &last, SoldAt: p.Sale.SoldAt,
	}
}

// refunds are the payments that go back, or went: none of them may sell its hold.
func (r *rebuild) refunds(ctx context.Context) error {
	r.refunded = map[string][]string{}
	going := fmt.Sprintf("%s IN ('%s', '%s', '%s')", contract.StateAttribute,
		contract.PaymentRefundPending, contract.PaymentRefundReported, contract.PaymentRefundSettled)
	return r.listed(ctx, skuQuery(r.sku, contract.PaymentWorkflow, going), func(page []listedFlow) error {
		all, err := ask[contract.PaymentStatus](ctx, r.Books, idsOf(page, func(listedFlow) bool { return true }))
		if err != nil {
			return err
		}
		for _, p := range all {
			switch p.State {
			case contract.PaymentRefundSettled:
				if _, err := r.gate.SettlePayment(ctx, p.HoldID, p.PaymentRef, p.Reference); err != nil {
					return err
				}
			case contract.PaymentRefundPending, contract.PaymentRefundReported:
			default:
				continue
			}
			r.refunded[p.HoldID] = append(r.refunded[p.HoldID], p.PaymentRef)
		}
		return nil
	})
}

// marks writes them on records that have forgotten them.
func (r *rebuild) marks(ctx context.Context) error {
	records, err := r.gate.ReadRecords(ctx, r.sku)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.refunded)) {
		h, known := records.Holds[id]
		forgotten := func(ref string) bool { return !slices.Contains(h.Refunded, ref) }
		if !known || h.State == contract.HoldSold || !slices.ContainsFunc(r.refunded[id], forgotten) {
			continue
		}
		marked := as(h)
		marked.Refunded = r.refunded[id]
		r.differ("%s has payments that go back, and the gate did not know", id)
		if err := r.write(ctx, marked, h); err != nil {
			return err
		}
	}
	return nil
}

package activities

import (
	"context"
	"errors"
	"slices"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// rang puts what must never be into the report, and tells the book when it does not
// know of it. The pass goes on, and may mend what rings.
func (p *pass) rang(ctx context.Context, rings []contract.Ring) error {
	for _, r := range rings {
		p.alarm("%s: %s", r.Wire, r.Says)
	}
	if len(rings) == 0 || p.in.DryRun {
		return nil
	}
	return p.tellBook(ctx, rings)
}

// tellBook tells the book of its tripwire unless it knows. Without a book there is
// nobody to tell, which is an alarm of its own.
func (p *pass) tellBook(ctx context.Context, rings []contract.Ring) error {
	var book contract.StockBook
	switch err := p.Books.Status(ctx, contract.StockWorkflowID(p.in.SKU), &book); {
	case errors.Is(err, launch.ErrNoOwner):
		return nil
	case err != nil:
		return err
	case book.Alarm == nil && len(rings) == 0, book.Alarm != nil && len(rings) > 0 && len(contract.FreshRings(rings, book.Alarm.Rings)) == 0:
		return nil
	}
	err := p.Epochs.Signal(ctx, contract.StockWorkflowID(p.in.SKU), contract.SignalTripwire, contract.Rung{Rings: rings, At: p.now})
	if errors.Is(err, launch.ErrNoOwner) {
		return nil
	}
	return err
}

// endOfAlarm tells the book what rings at the end of the pass: that an alarm is over,
// which others may have missed, and what only the lines of the ledger show.
func (p *pass) endOfAlarm(ctx context.Context, c redis.Counters, rings []contract.Ring) error {
	if p.ledger != "" && !slices.ContainsFunc(rings, isLedger) {
		rings = append(rings, contract.Ring{Wire: contract.WireLedger, Says: p.ledger})
		p.alarm("%s: %s", contract.WireLedger, p.ledger)
	}
	if p.in.DryRun {
		return nil
	}
	p.now = c.AsOf
	return p.tellBook(ctx, rings)
}

func isLedger(r contract.Ring) bool { return r.Wire == contract.WireLedger }

package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// What was sold is kept in the SKU's book, so that it stays right when Redis has lost
// it and Temporal has forgotten the workflows that sold it.

// AuditGate is the gate as an audit uses it.
type AuditGate interface {
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	ReadSales(ctx context.Context, sku string, since time.Time, rest func(began time.Time) error) (s redis.Sales, ok bool, err error)
	Confirm(ctx context.Context, req redis.ConfirmRequest) (redis.HoldOutcome, error)
}

// audit tells the book how much was sold up to an instant by the gate's clock. It is
// the gate that says so while it is whole, so that a sale counts once however many
// workflows report it. The instant is AuditAge back, and before the first sale whose
// workflow is still open: that one may not have heard of its sale and confirm it again
// to a gate that was rebuilt. Every later sale is then found by its workflow, which
// tells the same instant. A repeat tells the same or a later instant.
func (p *pass) audit(ctx context.Context) error {
	if p.in.DryRun {
		return nil
	}
	var book contract.StockBook
	switch err := p.Books.Status(ctx, contract.StockWorkflowID(p.in.SKU), &book); {
	case errors.Is(err, launch.ErrNoOwner):
		return nil
	case err != nil:
		return err
	}
	counters, _, err := p.Gate.Snapshot(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	until := p.now.Add(-p.AuditAge)
	if !book.Opened || counters.Sold+counters.Returned == book.Audit.Sold || until.Before(book.Audit.Until.Add(p.AuditAge)) {
		return nil // each audit costs the book's history
	}
	sales, ok, err := p.Gate.ReadSales(ctx, p.in.SKU, book.Audit.Until, func(began time.Time) error { return p.pace.worked(ctx, began) })
	if err != nil || !ok {
		return err
	}
	if until, err = p.closedUntil(ctx, sales, until); err != nil {
		return err
	}
	sold, ok := sales.Before(until)
	if !ok || !until.After(book.Audit.Until) {
		return nil
	}
	// A server that went back answers plain reads, too. One that is open now, in the same
	// epoch, had lost nothing when it did.
	now, _, err := p.Gate.Snapshot(ctx, p.in.SKU)
	if err != nil || now.Epoch != sales.Epoch {
		return err
	}
	return p.Epochs.Signal(ctx, contract.StockWorkflowID(p.in.SKU), contract.SignalAudit,
		contract.StockAudit{Until: until, Sold: sold, Epoch: sales.Epoch})
}

// closedUntil is an instant no later than until at which the workflow of every sale has
// closed. Temporal's lists may be behind by less than AuditAge: what it lists as open
// may have closed, and nothing that sold before until is missing.
func (p *pass) closedUntil(ctx context.Context, sales redis.Sales, until time.Time) (time.Time, error) {
	moves := map[string][]redis.SaleMove{}
	for _, m := range sales.Moves {
		if !m.At.After(until) {
			moves[m.HoldID] = append(moves[m.HoldID], m)
		}
	}
	if len(moves) == 0 {
		return until, nil
	}
	open := map[string][]redis.SaleMove{}
	err := p.list(ctx, skuQuery(p.in.SKU, contract.HoldWorkflow, running), nil, func(page []listed, _ []byte) error {
		for _, w := range page {
			if of := moves[w.id]; of != nil {
				open[w.id] = of
			}
		}
		return nil
	})
	if err != nil {
		return until, err
	}
	// A Payment sells lines of any SKU, and may undo them until it has closed.
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s IN ('%s', '%s')",
		contract.PaymentWorkflow, contract.StateAttribute, contract.PaymentDeciding, contract.PaymentSold)
	err = p.list(ctx, query, nil, func(page []listed, _ []byte) error {
		for _, w := range page {
			var s contract.PaymentStatus
			if err := p.Books.Status(ctx, w.id, &s); err != nil && !errors.Is(err, launch.ErrNoOwner) {
				return err
			}
			if of := moves[s.HoldID]; of != nil {
				open[s.HoldID] = of
			}
		}
		return nil
	})
	if err != nil {
		return until, err
	}
	for moved := true; moved; { // an earlier instant may be in the middle of another's sale and its undoing
		moved = false
		for _, of := range open {
			if before := unsold(of, until); before.Before(until) {
				until, moved = before, true
			}
		}
	}
	return until, nil
}

// unsold is an instant no later than until at which nothing of these moves is a sale.
func unsold(moves []redis.SaleMove, until time.Time) time.Time {
	var sold int64
	before := until
	for _, m := range moves {
		if m.At.After(until) {
			break
		}
		if sold == 0 {
			before = m.At.Add(-time.Millisecond)
		}
		if sold += m.Units; sold == 0 {
			before = until
		}
	}
	return before
}

// soldAfterAll makes a sale of a record whose Hold has closed as sold: the gate forgot
// it, when Redis came back older while the Hold was about to close.
func (p *pass) soldAfterAll(ctx context.Context, holdID, run string) (sold bool, err error) {
	if run == "" {
		return false, nil
	}
	var s contract.HoldStatus
	err = p.Books.Status(ctx, holdID, &s)
	switch {
	case errors.Is(err, launch.ErrNoOwner) || err == nil && s.State != contract.HoldSold:
		return false, nil
	case err != nil:
		return false, err
	}
	return true, p.mend(ctx, fmt.Sprintf("%s was sold, and the gate held it", holdID), func(ctx context.Context) (redis.Base, error) {
		out, err := p.Gate.Confirm(ctx, redis.ConfirmRequest{SKU: p.in.SKU, HoldID: holdID, PaymentRef: s.PaymentRef, Actor: redis.ActorReconcile})
		return out.Base, err
	})
}

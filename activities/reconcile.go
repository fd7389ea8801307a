package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const (
	checkBatch     = 200 // records or events compared in one call
	maxDifferences = 50  // listed in a report; more only say the same again
)

// CheckGate is the gate as it is read while it is closed.
type CheckGate interface {
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	Moved(ctx context.Context, sku string, since redis.Inspection) (bool, error)
	Inspect(ctx context.Context, sku string) (redis.Inspection, error)
	InspectRecords(ctx context.Context, sku string, ids []string) (missing []string, err error)
	InspectSales(ctx context.Context, sku string, ids []string) (unsold []string, err error)
	InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]redis.StockOutcome, error)
	Open(ctx context.Context, req redis.OpenRequest) (redis.Base, error)
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
}

// Books answers a workflow's query status.
type Books interface {
	Status(ctx context.Context, workflowID string, out any) error
}

// Visibility lists workflows; client.Client is one.
type Visibility interface {
	ListWorkflow(ctx context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
}

// Reconciles are the activities of Reconcile.
type Reconciles struct {
	Guard
	Gate      CheckGate
	Books     Books
	Workflows Visibility
}

// CheckAndOpen compares a closed SKU with its book and its open workflows, and
// opens it when nothing was lost. Otherwise it stays closed and the report
// says why. One that is open, because who asked first has had it checked, is only
// reported as that: while it moves, a comparison says nothing.
func (a *Reconciles) CheckAndOpen(ctx context.Context, in SKURef) (contract.ReconcileReport, error) {
	defer beating(ctx)()
	for {
		report, moved, err := a.checkOnce(ctx, in.SKU)
		if err != nil || !moved {
			return report, err
		}
	}
}

// IsOpen says whether the gate of a SKU is open. ErrUnavailable when it does not answer.
func (a *Reconciles) IsOpen(ctx context.Context, in SKURef) (bool, error) {
	return isOpen(ctx, a.Gate, in.SKU)
}

// checkOnce says that the SKU has moved meanwhile when that is so: it was opened, or its
// server has changed, and what was found is nothing to go by.
func (a *Reconciles) checkOnce(ctx context.Context, sku string) (report contract.ReconcileReport, moved bool, err error) {
	report = contract.ReconcileReport{SKU: sku, Checked: time.Now().UTC()}
	if report.Opened, err = isOpen(ctx, a.Gate, sku); err != nil || report.Opened {
		return report, false, err
	}
	found, err := a.Gate.Inspect(ctx, sku)
	if err != nil {
		return report, false, checkError("inspect", sku, err)
	}
	c := check{Reconciles: a, sku: sku}
	ours, err := c.compare(ctx, found)
	if err != nil {
		return report, false, err
	}
	if moved, err = a.Gate.Moved(ctx, sku, found); err != nil || moved {
		return report, moved, err
	}
	report.Checked = time.Now().UTC()
	report.Differences = c.differences
	report.Rebuildable = c.known && (!found.Missing || found.ReplID != "")
	if !ours || len(c.differences) > 0 {
		return report, false, nil
	}
	if _, err := a.Gate.RegisterSKU(ctx, sku); err != nil {
		return report, false, checkError("register", sku, err)
	}
	base, err := a.Gate.Open(ctx, redis.OpenRequest{SKU: sku, ReplID: found.ReplID, Epoch: found.Counters.Epoch})
	if err != nil {
		return report, false, checkError("open", sku, err)
	}
	if base.Verdict == redis.Moved {
		return report, true, nil
	}
	report.Opened = true
	a.wake(ctx, sku, redis.Base{Wake: true})
	return report, false, nil
}

// isOpen asks the gate itself: more than another server shuts a SKU.
func isOpen(ctx context.Context, gate CheckGate, sku string) (bool, error) {
	_, _, err := gate.Snapshot(ctx, sku)
	var shut *redis.ClosedError
	switch {
	case errors.As(err, &shut):
		return false, nil
	case err != nil:
		return false, checkError("look at", sku, err)
	}
	return true, nil
}

type check struct {
	*Reconciles
	sku         string
	known       bool // by a book
	differences []string
}

func (c *check) differ(format string, args ...any) {
	if len(c.differences) < maxDifferences {
		c.differences = append(c.differences, fmt.Sprintf(format, args...))
	}
}

// compare answers whether the SKU is ours at all; without a book and without a
// key there is nothing to open.
func (c *check) compare(ctx context.Context, found redis.Inspection) (ours bool, err error) {
	var book contract.StockBook
	err = c.Books.Status(ctx, contract.StockWorkflowID(c.sku), &book)
	known := err == nil && book.Opened
	c.known = known
	switch {
	case err != nil && !errors.Is(err, launch.ErrNoOwner):
		return false, checkError("read the book of", c.sku, err)
	case !known && found.Missing:
		return false, nil
	case !known:
		c.differ("Redis has stock of this SKU, but no book in Temporal knows it")
		return true, nil
	case found.Missing:
		c.differ("the book knows this SKU, but Redis has lost its stock")
		return true, nil
	}
	for _, p := range found.Problems {
		c.differ("%s", p)
	}
	if err := c.events(ctx, book, found.Counters); err != nil {
		return true, err
	}
	open := map[string]bool{}
	for _, kind := range []string{contract.HoldWorkflow, contract.WaitlistEntryWorkflow} {
		if err := c.records(ctx, kind, open); err != nil {
			return true, err
		}
	}
	for _, id := range found.Owned {
		if !open[id] {
			c.differ("%s is live in Redis, but its workflow is not open", id)
		}
	}
	return true, c.sales(ctx, book.Audit, found.Counters)
}

// events compares the book's totals with the gate's. An event that is pending
// in the book may have reached the gate. The gate forgets outcomes in time, so
// one that it does not know any more only counts when the totals differ.
func (c *check) events(ctx context.Context, book contract.StockBook, got redis.Counters) error {
	ids := make([]string, 0, len(book.Events)+len(book.Pending))
	for _, ev := range book.Events {
		ids = append(ids, ev.EventID)
	}
	for _, ev := range book.Pending {
		ids = append(ids, ev.EventID)
	}
	outcomes, err := eventOutcomes(ctx, c.Gate, c.sku, ids)
	if err != nil {
		return checkError("read the events of", c.sku, err)
	}
	var forgotten []string
	for _, ev := range book.Events {
		out, known := outcomes[ev.EventID]
		switch {
		case known && (out.Applied != ev.Applied || out.Delta != ev.Delta):
			c.differ("stock event %s moved %d in the book and %d in Redis", ev.EventID, ev.Delta, out.Delta)
		case !known && ev.Applied:
			forgotten = append(forgotten, ev.EventID)
		}
	}
	t := totalsOf(book, outcomes)
	if t.received != got.Received || t.returned != got.Returned || t.corrected != got.Corrected {
		c.differ("the book has received %d, returned %d and corrected %d, Redis %d, %d and %d",
			t.received, t.returned, t.corrected, got.Received, got.Returned, got.Corrected)
		for _, id := range forgotten {
			c.differ("Redis does not know stock event %s", id)
		}
	}
	return nil
}

// records asks the gate for the record of each open workflow of a type, and
// notes which are open.
func (c *check) records(ctx context.Context, workflow string, open map[string]bool) error {
	return c.list(ctx, workflow, running, func(ids []string) error {
		for _, id := range ids {
			open[id] = true
		}
		missing, err := c.Gate.InspectRecords(ctx, c.sku, ids)
		if err != nil {
			return checkError("read the records of", c.sku, err)
		}
		for _, id := range missing {
			c.differ("%s %s is open, but Redis has no record of it", workflow, id)
		}
		return nil
	})
}

// sales looks for sales that Redis does not know: those of Holds and of Payments, each by
// itself, and those that were audited. How many there are on either side tells nothing:
// Temporal forgets a workflow long before the gate forgets its sale, and a Payment that
// made a sale has a Hold that closed otherwise.
func (c *check) sales(ctx context.Context, audit contract.StockAudit, got redis.Counters) error {
	if ever := got.Sold + got.Returned; ever < audit.Sold {
		c.differ("%d were sold by the last audit, Redis knows of %d", audit.Sold, ever)
	}
	sold := fmt.Sprintf("%s = '%s'", contract.StateAttribute, contract.HoldSold)
	if err := c.list(ctx, contract.HoldWorkflow, sold, func(ids []string) error { return c.sold(ctx, ids) }); err != nil {
		return err
	}
	return c.list(ctx, contract.PaymentWorkflow, sold, func(ids []string) error {
		all, err := ask[contract.PaymentStatus](ctx, c.Books, ids)
		if err != nil {
			return checkError("ask the payments of", c.sku, err)
		}
		var holds []string
		for _, p := range all {
			if p.State == contract.PaymentSold && p.Sale != nil {
				holds = append(holds, p.HoldID)
			}
		}
		return c.sold(ctx, holds)
	})
}

// sold wants the records of holds to be those of sales.
func (c *check) sold(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	unsold, err := c.Gate.InspectSales(ctx, c.sku, ids)
	if err != nil {
		return checkError("read the sales of", c.sku, err)
	}
	for _, id := range unsold {
		c.differ("%s was sold, but Redis does not know", id)
	}
	return nil
}

// list visits the pages of the workflows of a type that a query finds.
func (c *check) list(ctx context.Context, workflow, and string, visit func(ids []string) error) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: checkBatch, Query: skuQuery(c.sku, workflow, and)}
	for {
		page, err := c.Workflows.ListWorkflow(ctx, req)
		if err != nil {
			return checkError("list the workflows of", c.sku, err)
		}
		found := launch.OfSKU(c.sku, page.GetExecutions())
		ids := make([]string, len(found))
		for i, e := range found {
			ids[i] = e.GetExecution().GetWorkflowId()
		}
		if err := visit(ids); err != nil {
			return err
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

func checkError(what, sku string, err error) error {
	return temporal.NewApplicationErrorWithOptions(what+" "+sku+": "+err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
}

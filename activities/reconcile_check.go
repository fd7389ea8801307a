package activities

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.temporal.io/api/serviceerror"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// check is the comparison of one closed SKU.
type check struct {
	*Reconciles
	sku         string
	known       bool // by a book
	differences []string
	asking      []string // holds that their open workflows have yet to adopt
	alarms      []string
	late        atomic.Int32 // answers
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
		return false, fmt.Errorf("read its book: %w", err)
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
	if err := c.holds(ctx, open); err != nil {
		return true, err
	}
	if err := c.entries(ctx, open); err != nil {
		return true, err
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
		return err
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

// holds compares the records of open Holds with what these know, and notes which are
// open. Only a hold that Redis takes for one that nobody has adopted has to be asked for.
func (c *check) holds(ctx context.Context, open map[string]bool) error {
	return c.list(ctx, contract.HoldWorkflow, running, func(page []listedFlow) error {
		ids := idsOf(page, all)
		records, err := c.Gate.InspectHolds(ctx, c.sku, ids)
		if err != nil {
			return err
		}
		var unadopted []string
		for _, id := range ids {
			open[id] = true
			h, known := records[id]
			switch {
			case !known:
				c.differ("%s is open, but Redis has no record of it", id)
			case h.State == contract.HoldProvisional, h.State == contract.HoldSwept, h.State == contract.HoldOffered:
				unadopted = append(unadopted, id)
			}
		}
		says, silent, err := heard[contract.HoldStatus](ctx, c, unadopted)
		if err != nil {
			return err
		}
		for _, s := range says {
			switch state := s.Of(c.sku); state {
			case contract.HoldHeld, contract.HoldSold:
				c.differ("%s is %s, but Redis knows it as %s", s.HoldID, state, records[s.HoldID].State)
			case contract.HoldProvisional:
				c.asking = append(c.asking, s.HoldID)
			}
		}
		c.asking = append(c.asking, silent...)
		return nil
	})
}

// entries compares the records of open entries with what these know, and notes which are
// open. Only one that has written of an offer what its record does not say has to be
// asked: that it has one, of a record that waits; or that it waits, while Redis has an
// offer of it that was told.
func (c *check) entries(ctx context.Context, open map[string]bool) error {
	return c.list(ctx, contract.WaitlistEntryWorkflow, running, func(page []listedFlow) error {
		ids := idsOf(page, all)
		records, err := c.Gate.InspectEntries(ctx, c.sku, ids)
		if err != nil {
			return err
		}
		var offers []string
		for _, id := range ids {
			open[id] = true
			e, known := records[id]
			switch {
			case !known:
				c.differ("%s is open, but Redis has no record of it", id)
			case e.State == contract.EntryOffered:
				offers = append(offers, e.HoldID)
			}
		}
		holds, err := c.Gate.InspectHolds(ctx, c.sku, offers)
		if err != nil {
			return err
		}
		return c.offers(ctx, records, idsOf(page, func(w listedFlow) bool {
			switch e := records[w.id]; e.State {
			case contract.EntryWaiting:
				return w.state == string(contract.EntryOffered)
			case contract.EntryOffered:
				return w.state == string(contract.EntryWaiting) && !holds[e.HoldID].ToldAt.IsZero()
			default:
				return false
			}
		}))
	})
}

// offers asks entries for their offers: Redis has to know of them, and of their ends.
func (c *check) offers(ctx context.Context, records map[string]redis.Entry, entries []string) error {
	says, _, err := heard[contract.EntryStatus](ctx, c, entries)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range says {
		if s.State == contract.EntryOffered {
			ids = append(ids, s.HoldID)
		}
	}
	holds, err := c.Gate.InspectHolds(ctx, c.sku, ids)
	if err != nil {
		return err
	}
	for _, s := range says {
		switch {
		case s.State == contract.EntryOffered && holds[s.HoldID].State == "":
			c.differ("%s has the offer %s, but Redis does not know of it", s.EntryID, s.HoldID)
		case missedSince(records[s.EntryID], s):
			c.differ("%s has missed the offer %s, but Redis does not know", s.EntryID, s.HoldID)
		}
	}
	return nil
}

// missedSince says that an entry has heard the end of the offer that its record still has.
func missedSince(e redis.Entry, s contract.EntryStatus) bool {
	return e.State == contract.EntryOffered && s.State == contract.EntryWaiting && e.HoldID == s.HoldID
}

// heard answers what those workflows say that answer a question at all. One whose tasks
// fail answers nobody, and must not keep its SKU closed: it is asked once more, and then the
// report says so. Many that are late are a worker that is busy, which is waited for: the
// error has all of it done again.
func heard[T any](ctx context.Context, c *check, ids []string) (says []T, silent []string, err error) {
	silent = ids
	for range 2 {
		var some []T
		if some, silent, err = askSome[T](ctx, c.Books, silent, checkAtOnce, c.ownFault); err != nil {
			return nil, nil, err
		}
		says = append(says, some...)
	}
	for _, id := range silent {
		if len(c.alarms) < maxDifferences {
			c.alarms = append(c.alarms, id+" answers no question: look at its failed tasks in Temporal")
		}
	}
	return says, silent, nil
}

// ownFault says whether a question failed for the workflow that was asked, and not for
// Temporal or its workers.
func (c *check) ownFault(err error) bool {
	var failed *serviceerror.QueryFailed
	var notReady *serviceerror.WorkflowNotReady
	var late *serviceerror.DeadlineExceeded
	switch {
	case errors.As(err, &failed), errors.As(err, &notReady):
		return true
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return c.late.Add(1) <= mostLate
	default:
		return false
	}
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
	if err := c.list(ctx, contract.HoldWorkflow, sold, func(page []listedFlow) error { return c.sold(ctx, idsOf(page, all)) }); err != nil {
		return err
	}
	return c.list(ctx, contract.PaymentWorkflow, sold, func(page []listedFlow) error {
		says, err := ask[contract.PaymentStatus](ctx, c.Books, idsOf(page, all))
		if err != nil {
			return err
		}
		var holds []string
		for _, p := range says {
			if p.State == contract.PaymentSold && p.Sale != nil {
				holds = append(holds, p.HoldID)
			}
		}
		return c.sold(ctx, holds)
	})
}

// sold wants the records of holds to be those of sales.
func (c *check) sold(ctx context.Context, ids []string) error {
	records, err := c.Gate.InspectHolds(ctx, c.sku, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if records[id].State != contract.HoldSold {
			c.differ("%s was sold, but Redis does not know", id)
		}
	}
	return nil
}

func (c *check) list(ctx context.Context, workflow, and string, visit func([]listedFlow) error) error {
	return listFlows(ctx, c.Workflows, c.sku, skuQuery(c.sku, workflow, and), visit)
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const countTries = 10 // statements that one pass reads to correct counters

// books holds the counters against their parts, and the totals of the SKU's book against
// the gate's.
func (p *pass) books(ctx context.Context) error {
	st, ok, err := p.Gate.CompareCounters(ctx, p.in.SKU)
	if err == nil && ok {
		st, ok, err = p.count(ctx, st)
	}
	if err != nil || !ok {
		return err
	}
	return p.book(ctx, st)
}

// count corrects the counters that are not their parts, one after the other: each
// correction makes the numbers of the others out of date. It answers the last statement.
// Whatever a missing record should hold still stands in them, so none is corrected
// before it is back.
func (p *pass) count(ctx context.Context, st redis.Statement) (_ redis.Statement, ok bool, err error) {
	seen := map[string]bool{}
	for ok = true; ok && len(seen) < countTries; {
		part, delta, what := apart(st)
		switch {
		case part == "" && what == "":
			return st, true, nil
		case seen[what]:
			p.alarm("%s: another look finds it again", what)
			return st, true, nil
		case part == "":
			p.alarm("%s", what)
			return st, true, nil
		}
		seen[what] = true
		p.report.DriftUnits += max(delta, -delta)
		if p.at.Waits || p.report.Braked {
			p.alarm("%s: not corrected while records or owners are missing", what)
			return st, true, nil
		}
		err = p.mend(ctx, what, func(ctx context.Context) (redis.Base, error) {
			return p.Gate.RepairCount(ctx, p.in.SKU, part, delta, st.Mended, what)
		})
		if err != nil || p.in.DryRun {
			return st, true, err
		}
		if st, ok, err = p.Gate.CompareCounters(ctx, p.in.SKU); err != nil {
			return st, ok, err
		}
	}
	return st, ok, nil
}

// apart answers the first counter that can be corrected and by how much, or only what
// is wrong.
func apart(st redis.Statement) (part string, delta int64, what string) {
	for _, d := range st.Drift {
		says := fmt.Sprintf("%s is %d, by %s %d", d.Part, d.Counter, d.Against, d.Adds)
		switch {
		case d.Against == redis.AgainstRecords && (d.Part == redis.PartHeld || d.Part == redis.PartOffered):
			return d.Part, d.Adds - d.Counter, says
		case d.Against == redis.AgainstRecords: // sold + returned: sales on record that are not counted
			return redis.PartSold, d.Adds - d.Counter, says
		case d.Against != redis.AgainstLedger && ledgerAgrees(st, d.Counter-d.Adds):
			return redis.PartOnHand, d.Counter - d.Adds, says
		case what == "":
			what = says
		}
	}
	return "", 0, what
}

// ledgerAgrees says that by the ledger, too, on_hand is that far off.
func ledgerAgrees(st redis.Statement, delta int64) bool {
	return slices.ContainsFunc(st.Drift, func(d redis.Drift) bool {
		return d.Part == redis.PartOnHand && d.Against == redis.AgainstLedger && d.Adds-d.Counter == delta
	})
}

const bookLooks = 3 // at a book and a gate that seem to differ

// book holds the totals of the SKU's book against the gate's. What differs is stock
// that somebody has counted: a person must say which is right.
func (p *pass) book(ctx context.Context, st redis.Statement) error {
	for looks := 1; ; looks++ {
		what, err := p.compareBook(ctx, st)
		switch {
		case err != nil || what == "":
			return err
		case looks == bookLooks:
			p.alarm("%s", what)
			return nil
		}
		var ok bool
		if st, ok, err = p.Gate.CompareCounters(ctx, p.in.SKU); err != nil || !ok {
			return err
		}
	}
}

// compareBook has the gate as it was read first, and reads the book afterwards, which
// then knows every event that the gate has counted. Those that the gate decided later
// are taken out.
func (p *pass) compareBook(ctx context.Context, st redis.Statement) (what string, err error) {
	p.ledger = st.Ledger()
	var book contract.StockBook
	switch err := p.Books.Status(ctx, contract.StockWorkflowID(p.in.SKU), &book); {
	case errors.Is(err, launch.ErrNoOwner) || err == nil && !book.Opened:
		return "Redis has stock of this SKU, but no book in Temporal knows it", nil
	case err != nil:
		return "", err
	}
	kinds := map[string]string{}
	var ids []string
	for _, ev := range book.Events {
		kinds[ev.EventID] = ev.Kind
		ids = append(ids, ev.EventID)
	}
	pending := map[string]bool{}
	for _, ev := range book.Pending {
		kinds[ev.EventID], pending[ev.EventID] = ev.Kind, true
		ids = append(ids, ev.EventID)
	}
	totals := map[string]int64{
		contract.StockRestock: book.Received, contract.StockReturn: book.Returned, contract.StockCorrection: book.Corrected,
	}
	for batch := range slices.Chunk(ids, checkBatch) {
		outcomes, err := p.Gate.InspectEvents(ctx, p.in.SKU, batch)
		if err != nil {
			return "", err
		}
		for id, out := range outcomes {
			kind := kinds[id]
			if kind == contract.StockLevel {
				kind = contract.StockCorrection
			}
			switch counted := out.N <= st.N; {
			case pending[id] && counted && out.N > book.DecidedN:
				totals[kind] += out.Delta
			case !pending[id] && !counted:
				totals[kind] -= out.Delta
			}
		}
	}
	c := st.Counters
	received, returned, corrected := totals[contract.StockRestock], totals[contract.StockReturn], totals[contract.StockCorrection]
	if received == c.Received && returned == c.Returned && corrected == c.Corrected {
		return "", nil
	}
	return fmt.Sprintf("the book has received %d, returned %d and corrected %d, Redis %d, %d and %d",
		received, returned, corrected, c.Received, c.Returned, c.Corrected), nil
}

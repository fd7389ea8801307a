package redis

import (
	"context"
	"fmt"
	"slices"
)

// checkLedger walks the ledger backwards from the line that the counters were
// read at: each line's counters must be those of the line before and what the
// line moves, and the whole must lead to the counters.
func (r *statementReader) checkLedger(ctx context.Context) error {
	var sum Movement
	var newest, after *LedgerLine // after is the line that follows, which is checked already
	counted := false              // a line that follows has set the counters
	rebuilt := false              // and the totals, which no line carries
	for end := r.last; r.st.Lines < r.most && !r.st.Whole; {
		size := min(statementPage, r.most-r.st.Lines)
		page, err := r.g.rdb.XRevRangeN(ctx, key(r.sku, "ledger"), end, "-", size).Result()
		if err != nil {
			return err
		}
		for _, m := range page {
			l := r.g.parseLine(m)
			if newest == nil {
				newest = &l
			}
			r.follow(l, after)
			rebuilt = rebuilt || l.counted() && l.Reason == "rebuilt"
			if l.counted() && !counted {
				r.st.Recent = len(r.st.Faults)
				counted, sum = true, sum.Plus(l.after())
			}
			after, sum, end = &l, sum.Plus(l.moves(counted)), "("+l.ID
			r.st.Lines++
			r.st.From = l.At
		}
		r.st.Whole = int64(len(page)) < size
	}
	if r.st.Whole {
		first, err := r.g.LedgerLines(ctx, r.sku, LedgerQuery{Limit: 1})
		if err != nil {
			return err
		}
		if len(first) > 0 && first[0].Verb == LedgerVerbOpening {
			sum = sum.Plus(first[0].moves(counted))
			r.follow(first[0], after)
			// Lines that were trimmed while they were being read count twice in the sum.
			r.st.Whole = after == nil || first[0].N < after.N
		} else if after != nil && after.N != 1 {
			r.fault("its first line is no. %d, and no opening balance stands for those before", after.N)
		}
	}
	if !counted {
		r.st.Recent = len(r.st.Faults)
	}
	c := r.st.Counters
	if !r.st.Whole { // the newest line, which those before it have confirmed
		sum = newest.after()
	}
	r.drift("on_hand", c.OnHand, AgainstLedger, sum.OnHand)
	r.drift("held", c.Held, AgainstLedger, sum.Held)
	r.drift("offered", c.Offered, AgainstLedger, sum.Offered)
	r.drift("sold", c.Sold, AgainstLedger, sum.Sold)
	if r.st.Whole && !rebuilt {
		r.drift("received", c.Received, AgainstLedger, sum.Received)
		r.drift("corrected", c.Corrected, AgainstLedger, sum.Corrected)
		r.drift("returned", c.Returned, AgainstLedger, sum.Returned)
	}
	return nil
}

// follow checks that next comes after l and moves what its counters say. Nothing
// follows the last line, and nothing a line that was trimmed meanwhile.
func (r *statementReader) follow(l LedgerLine, next *LedgerLine) {
	if next == nil || l.Verb == LedgerVerbOpening && l.N >= next.N {
		return
	}
	if next.Epoch == l.Epoch && next.N != l.N+1 {
		r.fault("line no. %d of epoch %d is followed by no. %d", l.N, l.Epoch, next.N)
		return
	}
	if next.counted() {
		return
	}
	want := l.after().Plus(next.Moves())
	want.Received, want.Corrected, want.Returned = 0, 0, 0
	if want != next.after() {
		r.fault("line no. %d of epoch %d (%s %s, %d units) leaves %+v in place of %+v",
			next.N, next.Epoch, next.Verb, next.Kind, next.Units, next.after(), want)
	}
}

// moves is what l moves; of a line before the newest correction only the totals,
// which none has set.
func (l LedgerLine) moves(counted bool) Movement {
	m := l.Moves()
	if counted {
		m.OnHand, m.Held, m.Offered, m.Sold = 0, 0, 0, 0
	}
	return m
}

func (r *statementReader) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.st.Faults) < 10 && !slices.Contains(r.st.Faults, text) {
		r.st.Faults = append(r.st.Faults, text)
	}
}

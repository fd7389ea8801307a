package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

// Statement is what a SKU's books say of it: counters, and whether the records add
// up to them and the ledger leads to them.
type Statement struct {
	SKU      string
	Counters Counters  // those that Inspection has
	AsOf     time.Time // by the reader's clock
	// Drift lists the counters that the records do not add up to or that the ledger
	// does not lead to, all of one instant. The SKU is not stopped for it.
	Drift []Drift
	// Mended is the SKU's number of mendings at that instant, as RepairCount wants it.
	Mended int64
	// N is the number of the last line, the one that led to Counters.
	N int64
	// Lines is how many lines of the ledger were checked, newest first. Whole says
	// that those are all that there are.
	Lines int64
	Whole bool
	From  time.Time // of the oldest line checked
	// Faults says what cannot be read, and where one line of the ledger does not
	// follow from the one before; at most ten.
	Faults []string
	// Recent is how many of Faults, the first ones, are not older than the last time
	// that the counters were counted anew: what was before that is history.
	Recent int
}

// Drift is a counter of the stock hash and what it should be.
type Drift struct {
	Part    string
	Counter int64
	Against string // AgainstRecords, AgainstLedger or the counters that it is the sum of
	Adds    int64
}

// What a counter is held against.
const (
	AgainstRecords = "records"
	AgainstLedger  = "ledger"
)

const (
	statementLines = 100_000 // of the ledger; a page of 1,000 takes some 10 ms
	statementPage  = 1000
	statementTries = 50 // to meet the SKU with less than a page of lines to go
)

// ReadStatement reads a SKU's books in bounded bites, while the SKU is open,
// too. ok is false when Redis has no stock of the SKU.
func (g *Gate) ReadStatement(ctx context.Context, sku string) (st Statement, ok bool, err error) {
	return g.readStatement(ctx, sku, statementLines)
}

// CompareCounters is ReadStatement with no more of the ledger than its last page.
func (g *Gate) CompareCounters(ctx context.Context, sku string) (st Statement, ok bool, err error) {
	return g.readStatement(ctx, sku, statementPage)
}

func (g *Gate) readStatement(ctx context.Context, sku string, most int64) (st Statement, ok bool, err error) {
	r := statementReader{g: g, sku: sku, most: most, parts: map[string]statementPart{}, st: Statement{SKU: sku}}
	if ok, err = r.compare(ctx); err == nil && ok {
		err = r.checkLedger(ctx)
	}
	if err != nil {
		return Statement{}, false, fmt.Errorf("%w: statement of %s: %w", ErrUnavailable, sku, err)
	}
	return r.st, ok, nil
}

type statementReader struct {
	g     *Gate
	sku   string
	most  int64                    // lines of the ledger to check
	parts map[string]statementPart // live and sold holds, as small as can be: there may be many
	st    Statement
	last  string   // id of the ledger's last line
	since Movement // of holds whose records were read before they moved
}

type statementPart struct {
	state contract.HoldState
	units int64
}

// compare reads all records, bite by bite, and then in one transaction the counters,
// the lines since and the records that had moved until then. A record without a line
// since it was read is as it was read, for every movement writes one; one that moved
// only between the last lines read and the transaction is what it was and what those
// lines move. So all are of one instant, however fast the SKU moves.
func (r *statementReader) compare(ctx context.Context) (ok bool, err error) {
	newest, err := r.g.rdb.XRevRangeN(ctx, key(r.sku, "ledger"), "+", "-", 1).Result()
	if err != nil {
		return false, err
	}
	r.last = "0-0"
	if len(newest) > 0 {
		r.last = newest[0].ID
	}
	iter := r.g.rdb.HScan(ctx, key(r.sku, "holds"), 0, "", statementPage).Iterator()
	for iter.Next(ctx) {
		id := iter.Val()
		if !iter.Next(ctx) {
			break
		}
		r.part(id, iter.Val())
	}
	if err := iter.Err(); err != nil {
		return false, err
	}
	moved := map[string]bool{}
	for range statementTries {
		if err := r.catchUp(ctx, moved); err != nil {
			return false, err
		}
		met, ok, err := r.meet(ctx, moved)
		if err != nil || !ok {
			return ok, err
		}
		if met {
			r.addUp()
			return true, nil
		}
	}
	return false, errors.New("it moves faster than its ledger can be read: ask again")
}

// catchUp reads the lines that were written while the records were read.
func (r *statementReader) catchUp(ctx context.Context, moved map[string]bool) error {
	for {
		lines, err := r.g.rdb.XRangeN(ctx, key(r.sku, "ledger"), "("+r.last, "+", statementPage).Result()
		if err != nil {
			return err
		}
		for _, m := range lines {
			if l := r.g.parseLine(m); aboutHold(l) {
				moved[l.RefID] = true
			}
			r.last = m.ID
		}
		if len(lines) < statementPage {
			return nil
		}
	}
}

func aboutHold(l LedgerLine) bool { return strings.HasPrefix(l.RefID, contract.HoldPrefix) }

func (r *statementReader) part(id, raw string) {
	h, err := r.g.parseHold(r.sku, id, raw)
	if err != nil {
		r.fault("%v", err)
	}
	if h.State.Live() || h.State == contract.HoldSold {
		r.parts[id] = statementPart{h.State, h.Units}
	} else {
		delete(r.parts, id)
	}
}

// meet reads the counters, the records of moved and the lines since in one
// transaction. met is false when there were more lines than it reads.
func (r *statementReader) meet(ctx context.Context, moved map[string]bool) (met, ok bool, err error) {
	ids := slices.Collect(maps.Keys(moved))
	var stock *goredis.MapStringStringCmd
	var lines *goredis.XMessageSliceCmd
	var records *goredis.SliceCmd
	_, err = r.g.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		stock = p.HGetAll(ctx, key(r.sku, "stock"))
		lines = p.XRangeN(ctx, key(r.sku, "ledger"), "("+r.last, "+", statementPage)
		if len(ids) > 0 {
			records = p.HMGet(ctx, key(r.sku, "holds"), ids...)
		}
		return nil
	})
	if err != nil {
		return false, false, err
	}
	if len(stock.Val()) == 0 {
		return false, false, nil
	}
	if err := otherLayout(r.sku, stock.Val()); err != nil {
		return false, false, err
	}
	r.st.AsOf = time.Now().UTC()
	r.st.Counters = r.countersOf(stock.Val())
	r.st.Mended, r.st.N = r.num(stock.Val(), "mended"), r.num(stock.Val(), "n")
	if len(lines.Val()) == statementPage {
		return false, true, nil // the next round begins with these lines
	}
	for i, id := range ids {
		if raw, has := records.Val()[i].(string); has {
			r.part(id, raw)
		} else {
			delete(r.parts, id)
		}
	}
	for _, m := range lines.Val() {
		if l := r.g.parseLine(m); aboutHold(l) && !moved[l.RefID] {
			r.since = r.since.Plus(l.Moves())
		}
		r.last = m.ID
	}
	return true, true, nil
}

func (r *statementReader) countersOf(stock map[string]string) Counters {
	num := func(field string) int64 { return r.num(stock, field) }
	c := Counters{
		SKU: r.sku, OnHand: num("on_hand"), Held: num("held"), Offered: num("offered"), Sold: num("sold"),
		Returned: num("returned"), Received: num("received"), Corrected: num("corrected"), Epoch: num("epoch"),
		Generation: num("gen"), Paused: stock["paused"] == "1",
	}
	c.Available = c.OnHand - c.Held - c.Offered
	c.Shortfall = max(0, -c.Available)
	return c
}

func (r *statementReader) num(stock map[string]string, field string) int64 {
	n, err := strconv.ParseInt(stock[field], 10, 64)
	if err != nil && stock[field] != "" {
		r.fault("%s of the stock hash reads %q", field, stock[field])
	}
	return n
}

func (r *statementReader) addUp() {
	var held, offered, sold int64
	for _, h := range r.parts {
		switch h.state {
		case contract.HoldOffered:
			offered += h.units
		case contract.HoldSold:
			sold += h.units
		default:
			held += h.units
		}
	}
	held, offered, sold = held+r.since.Held, offered+r.since.Offered, sold+r.since.Sold+r.since.Returned
	c := r.st.Counters
	r.drift(PartHeld, c.Held, AgainstRecords, held)
	r.drift(PartOffered, c.Offered, AgainstRecords, offered)
	// Old sales are purged: their records may add up to less, never to more.
	r.drift("sold + returned", c.Sold+c.Returned, AgainstRecords, max(sold, c.Sold+c.Returned))
	r.drift("received + corrected", c.Received+c.Corrected, "on_hand + sold", c.OnHand+c.Sold)
}

func (r *statementReader) drift(part string, counter int64, against string, adds int64) {
	if counter != adds {
		r.st.Drift = append(r.st.Drift, Drift{part, counter, against, adds})
	}
}

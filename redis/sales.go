package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Sales are how many units a SKU has ever sold, those that came back included, and how
// it came to that lately, all of one instant.
type Sales struct {
	Sold  int64
	Epoch int64
	Moves []SaleMove // oldest first
}

// SaleMove is what one line of the ledger moved of Sales.Sold.
type SaleMove struct {
	HoldID string
	At     time.Time // by the SKU's clock; of a sale, when it was made
	Units  int64     // less than 0 when a sale was undone
	// Mended says that a repair moved it: the sales that it has put in may have been
	// made long before.
	Mended bool
}

// Before is what had been sold at an instant; ok is false when a repair has moved it
// since.
func (s Sales) Before(at time.Time) (sold int64, ok bool) {
	sold = s.Sold
	for _, m := range slices.Backward(s.Moves) {
		if !m.At.After(at) {
			break
		}
		if m.Mended {
			return 0, false
		}
		sold -= m.Units
	}
	return sold, true
}

// ReadSales reads a SKU's sales, and from its ledger the moves after since, however many
// lines that are: of moves that are missing nobody could say when they were. rest is
// called after each page with when that began. ok is false when counters and ledger are
// not of one instant, or there is no stock. It is a plain read of whatever server answers:
// only what it says of an epoch that was open before and after is true. ErrUnavailable,
// and what rest answers.
func (g *Gate) ReadSales(ctx context.Context, sku string, since time.Time, rest func(began time.Time) error) (s Sales, ok bool, err error) {
	unavailable := func(err error) (Sales, bool, error) {
		return Sales{}, false, fmt.Errorf("%w: sales of %s: %w", ErrUnavailable, sku, err)
	}
	var stock *goredis.SliceCmd
	var newest *goredis.XMessageSliceCmd
	_, err = g.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		stock = p.HMGet(ctx, key(sku, "stock"), "sold", "returned", "epoch", "n", "on_hand")
		newest = p.XRevRangeN(ctx, key(sku, "ledger"), "+", "-", 1)
		return nil
	})
	if err != nil {
		return unavailable(err)
	}
	num := func(i int) int64 {
		text, _ := stock.Val()[i].(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	if stock.Val()[4] == nil || len(newest.Val()) == 0 || g.parseLine(newest.Val()[0]).N != num(3) {
		return Sales{}, false, nil
	}
	s = Sales{Sold: num(0) + num(1), Epoch: num(2)}
	var after *LedgerLine
	note := func(l LedgerLine, before int64) {
		units := l.Sold - before
		if l.Verb == "stock" && l.Kind == "return" {
			units += l.Units
		}
		mended := l.counted() || l.Actor == ActorReconcile && units != 0
		if units != 0 || mended {
			s.Moves = append(s.Moves, SaleMove{HoldID: l.RefID, At: l.At, Units: units, Mended: mended})
		}
	}
	for end, more := newest.Val()[0].ID, true; more; {
		began := time.Now()
		page, err := g.rdb.XRevRangeN(ctx, key(sku, "ledger"), end, "-", findPage).Result()
		if err != nil {
			return unavailable(err)
		}
		for _, m := range page {
			l := g.parseLine(m)
			if after != nil {
				note(*after, l.Sold)
			}
			if !l.At.After(since) {
				slices.Reverse(s.Moves)
				return s, true, nil
			}
			after, end = &l, "("+l.ID
		}
		if more = len(page) == findPage; more {
			if err := rest(began); err != nil {
				return Sales{}, false, err
			}
		}
	}
	// The first line there is: what it moved nobody knows.
	if after != nil && after.counted() {
		s.Moves = append(s.Moves, SaleMove{At: after.At, Mended: true})
	}
	slices.Reverse(s.Moves)
	return s, true, nil
}

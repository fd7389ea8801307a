package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// What a person on call asks for: who is meant by a reference, and what happened.
// Plain reads, also while a gate is closed.

// NoteHold remembers by which of the shop's own names a hold will be asked for, such as
// its order, for as long as sales are kept. Prints stand for the names, which are not
// stored. ErrUnavailable.
func (g *Gate) NoteHold(ctx context.Context, holdID string, prints ...string) error {
	return g.note(ctx, holdID, g.opts.SaleRetention, prints)
}

// NotePaying remembers that a payment was told for a hold, for as long as ended holds
// are kept: one that makes the sale has its owner on record. ErrUnavailable.
func (g *Gate) NotePaying(ctx context.Context, holdID, print string) error {
	return g.note(ctx, holdID, g.opts.RecordRetention, []string{print})
}

func (g *Gate) note(ctx context.Context, holdID string, keep time.Duration, prints []string) error {
	if len(prints) == 0 {
		return nil
	}
	_, err := g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, print := range prints {
			p.SAdd(ctx, keyNamed+print, holdID)
			p.Expire(ctx, keyNamed+print, keep)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: note a hold: %w", ErrUnavailable, err)
	}
	return nil
}

// HoldsNamed answers the holds of a name, in no order. ErrUnavailable.
func (g *Gate) HoldsNamed(ctx context.Context, print string) ([]string, error) {
	ids, err := g.rdb.SMembers(ctx, keyNamed+print).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: holds by a name: %w", ErrUnavailable, err)
	}
	return ids, nil
}

// HoldOfPayment answers the hold that a payment belongs to, "" when none was told of
// it. It claims nothing. ErrUnavailable.
func (g *Gate) HoldOfPayment(ctx context.Context, paymentRef string) (string, error) {
	return g.field(ctx, g.paymentKey(paymentRef), "hold")
}

// OutcomesOf answers what the gates of those SKUs that have decided a stock event made of
// it, without counters. ErrUnavailable.
func (g *Gate) OutcomesOf(ctx context.Context, eventID string, skus []string) (map[string]StockOutcome, error) {
	decided, err := g.fieldOf(ctx, "events", eventID, skus)
	out := make(map[string]StockOutcome, len(decided))
	for sku, raw := range decided {
		if out[sku], err = parseOutcome(eventID, raw); err != nil {
			return nil, err
		}
	}
	return out, err
}

// Claimed answers which of some idempotency records there are. ErrUnavailable.
func (g *Gate) Claimed(ctx context.Context, keys []string) (map[string]bool, error) {
	claimed := map[string]bool{}
	for some := range slices.Chunk(keys, skuBatch) {
		asked := make([]*goredis.IntCmd, len(some))
		_, err := g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i, key := range some {
				asked[i] = p.Exists(ctx, keyIdem+key)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%w: idempotency records: %w", ErrUnavailable, err)
		}
		for i, key := range some {
			if asked[i].Val() == 1 {
				claimed[key] = true
			}
		}
	}
	return claimed, nil
}

func (g *Gate) field(ctx context.Context, key, name string) (string, error) {
	v, err := g.rdb.HGet(ctx, key, name).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return "", fmt.Errorf("%w: look up: %w", ErrUnavailable, err)
	}
	return v, nil
}

const findPage = 200 // lines of one read, during which the server does nothing else: some 2 ms

// FindLines answers those of a SKU's lines since an instant that match, oldest first,
// among the newest most. whole is false when older ones were not looked at: because of
// most, or because they were trimmed. ErrUnavailable.
func (g *Gate) FindLines(ctx context.Context, sku string, since time.Time, most int, match func(LedgerLine) bool) (lines []LedgerLine, whole bool, err error) {
	from, to := "-", "+"
	if !since.IsZero() {
		from = streamID{since.UnixMilli(), 0}.String()
	}
	for read := 0; read < most; {
		page, err := g.rdb.XRevRangeN(ctx, key(sku, "ledger"), to, from, int64(min(findPage, most-read))).Result()
		if err != nil {
			return nil, false, fmt.Errorf("%w: ledger of %s: %w", ErrUnavailable, sku, err)
		}
		for _, m := range page {
			if l := g.parseLine(m); match(l) {
				lines = append(lines, l)
			}
		}
		read += len(page)
		if len(page) < findPage && read < most {
			slices.Reverse(lines)
			whole, err := g.keeps(ctx, sku, since)
			return lines, whole, err
		}
		to = "(" + page[len(page)-1].ID
	}
	slices.Reverse(lines)
	return lines, false, nil
}

// keeps says whether no line since an instant was trimmed.
func (g *Gate) keeps(ctx context.Context, sku string, since time.Time) (bool, error) {
	raw, err := g.field(ctx, key(sku, "stock"), "opening")
	if err != nil {
		return false, err
	}
	opening, has, err := parseOpening(sku, raw)
	last, _ := parseStreamID(opening.ID)
	return !has || !since.IsZero() && last.ms < since.UnixMilli(), err
}

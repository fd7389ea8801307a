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

// NoteOrder remembers that a hold is for an order of the shop's, for as long as sales
// are kept. print stands for the order; the order itself is not stored. ErrUnavailable.
func (g *Gate) NoteOrder(ctx context.Context, print, holdID string) error {
	_, err := g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		p.SAdd(ctx, keyOrder+print, holdID)
		p.Expire(ctx, keyOrder+print, g.opts.SaleRetention)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: note an order: %w", ErrUnavailable, err)
	}
	return nil
}

// HoldsOfOrder answers the holds of an order, in no order. ErrUnavailable.
func (g *Gate) HoldsOfOrder(ctx context.Context, print string) ([]string, error) {
	ids, err := g.rdb.SMembers(ctx, keyOrder+print).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: holds of an order: %w", ErrUnavailable, err)
	}
	return ids, nil
}

// HoldOfPayment answers the hold that a payment belongs to, "" when none was told of
// it. It claims nothing. ErrUnavailable.
func (g *Gate) HoldOfPayment(ctx context.Context, paymentRef string) (string, error) {
	return g.field(ctx, g.paymentKey(paymentRef), "hold")
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

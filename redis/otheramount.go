package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// otherAmountFor is longer than any hold lives: what is older is over.
const otherAmountFor = 24 * time.Hour

// NoteOtherAmount remembers that a live hold keeps money of another amount than its
// checkout announced, for whoever is on call. It may be repeated. ErrUnavailable.
func (g *Gate) NoteOtherAmount(ctx context.Context, holdID string) error {
	now := time.Now()
	_, err := g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		p.ZAdd(ctx, keyOtherAmount, goredis.Z{Score: float64(now.UnixMilli()), Member: holdID})
		p.ZRemRangeByScore(ctx, keyOtherAmount, "-inf", strconv.FormatInt(now.Add(-otherAmountFor).UnixMilli(), 10))
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: note a payment of another amount: %w", ErrUnavailable, err)
	}
	return nil
}

// OtherAmounts answers the newest most holds that were noted, newest first. They may
// have ended since. ErrUnavailable.
func (g *Gate) OtherAmounts(ctx context.Context, most int) ([]string, error) {
	ids, err := g.rdb.ZRevRange(ctx, keyOtherAmount, 0, int64(most)-1).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: payments of another amount: %w", ErrUnavailable, err)
	}
	return ids, nil
}

// ForgetOtherAmount is for a hold that has ended. ErrUnavailable.
func (g *Gate) ForgetOtherAmount(ctx context.Context, holdID string) error {
	if err := g.rdb.ZRem(ctx, keyOtherAmount, holdID).Err(); err != nil {
		return fmt.Errorf("%w: forget a payment of another amount: %w", ErrUnavailable, err)
	}
	return nil
}

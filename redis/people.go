package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

// skuBatch is how many SKUs are asked in one go.
const skuBatch = 500

// ReadPlace reads the live entry of a person with its position; ok is false when
// they have none.
func (g *Gate) ReadPlace(ctx context.Context, sku, person string) (e Entry, ok bool, err error) {
	ids, err := g.LiveEntries(ctx, person, []string{sku})
	if err != nil || ids[sku] == "" {
		return Entry{}, false, err
	}
	e, ok, err = g.ReadEntry(ctx, sku, ids[sku])
	return e, ok && e.State.Live(), err // it may have ended in between
}

// LiveEntries answers the live entry of a person in each SKU where there is one.
// It only reads, also of a closed gate: whoever acts on an entry meets the fence.
func (g *Gate) LiveEntries(ctx context.Context, person string, skus []string) (map[string]string, error) {
	return g.fieldOf(ctx, "people", person, skus)
}

// fieldOf answers a field of one hash of each SKU, where there is one.
func (g *Gate) fieldOf(ctx context.Context, hash, field string, skus []string) (map[string]string, error) {
	values := map[string]string{}
	for some := range slices.Chunk(skus, skuBatch) {
		pipe := g.rdb.Pipeline()
		asked := make([]*goredis.StringCmd, len(some))
		for i, sku := range some {
			asked[i] = pipe.HGet(ctx, key(sku, hash), field)
		}
		// Its error is the first of any command, and a SKU without the field is one.
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return nil, fmt.Errorf("%w: look into the %s of SKUs: %w", ErrUnavailable, hash, err)
		}
		for i, sku := range some {
			value, err := asked[i].Result()
			switch {
			case errors.Is(err, goredis.Nil):
			case err != nil:
				return nil, fmt.Errorf("%w: look into the %s of %s: %w", ErrUnavailable, hash, sku, err)
			default:
				values[sku] = value
			}
		}
	}
	return values, nil
}

package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

// peopleBatch is how many SKUs are asked in one go.
const peopleBatch = 500

// LiveEntries answers the live entry of a person in each SKU where there is one.
// It only reads, also of a closed gate: whoever acts on an entry meets the fence.
func (g *Gate) LiveEntries(ctx context.Context, person string, skus []string) (map[string]string, error) {
	entries := map[string]string{}
	for some := range slices.Chunk(skus, peopleBatch) {
		pipe := g.rdb.Pipeline()
		asked := make([]*goredis.StringCmd, len(some))
		for i, sku := range some {
			asked[i] = pipe.HGet(ctx, key(sku, "people"), person)
		}
		// Its error is the first of any command, and a person without an entry is one.
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return nil, fmt.Errorf("%w: look for the entries of a person: %w", ErrUnavailable, err)
		}
		for i, sku := range some {
			id, err := asked[i].Result()
			switch {
			case errors.Is(err, goredis.Nil):
			case err != nil:
				return nil, fmt.Errorf("%w: look for the entry of a person in %s: %w", ErrUnavailable, sku, err)
			default:
				entries[sku] = id
			}
		}
	}
	return entries, nil
}

package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// places are the sorted sets of who waits, by arrival: an entry stands in one.
var places = []struct {
	name string
	in   Place
}{{"line", PlaceLine}, {"back", PlaceLine}, {"fresh", PlaceFresh}, {"parked", PlaceParked}, {"limited", PlaceLimit}}

// ReadWaiting reads who waits on a SKU, eligible or passed over, in the order of
// arrival: at most limit entries that joined after an instant. next is that of the last
// one, zero when nobody came after it. A plain read. ErrUnavailable.
func (g *Gate) ReadWaiting(ctx context.Context, sku string, after time.Time, limit int) (waiting []Waiter, next time.Time, err error) {
	sets := make([]*goredis.ZSliceCmd, len(places))
	since := &goredis.ZRangeBy{Min: "(" + strconv.FormatInt(after.UnixMicro(), 10), Max: "+inf", Count: int64(limit) + 1}
	_, err = g.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error { // who moves between two sets is in one
		for i, place := range places {
			sets[i] = p.ZRangeByScoreWithScores(ctx, key(sku, place.name), since)
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: line of %s: %w", ErrUnavailable, sku, err)
	}
	type spot struct {
		id      string
		arrival int64
		in      Place
	}
	var spots []spot
	for i, set := range sets {
		for _, z := range set.Val() {
			spots = append(spots, spot{z.Member.(string), int64(z.Score), places[i].in})
		}
	}
	if len(spots) == 0 {
		return nil, time.Time{}, nil
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.arrival, b.arrival) })
	if len(spots) > limit {
		spots = spots[:limit]
		next = time.UnixMicro(spots[limit-1].arrival).UTC()
	}
	ids := make([]string, len(spots))
	for i, s := range spots {
		ids[i] = s.id
	}
	records, err := g.rdb.HMGet(ctx, key(sku, "entries"), ids...).Result()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: line of %s: %w", ErrUnavailable, sku, err)
	}
	for i, raw := range records {
		text, ok := raw.(string)
		if !ok {
			continue // purged since
		}
		e, err := parseEntry(sku, ids[i], text, 0)
		if err != nil {
			return nil, time.Time{}, err
		}
		waiting = append(waiting, Waiter{e, spots[i].in})
	}
	return waiting, next, nil
}

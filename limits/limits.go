// Package limits counts in Redis what may happen only so often, for all processes
// together. It is no part of the gate: no unit and no place hangs on it, and a
// Redis that forgets it starts counting anew.
package limits

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"holdfast/redis"
)

// Limits is safe for concurrent use.
type Limits struct {
	rdb     goredis.UniversalClient
	limiter *redis_rate.Limiter
	now     func() time.Time
}

// New returns limits counted in rdb, in keys that begin with "rate:" and
// "hf:texts:".
func New(rdb goredis.UniversalClient) *Limits {
	return &Limits{rdb: rdb, limiter: redis_rate.NewLimiter(rdb), now: time.Now}
}

// Allow counts one more of key. It answers 0, or, when there were as many as most
// within per, how long to wait; then it does not count. What is used up comes back
// evenly, one each per/most. Errors are redis.ErrUnavailable.
func (l *Limits) Allow(ctx context.Context, key string, most int, per time.Duration) (wait time.Duration, err error) {
	return l.take(ctx, key, redis_rate.Limit{Rate: most, Burst: most, Period: per}, 1)
}

// rateKey is of the segments of texts, of all workers.
const rateKey = "texts"

// burst is the dearest text: a bucket of less could never send it.
const burst = 2

// Take takes n segments of a rate, 1 or 2, or answers how long to wait.
func (l *Limits) Take(ctx context.Context, n int, perSecond float64) (wait time.Duration, err error) {
	return l.take(ctx, rateKey, redis_rate.Limit{Rate: 1, Burst: burst, Period: time.Duration(float64(time.Second) / perSecond)}, n)
}

func (l *Limits) take(ctx context.Context, key string, limit redis_rate.Limit, n int) (time.Duration, error) {
	res, err := l.limiter.AllowN(ctx, key, limit, n)
	switch {
	case err != nil:
		return 0, unavailable(err)
	case res.Allowed == 0:
		return max(time.Millisecond, res.RetryAfter), nil
	}
	return 0, nil
}

// dayKept is longer than any day is asked about.
const dayKept = 48 * time.Hour

// Spend counts n segments, negative to give them back, of the day in UTC and
// answers how many it has seen with them.
func (l *Limits) Spend(ctx context.Context, n int) (spent int64, err error) {
	key := "hf:texts:" + l.now().UTC().Format(time.DateOnly)
	pipe := l.rdb.Pipeline()
	sum := pipe.IncrBy(ctx, key, int64(n))
	pipe.Expire(ctx, key, dayKept)
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, unavailable(err)
	}
	return sum.Val(), nil
}

func unavailable(err error) error { return fmt.Errorf("%w: limits: %w", redis.ErrUnavailable, err) }

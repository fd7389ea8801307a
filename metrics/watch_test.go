package metrics

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// shelf is what the gate says of some SKUs; a nil one is closed, FOREIGN is laid
// out for another version.
type shelf struct {
	mu      sync.Mutex
	skus    map[string]*redis.Counters
	overdue map[string]time.Duration
	err     error
}

func (s *shelf) SKUs(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for sku := range s.skus {
		all = append(all, sku)
	}
	return all, s.err
}

func (s *shelf) Snapshot(_ context.Context, sku string) (redis.Counters, contract.About, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.skus[sku]
	if sku == "FOREIGN" {
		return redis.Counters{}, contract.About{}, &redis.LayoutError{SKU: sku}
	}
	if c == nil {
		return redis.Counters{}, contract.About{}, &redis.ClosedError{SKU: sku}
	}
	out := *c
	out.SKU, out.AsOf = sku, time.Now()
	return out, contract.About{}, nil
}

func (s *shelf) Overdue(_ context.Context, c redis.Counters) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overdue[c.SKU], nil
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &redis.Counters{OnHand: 3, Available: 1, Held: 1, Offered: 1, Waiting: 2, Received: 3}
		s := &shelf{
			skus: map[string]*redis.Counters{
				"CHAIR": kept, "TEE": {OnHand: 5, Available: 5, OpenToAll: 5, Sold: 2, Received: 8, Corrected: -1}, "CLOSED": nil, "FOREIGN": nil,
			},
			overdue: map[string]time.Duration{"CHAIR": 2 * time.Second, "TEE": 7 * time.Second},
		}
		refunds, refundsErr := int64(4), error(nil)
		spent, budget := int64(70), int64(100)
		m := New()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			m.Watch(ctx, Watch{
				Books: s, Named: []string{"TEE", "NEVER"}, Log: slog.New(slog.DiscardHandler),
				OpenRefunds: func(context.Context) (int64, error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					return refunds, refundsErr
				},
				TextsToday: func(context.Context) (int64, int64, error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					return spent, budget, s.err
				},
			})
			close(ended)
		}()
		now := func(metric string, want ...string) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, want, scrape(t, m, "holdfast_"+metric))
		}
		next := func() { time.Sleep(watchPause) } // the bubble's clock
		set := func(change func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			change()
		}
		now("units",
			`holdfast_units{part="available",sku="TEE"} 5`, `holdfast_units{part="held",sku="TEE"} 0`, `holdfast_units{part="offered",sku="TEE"} 0`,
			`holdfast_units{part="on_hand",sku="TEE"} 5`, `holdfast_units{part="open_to_all",sku="TEE"} 5`, `holdfast_units{part="returned",sku="TEE"} 0`,
			`holdfast_units{part="shortfall",sku="TEE"} 0`, `holdfast_units{part="sold",sku="TEE"} 2`)
		now("outbox_oldest_seconds", "holdfast_outbox_oldest_seconds 7")
		now("refunds_open", "holdfast_refunds_open 4")
		now("tripwire", "holdfast_tripwire 0")
		now("text_segments_today", "holdfast_text_segments_today 70")
		now("text_segments_a_day", "holdfast_text_segments_a_day 100")
		now("free_while_waiting_seconds", "holdfast_free_while_waiting_seconds 0")
		next()
		next()
		now("free_while_waiting_seconds", "holdfast_free_while_waiting_seconds 20")
		set(func() { kept.Paused, spent, budget = true, 2, 0 })
		next()
		now("text_segments_today", "holdfast_text_segments_today 2")
		now("text_segments_a_day")
		now("free_while_waiting_seconds", "holdfast_free_while_waiting_seconds 0")
		set(func() { kept.Paused = false })
		next()
		now("free_while_waiting_seconds", "holdfast_free_while_waiting_seconds 0")

		// Redis is away: for a minute the last look counts, and then nothing is
		// known. What Temporal says goes on.
		set(func() { s.err, refunds = redis.ErrUnavailable, 5 })
		for range watchMisses - 1 {
			next()
		}
		now("outbox_oldest_seconds", "holdfast_outbox_oldest_seconds 7")
		now("refunds_open", "holdfast_refunds_open 5")
		next()
		now("outbox_oldest_seconds")
		now("units")
		now("text_segments_today")
		set(func() { s.err, refundsErr = nil, context.DeadlineExceeded })
		for range watchMisses {
			next()
		}
		now("outbox_oldest_seconds", "holdfast_outbox_oldest_seconds 7")
		now("refunds_open")
		cancel()
		<-ended
	})
}

func TestWhatTrips(t *testing.T) {
	require.False(t, tripped(redis.Counters{}))
	require.False(t, tripped(redis.Counters{OnHand: 4, Sold: 3, Returned: 1, Received: 10, Corrected: -3}))
	for name, c := range map[string]redis.Counters{
		"sold above received": {OnHand: -1, Sold: 11, Received: 10},
		"more promised":       {OnHand: 1, Held: 2, Shortfall: 1, Received: 1},
		"negative":            {OnHand: 1, Held: -1, Received: 1},
		"does not add up":     {OnHand: 5, Sold: 3, Received: 9},
	} {
		require.True(t, tripped(c), name)
	}
}

package metrics

import (
	"context"
	"log/slog"
	"strings"
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

func (s *shelf) Tripwire(_ context.Context, sku string) (redis.Counters, []contract.Ring, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.skus[sku]
	if sku == "FOREIGN" {
		return redis.Counters{}, nil, &redis.LayoutError{SKU: sku}
	}
	if c == nil {
		return redis.Counters{}, nil, &redis.ClosedError{SKU: sku}
	}
	out := *c
	out.SKU, out.AsOf = sku, time.Now()
	return out, out.Rings(), nil
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
				Events: func(context.Context) (int64, int64, error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					return refunds + 2, refunds + 3, refundsErr
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
		now("events", "holdfast_events_late 6", "holdfast_events_parked 7")
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
		now("events")
		cancel()
		<-ended
	})
}

// Each change of the tripwire is logged and passed on once, however often it is looked
// at; what could not be passed on is told again. The metric counts SKUs, with those in
// whose ledger a pass has found a fault.
func TestTheTripwireIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chair := &redis.Counters{OnHand: 3, Available: 3, Received: 3}
		s := &shelf{skus: map[string]*redis.Counters{"CHAIR": chair, "TEE": {}}}
		var told []string
		var refuses error
		var log strings.Builder
		m := New()
		m.ForWorker()
		m.faults.now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			m.Watch(ctx, Watch{
				Books: s, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Rang: func(_ context.Context, sku string, rung contract.Rung) error {
					s.mu.Lock()
					defer s.mu.Unlock()
					wires := ""
					for _, r := range rung.Rings {
						wires += " " + r.Wire
					}
					require.False(t, rung.At.IsZero())
					told = append(told, sku+wires)
					return refuses
				},
			})
			close(ended)
		}()
		looks := func(metric string, want ...string) {
			t.Helper()
			for range 3 {
				time.Sleep(watchPause)
				synctest.Wait()
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Equal(t, []string{"holdfast_tripwire " + metric}, scrape(t, m, "holdfast_tripwire"))
			require.Equal(t, want, told)
			told = nil
		}
		set := func(c redis.Counters, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			*chair, refuses = c, err
		}
		looks("0")
		set(redis.Counters{OnHand: 2, Held: 3, Received: 2, Shortfall: 1}, nil)
		looks("1", "CHAIR shortfall")
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
		require.Contains(t, log.String(), "msg=tripwire sku=CHAIR")
		set(redis.Counters{OnHand: -1, Held: 3, Sold: 3, Received: 2, Shortfall: 4}, nil)
		looks("1", "CHAIR oversold shortfall negative")
		set(redis.Counters{OnHand: 2, Received: 2}, nil)
		looks("0", "CHAIR")
		set(redis.Counters{OnHand: 2, Received: 3}, context.DeadlineExceeded)
		looks("1", "CHAIR ledger", "CHAIR ledger", "CHAIR ledger")
		m.LedgerFault("CHAIR", true)
		m.LedgerFault("TEE", true)
		set(redis.Counters{OnHand: 2, Received: 3}, nil)
		looks("2", "CHAIR ledger")
		m.LedgerFault("TEE", false)
		set(redis.Counters{OnHand: 2, Received: 2}, nil)
		looks("1", "CHAIR")
		time.Sleep(driftCounts)
		looks("0")
		cancel()
		<-ended
	})
}

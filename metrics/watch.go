package metrics

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	watchPause = 10 * time.Second // between two looks
	// A look at very many SKUs takes long: at most a tenth of the time is spent
	// looking.
	watchShare = 9
	// After so many looks that failed the last one says nothing any more, and its
	// metrics go.
	watchMisses = 6
)

// Books are the SKUs as the gate knows them.
type Books interface {
	SKUs(ctx context.Context) ([]string, error)
	Tripwire(ctx context.Context, sku string) (redis.Counters, []contract.Ring, error)
	Overdue(ctx context.Context, c redis.Counters) (time.Duration, error)
}

// Watch is what it looks at. Named SKUs get their counters as metrics: each is a
// dozen of series, so all of them would be too many.
type Watch struct {
	Books Books
	Named []string
	// OpenRefunds counts the money that made no sale and is not settled; nil
	// leaves the metric out.
	OpenRefunds func(ctx context.Context) (int64, error)
	// Events counts what the shop was not told: events that it has not taken ten minutes
	// after they happened and that are still tried, and those that were given up; nil
	// leaves the metrics out.
	Events func(ctx context.Context) (late, parked int64, err error)
	// TextsToday counts the segments that today has seen, and how many it may, 0
	// for any number; nil leaves the metrics out.
	TextsToday func(ctx context.Context) (spent, budget int64, err error)
	// Rang is told when the tripwire of a SKU rings, with one more wire or silent
	// again, as far as these looks see it; nil for nobody. When it fails it is told
	// again at the next look.
	Rang func(ctx context.Context, sku string, rung contract.Rung) error
	Log  *slog.Logger
}

// Watch looks at the state that Redis and Temporal hold until ctx ends.
func (m *Metrics) Watch(ctx context.Context, w Watch) {
	state := &state{watch: w, free: map[string]time.Time{}, rings: map[string][]string{}, faults: m.faults}
	m.registry.MustRegister(state)
	for {
		began := time.Now()
		pause := watchPause
		if state.look(ctx) {
			pause = max(pause, watchShare*time.Since(began))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

var (
	unitsDesc   = prometheus.NewDesc("holdfast_units", "Units of the SKUs that metrics.skus names, by part.", []string{"sku", "part"}, nil)
	freeDesc    = prometheus.NewDesc("holdfast_free_while_waiting_seconds", "How long some SKU on sale has had free units and people waiting for them, 0 when none has.", nil, nil)
	overdueDesc = prometheus.NewDesc("holdfast_outbox_oldest_seconds", "How long the oldest due item of any SKU's outbox has waited to be handed out.", nil, nil)
	tripDesc    = prometheus.NewDesc("holdfast_tripwire", "SKUs whose tripwire rings: they promise more than there is, or their books do not add up.", nil, nil)
	spentDesc   = prometheus.NewDesc("holdfast_text_segments_today", "Segments of texts that were sent today, in UTC.", nil, nil)
	budgetDesc  = prometheus.NewDesc("holdfast_text_segments_a_day", "Segments of texts that may be sent in a day.", nil, nil)
	lateDesc    = prometheus.NewDesc("holdfast_events_late", "Events that the shop has not taken ten minutes after they happened and that are still tried.", nil, nil)
	parkedDesc  = prometheus.NewDesc("holdfast_events_parked", "Events that were given up and wait for a person.", nil, nil)
	refundsDesc = prometheus.NewDesc("holdfast_refunds_open", "Payments that made no sale and are not settled.", nil, nil)
)

// state is the last look, as a collector.
type state struct {
	watch  Watch
	free   map[string]time.Time // since when a SKU has had free units and a line
	rings  map[string][]string  // wires that rang at the last look and were told, by SKU
	faults *faults

	mu      sync.Mutex
	books   kept[booksLook]
	refunds kept[int64]
	events  kept[eventsLook]
	texts   kept[textsLook]
}

type eventsLook struct{ late, parked int64 }

type textsLook struct{ spent, budget int64 }

type booksLook struct {
	named         []redis.Counters
	free, overdue time.Duration
	tripped       map[string]bool
}

// kept is what was seen last, for a while.
type kept[T any] struct {
	value  *T // nil: not known
	missed int
}

func (k *kept[T]) saw(value *T, err error, what string, log *slog.Logger) {
	if err == nil {
		*k = kept[T]{value: value}
		return
	}
	log.Warn("the metrics of "+what+" are not known", "error", err)
	if k.missed++; k.missed >= watchMisses {
		k.value = nil
	}
}

// look answers whether the books could be read.
func (s *state) look(ctx context.Context) bool {
	books, err := s.lookAtBooks(ctx)
	var open int64
	var refundsErr error
	if s.watch.OpenRefunds != nil {
		open, refundsErr = s.watch.OpenRefunds(ctx)
	}
	var events eventsLook
	var eventsErr error
	if s.watch.Events != nil {
		events.late, events.parked, eventsErr = s.watch.Events(ctx)
	}
	var texts textsLook
	var textsErr error
	if s.watch.TextsToday != nil {
		texts.spent, texts.budget, textsErr = s.watch.TextsToday(ctx)
	}
	if ctx.Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books.saw(books, err, "stock", s.watch.Log)
	if s.watch.OpenRefunds != nil {
		s.refunds.saw(&open, refundsErr, "open refunds", s.watch.Log)
	}
	if s.watch.Events != nil {
		s.events.saw(&events, eventsErr, "events", s.watch.Log)
	}
	if s.watch.TextsToday != nil {
		s.texts.saw(&texts, textsErr, "today's texts", s.watch.Log)
	}
	return err == nil
}

// lookAtBooks looks at every SKU that is open. One that is closed, or laid out for
// another version, moves nothing, and the calls are counted as such.
func (s *state) lookAtBooks(ctx context.Context) (*booksLook, error) {
	skus, err := s.watch.Books.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	out := &booksLook{tripped: map[string]bool{}}
	still := map[string]time.Time{}
	for _, sku := range skus {
		c, rings, err := s.watch.Books.Tripwire(ctx, sku)
		var closed *redis.ClosedError
		var foreign *redis.LayoutError
		if errors.As(err, &closed) || errors.As(err, &foreign) {
			continue
		}
		if err != nil {
			return nil, err
		}
		overdue, err := s.watch.Books.Overdue(ctx, c)
		if err != nil {
			return nil, err
		}
		out.overdue = max(out.overdue, overdue)
		if len(rings) > 0 {
			out.tripped[sku] = true
		}
		s.tell(ctx, c, rings)
		if freeWhileWaiting(c) {
			since, was := s.free[sku]
			if !was {
				since = c.AsOf
			}
			still[sku] = since
			out.free = max(out.free, c.AsOf.Sub(since))
		}
		if slices.Contains(s.watch.Named, sku) {
			out.named = append(out.named, c)
		}
	}
	s.free = still
	return out, nil
}

// freeWhileWaiting says that units are kept for a line that is offered none.
// Somebody who has just joined may hold it up for a lease.
func freeWhileWaiting(c redis.Counters) bool {
	return !c.Paused && !c.Ended && c.Available > 0 && c.OpenToAll == 0 && c.Waiting > 0
}

// tell logs what has changed since the last look, and passes it on.
func (s *state) tell(ctx context.Context, c redis.Counters, rings []contract.Ring) {
	wires := make([]string, len(rings))
	for i, r := range rings {
		wires[i] = r.Wire
	}
	if slices.Equal(wires, s.rings[c.SKU]) {
		return
	}
	if len(rings) > 0 {
		s.watch.Log.Error("tripwire", "sku", c.SKU, "rings", rings, "counters", c)
	} else {
		s.watch.Log.Warn("tripwire silent again", "sku", c.SKU)
	}
	if s.watch.Rang != nil {
		if err := s.watch.Rang(ctx, c.SKU, contract.Rung{Rings: rings, At: c.AsOf}); err != nil {
			s.watch.Log.Warn("the book was not told of its tripwire", "sku", c.SKU, "error", err)
			return
		}
	}
	s.rings[c.SKU] = wires
}

// Describe is part of prometheus.Collector.
func (s *state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{unitsDesc, freeDesc, overdueDesc, tripDesc, refundsDesc, lateDesc, parkedDesc, spentDesc, budgetDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. What is not known is left out: an old
// number would be a lie.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if n := s.refunds.value; n != nil {
		gauge(refundsDesc, float64(*n))
	}
	if n := s.events.value; n != nil {
		gauge(lateDesc, float64(n.late))
		gauge(parkedDesc, float64(n.parked))
	}
	if n := s.texts.value; n != nil {
		gauge(spentDesc, float64(n.spent))
		if n.budget > 0 {
			gauge(budgetDesc, float64(n.budget))
		}
	}
	b := s.books.value
	if b == nil {
		return
	}
	gauge(freeDesc, b.free.Seconds())
	gauge(overdueDesc, b.overdue.Seconds())
	gauge(tripDesc, float64(len(s.faults.and(b.tripped))))
	for _, c := range b.named {
		for part, n := range map[string]int64{
			"on_hand": c.OnHand, "held": c.Held, "offered": c.Offered, "available": c.Available, "open_to_all": c.OpenToAll,
			"sold": c.Sold, "returned": c.Returned, "shortfall": c.Shortfall,
		} {
			gauge(unitsDesc, float64(n), c.SKU, part)
		}
	}
}

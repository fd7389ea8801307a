package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// freeUnits is the most that a SKU of a history ever has free: the fewer, the
// more calls compete.
const freeUnits = 3

// history is one concurrent run: clients put random calls to a few SKUs and
// write down what was answered and when.
type history struct {
	t       *testing.T
	g       *Gate
	ask     func(ctx context.Context, c call) (answer, error)
	boards  []*board
	started time.Time
	// clock is what a call takes its time from; now and then a client moves it.
	clock, leaps atomic.Int64
	tries        atomic.Int64
	// each is called before each try, with the number of the try.
	each func(n int64)
	// quiet says whether every call that reached a server was executed, witness
	// which were.
	quiet   func() bool
	witness *witness
	// hasty is one in how many calls gives up long before it can be answered.
	hasty int

	// windows are when runs were executed, closer than their clients can tell.
	windows map[string]window

	mu    sync.Mutex
	done  []operation
	begin *model
	// settled are the operations of the phases before this one.
	settled int
}

// operation is one call from its first try to its answer.
type operation struct {
	client              int
	call                call
	first, last, answer int64  // the first try, the answered try, its answer; nanoseconds
	run                 string // that was answered
	got                 answer
	unanswered          []try
}

// try is a call that was not answered: it took effect, if it did, between two
// instants.
type try struct {
	run      string
	from, to int64
	arrived  bool
}

// newHistory opens the SKUs of a history, each with all its units free.
func newHistory(t *testing.T, rdb goredis.UniversalClient, skus int) *history {
	h := &history{t: t, g: New(rdb, testOptions()), started: time.Now()}
	now := h.started.UnixMicro()
	h.clock.Store(now)
	h.begin = newModel(now)
	for range skus {
		f := newFixture(t, rdb, 0)
		f.g.testClock = now
		f.restock("first", freeUnits)
		h.boards = append(h.boards, &board{fixture: f, counted: map[any]bool{}})
	}
	h.begin.take(call{verb: callStock, now: now, event: contract.StockEvent{EventID: "first", Kind: contract.StockRestock, Units: freeUnits}})
	h.ask = func(ctx context.Context, c call) (answer, error) { return c.ask(ctx, h.g) }
	return h
}

// over lets the clients work through another connection than the one that
// opened the SKUs.
func (h *history) over(c connection) {
	h.g, h.quiet = New(c.UniversalClient, testOptions()), c.quiet
	if backendName() == "" {
		h.witness = watch(h.t)
	}
}

// phase is how many calls each client makes before all wait until no call can
// be on its way any more, so that each try that was not answered has arrived by
// then or never will.
const phase = 20

// play runs all clients to their end.
func (h *history) play(clients, calls int) {
	h.t.Helper()
	if h.witness != nil {
		ctx, stop := context.WithCancel(context.Background())
		var clock sync.WaitGroup
		clock.Go(func() { h.witness.keepTime(ctx) })
		defer clock.Wait()
		defer stop()
	}
	seed := rand.Uint64()
	rngs := make([]*rand.Rand, clients)
	for n := range rngs {
		rngs[n] = rand.New(rand.NewPCG(seed, uint64(n)))
	}
	for ; calls > 0 && !h.t.Failed(); calls -= phase {
		var wg sync.WaitGroup
		for n, rng := range rngs {
			wg.Go(func() {
				for range min(calls, phase) {
					b := h.boards[rng.IntN(len(h.boards))]
					c := b.draw(rng)
					if rng.IntN(20) == 0 {
						h.moveClock(rng)
					}
					c.sku, c.now = b.sku, h.clock.Load()
					if !h.perform(n, rng, b, c) {
						return
					}
				}
			})
		}
		wg.Wait()
		h.settle()
	}
	if h.witness != nil {
		for _, op := range h.done {
			for _, try := range op.unanswered {
				require.Equal(h.t, try.arrived, !h.witness.executed(try.run).IsZero(), "%v arrived after the end of its phase", op.call)
			}
		}
		h.witness.conn.Close() // each reader costs the server
		h.windows = h.witness.windows(h.done, h.started)
	}
	if h.t.Failed() {
		h.t.Logf("seed %d", seed)
		return
	}
	h.nameOffers()
}

// settle ends a phase: it waits until every call that reached a server was
// executed, and asks which were.
func (h *history) settle() {
	if h.witness == nil {
		return
	}
	require.Eventually(h.t, h.quiet, time.Minute, time.Millisecond, "connections that were given up stay open")
	h.witness.caughtUp()
	for ; h.settled < len(h.done); h.settled++ {
		for i := range h.done[h.settled].unanswered {
			try := &h.done[h.settled].unanswered[i]
			if at := h.witness.executed(try.run); !at.IsZero() {
				try.to, try.arrived = int64(at.Sub(h.started)), true
			}
		}
	}
}

// moveClock passes a while, seldom so much that an untold offer lapses; all of
// it together stays below gate.record_retention.
func (h *history) moveClock(rng *rand.Rand) {
	steps := []time.Duration{
		time.Second, testLease / 2, testLease, testLease, testLease, time.Minute, 2 * time.Minute, 10 * time.Minute, 16 * time.Minute,
	}
	d := steps[rng.IntN(len(steps))]
	if rng.IntN(20) == 0 && h.leaps.Add(1) <= 10 {
		d = 49 * time.Hour
	}
	h.clock.Add(d.Microseconds())
}

// perform tries a call until it is answered.
func (h *history) perform(client int, rng *rand.Rand, b *board, c call) bool {
	op := operation{client: client, call: c, first: int64(time.Since(h.started))}
	for {
		if h.each != nil {
			h.each(h.tries.Add(1))
		}
		ctx, cancel := h.t.Context(), context.CancelFunc(func() {})
		if h.hasty > 0 && rng.IntN(h.hasty) == 0 {
			ctx, cancel = context.WithTimeout(ctx, 100*time.Microsecond)
		}
		run := "" // of a call that was never sent
		ctx = context.WithValue(ctx, nonceKey{}, &run)
		began := int64(time.Since(h.started))
		got, err := h.ask(ctx, c)
		cancel()
		if err == nil {
			op.last, op.answer, op.run, op.got = began, int64(time.Since(h.started)), run, got
			break
		}
		if !errors.Is(err, ErrUnavailable) || h.witness == nil || len(op.unanswered) > 1000 {
			h.t.Errorf("%v: %v", c, err)
			return false
		}
		op.unanswered = append(op.unanswered, try{run: run, from: began})
	}
	b.learn(c, op.got)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, op)
	return true
}

// nameOffers replaces the ids that the gate drew for offers by names that the
// model can build as well.
func (h *history) nameOffers() {
	names := map[string]string{}
	for _, b := range h.boards {
		records, err := b.g.rdb.HGetAll(context.Background(), key(b.sku, "holds")).Result()
		require.NoError(h.t, err)
		taken := map[string]bool{}
		for id, raw := range records {
			hold, err := b.g.parseHold(b.sku, id, raw)
			require.NoError(h.t, err)
			if hold.EntryID == "" {
				continue
			}
			names[id] = offerName(hold.EntryID, hold.Generation)
			require.False(h.t, taken[names[id]], "two offers in one generation to %s", hold.EntryID)
			taken[names[id]] = true
		}
	}
	rename := func(id *string) {
		if name, ok := names[*id]; ok {
			*id = name
		}
	}
	for i := range h.done {
		op := &h.done[i]
		rename(&op.call.id)
		rename(&op.call.event.HoldID)
		rename(&op.got.hold.id)
		rename(&op.got.entry.hold)
	}
}

// operations are the history for porcupine. A try that arrived and was not
// answered is an operation without an answer. The spec knows only what the ids
// say, so that a repeat that moved anything a second time has no place in any
// order.
func (h *history) operations() []porcupine.Operation { return h.within(nil) }

// within are the operations, those whose run has a window bounded by it as well.
func (h *history) within(windows map[string]window) []porcupine.Operation {
	var out []porcupine.Operation
	add := func(op operation, run string, output any, from, to int64) {
		if w, ok := windows[run]; ok {
			from, to = max(from, w.from), min(to, w.to)
		}
		out = append(out, porcupine.Operation{ClientId: op.client, Input: op.call, Output: output, Call: from, Return: to})
	}
	for _, op := range h.done {
		add(op, op.run, op.got, op.last, op.answer)
		for _, try := range op.unanswered {
			if try.arrived {
				add(op, try.run, nil, try.from, try.to)
			}
		}
	}
	return out
}

// contended counts the operations that overlap one on the same SKU, of which at
// least one of the two writes.
func (h *history) contended() int {
	bySKU := map[string][]operation{}
	for _, op := range h.done {
		bySKU[op.call.sku] = append(bySKU[op.call.sku], op)
	}
	n := 0
	for _, ops := range bySKU {
		slices.SortFunc(ops, func(a, b operation) int { return int(a.first - b.first) })
		hit := make([]bool, len(ops))
		for i, a := range ops {
			for j := i + 1; j < len(ops) && ops[j].first <= a.answer; j++ {
				if !a.call.reads() || !ops[j].call.reads() {
					hit[i], hit[j] = true, true
				}
			}
		}
		for _, is := range hit {
			if is {
				n++
			}
		}
	}
	return n
}

// checkUnits asserts I1 and I2 and that the units were as scarce as promised.
func (h *history) checkUnits() {
	h.t.Helper()
	for _, b := range h.boards {
		b.adds()
		lines, err := b.g.Ledger(context.Background(), b.sku, "", 100_000)
		require.NoError(h.t, err)
		for _, l := range lines {
			require.LessOrEqual(h.t, l.OnHand-l.Held-l.Offered, int64(freeUnits))
		}
	}
}

package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// sizes are the two forms of a history: many clients for a short time, and few
// for a long one. The search grows steeply with the clients on one SKU.
var sizes = []struct {
	name                 string
	clients, calls, skus int
}{
	{"32 clients", 32, 100, 6},
	{"8 clients", 8, 400, 2},
}

// histories is how many of each form are played: so many in the short form.
func histories(short int) int {
	switch {
	case long:
		return 50
	case backendName() != "":
		return 1
	}
	return short
}

// checkTime is what the search for one history may take.
const checkTime = 5 * time.Minute

// TestTheGateIsLinearizable plays concurrent histories of all verbs over a few
// units and asks porcupine for an order of each in which every answer is the
// model's. One call in a hundred gives up too soon to be answered and is repeated
// with the same ids.
func TestTheGateIsLinearizable(t *testing.T) {
	for _, size := range sizes {
		t.Run(size.name, func(t *testing.T) {
			var sum summary
			for range histories(2) {
				h := newHistory(t, shared, size.skus)
				h.over(connect(t, nil))
				h.hasty = giveUp()
				h.play(size.clients, size.calls)
				sum.check(h)
			}
			sum.report(t)
		})
	}
}

// giveUp is one in how many calls gives up too soon. Only where there is a
// witness: on the other backends every call waits.
func giveUp() int {
	if backendName() != "" {
		return 0
	}
	return 100
}

// summary adds histories up.
type summary struct {
	histories, operations, contended, unanswered, lost int
	played, checked, slowest                           time.Duration
	reached                                            map[string]int
}

// check asserts everything that one history must show.
func (s *summary) check(h *history) {
	h.t.Helper()
	if h.t.Failed() {
		h.t.FailNow()
	}
	s.histories++
	s.operations += len(h.done)
	s.contended += h.contended()
	s.played += time.Since(h.started)
	if s.reached == nil {
		s.reached = map[string]int{}
	}
	for _, op := range h.done {
		for _, try := range op.unanswered {
			if try.arrived {
				s.unanswered++
			} else {
				s.lost++
			}
		}
		s.reached[op.call.verb+" "+string(op.got.verdict)]++
		if op.call.verb == callConfirm && op.got.hold.retaken {
			s.reached["confirm retaken"]++
		}
	}
	began := time.Now()
	verdict := h.verdict()
	if verdict == porcupine.Illegal {
		h.explain()
	}
	require.Equal(h.t, porcupine.Ok, verdict)
	took := time.Since(began)
	s.checked += took
	s.slowest = max(s.slowest, took)
	h.checkUnits()
}

// verdict searches an order. One within the windows of the runs is one within what the
// clients saw, and found far sooner: beside a busy machine, or over a slow network, a call
// takes so long that dozens on one SKU may each come first. Where there is none the
// clients' view alone decides.
func (h *history) verdict() porcupine.CheckResult {
	if h.windows != nil && porcupine.CheckOperationsTimeout(specification(h.begin), h.within(h.windows), checkTime) == porcupine.Ok {
		return porcupine.Ok
	}
	return porcupine.CheckOperationsTimeout(specification(h.begin), h.operations(), checkTime)
}

// explain logs how far the search came: the last steps of the longest order, and
// what could not follow, with what the model would have answered.
func (h *history) explain() {
	_, info := porcupine.CheckOperationsVerbose(specification(h.begin), h.operations(), checkTime)
	bySKU := map[string]int{}
	for _, op := range h.operations() {
		bySKU[op.Input.(call).sku]++
	}
	for _, orders := range info.PartialLinearizationsOperations() {
		order := slices.MaxFunc(orders, func(a, b []porcupine.Operation) int { return len(a) - len(b) })
		sku := order[0].Input.(call).sku
		if len(order) == bySKU[sku] {
			continue
		}
		m, placed := h.begin, map[string]bool{}
		for i, op := range order {
			m = m.forked(op.Input.(call))
			want := m.take(op.Input.(call))
			placed[fmt.Sprint(op.ClientId, op.Call)] = true
			if i > len(order)-20 {
				h.t.Logf("%d %v -> %+v want %+v [%d %d]", op.ClientId, op.Input, op.Output, want, op.Call, op.Return)
			}
		}
		h.t.Logf("%s: %d of %d operations have an order; then none of these", sku, len(order), bySKU[sku])
		left := slices.DeleteFunc(h.operations(), func(op porcupine.Operation) bool {
			return op.Input.(call).sku != sku || placed[fmt.Sprint(op.ClientId, op.Call)]
		})
		first := slices.MinFunc(left, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
		for _, op := range left {
			if c := op.Input.(call); op.Call <= first.Return {
				next := m.forked(c)
				h.t.Logf("%d %v -> %+v\n\tmodel: %+v [%d %d]", op.ClientId, c, op.Output, next.take(c), op.Call, op.Return)
			}
		}
	}
}

func (s *summary) report(t *testing.T) {
	t.Helper()
	share := float64(s.contended) / float64(s.operations)
	t.Logf("%d histories, %d operations, %.1f %% overlap a conflicting one, unanswered tries: %d that arrived, %d that did not; played in %v, checked in %v, the slowest in %v",
		s.histories, s.operations, 100*share, s.unanswered, s.lost, s.played.Round(time.Millisecond), s.checked.Round(time.Millisecond), s.slowest.Round(time.Millisecond))
	t.Log("outcomes:", s.reached)
	require.GreaterOrEqual(t, share, 0.3, "operations that overlap a conflicting one")
}

// connection is a client that repeats nothing by itself, so that a history knows
// of every try.
type connection struct {
	goredis.UniversalClient
	name string
}

func connect(t *testing.T, edit func(*goredis.UniversalOptions)) connection {
	c := connection{name: rand.Text()}
	c.UniversalClient = dialShared(func(opts *goredis.UniversalOptions) {
		opts.MaxRetries, opts.MaxRedirects, opts.PoolSize, opts.ClientName = -1, -1, 64, c.name
		if edit != nil {
			edit(opts)
		}
	})
	c.AddHook(tries{})
	t.Cleanup(func() { c.Close() })
	return c
}

// quiet says whether every connection that was given up is gone at the server
// too: what such a one brought is executed then, or never will be.
func (c connection) quiet() bool {
	list, err := shared.ClientList(context.Background()).Result()
	return err == nil && strings.Count(list, "name="+c.name+" ") <= int(c.PoolStats().TotalConns)
}

// TestTheCheckerRefusesWhatNoOrderExplains shows that the search can fail.
func TestTheCheckerRefusesWhatNoOrderExplains(t *testing.T) {
	begin := newModel(1_000_000)
	begin.take(call{verb: callStock, now: 1_000_000, event: contract.StockEvent{EventID: "first", Kind: contract.StockRestock, Units: 1}})
	m := begin.forked(call{})
	at := int64(0)
	// op is what the model answers now, as a call of its own time.
	op := func(c call) porcupine.Operation {
		c.sku, c.now = "S", 1_000_000
		m = m.forked(c)
		at += 10
		return porcupine.Operation{Input: c, Output: m.take(c), Call: at, Return: at + 5}
	}
	verdict := func(ops ...porcupine.Operation) porcupine.CheckResult {
		return porcupine.CheckOperationsTimeout(specification(begin), ops, checkTime)
	}
	before := op(call{verb: callSnapshot})
	first := op(call{verb: callReserve, id: "a", person: "p", units: 1})
	adopted := op(call{verb: callAdopt, id: "a"})
	refused := op(call{verb: callReserve, id: "b", person: "q", units: 1})
	sale := op(call{verb: callConfirm, id: "a", ref: "pi_1"})
	good := []porcupine.Operation{before, first, adopted, refused, sale}
	require.Equal(t, porcupine.Ok, verdict(good...))

	twice := first // the last unit once more, to another
	twice.Input = call{sku: "S", verb: callReserve, now: 1_000_000, id: "b", person: "q", units: 1}
	won := first.Output.(answer)
	won.hold.id, won.hold.person = "b", "q"
	twice.Output, twice.Call, twice.Return = won, refused.Call, refused.Return
	require.Equal(t, porcupine.Illegal, verdict(before, first, adopted, twice))

	stale := before // what was free before is shown after the unit was taken
	stale.Call, stale.Return = refused.Call, refused.Return
	require.Equal(t, porcupine.Illegal, verdict(before, first, adopted, stale))
	stale.Call = first.Call // at the same time either may be first
	require.Equal(t, porcupine.Ok, verdict(first, stale))

	second := sale // another payment makes the same sale again
	second.Input = call{sku: "S", verb: callConfirm, now: 1_000_000, id: "a", ref: "pi_2"}
	second.Call, second.Return = sale.Call+10, sale.Return+10
	require.Equal(t, porcupine.Illegal, verdict(append(good, second)...))

	// A try without an answer explains the sale that the next one meets; without
	// it nothing does.
	other := op(call{verb: callConfirm, id: "a", ref: "pi_2"})
	require.Equal(t, Conflict, other.Output.(answer).verdict)
	silent := sale
	silent.Output, silent.Return = nil, other.Return
	require.Equal(t, porcupine.Ok, verdict(before, first, adopted, refused, silent, other))
	require.Equal(t, porcupine.Illegal, verdict(before, first, adopted, refused, other))
}

// TestTheCheckerNoticesAStaleRead puts a cache before one read of the real gate:
// each snapshot is answered with the one before it, as from a replica that lags.
func TestTheCheckerNoticesAStaleRead(t *testing.T) {
	h := newHistory(t, shared, 2)
	h.over(connect(t, nil))
	var mu sync.Mutex
	last := map[string]answer{}
	h.ask = func(ctx context.Context, c call) (answer, error) {
		got, err := c.ask(ctx, h.g)
		if err != nil || c.verb != callSnapshot {
			return got, err
		}
		mu.Lock()
		defer mu.Unlock()
		old, ok := last[c.sku]
		last[c.sku] = got
		if ok {
			got = old
		}
		return got, nil
	}
	h.play(8, 100)
	h.checkUnits()
	require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(specification(h.begin), h.operations(), checkTime))
}

// TestTheCheckerNoticesBrokenScripts plays histories against mutants of the
// scripts, in processes of their own. In the long form only.
func TestTheCheckerNoticesBrokenScripts(t *testing.T) {
	faults := []string{
		"if open_to_all() < units then", "if marked(h, ref) then", "add('on_hand', -units)", "get_entry(live or id)", "stop < head.arrival", "if num(10) <= S.level then",
	}
	var picked []int
	for i, m := range mutants {
		if slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(m.from, fault) }) {
			picked = append(picked, i)
		}
	}
	require.Len(t, picked, len(faults), "a fault is no mutant any more")
	if !long {
		return // the two tests above show in the short form that the search can fail
	}
	for _, i := range picked {
		m := mutants[i]
		t.Run(fmt.Sprint(i, " ", m.file), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheGateIsLinearizable$")
			cmd.Env = append(os.Environ(), "HOLDFAST_LONG=", mutantEnv+"="+fmt.Sprint(i))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "no history noticed %q in place of %q", m.to, m.from)
			require.Contains(t, string(out), "Illegal", "it must fail by the search")
		})
	}
}

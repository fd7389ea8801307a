package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

// reserve, put together once more: with the long way only, and so that it says when
// the short ways decide nothing.
var (
	longWay   = otherReserve("", "prelude", "records", "endings", "settle", "reserve")
	shortWays = otherReserve("return { 'long' }", "prelude", "refusal", "walk_in", "records")
)

func otherReserve(records string, files ...string) *script {
	s := &script{name: "reserve", files: files}
	s.assemble(func(file string) string {
		text, err := luaFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		switch {
		case records != "" && file == "records.lua":
			return records
		case records == "" && file == "prelude.lua":
			return string(text) + "if SHUT then return SHUT end\n"
		}
		return string(text)
	})
	return s
}

const shelf = ":shelf" // behind a key: a copy of it

// TestTheShortWaysAreTheLongOne takes random states, also with policies, limits,
// people at them, parked and back, mendings and a clock that was put back. Where one of
// the short ways of reserve decides, the long way, from a copy of the same state,
// answers the same and leaves the same behind.
func TestTheShortWaysAreTheLongOne(t *testing.T) {
	checks := "100"
	if long {
		checks = "3000"
	}
	setFlag(t, "rapid.checks", checks)
	setFlag(t, "rapid.steps", "60")
	setFlag(t, "rapid.seed", "20261130")
	decided := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		opts := testOptions()
		f := &fixture{t: rt, g: New(shared, opts), sku: fmt.Sprintf("W-%d", time.Now().UnixNano())}
		f.g.testClock = time.Now().UnixMicro()
		_, err := f.g.Open(context.Background(), OpenRequest{SKU: f.sku, New: true})
		require.NoError(rt, err)
		w := ways{fixture: f, decided: decided}
		rt.Repeat(w.steps())
		f.adds()
		require.NoError(rt, shared.Del(context.Background(), append(keysOf(f.sku), shelves(f.sku)...)...).Err())
	})
	t.Log("decided by a short way:", decided)
	if backendName() == "" {
		for _, verdict := range []Verdict{OK, SoldOut, ReservedForLine} {
			require.GreaterOrEqual(t, decided[string(verdict)], 50, verdict)
		}
	}
}

func shelves(sku string) []string {
	keys := keysOf(sku)
	for i := range keys {
		keys[i] += shelf
	}
	return keys
}

type ways struct {
	*fixture
	decided        map[string]int
	holds, entries []string
}

func (w *ways) steps() map[string]func(*rapid.T) {
	n := func(rt *rapid.T, most int) int { return rapid.IntRange(0, most).Draw(rt, "n") }
	person := func(rt *rapid.T) string { return fmt.Sprint("person", n(rt, 5)) }
	hold := func(rt *rapid.T) string {
		if len(w.holds) == 0 {
			return w.id(contract.HoldID)
		}
		return rapid.SampledFrom(w.holds).Draw(rt, "hold")
	}
	ctx := context.Background()
	joins := func(rt *rapid.T) {
		out := w.joinAs(person(rt), int64(1+n(rt, 1)))
		if out.Verdict == OK && n(rt, 4) > 0 {
			w.ack(out.Entry.ID)
		}
		if out.Verdict == OK {
			w.entries = append(w.entries, out.Entry.ID)
		}
	}
	clear := func(rt *rapid.T) {
		for _, id := range w.entries {
			w.leave(id, contract.EntryLeft)
			w.ack(id)
		}
		for _, item := range w.drain().Items {
			must[HoldOutcome](w.fixture)(w.g.AdoptOffer(ctx, w.sku, item.HoldID))
		}
	}
	mend := func(rt *rapid.T) {
		must[Base](w.fixture)(w.g.RepairCount(ctx, w.sku, PartHeld, 0, int64(n(rt, 3)), "nothing"))
	}
	ends := func(rt *rapid.T) {
		for _, id := range w.holds {
			if h, ok, _ := w.g.ReadHold(ctx, w.sku, id); ok && h.Hold.State == contract.HoldOffered {
				w.pass(max(0, h.Left))
				w.lapse(id)
				return
			}
		}
	}
	return map[string]func(*rapid.T){
		"":        func(*rapid.T) {},
		"reserve": func(rt *rapid.T) { w.both(rt, w.id(contract.HoldID), person(rt), n(rt, 9) == 0) },
		"again":   func(rt *rapid.T) { w.both(rt, hold(rt), person(rt), n(rt, 3) == 0) },
		"sells": func(rt *rapid.T) {
			clear(rt)
			w.pause(false)
			w.restock(w.id(contract.HoldID), 3)
			clear(rt)
			w.both(rt, w.id(contract.HoldID), person(rt), false)
		},
		"refused": func(rt *rapid.T) {
			w.pause(false)
			joins(rt)
			joins(rt)
			if free := w.counters().Available; free > 0 {
				w.correct(w.id(contract.HoldID), -free, false)
			}
			w.both(rt, w.id(contract.HoldID), person(rt), false)
		},
		"restock":  func(rt *rapid.T) { w.restock(w.id(contract.HoldID), int64(1+n(rt, 3))) },
		"shrink":   func(rt *rapid.T) { w.correct(w.id(contract.HoldID), -int64(1+n(rt, 3)), n(rt, 1) == 0) },
		"join":     joins,
		"clear":    clear,
		"lapse":    ends,
		"adopt":    func(rt *rapid.T) { w.adopt(hold(rt), n(rt, 1) == 0) },
		"confirm":  func(rt *rapid.T) { w.confirm(hold(rt), fmt.Sprint("pi", n(rt, 2))) },
		"release":  func(rt *rapid.T) { w.release(hold(rt), contract.ReasonShopper) },
		"mend":     mend,
		"limit":    func(rt *rapid.T) { w.limit(int64(max(0, n(rt, 5)-2))) },
		"pause":    func(rt *rapid.T) { w.pause(n(rt, 3) == 0) },
		"pass":     func(rt *rapid.T) { w.pass(time.Duration(n(rt, 12_000)) * time.Millisecond) },
		"put back": func(rt *rapid.T) { w.pass(-time.Duration(n(rt, 3)) * time.Second) },
		"policy": func(rt *rapid.T) {
			keep, limit, age := int64(n(rt, 2)), int64(1+n(rt, 3)), int64(60)
			p := contract.Policy{MissedKeep: &keep, OfferMaxAgeSeconds: &age}
			if n(rt, 1) == 0 {
				p.LimitPerPerson = &limit
			}
			must[Base](w.fixture)(w.g.Settings(ctx, SettingsRequest{SKU: w.sku, Policy: &p}))
		},
	}
}

// both asks the short ways, and where they decide the long one from the same state.
func (w *ways) both(rt *rapid.T, id, person string, press bool) {
	ctx, g := context.Background(), w.g
	units := rapid.SampledFrom([]int64{1, 1, 1, 2, 900_000_000}).Draw(rt, "units")
	cart := rapid.SampledFrom([]string{"", cartText([]contract.Line{{SKU: "A-1", Quantity: 2}, {SKU: "B_2", Quantity: 1}})}).Draw(rt, "cart")
	args := []any{id, units, person, bit(press), "door", cart}
	before := w.state()
	w.copies("", shelf)
	short := must[reply](w.fixture)(g.run(ctx, shortWays, w.sku, args...))
	if short.str(0) == "long" {
		require.Equal(rt, before, w.state(), "what decides nothing writes nothing")
		must[reply](w.fixture)(g.run(ctx, longWay, w.sku, args...))
	} else {
		w.decided[short.str(0)]++
		w.pause(w.paused()) // what either leaves to the next verb
		after := w.state()
		w.copies(shelf, "")
		require.Equal(rt, before, w.state())
		full := must[reply](w.fixture)(g.run(ctx, longWay, w.sku, args...))
		require.Equal(rt, short[:5], full[:5])
		require.Equal(rt, full.str(0) == string(OK), full.str(5) != "")
		w.pause(w.paused())
		require.Equal(rt, after, w.state())
	}
	if _, ok, err := g.ReadHold(ctx, w.sku, id); err == nil && ok {
		w.holds = append(w.holds, id)
	}
}

func (w *ways) paused() bool {
	return shared.HGet(context.Background(), key(w.sku, "stock"), "paused").Val() == "1"
}

// copies puts every key from one place to another.
func (w *ways) copies(from, to string) {
	ctx := context.Background()
	for _, k := range keysOf(w.sku) {
		require.NoError(w.t, shared.Del(ctx, k+to).Err())
		if shared.Exists(ctx, k+from).Val() == 1 {
			require.NoError(w.t, shared.Copy(ctx, k+from, k+to, 0, true).Err())
		}
	}
}

// state is all that a SKU has, but the ids of its lines, which are of the server's time.
func (w *ways) state() string {
	all := w.everything()
	from := strings.Index(all, key(w.sku, "ledger")+" ")
	_, rest, _ := strings.Cut(all[from:], "\n")
	lines := shared.XRange(context.Background(), key(w.sku, "ledger"), "-", "+").Val()
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&text, l.Values)
	}
	return all[:from] + text.String() + rest
}

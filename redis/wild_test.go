package redis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

// sound asserts what holds between a SKU's keys, whatever was played: each index
// names exactly the records that it is an index of.
func (f *fixture) sound() {
	f.t.Helper()
	ctx := context.Background()
	in, err := f.g.Inspect(ctx, f.sku)
	require.NoError(f.t, err)
	require.Empty(f.t, in.Problems)
	scores := func(name string) map[string]int64 {
		all, err := shared.ZRangeWithScores(ctx, key(f.sku, name), 0, -1).Result()
		require.NoError(f.t, err)
		out := map[string]int64{}
		for _, z := range all {
			out[z.Member.(string)] = int64(z.Score)
		}
		return out
	}
	fields := func(name string) map[string]string {
		all, err := shared.HGetAll(ctx, key(f.sku, name)).Result()
		require.NoError(f.t, err)
		return all
	}
	leases, purge, tally := map[string]int64{}, scores("purge"), map[string]int64{}
	holds := map[string]Hold{}
	for id, raw := range fields("holds") {
		h, err := f.g.parseHold(f.sku, id, raw)
		require.NoError(f.t, err)
		holds[id] = h
		switch {
		case h.State == contract.HoldProvisional:
			leases[id] = h.Deadline.UnixMilli()
			tally[h.Person] += h.Units
		case h.State.Live():
			tally[h.Person] += h.Units
		case h.State == contract.HoldSold:
			tally[h.Person] += h.Units - h.Returned
		}
		if !h.State.Live() {
			require.Contains(f.t, purge, "h:"+id, "a %s hold goes some day", h.State)
		}
	}
	require.Equal(f.t, leases, scores("leases"))
	counted := map[string]int64{}
	for person, n := range fields("tally") {
		counted[person], err = strconv.ParseInt(n, 10, 64)
		require.NoError(f.t, err)
	}
	for person, n := range tally {
		if n == 0 {
			delete(tally, person)
		}
	}
	require.Equal(f.t, tally, counted)

	people, places := map[string]string{}, map[string]int64{}
	offers := map[string]bool{}
	for id, raw := range fields("entries") {
		e, err := parseEntry(f.sku, id, raw, 0)
		require.NoError(f.t, err)
		switch {
		case e.State == contract.EntryWaiting:
			places[id] = e.JoinedAt.UnixMicro()
		case e.State == contract.EntryOffered:
			require.Equal(f.t, contract.HoldOffered, holds[e.HoldID].State)
			offers[e.HoldID] = true
		case e.State == contract.EntryHolding:
			require.Contains(f.t, []contract.HoldState{contract.HoldProvisional, contract.HoldHeld}, holds[e.HoldID].State)
		default:
			require.Contains(f.t, purge, "n:"+id)
		}
		if e.State.Live() {
			require.NotContains(f.t, people, e.Person, "one live entry a person")
			people[e.Person] = id
		}
	}
	require.Equal(f.t, people, fields("people"))
	stand := map[string]int64{}
	for _, name := range []string{"line", "back", "fresh", "parked", "limited"} {
		for id, at := range scores(name) {
			require.NotContains(f.t, stand, id, "an entry stands in one place")
			stand[id] = at
		}
	}
	require.Equal(f.t, places, stand)
	for id, h := range holds {
		require.Equal(f.t, h.State == contract.HoldOffered, offers[id], "an offer and its entry name each other")
	}
}

// TestNoSequenceBreaksTheGate plays what the model does not: months that pass and
// records that are purged, a clock that is put back, quantities, amounts, ids of
// another kind or of no record. Nothing may end in an error, and every index must
// stay true.
func TestNoSequenceBreaksTheGate(t *testing.T) {
	setFlag(t, "rapid.checks", "60")
	setFlag(t, "rapid.steps", "60")
	setFlag(t, "rapid.seed", "20261129")
	rapid.Check(t, func(rt *rapid.T) {
		f := &fixture{t: rt, g: New(shared, testOptions()), sku: fmt.Sprintf("W-%d", time.Now().UnixNano())}
		f.g.testClock = time.Now().UnixMicro()
		ctx := t.Context()
		must[Base](f)(f.g.Open(ctx, OpenRequest{SKU: f.sku, New: true}))
		start := f.g.testClock
		f.restock("first", 5)
		ids := []string{"someone else's id"}
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		id := func() string { return ids[len(ids)-1-min(draw(len(ids)), draw(len(ids)))] }
		fresh := func(build func(string, []byte) string) string {
			ids = append(ids, f.id(build))
			return ids[len(ids)-1]
		}
		units := func() int64 { return int64(1 + draw(4)) }
		person := func() string { return fmt.Sprint("person", draw(4)) }
		ref := func() string { return fmt.Sprint("pi", draw(3)) }
		ok := func(err error) { require.NoError(rt, err) }
		learn := func(d DrainOutcome, err error) {
			ok(err)
			for _, item := range d.Items {
				if item.HoldID != "" {
					ids = append(ids, item.HoldID)
				}
			}
		}
		steps := map[string]func(*rapid.T){
			"pass": func(*rapid.T) {
				f.pass([]time.Duration{
					time.Millisecond, testLease, 10 * time.Minute, 48 * time.Hour, 31 * 24 * time.Hour, 401 * 24 * time.Hour, -time.Minute, -time.Hour,
				}[draw(8)])
				f.g.testClock = max(f.g.testClock, start)
			},
			"stock": func(*rapid.T) {
				f.n++
				ev := contract.StockEvent{
					EventID: fmt.Sprint("e", f.n-draw(3)), Kind: []string{contract.StockRestock, contract.StockCorrection, contract.StockReturn, contract.StockLevel}[draw(4)],
					Units: units(), Delta: 1 - 2*units(), AllowShortfall: draw(2) == 0, HoldID: id(), ReturnID: fmt.Sprint("r", draw(20)), Resell: draw(2) == 0,
					Version: int64(f.n), CountsSold: int64(draw(3)),
				}
				_, err := f.g.Stock(ctx, f.sku, ev)
				ok(err)
			},
			"join": func(*rapid.T) {
				_, err := f.g.Join(ctx, JoinRequest{SKU: f.sku, EntryID: fresh(contract.EntryID), Person: person(), Units: units(), Sealed: []byte{0}})
				ok(err)
			},
			"ack": func(*rapid.T) { _, err := f.g.AdoptEntry(ctx, f.sku, id()); ok(err) },
			"leave": func(*rapid.T) {
				state := []contract.EntryState{contract.EntryLeft, contract.EntryExpired, contract.EntryOptedOut}[draw(3)]
				_, err := f.g.Leave(ctx, LeaveRequest{SKU: f.sku, EntryID: id(), State: state, Owner: draw(2) == 0})
				ok(err)
			},
			"reserve": func(*rapid.T) {
				at := fresh(contract.HoldID)
				if draw(3) == 0 {
					at = id()
				}
				_, err := f.g.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: at, Units: units(), Person: person()})
				ok(err)
			},
			"press": func(*rapid.T) {
				_, err := f.g.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: id(), Press: true})
				ok(err)
			},
			"adopt": func(*rapid.T) {
				req := AdoptHoldRequest{SKU: f.sku, HoldID: id(), HoldFor: time.Minute, ByWorkflow: draw(3) > 0, Units: units(), Person: person()}
				if draw(2) == 0 {
					req.Extend = &Extension{By: time.Minute, Amount: &contract.Money{Amount: int64(draw(2)), Currency: "EUR"}}
				}
				_, err := f.g.AdoptHold(ctx, req)
				ok(err)
			},
			"offer": func(*rapid.T) { _, err := f.g.AdoptOffer(ctx, f.sku, id()); ok(err) },
			"told":  func(*rapid.T) { f.told(id(), draw(2) == 0) },
			"pay": func(*rapid.T) {
				_, err := f.g.Confirm(ctx, ConfirmRequest{
					SKU: f.sku, HoldID: id(), PaymentRef: ref(), Retake: draw(2) == 0, SameAmount: draw(2) == 0, Amount: &contract.Money{Amount: int64(draw(2)), Currency: "EUR"},
				})
				ok(err)
			},
			"unconfirm": func(*rapid.T) { _, err := f.g.Unconfirm(ctx, f.sku, id(), ref(), "test"); ok(err) },
			"refund":    func(*rapid.T) { _, err := f.g.Refund(ctx, f.sku, id(), ref(), "test"); ok(err) },
			"release": func(*rapid.T) {
				f.release(id(), []string{contract.ReasonExpired, contract.ReasonShopper, contract.ReasonShop}[draw(3)])
			},
			"lapse": func(*rapid.T) { f.lapse(id()) },
			"drain": func(*rapid.T) { learn(f.g.Drain(ctx, f.sku, 1+draw(500))) },
			"settings": func(*rapid.T) {
				paused, limit, ends := draw(4) == 0, int64(draw(4)), time.Time{}
				if draw(4) == 0 {
					ends = time.UnixMicro(f.g.testClock + int64(draw(3)-1)*60_000_000)
				}
				must[Base](f)(f.g.Settings(ctx, SettingsRequest{SKU: f.sku, Paused: &paused, Limit: &limit, Ends: &ends}))
			},
		}
		for _, often := range []string{"reserve", "adopt", "press", "pay", "join", "ack", "drain"} {
			steps[often+" again"] = steps[often]
		}
		steps[""] = func(*rapid.T) { f.sound() }
		rt.Repeat(steps)
		f.adds()
		require.NoError(rt, shared.Del(context.Background(), keysOf(f.sku)...).Err())
	})
}

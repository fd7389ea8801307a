package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

// Steps of the model test: stock, settings, entries and offers.

func (r *run) event(rt *rapid.T) string {
	return fmt.Sprint("e", rapid.IntRange(0, 11).Draw(rt, "event"))
}

// stockEvent plays one event; a refused one counts by its reason.
func (r *run) stockEvent(rt *rapid.T, ev contract.StockEvent) {
	out := must[StockOutcome](r.fixture)(r.g.Stock(context.Background(), r.sku, ev))
	r.m.sweep()
	_, kept := r.m.events[ev.EventID]
	want := r.m.stock(ev)
	require.Equal(rt, want, modelEvent{out.Applied, out.Delta, out.Reason, out.Movement}, ev.Kind)
	known := must[map[string]StockOutcome](r.fixture)(r.g.InspectEvents(context.Background(), r.sku, []string{ev.EventID}))[ev.EventID]
	require.Equal(rt, want, modelEvent{known.Applied, known.Delta, known.Reason, known.Movement}, "what the event's id tells later")
	require.Equal(rt, out.N, known.N)
	switch {
	case kept:
		r.reached["stock repeat"]++
	case !want.applied:
		r.reached[ev.Kind+" "+want.reason]++
	default:
		r.reached[ev.Kind+" ok"]++
	}
	r.did(rt, "stock", out.Verdict, OK)
}

func (r *run) stepRestock(rt *rapid.T) {
	r.stockEvent(rt, contract.StockEvent{EventID: r.event(rt), Kind: contract.StockRestock, Units: rapid.Int64Range(1, 3).Draw(rt, "units")})
}

func (r *run) stepCorrect(rt *rapid.T) {
	r.stockEvent(rt, contract.StockEvent{
		EventID: "c" + r.event(rt), Kind: contract.StockCorrection, Delta: rapid.SampledFrom([]int64{-2, -1, 1}).Draw(rt, "delta"),
		AllowShortfall: rapid.Bool().Draw(rt, "allow shortfall"),
	})
}

func (r *run) stepLevel(rt *rapid.T) {
	r.n++
	r.stockEvent(rt, contract.StockEvent{
		EventID: fmt.Sprint("l", r.n), Kind: contract.StockLevel, Units: rapid.Int64Range(0, 5).Draw(rt, "units"),
		Version: r.m.level + rapid.Int64Range(0, 2).Draw(rt, "version"), CountsSold: rapid.Int64Range(0, r.m.sold+r.m.returned+1).Draw(rt, "counts sold"),
		AllowShortfall: rapid.Bool().Draw(rt, "allow shortfall"),
	})
}

func (r *run) stepReturn(rt *rapid.T) {
	r.n++
	r.stockEvent(rt, contract.StockEvent{
		EventID: fmt.Sprint("r", r.n), Kind: contract.StockReturn, ReturnID: fmt.Sprint("rma", rapid.IntRange(0, 40).Draw(rt, "return")),
		HoldID: r.pickHold(rt, contract.HoldSold), Units: rapid.Int64Range(1, 2).Draw(rt, "units"), Resell: rapid.Bool().Draw(rt, "resell"),
	})
}

// stepJoin joins, and one time in five repeats an earlier join.
func (r *run) stepJoin(rt *rapid.T) {
	id, person := r.id(contract.EntryID), r.person(rt)
	if rapid.IntRange(0, 4).Draw(rt, "repeat") == 0 && len(r.entries) > 0 {
		id = rapid.SampledFrom(r.entries).Draw(rt, "entry")
		person = r.m.entries[id].person
	}
	r.join(rt, id, person, rapid.Int64Range(1, 2).Draw(rt, "units"))
}

// stepJoinEnded repeats a join whose entry has ended meanwhile.
func (r *run) stepJoinEnded(rt *rapid.T) {
	var ended []string
	for _, id := range r.entries {
		if !r.m.entries[id].state.Live() {
			ended = append(ended, id)
		}
	}
	if len(ended) > 0 {
		id := rapid.SampledFrom(ended).Draw(rt, "ended entry")
		r.join(rt, id, r.m.entries[id].person, 1)
	}
}

func (r *run) join(rt *rapid.T, id, person string, units int64) {
	out := must[JoinOutcome](r.fixture)(r.g.Join(context.Background(), JoinRequest{
		SKU: r.sku, EntryID: id, Person: person, Units: units, Sealed: []byte("sealed"),
	}))
	r.m.sweep()
	want, created := r.m.join(id, person, units)
	if want == "" {
		r.did(rt, "join", out.Verdict, Ended)
		return
	}
	require.Equal(rt, want, out.Entry.ID)
	require.Equal(rt, created, out.Created)
	switch {
	case created:
		r.entries = append(r.entries, want)
	case r.m.entries[want].state.Live():
		r.reached["join existing"]++
	default:
		r.reached["join ended"]++
	}
	r.did(rt, "join", out.Verdict, OK)
}

func (r *run) stepAck(rt *rapid.T) { r.acks(rt, r.pick(rt, r.entries, contract.EntryID)) }

func (r *run) acks(rt *rapid.T, id string) {
	out := r.ack(id)
	r.m.sweep()
	r.did(rt, "ack", out.Verdict, r.m.ack(id))
}

func (r *run) stepAdoptOffer(rt *rapid.T) {
	r.adoptsOffer(rt, r.pick(rt, r.holds, contract.HoldID))
}

func (r *run) adoptsOffer(rt *rapid.T, id string) {
	out := must[HoldOutcome](r.fixture)(r.g.AdoptOffer(context.Background(), r.sku, id))
	r.m.sweep()
	want := Unknown
	if r.m.holds[id] != nil {
		want = OK
	}
	r.m.drop("o:" + id)
	r.did(rt, "adopt_offer", out.Verdict, want)
}

func (r *run) stepLeave(rt *rapid.T) {
	id := r.pick(rt, r.entries, contract.EntryID)
	state := rapid.SampledFrom([]contract.EntryState{contract.EntryLeft, contract.EntryExpired, contract.EntryRemoved}).Draw(rt, "end")
	r.leaves(rt, id, state, rapid.Bool().Draw(rt, "by its workflow"))
}

func (r *run) leaves(rt *rapid.T, id string, state contract.EntryState, owner bool) {
	out := must[EntryOutcome](r.fixture)(r.g.Leave(context.Background(), LeaveRequest{SKU: r.sku, EntryID: id, State: state, Owner: owner}))
	r.m.sweep()
	r.did(rt, "leave", out.Verdict, r.m.leave(id, state, owner))
}

func (r *run) stepTold(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	sent := rapid.Bool().Draw(rt, "sent")
	out := r.told(id, sent)
	r.m.sweep()
	r.did(rt, "told", out.Verdict, r.m.told(id, sent))
}

func (r *run) stepSettings(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "policy") {
		r.stepPolicy(rt)
		return
	}
	limit := rapid.SampledFrom([]int64{0, 1, 2}).Draw(rt, "limit")
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepPolicy gives the SKU a greatest age and missed turns of its own, or takes them
// away. A policy without a limit and an end has none.
func (r *run) stepPolicy(rt *rapid.T) {
	var p contract.Policy
	if n := rapid.Int64Range(-1, 2).Draw(rt, "missed turns"); n >= 0 {
		p.MissedKeep = &n
	}
	if s := rapid.SampledFrom([]int64{0, 60, 3600}).Draw(rt, "greatest age"); s > 0 {
		p.OfferMaxAgeSeconds = &s
	}
	r.settings(rt, SettingsRequest{Policy: &p})
}

// stepLimit reserves under the tightest limit and lifts it again.
func (r *run) stepLimit(rt *rapid.T) {
	limit := int64(1)
	r.settings(rt, SettingsRequest{Limit: &limit})
	r.stepReserve(rt)
	limit = 0
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepEnd ends the sale, tries what an ended sale refuses, and opens it again.
func (r *run) stepEnd(rt *rapid.T) {
	ends := time.UnixMilli(r.m.ms())
	r.settings(rt, SettingsRequest{Ends: &ends})
	r.stepJoin(rt)
	r.stepReserve(rt)
	r.stepTold(rt)
	ends = time.Time{}
	r.settings(rt, SettingsRequest{Ends: &ends})
}

func (r *run) settings(rt *rapid.T, req SettingsRequest) {
	req.SKU = r.sku
	out := must[Base](r.fixture)(r.g.Settings(context.Background(), req))
	r.m.sweep()
	if p := req.Policy; p != nil {
		req.Limit, req.Ends = new(int64), new(time.Time)
		r.m.maxAge, r.m.missedKeep = testOptions().OfferMaxAge.Milliseconds(), int64(testOptions().MissedKeep)
		if p.OfferMaxAgeSeconds != nil {
			r.m.maxAge = *p.OfferMaxAgeSeconds * 1000
		}
		if p.MissedKeep != nil {
			r.m.missedKeep = *p.MissedKeep
		}
	}
	if req.Limit != nil {
		r.m.setLimit(*req.Limit)
	}
	if req.Ends != nil {
		r.m.ends = 0
		if !req.Ends.IsZero() {
			r.m.ends = req.Ends.UnixMilli()
		}
	}
	r.did(rt, "settings", out.Verdict, OK)
}

func (r *run) stepLapse(rt *rapid.T) {
	r.lapses(rt, r.pickHold(rt, contract.HoldOffered), rapid.IntRange(0, 3).Draw(rt, "told") == 0)
}

// stepLapseSent is told that an offer's text was not told which was.
func (r *run) stepLapseSent(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.told(id, true)
	r.m.sweep()
	r.did(rt, "told", out.Verdict, r.m.told(id, true))
	r.lapses(rt, id, true)
}

func (r *run) lapses(rt *rapid.T, id string, notTold bool) {
	end, verb := r.lapse, "lapse"
	if notTold {
		end, verb = r.lapseNotTold, "lapse not told"
	}
	out := end(id)
	r.m.sweep()
	r.did(rt, verb, out.Verdict, r.m.lapse(id, notTold))
}

// stepToldWhilePaused, stepLapseDue and stepDeadPress go straight to states that
// chance alone seldom meets.
func (r *run) stepToldWhilePaused(rt *rapid.T) {
	r.setPaused(rt, true)
	r.stepTold(rt)
	r.stepReserve(rt)
	r.setPaused(rt, false)
}

func (r *run) stepLapseDue(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	if h := r.m.holds[id]; h != nil && h.state == contract.HoldOffered {
		early := rapid.Int64Range(0, 1).Draw(rt, "ms early")
		r.move(time.Duration(max(0, h.deadline-r.m.ms()-early)) * time.Millisecond)
	}
	r.lapses(rt, id, rapid.IntRange(0, 3).Draw(rt, "told") == 0)
}

func (r *run) stepPause(rt *rapid.T) {
	r.setPaused(rt, rapid.IntRange(0, 3).Draw(rt, "paused") == 0)
}

func (r *run) setPaused(rt *rapid.T, paused bool) {
	out := r.pause(paused)
	r.m.sweep()
	r.m.paused = paused
	r.did(rt, "pause", out.Verdict, OK)
}

func (r *run) stepDrain(rt *rapid.T) {
	out := r.drain()
	r.m.sweep()
	r.did(rt, "drain", out.Verdict, OK)
	var got []string
	for _, item := range out.Items {
		member := "s:" + item.EntryID
		switch item.Kind {
		case ItemOffer:
			member = "o:" + item.HoldID
		case ItemEnd:
			member = "e:" + item.EntryID
		}
		got = append(got, member)
	}
	require.Equal(rt, r.m.drain(), got)
}

// stepRush sends the line home and tells everybody everything, and then sells to
// walk-ins, some of whom let their lease end while somebody joins.
func (r *run) stepRush(rt *rapid.T) {
	for _, id := range r.entries {
		if r.m.entries[id].state.Live() {
			r.leaves(rt, id, contract.EntryLeft, true)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(r.m.outbox)) {
		if id := member[2:]; member[0] == 'o' {
			r.adoptsOffer(rt, id)
		} else {
			r.acks(rt, id)
		}
	}
	r.n++
	r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("rush", r.n), Kind: contract.StockRestock, Units: 3})
	r.takes(rt, r.id(contract.HoldID), r.person(rt))
	if rapid.Bool().Draw(rt, "a lease ends") {
		r.move(testLease)
	}
	if rapid.Bool().Draw(rt, "somebody joins") {
		r.stepJoin(rt)
	}
	r.takes(rt, r.id(contract.HoldID), r.person(rt))
}

// stepComeBack lets those with an offer miss their turn, sends home who had none, and
// restocks less than they want: some of them have come back and wait, and nobody else
// does. A walk-in asks, one more restock finds others parked, and some leave.
func (r *run) stepComeBack(rt *rapid.T) {
	p := contract.Policy{MissedKeep: new(int64)}
	*p.MissedKeep = 9
	r.settings(rt, SettingsRequest{Policy: &p})
	r.setPaused(rt, false)
	if n := int64(3); r.m.free() < n {
		r.n++
		r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("back", r.n), Kind: contract.StockRestock, Units: n})
	}
	for range rapid.IntRange(1, 3).Draw(rt, "people") {
		r.stepJoin(rt)
		r.acks(rt, r.entries[len(r.entries)-1])
	}
	missed := func() {
		for _, id := range slices.Clone(r.holds) {
			if h := r.m.holds[id]; h.state == contract.HoldOffered {
				r.move(time.Duration(max(0, h.deadline-r.m.ms())) * time.Millisecond)
				r.lapses(rt, id, false)
			}
		}
	}
	missed()
	if rapid.Bool().Draw(rt, "the others leave") {
		for _, id := range slices.Clone(r.m.line) {
			if !r.m.entries[id].parked {
				r.leaves(rt, id, contract.EntryLeft, true)
			}
		}
	}
	some := slices.IndexFunc(r.m.line, func(id string) bool { return r.m.entries[id].parked })
	if some >= 0 && rapid.Bool().Draw(rt, "one of them has as much as one may") {
		id := r.id(contract.HoldID)
		if r.takes(rt, id, r.m.entries[r.m.line[some]].person) == OK {
			out := r.adopt(id, false)
			r.m.sweep()
			r.did(rt, "adopt door", out.Verdict, r.m.adopt(id, "", false, 0))
			limit := int64(1)
			r.settings(rt, SettingsRequest{Limit: &limit})
		}
	}
	for free := r.m.free(); free > 0; free = r.m.free() {
		r.n++
		r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("back", r.n), Kind: contract.StockCorrection, Delta: -free})
	}
	for range rapid.IntRange(1, 2).Draw(rt, "restocks") {
		r.n++
		r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("back", r.n), Kind: contract.StockRestock, Units: 1})
		for _, id := range slices.Clone(r.holds) {
			if h := r.m.holds[id]; h.state == contract.HoldOffered {
				out := r.press(id)
				r.m.sweep()
				r.did(rt, "press", out.Verdict, r.m.reserve(id, "", 0, true))
			}
		}
		r.takes(rt, r.id(contract.HoldID), r.person(rt))
		r.stepSnapshot(rt)
		missed()
	}
	r.settings(rt, SettingsRequest{Limit: new(int64)})
}

// stepSnapshot looks at the counters, two times in three when a lease has just ended.
func (r *run) stepSnapshot(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "after a lease") > 0 {
		r.takes(rt, r.id(contract.HoldID), r.person(rt))
		r.move(testLease)
	}
	got := r.counters()
	if r.m.sweep() {
		r.settles(rt)
		r.reached["snapshot of ended leases"]++
	}
	require.Equal(rt, r.m.counters(), viewCounters(got))
	r.reached["snapshot ok"]++
}

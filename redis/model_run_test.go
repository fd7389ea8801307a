package redis

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

// run is one random sequence: the gate and the model take the same steps.
type run struct {
	*fixture
	m       *model
	holds   []string
	entries []string
	reached map[string]int
}

// TestGateAgreesWithTheModel plays random sequences of all verbs with repeats,
// wrong ids and a moving clock. After every step verdict, counters, records,
// line and outbox must be the model's, and the ledger must add up.
func TestGateAgreesWithTheModel(t *testing.T) {
	// The short form plays the same sequences each time, so that a red run is
	// never luck; the long form plays new ones.
	checks, steps, seed := "1000", "40", "20261129"
	if long {
		checks, steps, seed = "20000", "50", "0"
	}
	if backendName() != "" {
		checks = "20" // the counts below are for the first backend
	}
	setFlag(t, "rapid.checks", checks)
	setFlag(t, "rapid.steps", steps)
	setFlag(t, "rapid.seed", seed)
	reached := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(t, rt, reached)
		rt.Repeat(r.steps())
		r.adds()
		r.leadsHere()
		require.NoError(t, shared.Del(context.Background(), keysOf(r.sku)...).Err())
	})
	if backendName() != "" {
		return
	}
	t.Log("steps by verb and outcome:", reached)
	for _, want := range modelOutcomes {
		require.GreaterOrEqual(t, reached[want], 50, "outcome %q was reached too seldom to prove anything", want)
	}
}

// newRun is a SKU with some stock and a line to begin with, or most verbs would
// meet nobody.
func newRun(t *testing.T, rt *rapid.T, reached map[string]int) *run {
	opts := testOptions()
	opts.RecordRetention, opts.SaleRetention = 100*365*24*time.Hour, 100*365*24*time.Hour // the model purges nothing
	f := &fixture{t: rt, g: New(shared, opts), sku: fmt.Sprintf("M-%d", time.Now().UnixNano())}
	f.g.testClock = time.Now().UnixMicro()
	_, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(t, err)
	r := &run{fixture: f, m: newModel(f.g.testClock), reached: reached}
	for range 3 {
		r.stepJoin(rt)
		r.stepAck(rt)
	}
	r.stepRestock(rt)
	return r
}

func (r *run) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":            func(rt *rapid.T) { r.agree(rt) },
		"pass":        r.stepPass,
		"restock":     r.stepRestock,
		"correct":     r.stepCorrect,
		"join":        r.stepJoin,
		"ack":         r.stepAck,
		"adopt offer": r.stepAdoptOffer,
		"leave":       r.stepLeave,
		"reserve":     r.stepReserve,
		"reserve too": r.stepReserve,
		"press":       r.stepPress,
		"adopt":       r.stepAdopt,
		"adopt more":  r.stepAdopt,
		"ack more":    r.stepAck,
		"more stock":  r.stepRestock,
		"told paused": r.stepToldWhilePaused,
		"lapse due":   r.stepLapseDue,
		"dead press":  r.stepDeadPress,
		"shortfall":   r.stepShortfall,
		"told":        r.stepTold,
		"confirm":     r.stepConfirm,
		"release":     r.stepRelease,
		"take back":   r.stepTakeBack,
		"lapse":       r.stepLapse,
		"refund":      r.stepRefund,
		"level":       r.stepLevel,
		"level twice": func(rt *rapid.T) { r.stepLevel(rt); r.stepLevel(rt) },
		"return":      r.stepReturn,
		"returns":     func(rt *rapid.T) { r.stepReturn(rt); r.stepReturn(rt); r.stepUnconfirm(rt) },
		"refund too":  r.stepRefund,
		"retake":      r.stepRetake,
		"limit":       r.stepLimit,
		"at limit":    r.stepAtTheLimit,
		"unconfirm":   r.stepUnconfirm,
		"settings":    r.stepSettings,
		"end":         r.stepEnd,
		"pause":       r.stepPause,
		"drain":       r.stepDrain,
	}
}

// modelOutcomes are the verb and outcome pairs that a run must reach. "again"
// and "closed" have tests of their own.
var modelOutcomes = []string{
	"restock ok", "stock repeat", "correction ok", "correction would-oversell",
	"level ok", "level level-outdated", "level counts-unknown-sales", "level would-oversell",
	"return ok", "return unknown-hold", "return not-sold", "return more-than-sold",
	"join ok", "join existing", "join ended", "join sale-ended", "ack ok", "ack unknown",
	"adopt_offer ok", "adopt_offer unknown", "leave ok", "leave unknown",
	"reserve ok", "reserve existing", "reserve sold-out", "reserve reserved-for-line", "reserve paused", "reserve sale-ended", "reserve limit-reached",
	"press ok", "press existing", "press unknown",
	"adopt door ok", "adopt door gone", "adopt door existing", "adopt workflow ok", "adopt workflow sold-out", "adopt workflow existing",
	"told ok", "told gone", "told paused", "told sale-ended", "told unknown",
	"confirm ok", "confirm hold-ended", "confirm payment-conflict", "confirm refunded", "confirm shortfall", "confirm unknown",
	"confirm retaken", "unconfirm ok", "unconfirm existing", "unconfirm returned", "unconfirm unknown",
	"release ok", "release existing", "release early", "release unknown",
	"take back ok", "take back existing",
	"lapse ok", "lapse early", "lapse claimed", "lapse existing", "lapse unknown",
	"refund ok", "refund made-sale", "refund unknown",
}

func setFlag(t *testing.T, name, value string) {
	f := flag.Lookup(name)
	old := f.Value.String()
	require.NoError(t, f.Value.Set(value))
	t.Cleanup(func() { f.Value.Set(old) })
}

func (r *run) pick(rt *rapid.T, ids []string, build func(string, []byte) string) string {
	if len(ids) == 0 || rapid.IntRange(0, 24).Draw(rt, "wrong id") == 0 {
		return r.id(build)
	}
	// Late ids are the live ones more often than not.
	n := len(ids) - 1 - min(rapid.IntRange(0, len(ids)-1).Draw(rt, "id a"), rapid.IntRange(0, len(ids)-1).Draw(rt, "id b"))
	return ids[n]
}

// pickHold prefers holds in the states that the verb is for, which a long
// sequence makes rare; one time in three it takes any.
func (r *run) pickHold(rt *rapid.T, states ...contract.HoldState) string {
	if rapid.IntRange(0, 2).Draw(rt, "any state") == 0 {
		return r.pick(rt, r.holds, contract.HoldID)
	}
	var fit []string
	for _, id := range r.holds {
		if h := r.m.holds[id]; slices.Contains(states, h.state) {
			fit = append(fit, id)
		}
	}
	if len(fit) == 0 {
		fit = r.holds
	}
	return r.pick(rt, fit, contract.HoldID)
}

// did compares the verdicts and brings the new offers' ids into the model.
func (r *run) did(rt *rapid.T, verb string, got, want Verdict) {
	require.Equal(rt, want, got, verb)
	r.reached[verb+" "+string(want)]++
	r.settles(rt)
}

// settles is the turn of the line: after a verb, and before one that takes what is
// open to all.
func (r *run) settles(rt *rapid.T) {
	r.m.settle()
	for _, offer := range r.m.fresh {
		e := r.entry(offer.entry)
		require.NotContains(rt, r.m.holds, e.HoldID, "an offer's id is new")
		r.m.named(offer.entry, e.HoldID, offer.units)
		r.holds = append(r.holds, e.HoldID)
	}
	r.m.fresh = nil
}

func (r *run) agree(rt *rapid.T) {
	ctx := context.Background()
	require.Empty(rt, r.m.twice, "offered twice in one generation")
	in, err := r.g.Inspect(ctx, r.sku)
	require.NoError(rt, err)
	require.Empty(rt, in.Problems)
	c := in.Counters
	require.Equal(rt, [6]int64{r.m.onHand, r.m.held, r.m.offered, r.m.sold, r.m.received, r.m.correction},
		[6]int64{c.OnHand, c.Held, c.Offered, c.Sold, c.Received, c.Corrected}, "on_hand held offered sold received corrected")
	records, err := shared.HGetAll(ctx, key(r.sku, "holds")).Result()
	require.NoError(rt, err)
	require.Len(rt, records, len(r.m.holds))
	for id, raw := range records {
		h, err := r.g.parseHold(r.sku, id, raw)
		require.NoError(rt, err)
		want := r.m.holds[id]
		require.NotNil(rt, want, id)
		require.Equal(rt, want.state, h.State, id)
		require.Equal(rt, [3]string{want.entry, want.ref, want.person}, [3]string{h.EntryID, h.PaymentRef, h.Person})
		require.Equal(rt, want.returned, h.Returned)
		require.Equal(rt, want.units, h.Units)
		require.Equal(rt, want.refunded, h.Refunded)
		if want.state.Live() {
			require.Equal(rt, want.deadline, h.Deadline.UnixMilli(), "deadline of %s %s", want.state, id)
		}
	}
	live := map[string]bool{}
	records, err = shared.HGetAll(ctx, key(r.sku, "entries")).Result()
	require.NoError(rt, err)
	require.Len(rt, records, len(r.m.entries))
	for id, raw := range records {
		e, err := parseEntry(r.sku, id, raw, 0)
		require.NoError(rt, err)
		want := r.m.entries[id]
		require.Equal(rt, want.state, e.State, id)
		require.Equal(rt, want.hold, e.HoldID)
		require.Equal(rt, want.acked, e.Acknowledged)
		if e.State.Live() {
			require.False(rt, live[e.Person], "I4: one live entry a person")
			live[e.Person] = true
		}
	}
	r.agreeOrder(rt, ctx)
}

// agreeOrder compares line and outbox with their scores.
func (r *run) agreeOrder(rt *rapid.T, ctx context.Context) {
	var line []string
	for i, id := range r.m.line {
		e, ok, err := r.g.ReadEntry(ctx, r.sku, id)
		require.NoError(rt, err)
		require.True(rt, ok)
		require.Equal(rt, int64(i+1), e.Position)
		line = append(line, id)
	}
	all, err := shared.ZUnion(ctx, goredis.ZStore{Keys: []string{key(r.sku, "line"), key(r.sku, "fresh"), key(r.sku, "parked")}}).Result()
	require.NoError(rt, err)
	require.ElementsMatch(rt, line, all)
	parked, err := shared.ZRange(ctx, key(r.sku, "parked"), 0, -1).Result()
	require.NoError(rt, err)
	line = slices.DeleteFunc(line, func(id string) bool { return !r.m.entries[id].parked })
	require.Equal(rt, append([]string{}, line...), append([]string{}, parked...), "parked")
	tally, err := shared.HGetAll(ctx, key(r.sku, "tally")).Result()
	require.NoError(rt, err)
	for person, units := range r.m.tally {
		if units > 0 {
			require.Equal(rt, fmt.Sprint(units), tally[person], "tally of %s", person)
		} else {
			require.NotContains(rt, tally, person)
		}
	}
	outbox, err := shared.ZUnionWithScores(ctx, goredis.ZStore{Keys: []string{key(r.sku, "outbox"), key(r.sku, "offers")}}).Result()
	require.NoError(rt, err)
	got := map[string]int64{}
	for _, z := range outbox {
		got[z.Member.(string)] = int64(z.Score)
	}
	require.Equal(rt, r.m.outbox, got, "outbox")
}

func (r *run) stepPass(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{
		time.Millisecond, 3 * time.Second, testLease - time.Millisecond, testLease, 45 * time.Second, 2 * time.Minute, 10 * time.Minute, 16 * time.Minute, 49 * time.Hour,
	}).Draw(rt, "pass")
	r.move(d)
}

func (r *run) move(d time.Duration) {
	r.pass(d)
	r.m.now += d.Microseconds()
}

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

func (r *run) person(rt *rapid.T) string {
	return fmt.Sprint("person", rapid.IntRange(0, 6).Draw(rt, "person"))
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
	id := r.pick(rt, r.holds, contract.HoldID)
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
	owner := rapid.Bool().Draw(rt, "by its workflow")
	out := must[EntryOutcome](r.fixture)(r.g.Leave(context.Background(), LeaveRequest{SKU: r.sku, EntryID: id, State: state, Owner: owner}))
	r.m.sweep()
	r.did(rt, "leave", out.Verdict, r.m.leave(id, state, owner))
}

func (r *run) stepReserve(rt *rapid.T) {
	id, person := r.id(contract.HoldID), r.person(rt)
	if rapid.IntRange(0, 2).Draw(rt, "repeat") == 0 {
		id = r.pick(rt, r.holds, contract.HoldID)
	}
	r.takes(rt, id, person)
}

func (r *run) takes(rt *rapid.T, id, person string) Verdict {
	out := must[HoldOutcome](r.fixture)(r.g.Reserve(context.Background(), ReserveRequest{SKU: r.sku, HoldID: id, Units: 1, Person: person}))
	r.m.sweep()
	r.settles(rt)
	want := r.m.reserve(id, person, 1, false)
	if want == OK {
		r.holds = append(r.holds, id)
	}
	r.did(rt, "reserve", out.Verdict, want)
	return want
}

func (r *run) stepPress(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.press(id)
	r.m.sweep()
	r.did(rt, "press", out.Verdict, r.m.reserve(id, "", 0, true))
}

func (r *run) stepAdopt(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldProvisional, contract.HoldSwept)
	if rapid.IntRange(0, 3).Draw(rt, "door") == 0 {
		out := r.adopt(id, false)
		r.m.sweep()
		r.did(rt, "adopt door", out.Verdict, r.m.adopt(id, "", false, 0))
		return
	}
	by := rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(rt, "extend")
	person := r.person(rt)
	req := AdoptHoldRequest{SKU: r.sku, HoldID: id, HoldFor: 10 * time.Minute, ByWorkflow: true, Units: 1, Person: person}
	if by > 0 {
		req.Extend = &Extension{By: by}
	}
	out := must[HoldOutcome](r.fixture)(r.g.AdoptHold(context.Background(), req))
	r.m.sweep()
	r.settles(rt)
	if r.m.holds[id] == nil {
		r.holds = append(r.holds, id)
	}
	r.did(rt, "adopt workflow", out.Verdict, r.m.adopt(id, person, true, by))
}

func (r *run) stepTold(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	sent := rapid.Bool().Draw(rt, "sent")
	out := r.told(id, sent)
	r.m.sweep()
	r.did(rt, "told", out.Verdict, r.m.told(id, sent))
}

func (r *run) ref(rt *rapid.T) string {
	return fmt.Sprint("pi", rapid.IntRange(0, 2).Draw(rt, "ref"))
}

func (r *run) stepConfirm(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldHeld, contract.HoldSold, contract.HoldExpired), r.ref(rt)
	retake := rapid.Bool().Draw(rt, "retake")
	out := must[HoldOutcome](r.fixture)(r.g.Confirm(context.Background(), ConfirmRequest{SKU: r.sku, HoldID: id, PaymentRef: ref, Retake: retake}))
	r.m.sweep()
	if r.m.retakes(id, retake) {
		r.settles(rt)
	}
	want := r.m.confirm(id, ref, retake)
	if want == OK && r.m.holds[id].retaken {
		r.reached["confirm retaken"]++
	}
	r.did(rt, "confirm", out.Verdict, want)
}

func (r *run) stepUnconfirm(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldSold), r.ref(rt)
	if h := r.m.holds[id]; h != nil && h.ref != "" && rapid.IntRange(0, 3).Draw(rt, "of the sale") > 0 {
		ref = h.ref
	}
	out := must[HoldOutcome](r.fixture)(r.g.Unconfirm(context.Background(), r.sku, id, ref, "test"))
	r.m.sweep()
	r.did(rt, "unconfirm", out.Verdict, r.m.unconfirm(id, ref))
}

func (r *run) stepSettings(rt *rapid.T) {
	limit := rapid.SampledFrom([]int64{0, 1, 2}).Draw(rt, "limit")
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepLimit reserves under the tightest limit and lifts it again.
func (r *run) stepLimit(rt *rapid.T) {
	limit := int64(1)
	r.settings(rt, SettingsRequest{Limit: &limit})
	r.stepReserve(rt)
	limit = 0
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepAtTheLimit leaves somebody in the line who already has as much as one may,
// and a lease that nobody adopts: its unit is a walk-in's.
func (r *run) stepAtTheLimit(rt *rapid.T) {
	limit, person := int64(1), r.person(rt)
	r.settings(rt, SettingsRequest{Limit: &limit})
	mine := r.id(contract.HoldID)
	if r.takes(rt, mine, person) == OK {
		out := r.adopt(mine, false)
		r.m.sweep()
		r.did(rt, "adopt door", out.Verdict, r.m.adopt(mine, "", false, 0))
		r.takes(rt, r.id(contract.HoldID), r.person(rt))
	}
	if free := r.m.free(); free > 0 {
		r.n++
		r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("s", r.n), Kind: contract.StockCorrection, Delta: -free})
	}
	entry := r.id(contract.EntryID)
	r.join(rt, entry, person, 1)
	r.acks(rt, entry)
	r.move(testLease)
	r.takes(rt, r.id(contract.HoldID), r.person(rt))
	limit = 0
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepRetake pays for a hold that has just expired.
func (r *run) stepRetake(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldHeld)
	if h := r.m.holds[id]; h != nil && h.state == contract.HoldHeld {
		r.move(time.Duration(max(0, h.deadline-r.m.ms())) * time.Millisecond)
	}
	out := r.release(id, contract.ReasonExpired)
	r.m.sweep()
	r.did(rt, "release", out.Verdict, r.m.release(id, contract.ReasonExpired))
	ref := r.ref(rt)
	sale := must[HoldOutcome](r.fixture)(r.g.Confirm(context.Background(), ConfirmRequest{SKU: r.sku, HoldID: id, PaymentRef: ref, Retake: true}))
	r.m.sweep()
	if r.m.retakes(id, true) {
		r.settles(rt)
	}
	want := r.m.confirm(id, ref, true)
	if want == OK && r.m.holds[id].retaken {
		r.reached["confirm retaken"]++
	}
	r.did(rt, "confirm", sale.Verdict, want)
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

func (r *run) stepRelease(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldHeld, contract.HoldOffered)
	reason := rapid.SampledFrom([]string{contract.ReasonExpired, contract.ReasonExpired, contract.ReasonShopper, contract.ReasonPaymentFailed}).Draw(rt, "reason")
	out := r.release(id, reason)
	r.m.sweep()
	r.did(rt, "release", out.Verdict, r.m.release(id, reason))
}

func (r *run) stepTakeBack(rt *rapid.T) {
	r.stepReserve(rt) // a lease lasts for a few steps only
	id := r.pickHold(rt, contract.HoldProvisional, contract.HoldHeld)
	out := r.takeBack(id)
	r.m.sweep()
	r.did(rt, "take back", out.Verdict, r.m.takeBack(id))
}

func (r *run) stepLapse(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.lapse(id)
	r.m.sweep()
	r.did(rt, "lapse", out.Verdict, r.m.lapse(id))
}

// The next three go straight to states that chance alone seldom meets.

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
	out := r.lapse(id)
	r.m.sweep()
	r.did(rt, "lapse", out.Verdict, r.m.lapse(id))
}

// stepDeadPress presses an offer twice shortly before its deadline, and nobody
// adopts it: the deadline moves the first time only.
func (r *run) stepDeadPress(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.told(id, true)
	r.m.sweep()
	r.did(rt, "told", out.Verdict, r.m.told(id, true))
	if h := r.m.holds[id]; h != nil && h.state == contract.HoldOffered {
		r.move(time.Duration(max(0, h.deadline-r.m.ms()-1)) * time.Millisecond)
	}
	for range 2 {
		out = r.press(id)
		r.m.sweep()
		r.did(rt, "press", out.Verdict, r.m.reserve(id, "", 0, true))
		r.move(testLease)
		r.stepDrain(rt)
	}
}

func (r *run) stepShortfall(rt *rapid.T) {
	if r.m.onHand > 0 {
		r.n++
		r.stockEvent(rt, contract.StockEvent{
			EventID: fmt.Sprint("s", r.n), Kind: contract.StockCorrection, Delta: -r.m.onHand, AllowShortfall: true,
		})
	}
	r.stepConfirm(rt)
}

func (r *run) stepRefund(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldSold, contract.HoldExpired), r.ref(rt)
	if h := r.m.holds[id]; h != nil && h.ref != "" && rapid.Bool().Draw(rt, "of the sale") {
		ref = h.ref
	}
	out := must[HoldOutcome](r.fixture)(r.g.Refund(context.Background(), r.sku, id, ref, "test"))
	r.m.sweep()
	r.did(rt, "refund", out.Verdict, r.m.refund(id, ref))
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

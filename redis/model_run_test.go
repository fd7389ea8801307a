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
		"release too": r.stepRelease,
		"take back":   r.stepTakeBack,
		"lapse":       r.stepLapse,
		"lapse sent":  r.stepLapseSent,
		"refund":      r.stepRefund,
		"level":       r.stepLevel,
		"level twice": func(rt *rapid.T) { r.stepLevel(rt); r.stepLevel(rt) },
		"return":      r.stepReturn,
		"returns":     func(rt *rapid.T) { r.stepReturn(rt); r.stepReturn(rt); r.stepUnconfirm(rt) },
		"refund too":  r.stepRefund,
		"gone":        r.stepGone,
		"join ended":  r.stepJoinEnded,
		"retake":      r.stepRetake,
		"limit":       r.stepLimit,
		"at limit":    r.stepAtTheLimit,
		"unconfirm":   r.stepUnconfirm,
		"settings":    r.stepSettings,
		"end":         r.stepEnd,
		"pause":       r.stepPause,
		"drain":       r.stepDrain,
		"snapshot":    r.stepSnapshot,
		"rush":        r.stepRush,
		"come back":   r.stepComeBack,
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
	"release ok", "release existing", "release early", "release unknown", "release asked ok", "release asked early",
	"take back ok", "take back existing",
	"snapshot ok", "snapshot of ended leases",
	"lapse ok", "lapse early", "lapse claimed", "lapse existing", "lapse unknown",
	"lapse not told ok", "lapse not told early", "lapse not told claimed", "lapse not told existing",
	"refund ok", "refund made-sale", "refund unknown",
	"gone ok", "gone changed", "gone young", "gone unknown",
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
		if want.state == contract.HoldLapsed {
			require.Equal(rt, want.reason, h.Reason)
		}
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
	all, err := shared.ZUnion(ctx, goredis.ZStore{Keys: []string{key(r.sku, "line"), key(r.sku, "back"), key(r.sku, "fresh"), key(r.sku, "parked"), key(r.sku, "limited")}}).Result()
	require.NoError(rt, err)
	require.ElementsMatch(rt, line, all)
	for name, aside := range map[string]func(*modelEntry) bool{
		"parked":  func(e *modelEntry) bool { return e.parked },
		"limited": func(e *modelEntry) bool { return e.limited },
	} {
		got, err := shared.ZRange(ctx, key(r.sku, name), 0, -1).Result()
		require.NoError(rt, err)
		want := slices.DeleteFunc(slices.Clone(line), func(id string) bool { return !aside(r.m.entries[id]) })
		require.Equal(rt, append([]string{}, want...), append([]string{}, got...), name)
	}
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

func (r *run) person(rt *rapid.T) string {
	return fmt.Sprint("person", rapid.IntRange(0, 6).Draw(rt, "person"))
}

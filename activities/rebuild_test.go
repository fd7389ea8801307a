package activities

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"holdfast/contract"
	"holdfast/redis"
)

var allKeys = []string{
	"stock", "holds", "entries", "people", "line", "fresh", "leases", "outbox", "parcels", "events", "purge", "ledger", "parked", "tally", "offers", "limited", "back",
}

// snapshot keeps the SKU's keys; back puts them back and closes the SKU, as a Redis
// that has come up with an old file.
func (s *shelf) snapshot() (back func()) {
	kept := map[string]string{}
	for _, name := range allKeys {
		if raw, err := s.rdb.Dump(s.t.Context(), s.key(name)).Result(); err == nil {
			kept[name] = raw
		}
	}
	return func() {
		for _, name := range allKeys {
			require.NoError(s.t, s.rdb.Del(s.t.Context(), s.key(name)).Err())
			if raw, ok := kept[name]; ok {
				require.NoError(s.t, s.rdb.Restore(s.t.Context(), s.key(name), 0, raw).Err())
			}
		}
		s.closed()
	}
}

func (s *shelf) closed() {
	require.NoError(s.t, s.rdb.HSet(s.t.Context(), s.key("stock"), "fence", "another server").Err())
}

func (s *shelf) rebuild(in contract.ReconcileInput) contract.ReconcileReport {
	s.t.Helper()
	env, passes := s.passes()
	in.SKU = s.sku
	out, err := env.ExecuteActivity(passes.Rebuild, in)
	require.NoError(s.t, err)
	var report contract.ReconcileReport
	require.NoError(s.t, out.Get(&report))
	return report
}

// sells confirms a hold, whose workflow then closes.
func (s *shelf) sells(id string) {
	out, err := s.gate.Confirm(s.t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: id, PaymentRef: "pay_" + id})
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, out.Verdict)
	status := s.flows[id].status.(contract.HoldStatus)
	status.State, status.PaymentRef, status.EndedAt = contract.HoldSold, "pay_"+id, &out.Hold.EndedAt
	s.closes(id, "sold", status)
}

func (s *shelf) releases(id string) {
	out, err := s.gate.Release(s.t.Context(), redis.ReleaseRequest{SKU: s.sku, HoldID: id, Reason: contract.ReasonShop})
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, out.Verdict)
	status := s.flows[id].status.(contract.HoldStatus)
	status.State, status.EndReason, status.EndedAt = contract.HoldReleased, contract.ReasonShop, &out.Hold.EndedAt
	s.closes(id, "released", status)
}

// offered tells an entry's workflow of its offer.
func (s *shelf) offered(entry string) string {
	e, ok, err := s.gate.ReadEntry(s.t.Context(), s.sku, entry)
	require.NoError(s.t, err)
	require.True(s.t, ok)
	require.Equal(s.t, contract.EntryOffered, e.State)
	_, err = s.gate.AdoptOffer(s.t.Context(), s.sku, e.HoldID)
	require.NoError(s.t, err)
	out, err := s.gate.Told(s.t.Context(), redis.ToldRequest{SKU: s.sku, HoldID: e.HoldID, Window: time.Hour, SentGrace: time.Minute, MaxAge: time.Hour})
	require.NoError(s.t, err)
	status := s.flows[entry].status.(contract.EntryStatus)
	status.State, status.HoldID, status.Generation, status.OfferUntil = contract.EntryOffered, e.HoldID, e.Generation, &out.Hold.Deadline
	s.flows[entry].state, s.flows[entry].status = "offered", status
	return e.HoldID
}

func (s *shelf) counters() redis.Counters {
	s.t.Helper()
	c, _, err := s.gate.Snapshot(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	c.AsOf = time.Time{}
	return c
}

// state of a hold in the gate, "" without a record.
func (s *shelf) state(id string) contract.HoldState {
	h, ok, err := s.gate.ReadHold(s.t.Context(), s.sku, id)
	require.NoError(s.t, err)
	if !ok {
		return ""
	}
	return h.Hold.State
}

// Redis comes back as it was before: holds were given, sold and given back since,
// people have joined and were offered units, units came in. All of it is merged from
// book and workflows before anything is served, and nothing is sold twice.
// B98.
func TestAnOlderRedisIsMerged(t *testing.T) {
	s := newShelf(t, 20)
	var held []string
	for range 8 {
		held = append(held, s.held())
	}
	s.sells(held[7])
	first := s.waits("ann")
	hold := s.offered(first)
	back := s.snapshot()

	s.sells(held[0])
	s.sells(held[1])
	s.releases(held[2])
	late := s.held()
	sold := s.held()
	s.sells(sold)
	given := s.held()
	s.releases(given)
	_, err := s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: hold, Press: true})
	require.NoError(t, err)
	pressed, err := s.gate.AdoptHold(t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: hold, HoldFor: time.Hour})
	require.NoError(t, err)
	s.opens(hold, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: hold, State: contract.HoldHeld, Person: "ann", EntryID: first, Generation: 1, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, CreatedAt: time.Now(), ExpiresAt: pressed.Hold.Deadline,
	}
	s.flows[first].state = "holding"
	for s.counters().OpenToAll > 0 {
		s.held()
	}
	second, third := s.waits("bob"), s.waits("cyd")
	s.restock(1)
	offer := s.offered(second)
	want := s.counters()

	back()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened, report)
	got := s.counters()
	require.Equal(t, want.Epoch+1, got.Epoch)
	require.Equal(t, got.Epoch, s.book.Epoch)
	want.Epoch = got.Epoch
	require.Equal(t, want, got)
	for id, state := range map[string]contract.HoldState{
		held[0]: contract.HoldSold, held[2]: contract.HoldReleased, held[3]: contract.HoldHeld, held[7]: contract.HoldSold,
		late: contract.HoldHeld, sold: contract.HoldSold, given: contract.HoldReleased, hold: contract.HoldHeld, offer: contract.HoldOffered,
	} {
		require.Equal(t, state, s.state(id), id)
	}
	e, ok, err := s.gate.ReadEntry(t.Context(), s.sku, third)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(1), e.Position)
	require.Contains(t, strings.Join(report.Differences, "\n"), late+" is held with 1, the gate knew nothing")

	s.nothingLeft()
	out, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: held[0], PaymentRef: "pay_" + held[0]})
	require.NoError(t, err)
	require.Equal(t, redis.OK, out.Verdict, "a repeat finds its sale")
	s.restock(1)
	require.Equal(t, s.book.Received, s.counters().Received)
	require.Greater(t, s.book.DecidedN, int64(0))
	s.flows[third].state = "offered"
	s.offered(third)
	s.nothingLeft()
}

// A merge that is cut off anywhere is begun anew and comes to the same.
func TestARebuildMayBeRepeated(t *testing.T) {
	s := newShelf(t, 6)
	a, b := s.held(), s.held()
	back := s.snapshot()
	s.sells(a)
	s.sells(s.held())
	want := s.parts()
	back()
	// It dies after it has put the sale in.
	closed := s.gate.Rebuilding(replID(t, s))
	_, err := closed.RebuildBegin(t.Context(), s.sku, redis.RebuildStart{})
	require.NoError(t, err)
	_, err = closed.RebuildHold(t.Context(), s.sku, redis.RebuiltHold{
		LostHold: redis.LostHold{ID: a, Person: "p-" + a, Units: 1, CreatedAt: time.Now(), ExpiresAt: time.Now()}, Version: 2,
		State: contract.HoldSold, EndedAt: time.Now(), PaymentRef: "pay_" + a, Uncounted: true,
	})
	require.NoError(t, err)
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, want, s.parts())
	require.Equal(t, contract.HoldHeld, s.state(b))
	s.nothingLeft()
}

func replID(t *testing.T, s *shelf) string {
	in, err := s.gate.Inspect(t.Context(), s.sku)
	require.NoError(t, err)
	return in.ReplID
}

// Whichever key a hand has deleted, what was promised stands.
func TestADeletedKeyIsRebuilt(t *testing.T) {
	for _, name := range allKeys {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 4)
			sold := s.held()
			s.sells(sold)
			kept := s.held()
			s.held()
			first := s.waits("ann")
			offer := s.offered(first)
			second, third := s.waits("bob"), s.waits("cyd")
			want := s.counters()
			require.NoError(t, s.rdb.Del(t.Context(), s.key(name)).Err())
			if name != "stock" {
				s.closed()
			}
			report := s.rebuild(contract.ReconcileInput{})
			require.True(t, report.Opened, report)
			got := s.counters()
			require.Equal(t, want.Epoch+1, got.Epoch)
			want.Epoch = got.Epoch
			require.Equal(t, want, got)
			require.Equal(t, []contract.HoldState{contract.HoldSold, contract.HoldHeld, contract.HoldOffered}, []contract.HoldState{s.state(sold), s.state(kept), s.state(offer)})
			for place, id := range []string{second, third} {
				e, ok, err := s.gate.ReadEntry(t.Context(), s.sku, id)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, int64(place+1), e.Position)
			}
			s.nothingLeft()
		})
	}
}

// When more is promised than there is, offers go before holds: first those that
// nobody was told of, then the newest. They are the next when units come.
func TestOffersGoBeforeHolds(t *testing.T) {
	s := newShelf(t, 3)
	held := s.held()
	told, untold := s.waits("ann"), s.waits("bob")
	offer := s.offered(told)
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, untold)
	require.NoError(t, err)
	s.flows[untold].state = "offered"
	back := s.snapshot()
	back()
	s.book.Received = 2
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{2, 1, 1, 0}, s.parts())
	require.Equal(t, []contract.HoldState{contract.HoldHeld, contract.HoldOffered, contract.HoldReleased}, []contract.HoldState{s.state(held), s.state(offer), s.state(e.HoldID)})
	e, _, err = s.gate.ReadEntry(t.Context(), s.sku, untold)
	require.NoError(t, err)
	require.Equal(t, [2]any{contract.EntryWaiting, int64(1)}, [2]any{e.State, e.Position})
	s.restock(1)
	e, _, err = s.gate.ReadEntry(t.Context(), s.sku, untold)
	require.NoError(t, err)
	require.Equal(t, contract.EntryOffered, e.State)
}

// Of offers that people were told of, the newest goes first.
func TestTheNewestToldOfferGoesFirst(t *testing.T) {
	s := newShelf(t, 2)
	older, newer := s.offered(s.waits("ann")), s.offered(s.waits("bob"))
	s.toldAgo(older, time.Minute)
	s.snapshot()()
	s.book.Received = 1
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{1, 0, 1, 0}, s.parts())
	require.Equal(t, []contract.HoldState{contract.HoldOffered, contract.HoldReleased}, []contract.HoldState{s.state(older), s.state(newer)})
}

// toldAgo makes the time earlier at which an offer's person was told.
func (s *shelf) toldAgo(id string, ago time.Duration) {
	h, ok, err := s.gate.ReadHold(s.t.Context(), s.sku, id)
	require.NoError(s.t, err)
	require.True(s.t, ok)
	raw, err := s.rdb.HGet(s.t.Context(), s.key("holds"), id).Result()
	require.NoError(s.t, err)
	told := fmt.Sprint(h.Hold.ToldAt.UnixMilli())
	require.Equal(s.t, 1, strings.Count(raw, ","+told+","), raw)
	raw = strings.Replace(raw, ","+told+",", ","+fmt.Sprint(h.Hold.ToldAt.Add(-ago).UnixMilli())+",", 1)
	require.NoError(s.t, s.rdb.HSet(s.t.Context(), s.key("holds"), id, raw).Err())
}

// Holds are never taken back: what they have more than there is, is a shortfall that
// rings. Whoever pays first has the unit, and the next units make it good before the
// line gets anything.
func TestARebuildWithMoreHeldThanThereIs(t *testing.T) {
	s := newShelf(t, 3)
	a, b, ann := s.held(), s.held(), s.waits("ann")
	offer := s.offered(ann)
	s.snapshot()()
	s.book.Received = 1
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Equal(t, []string{"shortfall: more is held than there is; the next units make it good"}, report.Alarms)
	require.Equal(t, [4]int64{1, 2, 0, 0}, s.parts())
	require.Equal(t, int64(1), s.counters().Shortfall)
	require.Equal(t, []contract.HoldState{contract.HoldHeld, contract.HoldHeld, contract.HoldReleased}, []contract.HoldState{s.state(a), s.state(b), s.state(offer)})
	for i, id := range []string{b, a} { // in the order in which they pay
		out, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: id, PaymentRef: "pay_" + id})
		require.NoError(t, err)
		require.Equal(t, []redis.Verdict{redis.OK, redis.Shortfall}[i], out.Verdict)
	}
	for _, want := range []contract.EntryState{contract.EntryWaiting, contract.EntryOffered} {
		s.restock(1)
		e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
		require.NoError(t, err)
		require.Equal(t, want, e.State)
	}
}

// opening looks at the book in the moment before the gate is opened.
type opening struct {
	RebuildGate
	s    *shelf
	seen []int64
}

func (o *opening) RebuildOpen(ctx context.Context, sku string, t redis.Totals) (redis.Base, error) {
	o.seen = append(o.seen, o.s.book.Epoch, t.Epoch)
	return o.RebuildGate.RebuildOpen(ctx, sku, t)
}

// The book has the new epoch before the gate opens with it: a Redis that is lost right
// after the opening is followed by a later one, and its lines by later lines.
func TestTheBookHasTheEpochBeforeTheGateOpens(t *testing.T) {
	s := newShelf(t, 1)
	s.held()
	before := s.counters().Epoch
	s.closed()
	env, passes := s.passes()
	gate := &opening{s: s}
	passes.Closed = func(replID string) RebuildGate {
		gate.RebuildGate = s.gate.Rebuilding(replID)
		return gate
	}
	_, err := env.ExecuteActivity(passes.Rebuild, contract.ReconcileInput{SKU: s.sku})
	require.NoError(t, err)
	require.Equal(t, []int64{before + 1, before + 1}, gate.seen)
}

// Another namespace knows no workflow: that is an outage. The SKU stays closed and its
// records as they are, agreed or not.
func TestARebuildMeetsAMissingNamespace(t *testing.T) {
	for _, in := range []contract.ReconcileInput{{SKU: "CHAIR"}, {SKU: "CHAIR", Agree: true}} {
		s := newShelf(t, 1)
		id := s.held()
		s.closed()
		for _, f := range s.flows {
			f.unlisted = true
		}
		missing := serviceerror.NewNamespaceNotFound("shop")
		for _, where := range []*error{&s.down, &s.downAsked} { // of lists, and as it asks for one
			*where = missing
			env, passes := s.passes()
			_, err := env.ExecuteActivity(passes.Rebuild, in)
			require.ErrorContains(t, err, "shop")
			var shut *redis.ClosedError
			_, _, err = s.gate.Snapshot(t.Context(), s.sku)
			require.ErrorAs(t, err, &shut)
			require.Equal(t, contract.HoldHeld, must(s.gate.ReadRecords(t.Context(), s.sku)).Holds[id].State)
			*where = nil
		}
		r := s.rebuild(in)
		require.True(t, r.Opened, r)
		require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
	}
}

// What cannot be is not opened.
func TestWhatStaysClosed(t *testing.T) {
	for name, spoil := range map[string]func(s *shelf){
		"more are sold than came in": func(s *shelf) { s.book.Received = 1 },
		"Temporal has no book":       func(s *shelf) { s.book.Opened = false },
		"does not parse":             func(s *shelf) { require.NoError(t, s.rdb.HSet(t.Context(), s.key("holds"), "hold_x", "no").Err()) },
		"--agree":                    func(s *shelf) { maps.DeleteFunc(s.flows, func(_ string, f *flow) bool { return f.open }) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 8)
			s.sells(s.held())
			s.sells(s.held())
			for range 4 {
				s.held()
			}
			s.closed()
			spoil(s)
			report := s.rebuild(contract.ReconcileInput{})
			require.False(t, report.Opened)
			require.Len(t, report.Alarms, 1)
			require.Contains(t, report.Alarms[0], name)
			_, _, err := s.gate.Snapshot(t.Context(), s.sku)
			var shut *redis.ClosedError
			require.ErrorAs(t, err, &shut)
			if name == "--agree" {
				require.True(t, s.rebuild(contract.ReconcileInput{Agree: true}).Opened)
				require.Equal(t, [4]int64{6, 0, 0, 2}, s.parts())
			}
		})
	}
}

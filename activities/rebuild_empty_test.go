package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

func (s *shelf) flushes() { require.NoError(s.t, s.rdb.FlushAll(s.t.Context()).Err()) }

// presses turns an entry's offer into a held hold with its workflow.
func (s *shelf) presses(entry, offer, person string) {
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: offer, Press: true})
	require.NoError(s.t, err)
	out, err := s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: offer, HoldFor: time.Hour})
	require.NoError(s.t, err)
	s.opens(offer, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: offer, State: contract.HoldHeld, Person: person, EntryID: entry, Generation: out.Hold.Generation,
		Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, CreatedAt: out.Hold.CreatedAt, ExpiresAt: out.Hold.Deadline, OrderRef: "order of " + person,
	}
}

// An emptied Redis gets everything back from the book and the workflows: units, holds,
// sales, the line in its order, offers, what the shop says of the SKU. Nothing is sold
// or freed twice, and stock events that nobody had decided count once.
func TestAnEmptiedRedisIsRebuilt(t *testing.T) {
	s := newShelf(t, 7)
	limit := int64(2)
	s.book.About, s.book.Version = contract.About{Title: "Chair", CheckoutURL: "https://shop.example/c"}, 3
	s.book.Policy = contract.Policy{LimitPerPerson: &limit}
	s.book.Paused = true
	_, err := s.gate.Settings(t.Context(), redis.SettingsRequest{SKU: s.sku, About: &s.book.About, Policy: &s.book.Policy, Version: 3})
	require.NoError(t, err)
	sold, kept, returned := s.held(), s.held(), s.held()
	s.sells(sold)
	s.sells(returned)
	for range 3 {
		s.releases(s.held())
	}
	ann, bob := s.waits("ann"), s.waits("bob")
	annHas, bobHas := s.offered(ann), s.offered(bob)
	s.presses(ann, annHas, "ann")
	status := s.flows[ann].status.(contract.EntryStatus)
	status.State, s.flows[ann].state = contract.EntryHolding, "holding"
	s.flows[ann].status = status
	for s.counters().OpenToAll > 0 {
		s.held()
	}
	cyd, dan := s.waits("cyd"), s.waits("dan")
	back := contract.StockEvent{EventID: "back", Kind: contract.StockReturn, HoldID: returned, ReturnID: "r", Units: 1}
	out, err := s.gate.Stock(t.Context(), s.sku, back)
	require.NoError(t, err)
	s.book.DecidedN = out.N
	// The gate has decided one more event than its book knows, and one waits.
	late := contract.StockEvent{EventID: "late", Kind: contract.StockCorrection, Delta: 1}
	more := contract.StockEvent{EventID: "more", Kind: contract.StockRestock, Units: 1}
	yes := true
	_, err = s.gate.Settings(t.Context(), redis.SettingsRequest{SKU: s.sku, Paused: &yes})
	require.NoError(t, err)
	want := s.counters()
	_, err = s.gate.Stock(t.Context(), s.sku, late)
	require.NoError(t, err)
	s.book.Pending = []contract.StockEvent{late, more}

	s.flushes()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened, report)
	got := s.counters()
	require.Equal(t, s.book.Epoch, got.Epoch)
	want.Epoch = got.Epoch
	require.Equal(t, want, got)
	for id, state := range map[string]contract.HoldState{
		sold: contract.HoldSold, kept: contract.HoldHeld, annHas: contract.HoldHeld, bobHas: contract.HoldOffered,
	} {
		require.Equal(t, state, s.state(id), id)
	}
	for place, id := range []string{cyd, dan} {
		e, ok, err := s.gate.ReadEntry(t.Context(), s.sku, id)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, int64(place+1), e.Position)
	}
	holds, err := s.gate.HoldsNamed(t.Context(), "print of order of ann")
	require.NoError(t, err)
	require.Equal(t, []string{annHas}, holds)
	whose, err := s.gate.HoldOfPayment(t.Context(), "pay_"+sold)
	require.NoError(t, err)
	require.Equal(t, sold, whose)
	_, about, err := s.gate.Snapshot(t.Context(), s.sku)
	require.NoError(t, err)
	require.Equal(t, s.book.About, about)

	// Its book applies both events again, by their ids.
	for range 2 {
		for _, ev := range s.book.Pending {
			out, err := s.gate.Stock(t.Context(), s.sku, ev)
			require.NoError(t, err)
			require.True(t, out.Applied)
			require.Greater(t, out.N, s.book.DecidedN, "the book must not take it for a repeat")
		}
	}
	s.book.Pending, s.book.Received, s.book.Corrected = nil, s.book.Received+1, 1
	require.Equal(t, want.OnHand+2, s.counters().OnHand)
	s.nothingLeft()
	require.Equal(t, redis.Existing, must(s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: kept, Units: 1, Person: "p-" + kept})).Verdict)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Redis is emptied, restarted or taken by another rebuild while one writes: that one
// writes nothing more, and the next comes to the end.
func TestARebuildIsShutOutOfAnotherRedis(t *testing.T) {
	for name, strike := range map[string]func(s *shelf){
		"emptied":     func(s *shelf) { s.flushes() },
		"begun anew":  func(s *shelf) { s.begins() },
		"another one": func(s *shelf) { require.NoError(t, s.rdb.Del(t.Context(), s.key("stock")).Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 4)
			a, b := s.held(), s.held()
			s.sells(a)
			s.flushes()
			first := s.begins()
			strike(s)
			h := redis.RebuiltHold{
				LostHold: redis.LostHold{ID: b, Person: "p-" + b, Units: 1, CreatedAt: time.Now(), ExpiresAt: time.Now()}, State: contract.HoldHeld,
			}
			var closed *redis.ClosedError
			_, err := first.RebuildHold(t.Context(), s.sku, h)
			require.ErrorAs(t, err, &closed)
			_, err = first.RebuildOpen(t.Context(), s.sku, redis.Totals{OnHand: 4})
			require.ErrorAs(t, err, &closed)
			require.Empty(t, must(s.gate.ReadRecords(t.Context(), s.sku)).Holds)
			require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
			require.Equal(t, [4]int64{3, 1, 0, 1}, s.parts())
			s.nothingLeft()
		})
	}
}

// begins is a rebuild that has come no further than its beginning.
func (s *shelf) begins() *redis.Gate {
	g := s.gate.Rebuilding(replID(s.t, s))
	_, err := g.RebuildBegin(s.t.Context(), s.sku, redis.RebuildStart{})
	require.NoError(s.t, err)
	return g
}

// A rebuild that was cut off is one difference more for the check that follows: the SKU
// is not opened as it stands.
func TestAHalfRebuiltSKUIsNotOpened(t *testing.T) {
	s := newShelf(t, 0)
	s.flushes()
	s.begins()
	in, err := s.gate.Inspect(t.Context(), s.sku)
	require.NoError(t, err)
	require.Contains(t, strings.Join(in.Problems, "\n"), "a rebuild has begun")
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	s.nothingLeft()
}

// Who holds or was offered something by their workflow, and whose hold ended when Redis
// was lost, learns it: a sale ends the place in line, and a missed turn keeps it.
func TestAnEntryLearnsWhatBecameOfItsHold(t *testing.T) {
	s := newShelf(t, 2)
	bought, missed := s.waits("ann"), s.waits("bob")
	for entry, sells := range map[string]bool{bought: true, missed: false} {
		offer := s.offered(entry)
		person := s.flows[entry].status.(contract.EntryStatus).Person
		s.presses(entry, offer, person)
		if sells {
			s.sells(offer)
		} else {
			s.releases(offer)
		}
	}
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{1, 0, 0, 1}, s.parts())
	for entry, state := range map[string]contract.EntryState{bought: contract.EntryBought, missed: contract.EntryWaiting} {
		e, ok, err := s.gate.ReadEntry(t.Context(), s.sku, entry)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, state, e.State)
	}
	told := map[string]bool{}
	out, err := s.gate.Drain(t.Context(), s.sku, 10)
	require.NoError(t, err)
	for _, item := range out.Items {
		require.Equal(t, redis.ItemEnd, item.Kind)
		told[item.EntryID] = item.Hold != nil
	}
	require.Equal(t, map[string]bool{bought: true, missed: true}, told)
}

// A payment that goes back sells nothing, whatever Redis forgets.
func TestAMarkedPaymentStaysMarked(t *testing.T) {
	for name, lose := range map[string]func(s *shelf, back func()){
		"emptied": func(s *shelf, _ func()) { s.flushes() },
		"older":   func(_ *shelf, back func()) { back() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 2)
			id := s.held()
			back := s.snapshot()
			_, err := s.gate.Refund(t.Context(), s.sku, id, "pi_other", "payment")
			require.NoError(t, err)
			f := s.opens("payment_x", contract.PaymentWorkflow)
			f.state = contract.PaymentRefundPending
			f.status = contract.PaymentStatus{PaymentID: "payment_x", HoldID: id, PaymentRef: "pi_other", State: contract.PaymentRefundPending}
			lose(s, back)
			require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
			out, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: id, PaymentRef: "pi_other"})
			require.NoError(t, err)
			require.Equal(t, redis.Refunded, out.Verdict)
			s.nothingLeft()
		})
	}
}

// A lost entry comes back with all that its workflow knows of it, whether its SKU is
// rebuilt or open.
func TestALostEntryComesBackAsItWas(t *testing.T) {
	for name, mend := range map[string]func(s *shelf) contract.ReconcileReport{
		"a pass":    func(s *shelf) contract.ReconcileReport { return s.pass(contract.ReconcileInput{}) },
		"a rebuild": func(s *shelf) contract.ReconcileReport { s.closed(); return s.rebuild(contract.ReconcileInput{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 0)
			ada, bob := s.waits("ada"), s.waits("bob")
			status := s.flows[ada].status.(contract.EntryStatus)
			status.Locale, status.Missed = "de-AT", 1
			s.flows[ada].status = status
			require.NoError(t, s.rdb.HDel(t.Context(), s.key("entries"), ada, bob).Err())
			require.Equal(t, 2, mend(s).Found)
			e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ada)
			require.NoError(t, err)
			require.Equal(t, []any{"de", int64(1), int64(1), false}, []any{e.Language, e.Missed, e.Position, e.Leaving})
			e, _, err = s.gate.ReadEntry(t.Context(), s.sku, bob)
			require.NoError(t, err)
			require.Equal(t, []any{"", int64(0), int64(2)}, []any{e.Language, e.Missed, e.Position})
			s.nothingLeft()
		})
	}
}

// Who left while their hold ran on has left, also when their record was lost meanwhile.
func TestALostEntryThatIsLeavingLeaves(t *testing.T) {
	s := newShelf(t, 1)
	ann := s.waits("ann")
	offer := s.offered(ann)
	s.presses(ann, offer, "ann")
	status := s.flows[ann].status.(contract.EntryStatus)
	status.State, status.Leaving = contract.EntryHolding, true
	s.flows[ann].state, s.flows[ann].status = "holding", status
	left := func() {
		t.Helper()
		e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
		require.NoError(t, err)
		require.Equal(t, contract.EntryLeft, e.State)
	}
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("entries"), ann).Err())
	s.pass(contract.ReconcileInput{})
	s.releases(offer)
	left()
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("entries"), ann).Err())
	s.pass(contract.ReconcileInput{}) // its hold has ended before it came back
	left()
}

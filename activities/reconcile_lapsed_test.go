package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/redis"
)

// missed ends an offer that was told, as its entry hears. Redis forgets it with back.
func (s *shelf) missed(entry, offer string) (back func()) {
	ctx := s.t.Context()
	keep := int64(1)
	s.book.Policy, s.book.Version = contract.Policy{MissedKeep: &keep}, 1
	must(s.gate.Settings(ctx, redis.SettingsRequest{SKU: s.sku, Policy: &s.book.Policy, Version: 1}))
	must(s.gate.Told(ctx, redis.ToldRequest{SKU: s.sku, HoldID: offer, Window: time.Millisecond, MaxAge: time.Hour, Sent: true}))
	back = s.snapshot()
	require.Eventually(s.t, func() bool {
		return must(s.gate.Lapse(ctx, redis.LapseRequest{SKU: s.sku, HoldID: offer})).Verdict == redis.OK
	}, time.Second, time.Millisecond)
	status := s.flows[entry].status.(contract.EntryStatus)
	status.State, status.Missed, status.OfferUntil, status.OfferSent = contract.EntryWaiting, 1, nil, false
	s.flows[entry].status, s.flows[entry].state = status, "waiting"
	return back
}

// Redis has lost that an offer lapsed. Its entry waits and has no clock for it any more, so
// that the unit would be nobody's for ever: the rebuild ends it, as a missed turn.
func TestALostLapseIsFound(t *testing.T) {
	s := newShelf(t, 1)
	ann := s.waits("ann")
	offer := s.offered(ann)
	s.missed(ann, offer)()
	report := s.check()
	require.False(t, report.Opened)
	require.Equal(t, []string{ann + " has missed the offer " + offer + ", but Redis does not know"}, report.Differences)
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, contract.HoldLapsed, s.state(offer))
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
	require.NoError(t, err)
	require.Equal(t, [2]any{contract.EntryWaiting, int64(1)}, [2]any{e.State, int64(e.Missed)})
	walkIn := must(s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: s.id(contract.HoldID), Units: 1, Person: "bob"}))
	require.Equal(t, redis.OK, walkIn.Verdict, "who missed the turn waits for the next restock")
	s.closed()
	report = s.check()
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
}

// With the lapse Redis has lost the offer to the next in line, who was told: it is theirs,
// and not of who has missed it.
func TestALostLapseTakesNobodysOffer(t *testing.T) {
	s := newShelf(t, 1)
	ann, bob := s.waits("ann"), s.waits("bob")
	offer := s.offered(ann)
	back := s.missed(ann, offer)
	bobs := s.offered(bob)
	status := s.flows[bob].status.(contract.EntryStatus)
	status.OfferSent = true
	s.flows[bob].status = status
	back()
	require.Len(t, s.check().Differences, 2)
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, []contract.HoldState{contract.HoldLapsed, contract.HoldOffered}, []contract.HoldState{s.state(offer), s.state(bobs)})
	require.Equal(t, [4]int64{1, 0, 1, 0}, s.parts())
}

// An offer that ended without a text, whose end Redis has lost, is told again: nothing of it
// was promised.
func TestALostEndOfAnUntoldOfferIsToldAgain(t *testing.T) {
	s := newShelf(t, 1)
	ann := s.waits("ann")
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
	require.NoError(t, err)
	must(s.gate.AdoptOffer(t.Context(), s.sku, e.HoldID))
	status := s.flows[ann].status.(contract.EntryStatus)
	status.HoldID = e.HoldID
	s.flows[ann].status = status
	s.closed()
	require.True(t, s.check().Opened)
	require.Equal(t, 1, s.pass(contract.ReconcileInput{}).Repaired)
	items := must(s.gate.Drain(t.Context(), s.sku, 10)).Items
	require.Len(t, items, 1)
	require.Equal(t, [2]string{ann, e.HoldID}, [2]string{items[0].EntryID, items[0].HoldID})
}

// A rebuild learns who was told since: their units would be kept up to offer.max_age, and
// nobody else's offer goes before one that was told.
func TestARebuildKnowsWhoWasTold(t *testing.T) {
	s := newShelf(t, 1)
	ann := s.waits("ann")
	back := s.snapshot()
	offer := s.offered(ann)
	status := s.flows[ann].status.(contract.EntryStatus)
	until := time.Now().Add(10 * time.Minute)
	status.OfferSent, status.OfferUntil = true, &until
	s.flows[ann].status = status
	back()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Equal(t, []string{ann + " was told of the offer " + offer + ", the gate did not know"}, report.Differences)
	require.False(t, s.record(offer).ToldAt.IsZero())
	require.WithinDuration(t, until, s.record(offer).Deadline, time.Millisecond)
	require.Empty(t, must(s.gate.Drain(t.Context(), s.sku, 10)).Items, "its entry knows")
	s.nothingLeft()
}

// Redis has lost nothing. One line of a cart was let go while another did not answer: what
// the cart says of itself is nothing of this line, whose unit was offered to somebody else.
func TestALineOfACartIsNotTheCart(t *testing.T) {
	s := newShelf(t, 1)
	id := s.dead()
	require.Eventually(t, func() bool {
		must(s.gate.Drain(t.Context(), s.sku, 1)) // which ends leases first
		return s.state(id) == contract.HoldSwept
	}, 10*time.Second, 50*time.Millisecond)
	s.opens(id, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: id, State: contract.HoldHeld, Person: "p-" + id, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		Lines:      []contract.Line{{SKU: "ARMCHAIR", Quantity: 1}, {SKU: "BENCH", Quantity: 1}, {SKU: s.sku, Quantity: 1}},
		LineStates: []contract.HoldState{contract.HoldHeld, contract.HoldRefused, contract.HoldReleased},
	}
	offer := s.offered(s.waits("ann"))
	s.closed()
	report := s.check()
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	s.closed()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, []contract.HoldState{contract.HoldSwept, contract.HoldOffered}, []contract.HoldState{s.state(id), s.state(offer)})
}

// mute are workflows whose tasks fail: they answer no query.
type mute struct {
	*shelf
	ids   []string
	asked *int
	err   error
}

func (m mute) Status(ctx context.Context, id string, out any) error {
	m.mu.Lock()
	*m.asked++
	m.mu.Unlock()
	for _, one := range m.ids {
		if one == id {
			return m.err
		}
	}
	return m.shelf.Status(ctx, id, out)
}

func (s *shelf) checkAmong(books mute) (contract.ReconcileReport, error) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	check := &Reconciles{Guard: Guard{Waker: s}, Gate: s.gate, Books: books, Workflows: s}
	env.RegisterActivity(check)
	var report contract.ReconcileReport
	out, err := env.ExecuteActivity(check.CheckAndOpen, SKURef{SKU: s.sku})
	if err == nil {
		err = out.Get(&report)
	}
	return report, err
}

// A workflow whose tasks fail keeps nothing closed; the report names it, and what its door
// may have promised is kept for a minute. A Temporal that does not answer is waited for.
func TestAWorkflowThatAnswersNobodyKeepsNothingClosed(t *testing.T) {
	s := newShelf(t, 2)
	hold, ann := s.dead(), s.waits("ann")
	s.opens(hold, contract.HoldWorkflow)
	require.NotEmpty(t, s.offered(ann))
	s.flows[ann].state = "waiting"
	s.closed()
	for _, err := range []error{serviceerror.NewUnavailable("away"), serviceerror.NewNamespaceNotFound("shop")} {
		_, err := s.checkAmong(mute{s, []string{hold, ann}, new(int), err})
		require.Error(t, err)
	}
	for _, err := range []error{
		serviceerror.NewQueryFailed("it panics"), serviceerror.NewWorkflowNotReady("its task has failed"), serviceerror.NewDeadlineExceeded("late"),
	} {
		s.closed()
		asked := 0
		report, err := s.checkAmong(mute{s, []string{hold, ann}, &asked, err})
		require.NoError(t, err)
		require.True(t, report.Opened)
		require.Equal(t, []string{
			hold + " answers no question: look at its failed tasks in Temporal", ann + " answers no question: look at its failed tasks in Temporal",
		}, report.Alarms)
		require.Equal(t, 1+2*2, asked, "the book, and each of them twice")
		require.Greater(t, s.leaseOf(hold), time.Now().Add(50*time.Second))
	}
}

// Redis has lost that very many holds were adopted, and their worker is busy: it is waited
// for. Opened without their word, their units would be free in a minute.
func TestABusyWorkerIsWaitedFor(t *testing.T) {
	s := newShelf(t, 3*mostLate)
	var ids []string
	for range 3 * mostLate {
		id := s.dead()
		s.opens(id, contract.HoldWorkflow).status = contract.HoldStatus{
			HoldID: id, State: contract.HoldHeld, Person: "p-" + id, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, CreatedAt: time.Now(),
		}
		ids = append(ids, id)
	}
	s.closed()
	late := serviceerror.NewDeadlineExceeded("late")
	_, err := s.checkAmong(mute{s, ids[:mostLate/2+1], new(int), late})
	require.Error(t, err)
	report, err := s.checkAmong(mute{s, ids[:1], new(int), late})
	require.NoError(t, err)
	require.False(t, report.Opened)
	require.Len(t, report.Differences, 3*mostLate-1)
}

// Offers whose text waits for the morning, or for its turn, are very many, and need no
// question each.
func TestOffersThatWaitForTheirTextNeedNoQuestion(t *testing.T) {
	const people = 20
	s := newShelf(t, people)
	for i := range people {
		ann := s.waits(s.id(contract.HoldID))
		e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
		require.NoError(t, err)
		if i%2 == 0 {
			continue // its entry does not know yet
		}
		must(s.gate.AdoptOffer(t.Context(), s.sku, e.HoldID))
		status := s.flows[ann].status.(contract.EntryStatus)
		status.State, status.HoldID, status.Generation = contract.EntryOffered, e.HoldID, e.Generation
		s.flows[ann].state, s.flows[ann].status = "offered", status
	}
	s.closed()
	asked := 0
	report, err := s.checkAmong(mute{s, nil, &asked, nil})
	require.NoError(t, err)
	require.True(t, report.Opened)
	require.Equal(t, 1, asked, "the book")
}

// A check that is still on its way when a rebuild has begun opens nothing beside it.
func TestACheckOpensNothingBesideARebuild(t *testing.T) {
	s := newShelf(t, 2)
	id := s.dead()
	s.closed()
	server := replID(t, s)
	must(s.gate.Rebuilding(server).RebuildBegin(t.Context(), s.sku, redis.RebuildStart{}))
	require.Equal(t, redis.Moved, must(s.gate.Renew(t.Context(), s.sku, server, []string{id})).Verdict)
	require.Equal(t, redis.Moved, must(s.gate.Open(t.Context(), redis.OpenRequest{SKU: s.sku, ReplID: server, Epoch: 1})).Verdict)
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
}

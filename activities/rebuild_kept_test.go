package activities

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

func (s *shelf) record(id string) redis.Hold {
	s.t.Helper()
	h, ok, err := s.gate.ReadHold(s.t.Context(), s.sku, id)
	require.NoError(s.t, err)
	require.True(s.t, ok, id)
	return h.Hold
}

// What a record of an emptied Redis has again: deadline, extension, cart and birth of a
// hold, deadline and telling of an offer, payment and marks of a sale.
func TestARebuiltRecordIsWhole(t *testing.T) {
	s := newShelf(t, 4)
	cart := []contract.Line{{SKU: s.sku, Quantity: 1}, {SKU: "VASE", Quantity: 2}}
	held, sold := s.held(), s.held()
	born, until := time.Now().Add(-3*time.Minute).Truncate(time.Millisecond).UTC(), time.Now().Add(7*time.Minute).Truncate(time.Millisecond).UTC()
	status := s.flows[held].status.(contract.HoldStatus)
	status.Lines, status.Extended, status.CreatedAt, status.ExpiresAt = cart, true, born, until
	s.flows[held].status = status
	s.sells(sold)
	f := s.opens("payment_x", contract.PaymentWorkflow)
	f.state, f.status = contract.PaymentRefundReported, contract.PaymentStatus{PaymentID: "payment_x", HoldID: sold, PaymentRef: "pi_second", State: contract.PaymentRefundReported}
	for range 2 {
		s.held()
	}
	told, untold := s.waits("ann"), s.waits("bob")
	s.restock(2)
	offer, other := s.offered(told), s.offered(untold)
	entry := s.flows[told].status.(contract.EntryStatus)
	entry.OfferSent = true
	s.flows[told].status = entry

	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	h := s.record(held)
	require.Equal(t, []any{true, born, until, cart}, []any{h.Extended, h.CreatedAt, h.Deadline, h.Cart})
	h = s.record(sold)
	require.Equal(t, "pay_"+sold, h.PaymentRef)
	require.Equal(t, []string{"pi_second"}, h.Refunded, "a payment that goes back sells nothing")
	require.WithinDuration(t, *s.flows[sold].status.(contract.HoldStatus).EndedAt, h.EndedAt, time.Millisecond)
	h = s.record(offer)
	require.WithinDuration(t, *entry.OfferUntil, h.Deadline, time.Millisecond)
	require.False(t, h.ToldAt.IsZero(), "its text went out")
	require.True(t, s.record(other).ToldAt.IsZero())
	sku, _, err := s.gate.LookupSKU(t.Context(), contract.SKUNumber(s.sku))
	require.NoError(t, err)
	require.Equal(t, s.sku, sku, "doors find it by its number")
	s.nothingLeft()
}

// A sale that a Payment has made after the hold had expired says so, for the shop may
// have to know.
func TestARetakenSaleStaysOne(t *testing.T) {
	s := newShelf(t, 2)
	id := s.held()
	s.closes(id, "expired", s.flows[id].status)
	s.forgets(id)
	s.opens("payment_x", contract.PaymentWorkflow)
	now := time.Now()
	s.closes("payment_x", contract.PaymentSold, contract.PaymentStatus{
		PaymentID: "payment_x", HoldID: id, PaymentRef: "pi", State: contract.PaymentSold,
		Sale: &contract.PaymentSale{Person: "ann", CreatedAt: now, Retaken: true, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, SoldAt: []time.Time{now}},
	})
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.True(t, s.record(id).Retaken)
	require.Equal(t, [4]int64{1, 0, 0, 1}, s.parts())
}

// Without the fence a rebuild cannot tell one Redis from another.
func TestNothingIsRebuiltWithoutTheFence(t *testing.T) {
	s := newShelf(t, 1)
	s.gate = redis.New(s.rdb, redis.Options{
		Lease: 2 * time.Second, RecordRetention: time.Hour, SaleRetention: time.Hour, OfferMaxAge: time.Hour, FenceOff: true,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	s.flushes()
	report := s.rebuild(contract.ReconcileInput{})
	require.False(t, report.Opened)
	require.Len(t, report.Alarms, 1)
	require.Contains(t, report.Alarms[0], "without the fence")
	require.Zero(t, s.rdb.DBSize(t.Context()).Val(), "nothing is written")
}

// Who left while their hold runs on needs no workflow any more.
func TestAnEntryThatHasLeftIsNoDifference(t *testing.T) {
	s := newShelf(t, 1)
	ann := s.waits("ann")
	offer := s.offered(ann)
	s.presses(ann, offer, "ann")
	_, err := s.gate.Leave(t.Context(), redis.LeaveRequest{SKU: s.sku, EntryID: ann, State: contract.EntryLeft, Actor: "shopper"})
	require.NoError(t, err)
	s.closes(ann, "left", s.flows[ann].status)
	s.forgets(ann)
	s.closed()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
}

// Leases that nobody has adopted end by themselves: however many, they are no missing
// owners.
func TestLeasesAreNoMissingOwners(t *testing.T) {
	s := newShelf(t, 8)
	for range 8 {
		id := s.id(contract.HoldID)
		_, err := s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
		require.NoError(t, err)
	}
	s.closed()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Eventually(t, func() bool { return s.parts() == [4]int64{8, 0, 0, 0} }, 10*time.Second, time.Millisecond)
}

// A live entry of an older Redis whose workflow has closed since leaves the line, and its
// offer passes on.
func TestAnEntryThatHasClosedSinceLeavesTheLine(t *testing.T) {
	s := newShelf(t, 0)
	ann, bob := s.waits("ann"), s.waits("bob")
	s.restock(1)
	s.offered(ann)
	back := s.snapshot()
	_, err := s.gate.Leave(t.Context(), redis.LeaveRequest{SKU: s.sku, EntryID: ann, State: contract.EntryLeft, Actor: "shopper"})
	require.NoError(t, err)
	s.closes(ann, "left", s.flows[ann].status)
	s.flows[bob].state = "offered"
	s.offered(bob)
	back()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, ann)
	require.NoError(t, err)
	require.False(t, e.State.Live())
	require.Equal(t, [4]int64{1, 0, 1, 0}, s.parts())
	s.nothingLeft()
}

// A payment that goes back, or went, sells nothing, however far it had come when Redis
// forgot its mark.
func TestMarksOfEveryRefundAreRebuilt(t *testing.T) {
	for _, state := range []string{contract.PaymentRefundPending, contract.PaymentRefundReported, contract.PaymentRefundSettled} {
		s := newShelf(t, 2)
		id := s.held()
		s.opens("payment_x", contract.PaymentWorkflow)
		s.closes("payment_x", state, contract.PaymentStatus{PaymentID: "payment_x", HoldID: id, PaymentRef: "pi_back", State: state, Reference: "re_1"})
		s.flushes()
		require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
		out, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: id, PaymentRef: "pi_back"})
		require.NoError(t, err)
		require.Equal(t, redis.Refunded, out.Verdict, state)
	}
}

// An offer that was pressed since is no offer any more: nobody is told of it.
func TestAPressedOfferIsNotToldAgain(t *testing.T) {
	s := newShelf(t, 0)
	ann := s.waits("ann")
	s.restock(1)
	back := s.snapshot()
	offer := s.offered(ann)
	s.presses(ann, offer, "ann")
	s.flows[ann].state = "holding"
	back()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, contract.HoldHeld, s.state(offer))
	out, err := s.gate.Drain(t.Context(), s.sku, 10)
	require.NoError(t, err)
	for _, item := range out.Items {
		require.NotEqual(t, redis.ItemOffer, item.Kind)
	}
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
}

// People whose workflow has not begun yet are no missing owners: their start is in the
// outbox, and is handed out again.
func TestJoinsThatNobodyHasHeardOfStay(t *testing.T) {
	s := newShelf(t, 0)
	joined := map[string]bool{}
	for range 8 {
		id := s.id(contract.EntryID)
		_, err := s.gate.Join(t.Context(), redis.JoinRequest{SKU: s.sku, EntryID: id, Person: "p-" + id, Units: 1, Sealed: []byte("x")})
		require.NoError(t, err)
		joined[id] = true
	}
	s.closed()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Eventually(t, func() bool { // a start is due some seconds after the join
		out, err := s.gate.Drain(t.Context(), s.sku, 10)
		require.NoError(t, err)
		for _, item := range out.Items {
			require.Equal(t, redis.ItemStart, item.Kind)
			delete(joined, item.EntryID)
		}
		return len(joined) == 0
	}, 20*time.Second, 10*time.Millisecond)
}

// Only holds that ended lately are put in again: there may be very many.
func TestEndingsOfLongAgoAreLeftOut(t *testing.T) {
	s := newShelf(t, 2)
	old, late := s.held(), s.held()
	s.releases(old)
	s.releases(late)
	s.flows[old].ended = time.Now().Add(-2 * time.Hour)
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, []contract.HoldState{"", contract.HoldReleased}, []contract.HoldState{s.state(old), s.state(late)})
	require.Equal(t, [4]int64{2, 0, 0, 0}, s.parts())
}

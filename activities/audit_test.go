package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// audited passes until the book knows what was sold until now.
func (s *shelf) audited(sold int64) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.pass(contract.ReconcileInput{})
		return s.book.Audit.Sold == sold
	}, 10*time.Second, time.Millisecond)
}

func counted(s *shelf) redis.Counters {
	c, _, err := s.gate.Snapshot(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	return c
}

// forgets is Temporal after the retention of these workflows.
func (s *shelf) forgets(ids ...string) {
	for _, id := range ids {
		require.False(s.t, s.flows[id].open)
		delete(s.flows, id)
	}
}

// What was sold is right after Redis has lost it and Temporal has forgotten who sold it:
// sales, units that came back, a sale that was undone.
func TestASaleOutlivesItsWorkflow(t *testing.T) {
	s := newShelf(t, 9)
	s.auditAge = time.Millisecond
	a, b, c, undone := s.held(), s.held(), s.held(), s.held()
	for _, id := range []string{a, b, c} {
		s.sells(id)
	}
	_, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: undone, PaymentRef: "pi_u"})
	require.NoError(t, err)
	_, err = s.gate.Unconfirm(t.Context(), s.sku, undone, "pi_u", "checkout")
	require.NoError(t, err)
	back := contract.StockEvent{EventID: "back", Kind: contract.StockReturn, HoldID: c, ReturnID: "r", Units: 1, Resell: true}
	out, err := s.gate.Stock(t.Context(), s.sku, back)
	require.NoError(t, err)
	s.book.Returned, s.book.DecidedN = 1, out.N
	s.audited(3)
	s.forgets(a, b)
	d := s.held()
	s.sells(d) // after the audit: found by its Hold, as c is, which the audit has too
	want := s.counters()
	for range 2 {
		s.flushes()
		require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
		got := s.counters()
		want.Epoch, want.Generation = got.Epoch, got.Generation
		require.Equal(t, want, got)
		s.nothingLeft()
	}
}

// An audit is told once, whatever repeats it, and costs a SKU nothing that sells
// nothing.
func TestAnAuditIsToldOnce(t *testing.T) {
	s := newShelf(t, 3)
	s.auditAge = time.Millisecond
	s.pass(contract.ReconcileInput{})
	require.Zero(t, s.audits)
	id := s.held()
	s.sells(id)
	s.pass(contract.ReconcileInput{DryRun: true})
	require.Zero(t, s.audits)
	s.audited(1)
	told, until := s.audits, s.book.Audit.Until
	for range 3 {
		s.pass(contract.ReconcileInput{})
	}
	require.Equal(t, told, s.audits)
	require.Equal(t, until, s.book.Audit.Until)
	s.auditAge = 10 * time.Minute
	s.sells(s.held())
	s.pass(contract.ReconcileInput{})
	require.Equal(t, told, s.audits, "a sale of this minute is not audited yet")
}

// A sale whose Hold or Payment is open is not audited: it may not have heard of it, and
// would make it again at a gate that was rebuilt. It counts once all the same.
func TestAnUnheardSaleIsNotAudited(t *testing.T) {
	for name, opens := range map[string]func(s *shelf, id string){
		"its Hold": func(*shelf, string) {},
		"its Payment": func(s *shelf, id string) {
			s.closes(id, "expired", s.flows[id].status)
			f := s.opens("payment_x", contract.PaymentWorkflow)
			f.state, f.status = contract.PaymentDeciding, contract.PaymentStatus{PaymentID: "payment_x", HoldID: id, State: contract.PaymentDeciding}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 5)
			s.auditAge = time.Millisecond
			heard, unheard := s.held(), s.held()
			s.sells(heard)
			now := func() time.Time { return counted(s).AsOf }
			for began := now(); !now().After(began); { // the gate's clock counts milliseconds
			}
			out, err := s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: unheard, PaymentRef: "pi"})
			require.NoError(t, err)
			opens(s, unheard)
			s.audited(1)
			require.True(t, s.book.Audit.Until.Before(out.Hold.EndedAt))
			s.forgets(heard)
			s.flushes()
			require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
			if name == "its Hold" {
				_, err = s.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: s.sku, HoldID: unheard, PaymentRef: "pi"})
				require.NoError(t, err)
				require.Equal(t, [4]int64{3, 0, 0, 2}, s.parts())
			}
		})
	}
}

// A sale that a Hold and its Payment report counts once, also when the second closes
// long after the first was audited and forgotten, or is asked again.
func TestASaleOfHoldAndPaymentCountsOnce(t *testing.T) {
	s := newShelf(t, 5)
	s.auditAge = time.Millisecond
	id := s.held()
	status := s.flows[id].status.(contract.HoldStatus)
	s.sells(id)
	s.audited(1)
	s.forgets(id)
	h, ok, err := s.gate.ReadHold(t.Context(), s.sku, id)
	require.NoError(t, err)
	require.True(t, ok)
	s.opens("payment_x", contract.PaymentWorkflow)
	s.closes("payment_x", contract.PaymentSold, contract.PaymentStatus{
		PaymentID: "payment_x", HoldID: id, PaymentRef: h.Hold.PaymentRef, State: contract.PaymentSold,
		Sale: &contract.PaymentSale{Person: status.Person, CreatedAt: status.CreatedAt, Lines: status.Lines, SoldAt: []time.Time{h.Hold.EndedAt}},
	})
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{4, 0, 0, 1}, s.parts())
	require.Equal(t, contract.HoldSold, s.state(id))
	s.nothingLeft()
}

// A Payment has sold a hold that had expired, and its Hold is forgotten. Of a cart each
// line counts by its own gate's time.
func TestARetakenSaleIsFoundByItsPayment(t *testing.T) {
	s := newShelf(t, 5)
	s.auditAge = time.Millisecond
	id := s.held()
	s.sells(s.held())
	s.audited(1)
	audit := s.book.Audit.Until
	s.closes(id, "expired", s.flows[id].status)
	s.forgets(id)
	for i, at := range []time.Time{audit.Add(time.Second), audit} {
		s.flushes()
		delete(s.flows, "payment_x")
		s.opens("payment_x", contract.PaymentWorkflow)
		s.closes("payment_x", contract.PaymentSold, contract.PaymentStatus{
			PaymentID: "payment_x", HoldID: id, PaymentRef: "pi", State: contract.PaymentSold,
			Sale: &contract.PaymentSale{
				Person: "ann", CreatedAt: audit.Add(-time.Minute), Retaken: true,
				Lines: []contract.Line{{SKU: "BENCH", Quantity: 3}, {SKU: s.sku, Quantity: 1}}, SoldAt: []time.Time{audit.Add(time.Hour), at},
			},
		})
		s.book.Audit.Sold = int64(1 + i) // the second time the audit has this line
		require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
		require.Equal(t, [4]int64{3, 0, 0, 2}, s.parts())
	}
}

// An older Redis that Temporal no longer helps out: what came after it is in the book.
func TestAnOlderRedisThanTemporalRemembers(t *testing.T) {
	s := newShelf(t, 6)
	s.auditAge = time.Millisecond
	s.sells(s.held())
	back := s.snapshot()
	late := s.held()
	s.sells(late)
	s.audited(2)
	s.forgets(late)
	want := s.parts()
	back()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, want, s.parts())
	s.nothingLeft()
}

// A Hold that closed as sold while its gate was an older one: the sale stands, and its
// unit is nobody else's.
func TestASaleThatTheGateForgotIsMade(t *testing.T) {
	s := newShelf(t, 3)
	s.auditAge = time.Millisecond
	id := s.held()
	status := s.flows[id].status.(contract.HoldStatus)
	at := time.Now().Add(-time.Hour)
	status.State, status.PaymentRef, status.EndedAt = contract.HoldSold, "pi", &at
	s.closes(id, "sold", status)
	report := s.pass(contract.ReconcileInput{})
	require.Equal(t, 1, report.Found)
	require.Equal(t, [4]int64{2, 0, 0, 1}, s.parts())
	require.Equal(t, contract.HoldSold, s.state(id))
	s.audited(1)
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{2, 0, 0, 1}, s.parts())
}

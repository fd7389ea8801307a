package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// What was counted away or back stays so.
func TestCorrectionsAreRebuilt(t *testing.T) {
	for _, delta := range []int64{-2, 3} {
		s := newShelf(t, 5)
		out, err := s.gate.Stock(t.Context(), s.sku, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: delta})
		require.NoError(t, err)
		s.book.Corrected, s.book.DecidedN, s.book.Generation = delta, out.N, out.Counters.Generation
		s.sells(s.held())
		want := s.counters()
		s.flushes()
		require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
		got := s.counters()
		want.Epoch = got.Epoch
		require.Equal(t, want, got)
		s.nothingLeft()
	}
}

// Units came in, an offer of them was made, and the book had not heard yet: the offer's
// generation is the SKU's, or nobody would be offered a unit of the next one.
func TestALaterGenerationThanTheBooks(t *testing.T) {
	s := newShelf(t, 0)
	ann := s.waits("ann")
	s.restock(1)
	before := s.book
	s.restock(1)
	bob := s.waits("bob")
	s.offered(ann)
	s.offered(bob)
	generation := counted(s).Generation
	require.Equal(t, before.Generation+1, generation)
	s.book = before
	s.book.Pending = []contract.StockEvent{{EventID: "e4", Kind: contract.StockRestock, Units: 1}}
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, generation, counted(s).Generation)
}

// A SKU's time goes on from the last audit, also on a machine whose clock is behind: else
// its next sale would be taken for one that the audit has.
func TestTheTimeOfASKUGoesOnFromItsAudit(t *testing.T) {
	s := newShelf(t, 3)
	s.sells(s.held())
	ahead := time.Now().Add(time.Hour)
	s.book.Audit = contract.StockAudit{Until: ahead, Sold: 1, Epoch: 1}
	for sold := int64(2); sold <= 3; sold++ {
		s.flushes()
		require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
		id := s.held()
		s.sells(id)
		require.True(t, s.record(id).EndedAt.After(ahead))
		require.Equal(t, [4]int64{3 - sold, 0, 0, sold}, s.parts())
	}
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{0, 0, 0, 3}, s.parts())
}

// A record and the counters are of one instant: a sale that the record does not have was
// not counted, whenever it was, though the records of older sales are gone.
func TestASaleThatTheRecordDoesNotHaveCounts(t *testing.T) {
	s := newShelf(t, 5)
	old := s.held()
	s.sells(old)
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("holds"), old).Err()) // purged
	s.forgets(old)
	id := s.held()
	status, at := s.flows[id].status.(contract.HoldStatus), time.Now().Add(-time.Hour)
	status.State, status.PaymentRef, status.EndedAt = contract.HoldSold, "pi", &at
	s.closes(id, "sold", status)
	s.closed()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{3, 0, 0, 2}, s.parts())
}

// The stock is lost and the ledger is not: its last line has counted a sale whose record
// is lost as well.
func TestASaleThatTheLedgerHasCountedCountsOnce(t *testing.T) {
	s := newShelf(t, 4)
	id := s.held()
	s.sells(id)
	now := func() time.Time { return counted(s).AsOf }
	for began := now(); !now().After(began.Add(2 * time.Millisecond)); { // of the last millisecond a sale counts rather twice than not at all
	}
	s.held() // a line after it
	require.NoError(t, s.rdb.Del(t.Context(), s.key("stock")).Err())
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("holds"), id).Err())
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{3, 1, 0, 1}, s.parts())
	s.nothingLeft()
}

// The stock is lost and the ledger is not: its last line knows a generation that the book
// has not heard of, and no record names.
func TestTheGenerationOfTheLastLineIsKept(t *testing.T) {
	s := newShelf(t, 1)
	book := s.book
	s.restock(1)
	s.book = book
	s.book.Pending = []contract.StockEvent{{EventID: "e2", Kind: contract.StockRestock, Units: 1}}
	generation := counted(s).Generation
	require.Equal(t, book.Generation+1, generation)
	require.NoError(t, s.rdb.Del(t.Context(), s.key("stock")).Err())
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, generation, counted(s).Generation)
	require.Equal(t, [4]int64{2, 0, 0, 0}, s.parts())
}

// A count of the shop's that is older than the last one is outdated, also after a loss.
func TestTheVersionOfTheLastLevelIsRebuilt(t *testing.T) {
	s := newShelf(t, 3)
	s.book.Level = 7
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, int64(7), counted(s).LevelVersion)
	out, err := s.gate.Stock(t.Context(), s.sku, contract.StockEvent{EventID: "count", Kind: contract.StockLevel, Units: 9, Version: 6})
	require.NoError(t, err)
	require.False(t, out.Applied)
	require.Equal(t, [4]int64{3, 0, 0, 0}, s.parts())
}

// A Payment whose sale was undone, which Temporal's list does not have yet, sold nothing.
func TestASaleThatWasUndoneIsNone(t *testing.T) {
	s := newShelf(t, 2)
	id := s.held()
	s.closes(id, "expired", s.flows[id].status)
	s.forgets(id)
	now := time.Now()
	s.opens("payment_x", contract.PaymentWorkflow)
	s.closes("payment_x", contract.PaymentSold, contract.PaymentStatus{
		PaymentID: "payment_x", HoldID: id, PaymentRef: "pi", State: contract.PaymentRefundPending,
		Sale: &contract.PaymentSale{Person: "ann", CreatedAt: now, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, SoldAt: []time.Time{now}},
	})
	s.flushes()
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{2, 0, 0, 0}, s.parts())
}

// The gate has decided an event that the book has not heard of, and its ledger is gone:
// what it decides next has a later number, or the book would take it for a repeat.
func TestNumbersGoOnAfterWhatTheGateHasDecided(t *testing.T) {
	s := newShelf(t, 1)
	book := s.book
	for range 3 {
		s.restock(1)
	}
	decided := s.book.DecidedN
	s.book = book
	for _, id := range []string{"e2", "e3", "e4"} {
		s.book.Pending = append(s.book.Pending, contract.StockEvent{EventID: id, Kind: contract.StockRestock, Units: 1})
	}
	require.NoError(t, s.rdb.Del(t.Context(), s.key("stock"), s.key("ledger")).Err())
	require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
	require.Equal(t, [4]int64{4, 0, 0, 0}, s.parts())
	out, err := s.gate.Stock(t.Context(), s.sku, contract.StockEvent{EventID: "next", Kind: contract.StockRestock, Units: 1})
	require.NoError(t, err)
	require.Greater(t, out.N, decided)
}

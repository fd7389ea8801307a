package activities

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/redis"
)

func (s *shelf) check() contract.ReconcileReport {
	s.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	check := &Reconciles{Guard: Guard{Waker: s}, Gate: s.gate, Books: s, Workflows: s}
	env.RegisterActivity(check)
	out, err := env.ExecuteActivity(check.CheckAndOpen, SKURef{SKU: s.sku})
	require.NoError(s.t, err)
	var report contract.ReconcileReport
	require.NoError(s.t, out.Get(&report))
	return report
}

// sellsOn is a SKU at work: a hold whose workflow is about to begin, and units of which
// the book has yet to hear. A comparison would take either for a loss.
func (s *shelf) sellsOn() {
	id := s.id(contract.HoldID)
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	_, err = s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: time.Hour})
	require.NoError(s.t, err)
	_, err = s.gate.Stock(s.t.Context(), s.sku, contract.StockEvent{EventID: "e-" + id, Kind: contract.StockRestock, Units: 1})
	require.NoError(s.t, err)
}

func (s *shelf) reopens() {
	base, err := s.gate.Open(s.t.Context(), redis.OpenRequest{SKU: s.sku, ReplID: replID(s.t, s), Epoch: 1})
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, base.Verdict)
}

// ledgerLines tell whether anything was written.
func (s *shelf) ledgerLines() int64 { return s.rdb.XLen(s.t.Context(), s.key("ledger")).Val() }

// Two doors have met a closed gate. The check of the second begins when the first one's
// has opened it and the SKU sells again: it finds it open, and no difference.
func TestACheckOfASKUThatHasReopened(t *testing.T) {
	s := newShelf(t, 5)
	s.held()
	s.closed()
	require.True(t, s.check().Opened)
	s.sellsOn()
	lines := s.ledgerLines()
	report := s.check()
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.False(t, report.Rebuildable)
	require.Equal(t, lines, s.ledgerLines(), "nothing is written")
}

// meanwhile is what happens in the middle of a comparison, at its first look at Temporal.
func (s *shelf) meanwhile(do func()) {
	var first sync.Once
	s.onList = func() { first.Do(do) }
}

// The SKU is opened by somebody else in the middle of a comparison, which then finds
// what moved.
func TestACheckOfASKUThatReopensMeanwhile(t *testing.T) {
	s := newShelf(t, 5)
	s.held()
	s.closed()
	reopened := false
	s.meanwhile(func() {
		s.reopens()
		s.sellsOn()
		reopened = true
	})
	report := s.check()
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.True(t, reopened)
}

// It is opened and closed once more in the middle of a comparison: it is compared anew,
// and what it did meanwhile is found.
func TestACheckOfASKUThatReopensAndCloses(t *testing.T) {
	s := newShelf(t, 5)
	s.held()
	s.closed()
	s.meanwhile(func() {
		s.reopens()
		s.sellsOn()
		require.NoError(t, s.rdb.HDel(t.Context(), s.key("stock"), "fence").Err()) // as a script that fails
	})
	report := s.check()
	require.False(t, report.Opened)
	require.Len(t, report.Differences, 2, "the hold without a workflow, and the units")
	require.True(t, report.Rebuildable)
}

// A rebuild of a SKU that is open writes nothing, and says that it is open.
func TestARebuildOfAnOpenSKU(t *testing.T) {
	s := newShelf(t, 5)
	s.held()
	s.sellsOn()
	before, lines := s.parts(), s.ledgerLines()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Empty(t, report.Alarms)
	require.Equal(t, before, s.parts())
	require.Equal(t, lines, s.ledgerLines())
	require.Zero(t, s.book.Epoch)
}

// An older Redis has forgotten one sale and nothing else, and Temporal has forgotten most of
// those that it knows: the check does not take the one for another. Neither does it take it
// for a hold that somebody pays for, or that has expired.
func TestACheckFindsEveryLostSale(t *testing.T) {
	sold := func(s *shelf) string {
		id := s.held()
		s.sells(id)
		return id
	}
	pays := func(s *shelf, id string, sale *contract.PaymentSale) {
		f := s.opens("payment_"+id, contract.PaymentWorkflow)
		f.open, f.state = false, string(contract.PaymentSold)
		f.status = contract.PaymentStatus{HoldID: id, PaymentRef: "pay_" + id, State: contract.PaymentSold, Sale: sale}
	}
	for name, lose := range map[string]func(s *shelf) (lost string, back func()){
		"held and sold": func(s *shelf) (string, func()) {
			back := s.snapshot()
			return sold(s), back
		},
		"sold, and its Hold is about to close": func(s *shelf) (string, func()) {
			id := s.held()
			back := s.snapshot()
			s.sells(id)
			s.flows[id].open = true
			return id, back
		},
		"retaken": func(s *shelf) (string, func()) {
			id := s.held()
			_, err := s.gate.Release(s.t.Context(), redis.ReleaseRequest{SKU: s.sku, HoldID: id, Reason: contract.ReasonShop})
			require.NoError(s.t, err)
			status := s.flows[id].status.(contract.HoldStatus)
			status.State = contract.HoldReleased
			s.closes(id, string(contract.HoldReleased), status)
			back := s.snapshot()
			now := time.Now()
			pays(s, id, &contract.PaymentSale{
				Person: status.Person, CreatedAt: status.CreatedAt, Retaken: true, Lines: status.Lines, SoldAt: []time.Time{now},
			})
			return id, back
		},
		"audited, and Temporal has forgotten it": func(s *shelf) (string, func()) {
			back := s.snapshot()
			id := sold(s)
			delete(s.flows, id)
			s.book.Audit = contract.StockAudit{Until: time.Now(), Sold: 4}
			return "4 were sold by the last audit, Redis knows of 3", back
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 9)
			for range 2 {
				delete(s.flows, sold(s))
			}
			pays(s, sold(s), nil) // it only found the sale made
			s.closed()
			require.True(t, s.check().Opened, "nothing is lost")
			lost, back := lose(s)
			back()
			report := s.check()
			require.False(t, report.Opened)
			require.True(t, report.Rebuildable)
			require.Len(t, report.Differences, 1)
			require.Contains(t, report.Differences[0], lost)
			require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
			require.Equal(t, [4]int64{5, 0, 0, 4}, s.parts())
		})
	}
}

// Lists that do not tell capitals from small letters name the workflows of another SKU, too:
// they are none of this one's, to a pass, to a check and to a rebuild.
func TestAnotherSKUInCapitalsIsAnotherSKU(t *testing.T) {
	s := newShelf(t, 1)
	s.flows[s.held()].sku = s.sku
	s.flows[s.waits("ann")].sku = s.sku
	for _, kind := range []string{contract.HoldWorkflow, contract.WaitlistEntryWorkflow} {
		for _, open := range []bool{true, false} {
			f := s.opens(s.id(contract.HoldID), kind)
			f.open, f.sku, f.state = open, strings.ToUpper(s.sku)+"X", "sold"
		}
	}
	s.nothingLeft()
	s.closed()
	report := s.check()
	require.Empty(t, report.Differences)
	require.True(t, report.Opened)
	s.flushes()
	report = s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened, report)
}

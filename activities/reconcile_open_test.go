package activities

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/redis"
)

// checked is a shelf whose closed SKU is checked.
type checked struct{ *shelf }

func (c checked) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	var sold int64
	for _, f := range c.flows {
		if f.kind == contract.HoldWorkflow && !f.open && f.state == "sold" {
			sold++
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{Count: sold}, nil
}

func (s *shelf) check() contract.ReconcileReport {
	s.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	check := &Reconciles{Guard: Guard{Waker: s}, Gate: s.gate, Books: s, Workflows: checked{s}}
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

package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// shut is a closed SKU as Reconcile finds it: gate, book and workflows.
type shut struct {
	*world
	found    redis.Inspection
	missing  map[string]bool
	outcomes map[string]redis.StockOutcome
	book     *contract.StockBook
	open     map[string][]string // workflow type → ids
	sold     map[string][]string // workflow type → ids of those that sold
	sales    map[string]bool     // holds that the gate knows as sold
	moved    bool                // the server changes before it is opened
	opened   []redis.OpenRequest
	at       time.Time
	rebuilds func() contract.ReconcileReport
}

func newShut(t *testing.T) *shut {
	book := openBook()
	book.Received, book.Corrected, book.DecidedN = 7, -1, 20
	book.Events = []contract.BookEvent{
		{EventID: "e1", Kind: contract.StockRestock, Applied: true, Delta: 5},
		{EventID: "e2", Kind: contract.StockCorrection, Applied: true, Delta: -1},
		{EventID: "e3", Kind: contract.StockCorrection, Reason: "would-oversell"},
	}
	s := &shut{
		world: newWorld(t),
		found: redis.Inspection{ReplID: "r1", Counters: redis.Counters{Received: 7, Corrected: -1, Epoch: 4}, Owned: []string{"hold_2", "entry_1"}},
		outcomes: map[string]redis.StockOutcome{
			"e1": {Applied: true, Delta: 5}, "e2": {Applied: true, Delta: -1}, "e3": {},
		},
		missing: map[string]bool{},
		book:    &book,
		open: map[string][]string{
			contract.HoldWorkflow:          {"hold_1", "hold_2"},
			contract.WaitlistEntryWorkflow: {"entry_1"},
		},
		sold: map[string][]string{
			contract.HoldWorkflow: {"hold_7", "hold_8"}, contract.PaymentWorkflow: {"payment_6", "payment_7"},
		},
		sales: map[string]bool{"hold_6": true, "hold_7": true, "hold_8": true},
	}
	s.RegisterActivity(&activities.Reconciles{Guard: activities.Guard{Waker: s.world}, Gate: s, Books: s, Workflows: s})
	s.rebuilds = func() contract.ReconcileReport { return contract.ReconcileReport{SKU: chair} }
	s.RegisterActivityWithOptions(func(_ context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
		require.Equal(t, chair, in.SKU)
		return s.rebuilds(), nil
	}, activity.RegisterOptions{Name: "Rebuild"})
	return s
}

func (s *shut) Inspect(context.Context, string) (redis.Inspection, error) {
	s.at = s.Now()
	return s.found, nil
}

// Snapshot answers as a gate that is shut until it was opened.
func (s *shut) Snapshot(context.Context, string) (redis.Counters, contract.About, error) {
	if len(s.opened) == 0 || s.moved {
		return redis.Counters{}, contract.About{}, &redis.ClosedError{SKU: chair, ReplID: s.found.ReplID, Missing: s.found.Missing}
	}
	return s.found.Counters, contract.About{}, nil
}

func (s *shut) Moved(_ context.Context, _ string, since redis.Inspection) (bool, error) {
	return s.found.ReplID != since.ReplID, nil
}

func (s *shut) InspectHolds(_ context.Context, _ string, ids []string) (map[string]redis.Hold, error) {
	found := map[string]redis.Hold{}
	for _, id := range ids {
		switch {
		case s.sales[id]:
			found[id] = redis.Hold{ID: id, State: contract.HoldSold}
		case !s.missing[id]:
			found[id] = redis.Hold{ID: id, State: contract.HoldHeld}
		}
	}
	return found, nil
}

func (s *shut) InspectEntries(_ context.Context, _ string, ids []string) (map[string]redis.Entry, error) {
	found := map[string]redis.Entry{}
	for _, id := range ids {
		if !s.missing[id] {
			found[id] = redis.Entry{ID: id, State: contract.EntryWaiting}
		}
	}
	return found, nil
}

func (s *shut) Renew(_ context.Context, _, _ string, ids []string) (redis.Base, error) {
	require.Empty(s.t, ids, "all that are open are adopted")
	return redis.Base{Verdict: redis.OK}, nil
}

func (s *shut) InspectEvents(_ context.Context, _ string, ids []string) (map[string]redis.StockOutcome, error) {
	out := map[string]redis.StockOutcome{}
	for _, id := range ids {
		if o, ok := s.outcomes[id]; ok {
			out[id] = o
		}
	}
	return out, nil
}

func (s *shut) Open(_ context.Context, req redis.OpenRequest) (redis.Base, error) {
	s.opened = append(s.opened, req)
	if s.moved {
		s.found.ReplID = "r2"
	}
	if s.moved = req.ReplID != s.found.ReplID; s.moved {
		return redis.Base{Verdict: redis.Moved}, nil
	}
	return redis.Base{Verdict: redis.OK}, nil
}

func (s *shut) Status(_ context.Context, id string, out any) error {
	if s.book == nil {
		return launch.ErrNoOwner
	}
	if p, ok := out.(*contract.PaymentStatus); ok {
		*p = contract.PaymentStatus{State: contract.PaymentSold, HoldID: "hold_" + id[len("payment_"):]}
		if id == "payment_6" { // the other one found its sale made
			p.Sale = &contract.PaymentSale{Retaken: true}
		}
		return nil
	}
	require.Equal(s.t, "stock.CHAIR", id)
	*out.(*contract.StockBook) = *s.book
	return nil
}

// ListWorkflow answers one workflow a page.
func (s *shut) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	for query, byKind := range map[string]map[string][]string{"ExecutionStatus = 'Running'": s.open, "HoldfastState = 'sold'": s.sold} {
		for kind, ids := range byKind {
			if req.GetQuery() != fmt.Sprintf("WorkflowType = '%s' AND HoldfastSku = 'CHAIR' AND %s", kind, query) {
				continue
			}
			page := len(req.GetNextPageToken())
			res := &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
				{Execution: &commonpb.WorkflowExecution{WorkflowId: ids[page]}},
			}}
			if page+1 < len(ids) {
				res.NextPageToken = make([]byte, page+1)
			}
			return res, nil
		}
	}
	return nil, fmt.Errorf("unexpected query %q", req.GetQuery())
}

func (s *shut) run() contract.ReconcileReport {
	s.ExecuteWorkflow(contract.ReconcileWorkflow, contract.ReconcileInput{SKU: chair, ReopenSeconds: 20})
	require.True(s.t, s.IsWorkflowCompleted())
	require.NoError(s.t, s.GetWorkflowError())
	var report contract.ReconcileReport
	require.NoError(s.t, s.GetWorkflowResult(&report))
	require.Equal(s.t, began.Add(20*time.Second), s.at, "leases end before the check")
	return report
}

func TestReconcileOpensWhatLostNothing(t *testing.T) {
	for name, change := range map[string]func(s *shut){
		"all agrees":                    func(*shut) {},
		"an old outcome was purged":     func(s *shut) { delete(s.outcomes, "e1") },
		"Temporal forgot an old sale":   func(s *shut) { s.sold[contract.HoldWorkflow] = []string{"hold_8"} },
		"a pending event was decided":   func(s *shut) { s.pending(9, redis.StockOutcome{Applied: true, Delta: 9, N: 21}) },
		"an old event was repeated":     func(s *shut) { s.repeated() },
		"a pending event was not":       func(s *shut) { s.book.Pending = []contract.StockEvent{restock("e9", 9)} },
		"a pending correction was made": func(s *shut) { s.pendingCorrection() },
		"a pending level was made":      func(s *shut) { s.pendingLevel() },
		"a pending return was made":     func(s *shut) { s.pendingReturn(3) },
		"a pending return was no good":  func(s *shut) { s.pendingReturn(0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShut(t)
			change(s)
			report := s.run()
			require.Empty(t, report.Differences)
			require.True(t, report.Opened)
			require.Equal(t, []redis.OpenRequest{{SKU: chair, ReplID: "r1", Epoch: 4}}, s.opened)
		})
	}
}

func (s *shut) pending(units int64, out redis.StockOutcome) {
	s.book.Pending = []contract.StockEvent{restock("e9", units)}
	s.outcomes["e9"] = out
	s.found.Counters.Received += out.Delta
}

// repeated: the book has counted the event and forgotten it since.
func (s *shut) repeated() {
	s.book.Pending = []contract.StockEvent{restock("e0", 3)}
	s.outcomes["e0"] = redis.StockOutcome{Applied: true, Delta: 3, N: 2}
}

func (s *shut) pendingCorrection() {
	s.book.Pending = []contract.StockEvent{{EventID: "e9", Kind: contract.StockCorrection, Delta: -2}}
	s.outcomes["e9"] = redis.StockOutcome{Applied: true, Delta: -2, N: 21}
	s.found.Counters.Corrected -= 2
}

func (s *shut) pendingLevel() {
	s.book.Pending = []contract.StockEvent{level("e9", 1, 4, 0)}
	s.outcomes["e9"] = redis.StockOutcome{Applied: true, Delta: -2, N: 21}
	s.found.Counters.Corrected -= 2
}

func (s *shut) pendingReturn(delta int64) {
	s.book.Pending = []contract.StockEvent{returned("e9", "r1", 3, delta > 0)}
	s.outcomes["e9"] = redis.StockOutcome{Applied: true, Delta: delta, N: 21}
	s.found.Counters.Returned += delta
}

func TestReconcileStaysClosed(t *testing.T) {
	for word, change := range map[string]func(s *shut){
		"no book in Temporal":   func(s *shut) { s.book = nil },
		"no book in Temporal ":  func(s *shut) { s.book.Opened = false },
		"Redis has lost":        func(s *shut) { s.found.Missing = true },
		"held is 1":             func(s *shut) { s.found.Problems = []string{"held is 1, the parts add up to 2"} },
		"stock event e1":        func(s *shut) { s.outcomes["e1"] = redis.StockOutcome{Applied: true, Delta: 4} },
		"stock event e3":        func(s *shut) { s.outcomes["e3"] = redis.StockOutcome{Applied: true} },
		"the book has received": func(s *shut) { s.found.Counters.Received = 2 },
		"returned 0":            func(s *shut) { s.found.Counters.Returned = 1 },
		"Redis 7, 0 and -1":     func(s *shut) { s.book.Returned = 2 },
		"and corrected -1":      func(s *shut) { s.found.Counters.Corrected = 0 },
		"hold_2 is open":        func(s *shut) { s.missing["hold_2"] = true },
		"entry_1 is open":       func(s *shut) { s.missing["entry_1"] = true },
		"hold_8 was sold":       func(s *shut) { s.sales["hold_8"] = false },
		"hold_6 was sold":       func(s *shut) { s.sales["hold_6"] = false },
		"by the last audit":     func(s *shut) { s.book.Audit.Sold = 1 },
		"hold_9 is live":        func(s *shut) { s.found.Owned = append(s.found.Owned, "hold_9") },
	} {
		t.Run(word, func(t *testing.T) {
			s := newShut(t)
			change(s)
			report := s.run()
			require.False(t, report.Opened)
			require.Len(t, report.Differences, 1)
			require.Contains(t, report.Differences[0]+" ", word)
			require.Empty(t, s.opened, "nothing is written to a closed gate")
		})
	}
}

func TestReconcileNamesTheLostEvent(t *testing.T) {
	s := newShut(t)
	s.found.Counters.Received = 2
	delete(s.outcomes, "e1")
	require.Equal(t, []string{
		"the book has received 7, returned 0 and corrected -1, Redis 2, 0 and -1", "Redis does not know stock event e1",
	}, s.run().Differences)
}

func TestReconcileLeavesWhatIsNotOurs(t *testing.T) {
	s := newShut(t)
	s.book, s.found.Missing = nil, true
	report := s.run()
	require.False(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Empty(t, s.opened)
}

// Who asks for a check late, when another has opened the gate, waits for nothing: a loss in
// the middle of that pause would be opened before its own has passed.
func TestACheckOfAnOpenGateWaitsForNothing(t *testing.T) {
	s := newShut(t)
	s.opened = []redis.OpenRequest{{SKU: chair, ReplID: "r1", Epoch: 4}}
	waited := false
	s.SetOnTimerScheduledListener(func(string, time.Duration) { waited = true })
	s.RegisterDelayedCallback(func() { s.opened, s.found.ReplID = nil, "r2" }, 19*time.Second)
	s.ExecuteWorkflow(contract.ReconcileWorkflow, contract.ReconcileInput{SKU: chair, ReopenSeconds: 20})
	require.NoError(t, s.GetWorkflowError())
	var report contract.ReconcileReport
	require.NoError(t, s.GetWorkflowResult(&report))
	require.True(t, report.Opened)
	require.False(t, waited)
	require.Len(t, s.opened, 1)
}

// The server changes right before the gate is opened: it is compared anew, and opened on
// the server that it was compared on.
func TestReconcileSeesTheServerChange(t *testing.T) {
	s := newShut(t)
	s.moved = true
	report := s.run()
	require.True(t, report.Opened)
	require.Empty(t, report.Differences)
	require.Equal(t, []redis.OpenRequest{{SKU: chair, ReplID: "r1", Epoch: 4}, {SKU: chair, ReplID: "r2", Epoch: 4}}, s.opened)
}

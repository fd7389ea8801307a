package activities

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// many are held holds of two minutes ago without a workflow, as many as a few pages
// have.
func (s *shelf) many(n int) {
	s.t.Helper()
	for range n {
		id := s.id(contract.HoldID)
		_, err := s.gate.RepairHold(s.t.Context(), s.sku, redis.LostHold{
			ID: id, Person: "p-" + id, Units: 1, CreatedAt: time.Now().Add(-2 * time.Minute), ExpiresAt: time.Now().Add(time.Hour),
		})
		require.NoError(s.t, err)
	}
	st, _, err := s.gate.CompareCounters(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	base, err := s.gate.RepairCount(s.t.Context(), s.sku, redis.PartHeld, int64(n), st.Mended, "a test's")
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, base.Verdict)
}

// brittle is a gate that fails, or does something, when it has mended so many records.
type brittle struct {
	PassGate
	mended, at int
	then       func() error
}

func (b *brittle) RepairGone(ctx context.Context, sku, id string, version int64) (redis.Base, error) {
	if b.mended++; b.mended == b.at {
		if err := b.then(); err != nil {
			return redis.Base{}, err
		}
	}
	return b.PassGate.RepairGone(ctx, sku, id, version)
}

// after is a gate that does something right after it has ended a record.
type after struct {
	PassGate
	then func()
}

func (a after) RepairGone(ctx context.Context, sku, id string, version int64) (redis.Base, error) {
	base, err := a.PassGate.RepairGone(ctx, sku, id, version)
	a.then()
	return base, err
}

// cutOff plays a pass until its gate fails, and answers what its last heartbeat said.
func (s *shelf) cutOff(in contract.ReconcileInput, after int, last *passAt) {
	s.t.Helper()
	env, passes := s.passes()
	passes.Gate = &brittle{PassGate: s.gate, at: after, then: func() error { return errors.New("the worker is killed") }}
	s.attempt(env, in, last, func() {
		_, err := env.ExecuteActivity(passes.LookThrough, in)
		require.ErrorContains(s.t, err, "killed")
	})
}

func (s *shelf) attempt(env *testsuite.TestActivityEnvironment, in contract.ReconcileInput, last *passAt, run func()) {
	if last.Report.SKU != "" {
		env.SetHeartbeatDetails(*last)
	}
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		if details.HasValues() {
			require.NoError(s.t, details.Get(last))
		}
	})
	run()
}

// A pass that was cut off goes on at the page where it was, and its report is of all.
func TestAPassGoesOnWhereItWasCutOff(t *testing.T) {
	const many = 1_700
	s := newShelf(t, many+1)
	s.many(many)
	s.held()
	entry := s.waits("ada")
	in := contract.ReconcileInput{SKU: s.sku, Pass: true, Agree: true}
	var last passAt
	s.cutOff(in, 600, &last)
	require.Zero(t, last.Stage)
	require.NotZero(t, last.Survey.Cursor)
	first := last.Report.Repaired
	require.Greater(t, first, 300)
	require.Less(t, first, 600, "what came after the last page is only missing in the report")
	s.cutOff(in, 700, &last)
	lost := 599 + 699 - last.Report.Repaired
	require.Positive(t, lost)

	env, passes := s.passes()
	var report contract.ReconcileReport
	s.attempt(env, in, &last, func() {
		out, err := env.ExecuteActivity(passes.LookThrough, in)
		require.NoError(t, err)
		require.NoError(t, out.Get(&report))
	})
	require.Equal(t, many-lost, report.Repaired)
	require.Equal(t, many-lost, report.Missing)
	require.Empty(t, report.Alarms)
	require.Equal(t, [4]int64{many + 1, 1, 1, 0}, s.parts())
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, entry)
	require.NoError(t, err)
	s.flows[entry].status = contract.EntryStatus{EntryID: entry, State: contract.EntryOffered, HoldID: e.HoldID}
	s.nothingLeft()
}

// Without an agreement nothing is known of the whole before all pages were read: it
// begins with them anew, and keeps what it has mended in its report.
func TestAPassWithoutAnAgreementCountsAnew(t *testing.T) {
	s := newShelf(t, 104)
	for range 100 {
		s.held()
	}
	s.many(4)
	in := contract.ReconcileInput{SKU: s.sku, Pass: true}
	var last passAt
	s.cutOff(in, 3, &last)
	require.Equal(t, redis.SurveyAt{}, last.Survey)
	env, passes := s.passes()
	s.attempt(env, in, &last, func() {
		out, err := env.ExecuteActivity(passes.LookThrough, in)
		require.NoError(t, err)
		var report contract.ReconcileReport
		require.NoError(t, out.Get(&report))
		require.False(t, report.Braked)
		require.Equal(t, 102, report.Owners)
	})
	require.Equal(t, [4]int64{104, 100, 0, 0}, s.parts())
	s.nothingLeft()
}

// Records that are too young to be ended count for the brake: an outage must not be let
// through in small helpings, as its records grow old.
func TestTheBrakeCountsTheYoung(t *testing.T) {
	s := newShelf(t, 12)
	for range 5 {
		s.held()
	}
	s.many(3)
	for range 2 {
		id := s.id(contract.HoldID)
		_, err := s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
		require.NoError(t, err)
		_, err = s.gate.AdoptHold(t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: time.Hour})
		require.NoError(t, err)
		s.opens(id, contract.HoldWorkflow).unlisted = true
	}
	report := s.pass(contract.ReconcileInput{DryRun: true})
	require.False(t, report.Braked, "the young have owners")
	for id, f := range s.flows {
		if f.unlisted {
			delete(s.flows, id)
		}
	}
	report = s.pass(contract.ReconcileInput{})
	require.True(t, report.Braked)
	require.Equal(t, [4]int64{12, 10, 0, 0}, s.parts())
	report = s.pass(contract.ReconcileInput{Agree: true})
	require.Equal(t, 3, report.Repaired, "an agreement ends none that is young")
}

// However many are missing, a pass asks for no more of them than make it an outage.
func TestTheBrakeAsksForFew(t *testing.T) {
	s := newShelf(t, 1_000)
	s.many(1_000)
	report := s.pass(contract.ReconcileInput{})
	require.True(t, report.Braked)
	require.Equal(t, 1_000, report.Owners)
	require.Greater(t, report.Missing, 50)
	require.LessOrEqual(t, report.Missing, 50+askAtOnce)
	require.LessOrEqual(t, s.asked, 50+askAtOnce)
	require.Equal(t, [4]int64{1_000, 1_000, 0, 0}, s.parts())
	require.Equal(t, 1_000, s.pass(contract.ReconcileInput{Agree: true}).Repaired)
	s.nothingLeft()
}

// Redis restarts in the middle: the SKU is closed, nothing more is mended, and the pass
// ends at once, for the check that opens the SKU waits for it.
func TestAPassMeetsAGateThatCloses(t *testing.T) {
	s := newShelf(t, 1_200)
	s.many(1_200)
	env, passes := s.passes()
	closes := func() error {
		return s.rdb.HSet(t.Context(), s.key("stock"), "fence", "another server").Err()
	}
	gate := &brittle{PassGate: s.gate, at: 100, then: closes}
	passes.Gate = gate
	out, err := env.ExecuteActivity(passes.LookThrough, contract.ReconcileInput{SKU: s.sku, Pass: true, Agree: true})
	require.NoError(t, err)
	var report contract.ReconcileReport
	require.NoError(t, out.Get(&report))
	require.True(t, report.Closed)
	require.Equal(t, [2]int{99, 100}, [2]int{report.Repaired, gate.mended})

	// Also where nothing is to be mended: all owners are there.
	s = newShelf(t, 1)
	s.held()
	env, passes = s.passes()
	s.onList = func() { require.NoError(t, closes()) }
	out, err = env.ExecuteActivity(passes.LookThrough, contract.ReconcileInput{SKU: s.sku, Pass: true})
	require.NoError(t, err)
	report = contract.ReconcileReport{}
	require.NoError(t, out.Get(&report))
	require.True(t, report.Closed)
}

// What happens between the look for an owner and the repair decides.
func TestAHoldThatMovesUnderAPass(t *testing.T) {
	for name, c := range map[string]struct {
		in    contract.ReconcileInput
		moves func(s *shelf, id string, asked int)
	}{
		"its owner adopts": {contract.ReconcileInput{Agree: true}, func(s *shelf, id string, _ int) {
			_, err := s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: time.Hour})
			require.NoError(s.t, err)
		}},
		"its owner is started": {contract.ReconcileInput{}, func(s *shelf, id string, asked int) {
			if asked == 2 { // without an agreement it is asked for twice
				s.mu.Lock()
				defer s.mu.Unlock()
				s.flows[id] = &flow{kind: contract.HoldWorkflow, open: true, status: contract.HoldStatus{HoldID: id}}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 1)
			id := s.held()
			delete(s.flows, id)
			asked := 0
			s.onAsk = func(of string) {
				if of == id {
					asked++
					c.moves(s, id, asked)
				}
			}
			report := s.pass(c.in)
			require.NotZero(t, asked)
			require.Zero(t, report.Found, report.Differences)
			require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
		})
	}
}

// A Temporal that does not know even the SKU's book is another one: what it says of
// owners is nothing to go by, whatever a person has agreed to.
func TestATemporalWithoutTheBookIsAnotherOne(t *testing.T) {
	s := newShelf(t, 2)
	s.held()
	s.flows, s.book = map[string]*flow{}, contract.StockBook{}
	for _, err := range []error{nil, launch.ErrNoOwner} {
		s.noBook = err
		report := s.pass(contract.ReconcileInput{Agree: true})
		require.True(t, report.Braked)
		require.Zero(t, report.Repaired)
		require.Contains(t, report.Alarms[0], "another namespace")
		require.Equal(t, [4]int64{2, 1, 0, 0}, s.parts())
	}
}

// Offers whose texts wait for the morning are asked for once, by the list.
func TestAnOfferThatIsListedIsNotAskedFor(t *testing.T) {
	s := newShelf(t, 0)
	entry := s.waits("ada")
	s.restock(1)
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, entry)
	require.NoError(t, err)
	_, err = s.gate.AdoptOffer(t.Context(), s.sku, e.HoldID)
	require.NoError(t, err)
	s.flows[entry].state, s.flows[entry].status = "offered", nil // a query would find that it does not know
	s.nothingLeft()
}

// Alarms of every minute are told when they are new, and then ever more seldom.
func TestTheLogIsToldOfAlarmsNowAndThen(t *testing.T) {
	var r rung
	var told []int
	for pass := 1; pass <= 20; pass++ {
		if r.worthALine("CHAIR", []string{"a"}) {
			told = append(told, pass)
		}
		require.False(t, r.worthALine("VASE", nil))
	}
	require.Equal(t, []int{1, 2, 4, 8, 16}, told)
	require.True(t, r.worthALine("CHAIR", []string{"a", "b"}))
	require.False(t, r.worthALine("CHAIR", nil))
	require.True(t, r.worthALine("CHAIR", []string{"a", "b"}), "it is back")
}

// Passes rest three times as long as they work, and longer the more of them there are.
func TestPassesRest(t *testing.T) {
	for passes := int32(1); passes <= 2; passes++ {
		synctest.Test(t, func(t *testing.T) {
			var looking atomic.Int32
			looking.Store(passes)
			p := pace{looking: &looking}
			began := time.Now()
			for range 100 {
				one := time.Now()
				time.Sleep(10 * time.Millisecond) // its work
				require.NoError(t, p.worked(t.Context(), one))
			}
			require.InDelta(t, float64(1+3*passes), time.Since(began).Seconds(), 0.1)
		})
	}
	synctest.Test(t, func(t *testing.T) { // questions of a busy machine
		var looking atomic.Int32
		looking.Store(2)
		p := pace{looking: &looking}
		began := time.Now()
		for range 100 {
			one := time.Now()
			time.Sleep(90 * time.Millisecond)
			require.NoError(t, p.asked(t.Context(), one))
		}
		require.InDelta(t, 9+6, time.Since(began).Seconds(), 0.1)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, (&pace{looking: &atomic.Int32{}}).worked(ctx, time.Now()), context.Canceled)
}

// slow is a Reconcile of each SKU, of which one does not come to its end.
type slow struct {
	Owners
	never string
}

func (s slow) SKUs(context.Context) ([]string, error) { return []string{"A", s.never, "B"}, nil }

func (s slow) RegisterSKU(context.Context, string) (string, error) { return "", nil }
func (s slow) MarkMapWhole(context.Context) error                  { return nil }

// ListWorkflow lists no book that the map has not got.
func (s slow) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (s slow) Pass(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	if in.SKU == s.never {
		<-ctx.Done()
		return contract.ReconcileReport{}, ctx.Err()
	}
	return contract.ReconcileReport{SKU: in.SKU, Found: 1}, nil
}

func TestALongPassHoldsUpNoOther(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	passes := &Passes{SKUs: slow{never: "LONG"}, Owners: slow{}, Starter: slow{never: "LONG"}, Patience: 10 * time.Millisecond}
	env.RegisterActivity(passes)
	out, err := env.ExecuteActivity(passes.LookThroughAll, contract.ReconcileAllInput{})
	require.NoError(t, err)
	var report contract.ReconcileAllReport
	require.NoError(t, out.Get(&report))
	require.Equal(t, contract.ReconcileAllReport{SKUs: 3, Found: 2, Failed: []string{"LONG"}}, report)
}

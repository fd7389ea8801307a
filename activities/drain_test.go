package activities_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// outbox is a gate that hands out prepared batches, and the Temporal that gets
// what is in them.
type outbox struct {
	activities.StockGate
	batches  []redis.DrainOutcome
	drainErr error
	version  int64 // of the settings
	paused   bool
	bites    int // of the ledger that may go
	trimmed  int
	trimErr  error
	left     []redis.LeaveRequest
	adopted  []string

	mu       sync.Mutex
	started  map[string]contract.EntryInput
	closed   map[string]bool // entries whose workflow has closed
	open     map[string]bool // entries whose workflow runs
	broken   map[string]bool // entries that Temporal fails for
	signals  []string
	meet     chan struct{} // where starts wait for another one
	alone    string        // who does not
	atOnce   int
	greatest int
	checked  []string
}

func (o *outbox) Drain(_ context.Context, _ string, limit int) (redis.DrainOutcome, error) {
	if o.drainErr != nil {
		return redis.DrainOutcome{}, o.drainErr
	}
	if len(o.batches) == 0 {
		return redis.DrainOutcome{}, nil
	}
	out := o.batches[0]
	o.batches = o.batches[1:]
	if len(out.Items) > limit {
		return out, fmt.Errorf("a batch of %d", len(out.Items))
	}
	return out, nil
}

func (o *outbox) Policy(context.Context, string) (contract.PolicyOf, error) {
	return contract.PolicyOf{Version: o.version, Paused: o.paused}, nil
}

func (o *outbox) TrimLedger(context.Context, string) (int64, bool, error) {
	o.trimmed++
	return 100, o.trimmed < o.bites, o.trimErr
}

func (o *outbox) Leave(_ context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = append(o.left, req)
	return redis.EntryOutcome{}, nil
}

func (o *outbox) AdoptEntry(_ context.Context, _, entryID string) (redis.EntryOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.adopted = append(o.adopted, entryID)
	return redis.EntryOutcome{}, nil
}

func (o *outbox) Unseal(entryID string, sealed []byte) (contract.EntryInput, error) {
	if string(sealed) != "sealed "+entryID {
		return contract.EntryInput{}, errors.New("wrong key")
	}
	return contract.EntryInput{EntryID: entryID, Phone: "+12025550101"}, nil
}

func (o *outbox) Entry(_ context.Context, in contract.EntryInput) (launch.Started, error) {
	o.mu.Lock()
	o.atOnce++
	o.greatest = max(o.greatest, o.atOnce)
	o.mu.Unlock()
	if o.meet != nil && in.EntryID != o.alone {
		select { // starts that come one by one would wait here for ever
		case o.meet <- struct{}{}:
		case <-o.meet:
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.atOnce--
	switch {
	case o.broken[in.EntryID]:
		return 0, errors.New("temporal is away")
	case o.closed[in.EntryID]:
		return launch.StartedClosed, nil
	case o.open[in.EntryID]:
		return launch.StartedOpen, nil
	}
	o.started[in.EntryID] = in
	return launch.StartedNew, nil
}

func (o *outbox) Signal(_ context.Context, id, signal string, arg any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken[id] {
		return errors.New("temporal is away")
	}
	if o.closed[id] {
		return fmt.Errorf("%w: %s", launch.ErrNoOwner, id)
	}
	o.signals = append(o.signals, fmt.Sprintf("%s %s %+v", id, signal, arg))
	return nil
}

func (o *outbox) Wake(context.Context, string) error { return errors.New("not to be called") }

func (o *outbox) Reconcile(_ context.Context, in contract.ReconcileInput) error {
	o.checked = append(o.checked, in.SKU)
	return nil
}

func newOutbox(batches ...redis.DrainOutcome) *outbox {
	return &outbox{batches: batches, version: 3, started: map[string]contract.EntryInput{}, closed: map[string]bool{}, broken: map[string]bool{}}
}

func (o *outbox) drain(t *testing.T) (activities.DrainReport, error) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	a := &activities.Stock{Guard: activities.Guard{Waker: o, ReopenSeconds: 20}, Gate: o, Entries: o, Keys: o}
	env.RegisterActivity(a)
	var report activities.DrainReport
	v, err := env.ExecuteActivity(a.DrainOutbox, activities.DrainInput{SKU: "CHAIR", Version: 3, Paused: new(bool)})
	if err == nil {
		require.NoError(t, v.Get(&report))
	}
	return report, err
}

func start(id string) redis.Item {
	return redis.Item{Kind: redis.ItemStart, EntryID: id, Sealed: []byte("sealed " + id)}
}

func TestDrainStartsEntriesSideBySide(t *testing.T) {
	var full, rest redis.DrainOutcome
	for i := range 20 {
		full.Items = append(full.Items, start(fmt.Sprintf("entry_%d", i)))
	}
	rest.Items = []redis.Item{start("entry_20")}
	rest.Next = 30 * time.Second
	o := newOutbox(full, rest)
	o.meet, o.alone = make(chan struct{}), "entry_20"
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Started: 21, NextMillis: 30_000}, report)
	require.Len(t, o.started, 21)
	require.Equal(t, "+12025550101", o.started["entry_20"].Phone)
	require.Greater(t, o.greatest, 1)
	require.LessOrEqual(t, o.greatest, 16)
	require.Empty(t, o.left)
}

// The gate makes offers in bites smaller than a batch. A big restock is one
// drain all the same.
func TestDrainGoesOnAfterABiteOfTheGate(t *testing.T) {
	var bites []redis.DrainOutcome
	for i := range 3 {
		bites = append(bites, redis.DrainOutcome{Items: []redis.Item{start(fmt.Sprintf("entry_%d", i))}, Next: time.Millisecond, AtOnce: true})
	}
	bites[2].AtOnce, bites[2].Next = false, 30*time.Second
	o := newOutbox(bites...)
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Started: 3, NextMillis: 30_000}, report)
	require.Empty(t, o.left)
}

func TestDrainTellsWhatThereIsToLearn(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := newOutbox(redis.DrainOutcome{Items: []redis.Item{
		{Kind: redis.ItemOffer, EntryID: "entry_a", HoldID: "hold_1", Hold: &redis.Hold{Units: 2, Generation: 3, OfferedAt: at}},
		{Kind: redis.ItemEnd, EntryID: "entry_b", HoldID: "hold_2", Hold: &redis.Hold{State: contract.HoldSold, EndedAt: at.Add(5 * time.Minute)}, Entry: redis.Entry{State: contract.EntryBought}},
		{Kind: redis.ItemEnd, EntryID: "entry_c", Entry: redis.Entry{State: contract.EntryLeft}},
	}})
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, 3, report.Told)
	require.ElementsMatch(t, []string{
		"entry_a offered " + fmt.Sprintf("%+v", contract.Offered{HoldID: "hold_1", Units: 2, Generation: 3, OfferedAt: at}),
		"entry_b hold-ended {HoldID:hold_2 HoldState:sold EntryState:bought EndedAt:2026-03-01 12:05:00 +0000 UTC}",
		"entry_c ended {State:left}",
	}, o.signals)
}

// A gate that has lost the acknowledgement of an entry hands its start out again: the
// workflow, which is open, does it once more, or everybody would get past its place.
func TestDrainOfAStartThatIsOpen(t *testing.T) {
	again, first, other := start("entry_a"), start("entry_b"), start("entry_c")
	again.Handed, other.Handed = 1, 1
	o := newOutbox(redis.DrainOutcome{Items: []redis.Item{again, first, other}})
	o.open = map[string]bool{"entry_a": true, "entry_b": true} // b is about to do it
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, 3, report.Started)
	require.Equal(t, []string{"entry_a ended {State:waiting}"}, o.signals)
	require.Contains(t, o.started, "entry_c")
}

func TestDrainOfClosedWorkflows(t *testing.T) {
	o := newOutbox(redis.DrainOutcome{Items: []redis.Item{
		start("entry_a"),
		{Kind: redis.ItemOffer, EntryID: "entry_b", HoldID: "hold_1", Hold: &redis.Hold{}},
		{Kind: redis.ItemEnd, EntryID: "entry_c"},
	}}, redis.DrainOutcome{Items: []redis.Item{start("entry_d")}}) // the unit has passed on
	for _, id := range []string{"entry_a", "entry_b", "entry_c"} {
		o.closed[id] = true
	}
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Zero(t, report.Failed)
	require.ElementsMatch(t, []redis.LeaveRequest{
		{SKU: "CHAIR", EntryID: "entry_a", State: contract.EntryRemoved, Actor: redis.ActorSettle, Owner: true},
		{SKU: "CHAIR", EntryID: "entry_b", State: contract.EntryRemoved, Actor: redis.ActorSettle, Owner: true},
	}, o.left)
	require.Equal(t, []string{"entry_c"}, o.adopted, "nobody to tell of an end: acknowledged")
	require.Contains(t, o.started, "entry_d", "what a removal frees is handed out at once")
}

func TestDrainFailuresHoldUpNobody(t *testing.T) {
	bad := start("entry_bad")
	bad.Sealed = []byte("garbage")
	o := newOutbox(redis.DrainOutcome{Next: 30 * time.Second, Items: []redis.Item{
		bad, start("entry_away"), start("entry_good"),
		{Kind: redis.ItemOffer, EntryID: "entry_away", HoldID: "hold_1", Hold: &redis.Hold{}, Handed: 25},
		{Kind: redis.ItemEnd, EntryID: "entry_good2"},
	}})
	o.broken["entry_away"] = true
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Started: 1, Told: 1, Failed: 3, NextMillis: 30_000}, report)
	require.Empty(t, o.left, "who cannot be reached now keeps their place")
}

func TestDrainOfAClosedGate(t *testing.T) {
	for want, err := range map[string]error{
		contract.ErrClosed:      fmt.Errorf("drain: %w", &redis.ClosedError{SKU: "CHAIR"}),
		contract.ErrUnavailable: fmt.Errorf("%w: drain", redis.ErrUnavailable),
		"gate-error":            errors.New("ERR script"),
	} {
		o := newOutbox()
		o.drainErr = err
		_, got := o.drain(t)
		var app *temporal.ApplicationError
		require.ErrorAs(t, got, &app)
		require.Equal(t, want, app.Type())
		require.False(t, app.NonRetryable())
		require.Equal(t, want == contract.ErrClosed, len(o.checked) == 1)
	}
}

func TestDrainStopsAtItsBound(t *testing.T) {
	o := newOutbox()
	for i := range 120 {
		var full redis.DrainOutcome
		for j := range 20 {
			full.Items = append(full.Items, redis.Item{Kind: redis.ItemEnd, EntryID: fmt.Sprintf("entry_%d_%d", i, j)})
		}
		o.batches = append(o.batches, full)
	}
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Told: 2000, More: true}, report)
}

// A gate that has lost its settings hands out nothing before it has them again.
func TestDrainOfAGateThatHasLostItsSettings(t *testing.T) {
	o := newOutbox(redis.DrainOutcome{Items: []redis.Item{start("entry_0")}})
	o.version = 2
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{SettingsLost: true}, report)
	require.Empty(t, o.started)
	require.Len(t, o.batches, 1)

	o.version, o.paused = 3, true // of a resume that was lost
	report, err = o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{SettingsLost: true}, report)
	require.Len(t, o.batches, 1)

	o.version = 4 // a book that is behind would store what the gate does not take, for ever
	report, err = o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Started: 1}, report)
}

// What is due within the second the drain waits for itself: the book's history pays
// for no pause that short.
func TestDrainWaitsForWhatIsDueSoon(t *testing.T) {
	wait := redis.DrainOutcome{Next: 20 * time.Millisecond}
	last := redis.DrainOutcome{Items: []redis.Item{start("entry_0")}, Next: 1001 * time.Millisecond}
	o := newOutbox(wait, wait, wait, last)
	began := time.Now()
	report, err := o.drain(t)
	require.NoError(t, err)
	require.Equal(t, activities.DrainReport{Started: 1, NextMillis: 1001}, report)
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
}

// A drain trims the ledger in bounded bites, asks to come again when there was
// more than it takes, and hides no failure.
func TestDrainTrimsTheLedger(t *testing.T) {
	for name, c := range map[string]struct{ bites, trimmed int }{"nothing": {0, 1}, "some": {7, 7}, "too much for one": {51, 50}} {
		t.Run(name, func(t *testing.T) {
			o := newOutbox()
			o.bites = c.bites
			report, err := o.drain(t)
			require.NoError(t, err)
			require.Equal(t, c.trimmed, o.trimmed)
			require.Equal(t, c.bites > c.trimmed, report.More)
		})
	}
	o := newOutbox()
	o.trimErr = redis.ErrUnavailable
	_, err := o.drain(t)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrUnavailable, app.Type())
}

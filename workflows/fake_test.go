package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
	"holdfast/workflows"
)

// shelf is what the gate knows of one SKU: a hold and the free units.
type shelf struct {
	free  int64
	rings []contract.Ring // what a look at the tripwire finds beside a shortfall
	hold  *redis.Hold
}

// world is a test environment with time skipping around an in-memory gate that
// has one hold, one entry and its free units. Its clock is the environment's.
type world struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	mu         sync.Mutex
	calls      []string // verbs in order, with what they answered
	down       func(verb string) error
	shelf                        // of the chair, and of every SKU that more has not
	more       map[string]*shelf // of a cart's other SKUs
	entry      *redis.Entry
	missedKeep int64 // as the gate's option
	paused     bool
	saleEnds   bool
	noRecord   bool
	ghosts     []string             // SKUs that were never opened
	mapless    bool                 // the map of all SKUs was not read whole
	released   redis.ReleaseRequest // the last one
	reopened   time.Time            // until then a reopened gate expires nothing
	onConfirm  func(redis.ConfirmRequest)

	pausesOnTrip func() // the worker is configured so

	payments []contract.PaymentInput
	freeAt   []int64 // units free when each payment got its owner

	sleeps   *activities.QuietHours
	texts    []sms.Text
	textedAt []time.Time
	looked   []time.Time // since when the provider was asked for a text
	send     func(sms.Text) (sms.Receipt, error)
	applied  map[string]int64              // stock event → the number of its decision
	wakes    bool                          // what a stock event answers
	owner    string                        // of the SKU's number, when it is another's
	owners   map[string]redis.PaymentOwner // of payments, by their reference
	drain    func() redis.DrainOutcome
	settings []redis.SettingsRequest
	policy   contract.Policy // of the SKU
	outdated bool            // the gate's settings are of before
	version  int64           // of the gate's settings
	checks   int             // how often Reconcile was asked for
	provider provider

	signalled   func()   // by each signal
	noLinks     bool     // no link can be made
	undelivered int      // offers that lapsed without a word that their text arrived
	signals     []string // to entries, as id, name and payload
	noEntry     error    // what a signal to an entry meets

	optedOut bool // the person wants no texts
	places   places
	tells    func() // gives the shop an endpoint for events
	starts   int    // attempts to give events their owners
	told     []contract.EventInput
	noOwners func() error // of events
	endpoint endpoint
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	var suite testsuite.WorkflowTestSuite
	suite.SetDisableRegistrationAliasing(true)
	w := &world{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, applied: map[string]int64{}}
	w.SetStartTime(began)
	w.SetTestTimeout(20 * time.Second)
	w.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 5 * time.Second}) // as the product's
	guard := activities.Guard{Waker: w, ReopenSeconds: 1}
	workflows.Register(w)
	words, err := sms.LoadWords(sms.WordsOptions{Shop: "Nordlicht", Locale: "en", LongestLink: "https://nordlicht.example/r/"})
	require.NoError(t, err)
	holds := &activities.Holds{Guard: guard, Gate: w, Payments: w}
	entries := &activities.Entries{Guard: guard, Gate: w}
	texts := &activities.Texts{Guard: guard, Gate: w, Sender: w, OptOuts: w, Entries: deaf{}, Persons: w, Links: w, Words: words, PublicURL: "https://nordlicht.example"}
	texts.Quiet.Now = w.Now
	w.sleeps = &texts.Quiet
	stock := &activities.Stock{Guard: guard, Gate: w}
	refunds := &activities.Refunds{Port: &w.provider}
	for _, a := range []any{holds, entries, texts, stock, refunds, &activities.Attempts{Port: &w.provider}, &activities.EventStarts{Owners: w}, &activities.Claims{Entries: w}, &activities.Deliveries{Sender: &w.endpoint}, &activities.OptOuts{Guard: guard, Gate: &w.places}} {
		w.RegisterActivity(a)
	}
	w.tells = func() { holds.Tell, entries.Tell, texts.Tell, stock.Tell, refunds.Tell = true, true, true, true, true }
	w.pausesOnTrip = func() { stock.PauseOnTrip = true }
	return w
}

// Now is the gate's clock.
func (w *world) Now() time.Time { return w.TestWorkflowEnvironment.Now().UTC() }

func (w *world) at(d time.Duration, do func()) { w.RegisterDelayedCallback(do, d) }

// SignalWorkflow hides the environment's, which counts nothing.
func (w *world) SignalWorkflow(name string, input any) {
	if w.signalled != nil {
		w.signalled()
	}
	w.TestWorkflowEnvironment.SignalWorkflow(name, input)
}

// verb notes a call; do runs unless the gate is down.
func (w *world) verb(name string, do func() redis.Verdict) (redis.Base, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		if err := w.down(name); err != nil {
			return redis.Base{}, err
		}
	}
	v := do()
	w.calls = append(w.calls, name+" "+string(v))
	return redis.Base{Verdict: v}, nil
}

func (w *world) on(sku string) *shelf {
	if s := w.more[sku]; s != nil {
		return s
	}
	return &w.shelf
}

// holdVerb notes a verb on a hold, of a cart with its SKU.
func (w *world) holdVerb(name, sku string, do func(s *shelf) redis.Verdict) (redis.HoldOutcome, error) {
	var out redis.HoldOutcome
	var err error
	if w.ghost(sku) {
		return out, &redis.ClosedError{SKU: sku, Missing: true}
	}
	if len(w.more) > 0 {
		name += " " + sku
	}
	out.Base, err = w.verb(name, func() redis.Verdict {
		s := w.on(sku)
		if w.noRecord {
			return redis.Unknown
		}
		v := do(s)
		if s.hold != nil {
			out.Hold = *s.hold
			out.Left = max(0, s.hold.Deadline.Sub(w.Now()))
		}
		return v
	})
	return out, err
}

func (w *world) haunt(skus ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ghosts = skus
}

func (w *world) ghost(sku string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.ghosts, sku)
}

// LookupSKU knows every SKU that is no ghost.
func (w *world) LookupSKU(_ context.Context, number string) (string, bool, error) {
	for _, sku := range []string{chair, lamp, table} {
		if contract.SKUNumber(sku) == number && !w.ghost(sku) {
			return sku, !w.mapless, nil
		}
	}
	return "", !w.mapless, nil
}

func (w *world) called(verb string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.calls), func(c string) bool { return c != verb }))
}

func (w *world) AdoptHold(_ context.Context, req redis.AdoptHoldRequest) (redis.HoldOutcome, error) {
	return w.holdVerb("adopt", req.SKU, func(s *shelf) redis.Verdict {
		if s.hold == nil || s.hold.State == contract.HoldSwept {
			s.hold = &redis.Hold{ID: req.HoldID, State: contract.HoldProvisional, Units: req.Units, Person: req.Person, CreatedAt: w.Now(), Cart: req.Cart}
			if s.free < req.Units {
				s.hold.State, s.hold.Deadline = contract.HoldRefused, w.Now()
				return redis.SoldOut
			}
			s.free -= req.Units
		}
		if s.hold.State == contract.HoldProvisional {
			s.hold.State, s.hold.Deadline = contract.HoldHeld, w.Now().Add(req.HoldFor)
		}
		if s.hold.State != contract.HoldHeld {
			return redis.Existing
		}
		if req.Extend != nil && req.Extend.Amount != nil {
			s.hold.Amount = req.Extend.Amount
		}
		if req.Extend != nil && req.Extend.By > 0 && !s.hold.Extended {
			s.hold.Extended = true
			s.hold.Deadline = s.hold.Deadline.Add(req.Extend.By)
		}
		return redis.OK
	})
}

func (w *world) Confirm(_ context.Context, req redis.ConfirmRequest) (redis.HoldOutcome, error) {
	return w.holdVerb("confirm", req.SKU, func(s *shelf) redis.Verdict {
		if w.onConfirm != nil {
			w.onConfirm(req)
		}
		if s.hold == nil {
			return redis.Unknown
		}
		h := s.hold
		retake := h.State == contract.HoldExpired && req.Retake && s.free >= h.Units
		switch {
		case h.State == contract.HoldSold && h.PaymentRef == req.PaymentRef:
			return redis.OK
		case h.State == contract.HoldSold:
			return redis.Conflict
		case slices.Contains(h.Refunded, req.PaymentRef):
			return redis.Refunded
		case h.State != contract.HoldHeld && !retake:
			return redis.HoldEnded
		case s.free < 0:
			return redis.Shortfall
		}
		if retake {
			s.free -= h.Units
		}
		h.State, h.PaymentRef, h.EndedAt, h.Retaken, h.Reason = contract.HoldSold, req.PaymentRef, w.Now(), retake, ""
		return redis.OK
	})
}

func (w *world) Unconfirm(_ context.Context, sku, _, ref, _ string) (redis.HoldOutcome, error) {
	return w.holdVerb("unconfirm", sku, func(s *shelf) redis.Verdict {
		h := s.hold
		switch {
		case h == nil:
			return redis.Unknown
		case slices.Contains(h.Refunded, ref):
			return redis.OK
		case h.State != contract.HoldSold || h.PaymentRef != ref:
			return redis.Existing
		case h.Returned > 0:
			return redis.Returned
		}
		h.State, h.PaymentRef, h.Refunded = contract.HoldHeld, "", append(h.Refunded, ref)
		if h.Retaken {
			h.State, h.Reason, h.Retaken = contract.HoldExpired, contract.ReasonExpired, false
			s.free += h.Units
		} else {
			h.EndedAt = time.Time{}
		}
		return redis.OK
	})
}

func (w *world) Release(_ context.Context, req redis.ReleaseRequest) (redis.HoldOutcome, error) {
	left := time.Duration(0)
	name := "release " + req.Reason
	if req.AskOnly {
		name = "ask " + req.Reason
	}
	out, err := w.holdVerb(name, req.SKU, func(s *shelf) redis.Verdict {
		if !req.AskOnly {
			w.released = req
		}
		if s.hold == nil {
			return redis.Unknown
		}
		if s.hold.State != contract.HoldHeld && s.hold.State != contract.HoldProvisional {
			return redis.Existing
		}
		until := s.hold.Deadline
		if req.Deadline.After(until) {
			until = req.Deadline
		}
		if w.reopened.After(until) {
			until = w.reopened
		}
		if left = until.Sub(w.Now()); req.Reason == contract.ReasonExpired && left > 0 {
			return redis.Early
		}
		if !req.AskOnly {
			s.end(w.Now(), contract.HoldReleased, req.Reason)
		}
		return redis.OK
	})
	if out.Verdict == redis.Early {
		out.Left = left
	}
	return out, err
}

func (w *world) endHold(state contract.HoldState, reason string) { w.end(w.Now(), state, reason) }

// end gives a hold's units back.
func (s *shelf) end(now time.Time, state contract.HoldState, reason string) {
	if reason == contract.ReasonExpired {
		state = contract.HoldExpired
	}
	s.hold.State, s.hold.Reason, s.hold.EndedAt = state, reason, now
	s.free += s.hold.Units
}

func (w *world) Refund(_ context.Context, sku, _, ref, _ string) (redis.HoldOutcome, error) {
	return w.holdVerb("refund", sku, func(s *shelf) redis.Verdict {
		switch {
		case s.hold == nil:
			return redis.Unknown
		case s.hold.State == contract.HoldSold && s.hold.PaymentRef == ref:
			return redis.MadeSale
		case slices.Contains(s.hold.Refunded, ref):
			return redis.OK
		}
		s.hold.Refunded = append(s.hold.Refunded, ref)
		return redis.OK
	})
}

func (w *world) Payment(_ context.Context, in contract.PaymentInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.payments = append(w.payments, in)
	w.freeAt = append(w.freeAt, w.free)
	return nil
}

func (w *world) Wake(context.Context, string) error { return nil }

func (w *world) Reconcile(context.Context, contract.ReconcileInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
	return nil
}

func money(amount int64, currency string) (*int64, string) { return &amount, currency }

// answer is what an update came to.
type answer[T any] struct {
	t        *testing.T
	rejected error
	result   T
	err      error
	done     bool
}

func (a *answer[T]) Accept()          {}
func (a *answer[T]) Reject(err error) { a.rejected = err }
func (a *answer[T]) Complete(success any, err error) {
	a.done, a.err = true, err
	if err == nil {
		result, ok := success.(T)
		require.True(a.t, ok, "the update answered %T", success)
		a.result = result
	}
}

func update[T any](w *world, name, id string, arg any) *answer[T] {
	a := &answer[T]{t: w.t}
	w.UpdateWorkflow(name, id, a, arg)
	return a
}

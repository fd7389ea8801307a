package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
	"holdfast/workflows"
)

// world is a test environment with time skipping around an in-memory gate that
// has one hold, one entry and its free units. Its clock is the environment's.
type world struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	mu       sync.Mutex
	calls    []string // verbs in order, with what they answered
	down     func(verb string) error
	free     int64
	hold     *redis.Hold
	entry    *redis.Entry
	paused   bool
	saleEnds bool
	noRecord bool
	released redis.ReleaseRequest // the last one

	payments []contract.PaymentInput
	freeAt   []int64 // units free when each payment got its owner

	texts    []sms.Text
	send     func(sms.Text) (sms.Receipt, error)
	applied  map[string]int64 // stock event → the number of its decision
	wakes    bool             // what a stock event answers
	owner    string           // of the SKU's number, when it is another's
	drain    func() redis.DrainOutcome
	settings []redis.SettingsRequest
	checks   int // how often Reconcile was asked for
	provider provider
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	var suite testsuite.WorkflowTestSuite
	suite.SetDisableRegistrationAliasing(true)
	w := &world{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, applied: map[string]int64{}}
	w.SetStartTime(began)
	w.SetTestTimeout(20 * time.Second)
	guard := activities.Guard{Waker: w, ReopenSeconds: 1}
	workflows.Register(w)
	w.RegisterActivity(&activities.Holds{Guard: guard, Gate: w, Payments: w})
	w.RegisterActivity(&activities.Entries{Guard: guard, Gate: w})
	w.RegisterActivity(&activities.Texts{Guard: guard, Gate: w, Sender: w, Links: w, Shop: "Nordlicht", PublicURL: "https://nordlicht.example"})
	w.RegisterActivity(&activities.Stock{Guard: guard, Gate: w})
	w.RegisterActivity(&activities.Refunds{Port: &w.provider})
	return w
}

// Now is the gate's clock.
func (w *world) Now() time.Time { return w.TestWorkflowEnvironment.Now().UTC() }

func (w *world) at(d time.Duration, do func()) { w.RegisterDelayedCallback(do, d) }

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

func (w *world) holdVerb(name string, do func() redis.Verdict) (redis.HoldOutcome, error) {
	var out redis.HoldOutcome
	var err error
	out.Base, err = w.verb(name, func() redis.Verdict {
		if w.noRecord {
			return redis.Unknown
		}
		v := do()
		if w.hold != nil {
			out.Hold = *w.hold
			out.Left = max(0, w.hold.Deadline.Sub(w.Now()))
		}
		return v
	})
	return out, err
}

func (w *world) called(verb string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.calls), func(c string) bool { return c != verb }))
}

func (w *world) AdoptHold(_ context.Context, req redis.AdoptHoldRequest) (redis.HoldOutcome, error) {
	return w.holdVerb("adopt", func() redis.Verdict {
		if w.hold == nil || w.hold.State == contract.HoldSwept {
			w.hold = &redis.Hold{ID: req.HoldID, State: contract.HoldProvisional, Units: req.Units, Person: req.Person, CreatedAt: w.Now()}
			if w.free < req.Units {
				w.hold.State = contract.HoldRefused
				return redis.SoldOut
			}
			w.free -= req.Units
		}
		if w.hold.State == contract.HoldProvisional {
			w.hold.State, w.hold.Deadline = contract.HoldHeld, w.Now().Add(req.HoldFor)
		}
		if w.hold.State != contract.HoldHeld {
			return redis.Existing
		}
		if req.Extend != nil && !w.hold.Extended {
			w.hold.Extended, w.hold.Amount = true, req.Extend.Amount
			w.hold.Deadline = w.hold.Deadline.Add(req.Extend.By)
		}
		return redis.OK
	})
}

func (w *world) Confirm(_ context.Context, req redis.ConfirmRequest) (redis.HoldOutcome, error) {
	return w.holdVerb("confirm", func() redis.Verdict {
		switch {
		case w.hold.State == contract.HoldSold && w.hold.PaymentRef == req.PaymentRef:
			return redis.OK
		case w.hold.State == contract.HoldSold:
			return redis.Conflict
		case slices.Contains(w.hold.Refunded, req.PaymentRef):
			return redis.Refunded
		case w.hold.State != contract.HoldHeld:
			return redis.HoldEnded
		case w.free < 0:
			return redis.Shortfall
		}
		w.hold.State, w.hold.PaymentRef, w.hold.EndedAt = contract.HoldSold, req.PaymentRef, w.Now()
		return redis.OK
	})
}

func (w *world) Release(_ context.Context, req redis.ReleaseRequest) (redis.HoldOutcome, error) {
	left := time.Duration(0)
	out, err := w.holdVerb("release "+req.Reason, func() redis.Verdict {
		w.released = req
		if w.hold.State != contract.HoldHeld {
			return redis.Existing
		}
		until := w.hold.Deadline
		if req.Deadline.After(until) {
			until = req.Deadline
		}
		if left = until.Sub(w.Now()); req.Reason == contract.ReasonExpired && left > 0 {
			return redis.Early
		}
		w.endHold(contract.HoldReleased, req.Reason)
		return redis.OK
	})
	if out.Verdict == redis.Early {
		out.Left = left
	}
	return out, err
}

func (w *world) endHold(state contract.HoldState, reason string) {
	if reason == contract.ReasonExpired {
		state = contract.HoldExpired
	}
	w.hold.State, w.hold.Reason, w.hold.EndedAt = state, reason, w.Now()
	w.free += w.hold.Units
}

func (w *world) Refund(_ context.Context, _, _, ref, _ string) (redis.HoldOutcome, error) {
	return w.holdVerb("refund", func() redis.Verdict {
		if w.hold.State == contract.HoldSold && w.hold.PaymentRef == ref {
			return redis.MadeSale
		}
		w.hold.Refunded = append(w.hold.Refunded, ref)
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

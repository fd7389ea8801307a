// Package activities is everything the workflows ask of the world: thin structs
// over the gate, the sender of texts and Temporal itself. Workflows name the
// methods through nil pointers, so a method's name is the activity's name and
// is unique across the package.
package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

// errGate is the type of a failure that is neither an outage nor a closed
// fence: a script error. It is retried as well, because giving up would strand
// a unit; it stands in the UI until somebody mends it.
const errGate = "gate-error"

// Waker tells Temporal what a verb of the gate found.
type Waker interface {
	Wake(ctx context.Context, sku string) error
	Reconcile(ctx context.Context, in contract.ReconcileInput) error
}

// Guard is what every verb of the gate needs around it.
type Guard struct {
	Waker         Waker
	ReopenSeconds int64 // how long Reconcile waits before it checks a closed gate
	// Tell says that the shop has an endpoint for events. Every answer carries it
	// on, so that a workflow of years learns of one that came or went.
	Tell bool
}

// gateError turns an error of the gate into the outermost ApplicationError. Who
// meets the closed fence starts the check that may open it.
func (g Guard) gateError(ctx context.Context, sku, verb string, err error) error {
	if err == nil {
		return nil
	}
	message := verb + " " + sku + ": " + err.Error()
	kind, opts := errGate, temporal.ApplicationErrorOptions{Cause: err}
	var closed *redis.ClosedError
	switch {
	case errors.As(err, &closed):
		kind, opts = contract.ErrClosed, passing(err)
		in := contract.ReconcileInput{SKU: sku, ReopenSeconds: g.ReopenSeconds}
		if rerr := g.Waker.Reconcile(ctx, in); rerr != nil {
			activity.GetLogger(ctx).Error("gate closed and its check did not start", "sku", sku, "error", rerr)
		}
	case errors.Is(err, redis.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		kind, opts = contract.ErrUnavailable, passing(err)
	}
	if n := attempt(ctx); kind != errGate && worthALine(n) {
		activity.GetLogger(ctx).Warn("the gate does not answer: asked again until it does", "sku", sku, "attempt", n, "error", message)
	}
	return temporal.NewApplicationErrorWithOptions(message, kind, opts)
}

// wake passes on that the outbox has something due. A wake that fails is no
// failure of the verb: its outcome stands, and the next one wakes again.
func (g Guard) wake(ctx context.Context, sku string, base redis.Base) {
	if !base.Wake {
		return
	}
	if err := g.Waker.Wake(ctx, sku); err != nil {
		activity.GetLogger(ctx).Warn("stock not woken", "sku", sku, "error", err)
	}
}

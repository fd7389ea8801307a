package redis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Observer is told what the gate did. Its methods are called by whoever calls
// the gate, and must not wait.
type Observer interface {
	// Verb was called and answered after took. The outcome is a Verdict or one of
	// Troubles: closed (the fence is down), layout (the SKU is laid out for other
	// scripts), failed (the script broke), unavailable.
	Verb(verb, outcome string, took time.Duration)
	// Paid says that a walk-in's hold became a sale now, so long after it began.
	// When a hold that came from an offer began, which is when the link was
	// pressed, its record does not say.
	Paid(after time.Duration)
}

// Outcomes of a run that did not do what a verb does.
const (
	outcomeClosed      = "closed"
	outcomeLayout      = "layout"
	outcomeFailed      = "failed"
	outcomeUnavailable = "unavailable"
)

// Troubles lists the outcomes that are no Verdict.
func Troubles() []string {
	return []string{outcomeClosed, outcomeLayout, outcomeFailed, outcomeUnavailable}
}

// Verbs lists the verbs as an Observer sees them.
func Verbs() []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	return names
}

type nobody struct{}

func (nobody) Verb(string, string, time.Duration) {}
func (nobody) Paid(time.Duration)                 {}

// failure is the outcome of a run that answered nothing.
func failure(err error) string {
	if errors.Is(err, ErrUnavailable) {
		return outcomeUnavailable
	}
	return outcomeFailed
}

// paid tells the observer of a sale, once: a repeat answers an earlier instant.
func (g *Gate) paid(out HoldOutcome, err error) {
	if err == nil && out.Verdict == OK && out.Hold.EntryID == "" && out.Hold.EndedAt.Equal(out.Now) {
		g.opts.Observer.Paid(out.Hold.EndedAt.Sub(out.Hold.CreatedAt))
	}
}

// Overdue is how long the item of the outbox that should have been handed out
// first has waited for it, at the instant of c; 0 when none is due. An item that
// was handed out is due again 30 s later. Offers of a paused SKU are not due.
func (g *Gate) Overdue(ctx context.Context, c Counters) (time.Duration, error) {
	names := []string{"outbox", "offers"}
	if c.Paused {
		names = names[:1]
	}
	var most time.Duration
	for _, name := range names {
		first, err := g.rdb.ZRangeWithScores(ctx, key(c.SKU, name), 0, 0).Result()
		if err != nil {
			return 0, fmt.Errorf("%w: %s of %s: %w", ErrUnavailable, name, c.SKU, err)
		}
		for _, item := range first {
			most = max(most, c.AsOf.Sub(time.UnixMicro(int64(item.Score))))
		}
	}
	return most, nil
}

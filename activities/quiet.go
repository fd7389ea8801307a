package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"holdfast/contract"
	"holdfast/quiet"
)

// QuietHours are the shop's hours in which no text is sent. The zero value has none.
type QuietHours struct {
	Hours   quiet.Hours
	MaxWait time.Duration    // of one offer for its text
	Now     func() time.Time // nil: this machine's clock
}

// TextWaits says that a text may not be sent yet. A new offer whose text cannot be
// sent within MaxWait is passed on. TriedSince is set when the text may have been
// sent all the same, since then, by an attempt whose answer was lost.
type TextWaits struct {
	contract.TextWait
	MaxWaitSeconds int64     `json:"max_wait_seconds"`
	TriedSince     time.Time `json:"tried_since,omitzero"`
}

// wait answers for a text that would wake somebody. It comes before anything else:
// the gate must not be told of a text that is not sent, or the offer's window would
// run while its person sleeps.
func (q QuietHours) wait(ctx context.Context, tried time.Time) (TextResult, bool) {
	now := time.Now
	if q.Now != nil {
		now = q.Now
	}
	until, quiet := q.Hours.Until(now())
	if !quiet {
		return TextResult{}, false
	}
	return TextResult{Waits: &TextWaits{
		TextWait:       contract.TextWait{Why: contract.WhyQuietHours, Until: until},
		MaxWaitSeconds: int64(q.MaxWait / time.Second),
		TriedSince:     triedSince(ctx, tried),
	}}, true
}

// triedSince is since when the provider may have the text: from the first attempt
// of this activity on, or of one before it; the zero time before any.
func triedSince(ctx context.Context, tried time.Time) time.Time {
	if info := activity.GetInfo(ctx); tried.IsZero() && info.Attempt > 1 {
		return info.ScheduledTime
	}
	return tried
}

package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/events"
)

// EventStarter starts the owner of an event.
type EventStarter interface {
	Event(ctx context.Context, in contract.EventInput) error
}

// EventStarts are the activities of whatever has something to tell.
type EventStarts struct{ Owners EventStarter }

// StartEventsInput are events in the order of their sequence.
type StartEventsInput struct {
	Events []contract.EventInput `json:"events"`
}

// EventsStarted says how many have their owners now.
type EventsStarted struct {
	Started int `json:"started"`
}

// StartEvents gives each event its owner. A repeat starts nothing twice.
func (a *EventStarts) StartEvents(ctx context.Context, in StartEventsInput) (EventsStarted, error) {
	for _, e := range in.Events {
		if err := a.Owners.Event(ctx, e); err != nil {
			return EventsStarted{}, temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
		}
	}
	return EventsStarted{Started: len(in.Events)}, nil
}

// EventSender sends one event to the shop; *events.Sender does.
type EventSender interface {
	Send(ctx context.Context, e events.Event) error
}

// Deliveries are the activities of Event. Sender is nil while the shop has no
// endpoint.
type Deliveries struct{ Sender EventSender }

// Pauses between two attempts to deliver an event: doubled from the first to the
// longest.
const (
	DeliveryPause    = 2 * time.Second
	DeliveryPauseMax = 10 * time.Minute
)

// pauseAfter is the pause after an attempt, counted from 1, unless the endpoint
// asked for more. One that asks for less would be called all the time for days.
func pauseAfter(attempt int32, asked time.Duration) time.Duration {
	pause := DeliveryPause
	for ; attempt > 1 && pause < DeliveryPauseMax; attempt-- {
		pause *= 2
	}
	return max(min(pause, DeliveryPauseMax), asked)
}

// DeliverEvent sends an event once. What a repeat cannot mend is final.
func (a *Deliveries) DeliverEvent(ctx context.Context, in contract.EventInput) error {
	if a.Sender == nil {
		return temporal.NewApplicationErrorWithOptions("events.url is not set any more: set it, or discard the event", contract.ErrEventLater, passing(nil))
	}
	err := a.Sender.Send(ctx, events.Event{ID: in.EventID, Type: in.Type, Time: in.At, Sequence: in.Sequence, Data: in.Data})
	if err == nil {
		return nil
	}
	kind, message, opts := contract.ErrEventLater, err.Error(), passing(nil)
	var refused *events.Error
	if errors.As(err, &refused) {
		message = refused.Reason
		// The message goes to the log, and the answer may repeat what it got.
		if refused.Answer != "" {
			opts.Details = []any{refused.Answer}
		}
		opts.NextRetryDelay = pauseAfter(activity.GetInfo(ctx).Attempt, refused.RetryAfter)
		if advice := refused.Advice(); advice != "" {
			message += "; " + advice
		}
		if refused.Final {
			kind, opts.NonRetryable = contract.ErrEventNever, true
		}
	}
	if n := attempt(ctx); worthALine(n) { // the workflow says it louder when it gives up
		activity.GetLogger(ctx).Warn("the shop does not take an event: sent again for three days", "event", in.EventID, "type", in.Type, "attempt", n, "error", message)
	}
	return temporal.NewApplicationErrorWithOptions(message, kind, opts)
}

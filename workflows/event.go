package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

// Event owns one thing that the shop is to be told of: until the shop has taken
// it, or a person gives it up. After three days it is parked and waits for that
// person.
func Event(ctx workflow.Context, in contract.EventInput) (contract.EventStatus, error) {
	e := newEvent(ctx, in)
	if err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.EventStatus, error) { return e.status, nil }); err != nil {
		return contract.EventStatus{}, err
	}
	return e.run()
}

var deliveryActivities *activities.Deliveries

type event struct {
	root   workflow.Context // is cancelled, by somebody who wants no more of it
	ctx    workflow.Context // is not
	in     contract.EventInput
	status contract.EventStatus

	sending workflow.Future // until it was answered
	stop    workflow.CancelFunc

	retry, discard workflow.ReceiveChannel
}

func newEvent(ctx workflow.Context, in contract.EventInput) *event {
	calm, _ := workflow.NewDisconnectedContext(ctx)
	return &event{
		root: ctx,
		ctx:  calm,
		in:   in,
		status: contract.EventStatus{
			EventID: in.EventID, Type: in.Type, Subject: in.Subject, Sequence: in.Sequence, At: in.At, State: contract.EventSending,
		},
		retry:   workflow.GetSignalChannel(ctx, contract.SignalRetry),
		discard: workflow.GetSignalChannel(ctx, contract.SignalDiscard),
	}
}

func (e *event) run() (contract.EventStatus, error) {
	e.send()
	for {
		err := workflow.Await(e.ctx, func() bool {
			return ready(e.sending) || e.discard.Len() > 0 || e.retry.Len() > 0 || e.root.Err() != nil
		})
		if err != nil {
			return e.status, err
		}
		var m contract.EventMove
		switch {
		case ready(e.sending): // what was delivered cannot be given up any more
			if e.sent() {
				return e.status, nil
			}
		case e.root.Err() != nil:
			e.end("cancelled", "")
			return e.status, e.root.Err()
		case e.discard.ReceiveAsync(&m):
			e.end(m.Reason, m.Actor)
			return e.status, nil
		case e.retry.ReceiveAsync(&m):
			workflow.GetLogger(e.ctx).Info("event tried afresh", "event", e.in.EventID, "actor", m.Actor)
			e.stop()
			e.send()
		}
	}
}

const deliveryWorth = 72 * time.Hour // of attempts, then a person must look

// send delivers afresh. Between two attempts nothing runs; the longest pause is
// what an event may wait after an outage of the endpoint, unless that asked for
// more.
func (e *event) send() {
	ctx, stop := workflow.WithCancel(e.root)
	e.stop = stop
	e.sending = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: deliveryWorth,
		StartToCloseTimeout:    40 * time.Second, // more than events.timeout may be
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: activities.DeliveryPause, BackoffCoefficient: 2, MaximumInterval: activities.DeliveryPauseMax,
			MaximumAttempts: 1000, // more than three days have
		},
		Summary: "tell the shop: " + e.in.Type,
	}), deliveryActivities.DeliverEvent, e.in)
	e.become(contract.EventSending, "")
}

// sent takes the answer and says whether the shop has the event.
func (e *event) sent() bool {
	err := e.sending.Get(e.ctx, nil)
	e.sending = nil
	if err == nil {
		// The search attribute stays: each write costs the server another one, and
		// an event that closed by itself was delivered.
		e.status.State = contract.EventDelivered
		e.show()
		return true
	}
	if e.root.Err() == nil {
		now := workflow.Now(e.ctx)
		e.status.ParkedAt = &now
		workflow.GetLogger(e.ctx).Error("event parked: the shop did not take it", "event", e.in.EventID, "type", e.in.Type, "subject", e.in.Subject)
		e.become(contract.EventParked, reasonOf(err))
	}
	return false
}

// end gives the event up.
func (e *event) end(reason, actor string) {
	e.stop()
	workflow.GetLogger(e.ctx).Warn("event discarded", "event", e.in.EventID, "type", e.in.Type, "actor", actor)
	e.become(contract.EventDiscarded, reason)
}

// reasonOf is what a person reads of a failed delivery: with the beginning of the
// endpoint's answer, if there was one.
func reasonOf(err error) string {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return err.Error()
	}
	var answer string
	if app.HasDetails() && app.Details(&answer) == nil {
		return fmt.Sprintf("%s; it said %q", app.Message(), answer)
	}
	return app.Message()
}

func (e *event) become(state, reason string) {
	if e.status.State != state {
		setState(e.ctx, state)
	}
	e.status.State = state
	if reason != "" {
		e.status.Reason = reason
	}
	e.show()
}

func (e *event) show() {
	next := "closes"
	switch e.status.State {
	case contract.EventSending:
		next = "the shop's endpoint takes it, or three days pass"
	case contract.EventParked:
		next = "**a person must look**: mend the endpoint, then `holdfast events retry " + e.in.EventID + "`, or send the signal `" + contract.SignalRetry +
			"`; to give it up, `" + contract.SignalDiscard + "` with `{\"actor\":\"you\",\"reason\":\"why\"}`"
	}
	details(e.ctx,
		"State", e.status.State,
		"Event", e.in.Type+" of "+verbatim(e.in.Subject),
		"Happened", instant(e.in.At),
		"Why", verbatim(e.status.Reason),
		"Next", next,
	)
}

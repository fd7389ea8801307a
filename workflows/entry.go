package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// WaitlistEntry owns one person's place on one SKU's waitlist. The gate's record
// says where it stands; signals only say that there is something to learn. The
// phone number is in its input and in the inputs of texts, nowhere else.
func WaitlistEntry(ctx workflow.Context, in contract.EntryInput) (contract.EntryResult, error) {
	e := newEntry(ctx, in)
	if err := e.setup(); err != nil {
		return contract.EntryResult{}, err
	}
	return e.run()
}

var (
	entryActivities *activities.Entries
	textActivities  *activities.Texts
)

type entry struct {
	root   workflow.Context // is cancelled
	ctx    workflow.Context // is not: a step at the gate is never cut short
	in     contract.EntryInput
	status contract.EntryStatus

	ttl    timer                  // of the place in line
	joined workflow.Future        // the text that gives the place, on its way
	later  delay                  // of that text
	known  bool                   // the gate has told us of the entry
	offer  offer                  // the present one, or the hold that it has become
	clocks contract.EntrySettings // of the present offer, by the SKU's policy
	events emitter

	offered, claimed, holdEnded, ended, textStatus, textWaits, leave workflow.ReceiveChannel
}

func ready(f workflow.Future) bool { return f != nil && f.IsReady() }

func newEntry(ctx workflow.Context, in contract.EntryInput) *entry {
	steps, _ := workflow.NewDisconnectedContext(ctx)
	return &entry{
		root: ctx,
		ctx:  steps,
		in:   in, clocks: in.Settings,
		status: contract.EntryStatus{
			EntryID: in.EntryID, SKU: in.SKU, State: contract.EntryWaiting, Quantity: in.Quantity, Person: in.Person,
			Name: in.Name, Phone: in.Phone, Locale: in.Locale, Consent: in.Consent, JoinedAt: in.JoinedAt, ExpiresAt: in.JoinedAt.Add(seconds(in.Settings.TTLSeconds)),
		},
		events:     emitter{ctx: steps},
		offered:    workflow.GetSignalChannel(ctx, contract.SignalOffered),
		claimed:    workflow.GetSignalChannel(ctx, contract.SignalClaimed),
		holdEnded:  workflow.GetSignalChannel(ctx, contract.SignalHoldEnded),
		ended:      workflow.GetSignalChannel(ctx, contract.SignalEnded),
		textStatus: workflow.GetSignalChannel(ctx, contract.SignalTextStatus),
		textWaits:  workflow.GetSignalChannel(ctx, contract.SignalTextWaits),
		leave:      workflow.GetSignalChannel(ctx, contract.SignalLeave),
	}
}

func (e *entry) setup() error {
	return workflow.SetQueryHandler(e.root, contract.QueryStatus, func() (contract.EntryStatus, error) { return e.status, nil })
}

func (e *entry) run() (contract.EntryResult, error) {
	if err := e.sync(); err != nil {
		return contract.EntryResult{}, err
	}
	if e.status.State.Live() {
		e.ttl.set(e.ctx, "place in line expires", e.status.ExpiresAt.Sub(workflow.Now(e.ctx)))
		e.sendJoined()
	}
	for e.status.State.Live() {
		err := workflow.Await(e.ctx, e.due)
		if err == nil {
			err = e.step()
		}
		if err != nil {
			return contract.EntryResult{}, err
		}
	}
	err := workflow.Await(e.ctx, e.events.idle)
	return contract.EntryResult{EntryID: e.in.EntryID, State: e.status.State, HoldID: e.status.HoldID}, err
}

// due says whether there is something to do. A place expires only while it
// waits: with an offer or a hold it waits for those to end.
func (e *entry) due() bool {
	return e.leave.Len() > 0 || e.holdEnded.Len() > 0 || e.ended.Len() > 0 || e.claimed.Len() > 0 || e.offered.Len() > 0 || e.textStatus.Len() > 0 || e.textWaits.Len() > 0 ||
		ready(e.offer.telling) || ready(e.joined) || e.later.timer.due() || e.offer.clock.due() || e.expiring() || e.cancelled()
}

func (e *entry) expiring() bool { return e.ttl.due() && e.status.State == contract.EntryWaiting }

// cancelled answers once: an entry whose hold runs on still waits for its end.
func (e *entry) cancelled() bool { return e.root != nil && e.root.Err() != nil }

// step does one thing; what ends an entry comes before what sends a text.
func (e *entry) step() error {
	switch {
	case e.leave.Len() > 0:
		var m contract.Leave
		if !e.leave.ReceiveAsync(&m) {
			return nil
		}
		return e.end(contract.EntryLeft, redis.ActorShopper)
	case e.holdEnded.Len() > 0:
		var m contract.HoldEnded
		if e.holdEnded.ReceiveAsync(&m) && m.HoldID == e.status.HoldID {
			e.offer.ended = m.EndedAt
		}
		return e.sync()
	case e.ended.Len() > 0:
		e.ended.ReceiveAsync(nil)
		return e.sync()
	case e.cancelled():
		e.root = nil
		return e.end(contract.EntryRemoved, "cancel")
	case e.claimed.Len() > 0:
		var m contract.Claimed
		if e.claimed.ReceiveAsync(&m) {
			e.onClaimed(m)
		}
		return nil
	case e.offered.Len() > 0:
		var m contract.Offered
		if !e.offered.ReceiveAsync(&m) {
			return nil
		}
		return e.onOffered(m)
	case e.textStatus.Len() > 0:
		var m contract.TextStatus
		if !e.textStatus.ReceiveAsync(&m) {
			return nil
		}
		return e.onTextStatus(m)
	case e.textWaits.Len() > 0:
		e.onTextWaits()
		return nil
	case ready(e.offer.telling):
		return e.onTold()
	case ready(e.joined):
		return e.onJoined()
	case e.later.timer.due():
		e.later.timer.clear()
		e.sendJoined()
		return nil
	case e.expiring():
		return e.end(contract.EntryExpired, "ttl")
	case e.offer.morning && e.offer.clock.due():
		e.offer.clock.clear()
		e.stopWaiting() // what keeps it now, if anything does, is something else
		e.sendOffer()
		e.show()
		return nil
	default:
		return e.lapse(e.offer.missedText())
	}
}

// sync tells the gate that this workflow runs and knows, and learns what the
// record says.
func (e *entry) sync() error {
	out, err := gateStep[activities.EntryOutcome](e.ctx, "acknowledge", entryActivities.AdoptEntry, e.ref())
	if err == nil {
		e.take(out)
	}
	return err
}

// end asks the gate to end the entry. A hold that was pressed runs on, and the
// entry ends with it.
func (e *entry) end(state contract.EntryState, actor string) error {
	out, err := gateStep[activities.EntryOutcome](e.ctx, "end: "+string(state), entryActivities.LeaveEntry,
		activities.LeaveEntryInput{EntryRef: e.ref(), State: state, Actor: actor})
	if err == nil {
		e.take(out)
	}
	return err
}

func (e *entry) ref() activities.EntryRef {
	return activities.EntryRef{SKU: e.in.SKU, EntryID: e.in.EntryID}
}

// take makes the gate's record the status.
func (e *entry) take(out activities.EntryOutcome) {
	if out.Verdict == redis.Unknown {
		workflow.GetLogger(e.ctx).Error("the gate has no record of this entry: its place is lost", "entry", e.in.EntryID)
		out.State = contract.EntryRemoved
	}
	e.events.on = out.Tell
	if !e.known {
		e.known = true
		e.emit(contract.EventWaitlistJoined, "", e.in.JoinedAt)
	}
	e.present(out.HoldID, out.Generation)
	e.status.Missed, e.status.Leaving = out.Missed, out.Leaving
	e.become(out.State, out.EndedAt)
}

// become changes the state at an instant of the gate's, the zero one for now.
func (e *entry) become(state contract.EntryState, at time.Time) {
	if was := e.status.State; state != was {
		e.status.State = state
		setState(e.ctx, string(state))
		if at.IsZero() && state == contract.EntryWaiting {
			at = e.offer.ended
		}
		e.tell(was, at)
	}
	if state != contract.EntryOffered {
		e.stopWaiting()
		e.status.OfferSent, e.status.OfferUntil = false, nil
	}
	if state == contract.EntryWaiting {
		e.offer.clock.clear()
	}
	e.show()
}

func (e *entry) show() {
	name := e.in.Name
	if name == "" {
		name = e.in.Person
	}
	until, next := "", "closes"
	switch e.status.State {
	case contract.EntryWaiting:
		next = "waits for a unit until " + instant(e.status.ExpiresAt)
	case contract.EntryOffered:
		next = "the text that tells of the offer"
		if w := e.status.TextWaits; w != nil {
			next += ", which waits: " + string(w.Why)
			if !w.Until.IsZero() {
				next += " until " + instant(w.Until)
			}
		} else if e.status.OfferUntil != nil {
			until, next = instant(*e.status.OfferUntil), "a press, or the offer lapses"
		}
		if e.offer.lost != "" {
			next = "a press, or the offer lapses and costs no turn: its text " + e.offer.lost
		}
	case contract.EntryHolding:
		next = "the end of the hold " + verbatim(e.status.HoldID)
	}
	details(e.ctx,
		"State", string(e.status.State),
		"Lines", fmt.Sprintf("%d × %s", e.in.Quantity, verbatim(e.in.SKU)),
		"Customer", verbatim(name),
		"Held until", until,
		"Next", next,
	)
}

// sms sends a text on the queue whose rate limit is global. It is tried for as
// long as it makes sense. Each attempt asks the gate first, so nobody who has
// left gets one.
func (e *entry) sms(summary string, priority int, worth time.Duration, activity, in any) workflow.Future {
	ctx := workflow.WithActivityOptions(e.ctx, workflow.ActivityOptions{
		TaskQueue:              contract.SMSTaskQueue,
		ScheduleToCloseTimeout: worth,
		StartToCloseTimeout:    30 * time.Second, // the gate, then a provider that may be slow
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute},
		Priority:               temporal.Priority{PriorityKey: priority},
		Summary:                summary,
	})
	return workflow.ExecuteActivity(ctx, activity, in)
}

// joinedWorth is how long a person's place in line is news.
const joinedWorth = 24 * time.Hour

func (e *entry) sendJoined() {
	e.joined = e.sms("joined text", contract.PriorityLine, joinedWorth, textActivities.SendJoined,
		activities.JoinedTextInput{EntryRef: e.ref(), Addressee: e.addressee(), Phone: e.in.Phone, Position: e.in.Position, Earlier: e.later.earlier})
}

func (e *entry) addressee() activities.Addressee {
	return activities.Addressee{Locale: e.in.Locale, Name: e.in.Name}
}

func (e *entry) onJoined() error {
	var out activities.TextResult
	err := e.joined.Get(e.ctx, &out)
	e.joined = nil
	switch {
	case refusedForEver(err):
		return e.end(endOfRefused(err), actorTexts)
	case err != nil:
		workflow.GetLogger(e.ctx).Warn("joined text given up", "entry", e.in.EntryID, "error", err)
	case out.Waits != nil:
		e.joinedWaits(*out.Waits)
	}
	return nil
}

func refusedForEver(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == contract.ErrTextNever
}

// endOfRefused is how an entry ends whose text is refused for ever.
func endOfRefused(err error) contract.EntryState {
	var app *temporal.ApplicationError
	var refusal contract.TextRefusal
	if errors.As(err, &app) && app.HasDetails() && app.Details(&refusal) == nil && refusal.OptedOut {
		return contract.EntryOptedOut
	}
	return contract.EntryUnreachable
}

package workflows

import (
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

var optOutActivities *activities.OptOuts

// seenMost is how many texts of a person are known again. A provider repeats a
// message within minutes.
const seenMost = 20

// OptOut is open while a person wants no texts. STOP starts it and ends every place
// of theirs; only START ends it, so that it is remembered whatever Redis forgets.
func OptOut(ctx workflow.Context, in contract.OptOutInput) (contract.OptOutResult, error) {
	o := newOptOut(ctx, in)
	if err := o.setup(); err != nil {
		return contract.OptOutResult{}, err
	}
	return o.run()
}

type optOut struct {
	ctx    workflow.Context // is not cancelled: that would bring the texts back
	in     contract.OptOutInput
	seen   []string
	status contract.OptOutStatus

	ending workflow.Future // of the person's places
	stop   workflow.CancelFunc
	again  bool // STOP came while they ended: a join may have slipped past
	said   workflow.ReceiveChannel
}

func newOptOut(ctx workflow.Context, in contract.OptOutInput) *optOut {
	steps, _ := workflow.NewDisconnectedContext(ctx)
	o := &optOut{
		ctx: steps, in: in, seen: in.Seen,
		status: contract.OptOutStatus{Person: in.Person, State: contract.OptedOut, Since: in.Since, Source: in.Source, Ended: in.Ended},
		said:   workflow.GetSignalChannel(ctx, contract.SignalSaid),
	}
	if in.Since.IsZero() {
		o.status.Since = workflow.Now(ctx).UTC()
	}
	return o
}

func (o *optOut) setup() error {
	return workflow.SetQueryHandler(o.ctx, contract.QueryStatus, func() (contract.OptOutStatus, error) { return o.status, nil })
}

func (o *optOut) run() (contract.OptOutResult, error) {
	o.show()
	for {
		if err := workflow.Await(o.ctx, o.due); err != nil {
			return contract.OptOutResult{}, err
		}
		for o.said.Len() > 0 {
			var m contract.Said
			if o.said.ReceiveAsync(&m) {
				o.hear(m)
			}
		}
		if ready(o.ending) {
			if err := o.ended(); err != nil {
				return contract.OptOutResult{}, err
			}
		}
		o.show()
		switch {
		case o.status.State == contract.OptedIn:
			setState(o.ctx, contract.OptedIn)
			return contract.OptOutResult{Seen: o.seen}, nil
		case o.full() && o.ending == nil:
			next := o.in
			next.Seen, next.Since, next.Source, next.Ended = o.seen, o.status.Since, o.status.Source, o.status.Ended
			return contract.OptOutResult{}, workflow.NewContinueAsNewError(o.ctx, contract.OptOutWorkflow, next)
		}
	}
}

func (o *optOut) due() bool {
	return o.said.Len() > 0 || ready(o.ending) || o.full() && o.ending == nil
}

func (o *optOut) full() bool { return workflow.GetInfo(o.ctx).GetContinueAsNewSuggested() }

// hear takes a word, once.
func (o *optOut) hear(m contract.Said) {
	if m.MessageID != "" {
		if slices.Contains(o.seen, m.MessageID) {
			return
		}
		o.seen = append(o.seen, m.MessageID)
		o.seen = o.seen[max(0, len(o.seen)-seenMost):]
	}
	switch m.Word {
	case contract.SaidStop:
		if o.status.Source == "" {
			o.status.Source = m.Source
		}
		o.status.State = contract.OptedOut
		o.again = o.ending != nil
		if o.ending == nil {
			o.end()
		}
	case contract.SaidStart:
		o.status.State = contract.OptedIn
		if o.ending != nil {
			o.stop() // what has not ended yet may stay
			o.ending, o.again = nil, false
		}
	default:
		workflow.GetLogger(o.ctx).Warn("a word that is neither stop nor start is ignored", "word", m.Word)
	}
}

// end ends the person's places, however long that takes: until then their texts
// do not go out either, since each looks for this workflow first.
func (o *optOut) end() {
	ctx := workflow.WithActivityOptions(o.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute, // very many SKUs
		HeartbeatTimeout:    10 * time.Second, // it beats by itself
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "end the person's places in line",
	})
	ctx, o.stop = workflow.WithCancel(ctx)
	o.ending = workflow.ExecuteActivity(ctx, optOutActivities.EndPlaces, activities.PersonRef{Person: o.in.Person})
}

func (o *optOut) ended() error {
	var out activities.PlacesEnded
	if err := o.ending.Get(o.ctx, &out); err != nil {
		return err
	}
	o.status.Ended += out.Ended
	o.ending = nil
	if o.again {
		o.again = false
		o.end()
	}
	return nil
}

func (o *optOut) show() {
	next := "a START from the person; until then they get no texts and cannot join"
	switch {
	case o.status.State == contract.OptedIn:
		next = "closes"
	case o.ending != nil:
		next = "ends the person's places in line"
	}
	details(o.ctx,
		"State", o.status.State,
		"Customer", verbatim(o.in.Person),
		"Since", instant(o.status.Since),
		"Cause", verbatim(o.status.Source),
		"Places ended", strconv.Itoa(o.status.Ended),
		"Next", next,
	)
}

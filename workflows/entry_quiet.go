package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
)

// Texts that wait: asked to send, the activity answers until when it may not, and
// nothing has been told or sent. A wait costs the history an activity and a timer.

// A clock that goes ahead of the worker's asks too soon. After the first waits each is
// at least twice the one before, so that clocks which differ by minutes cost a history a
// few waits and no loop.
const (
	leastWait  = time.Second
	firstWaits = 3
	mostLeast  = 10 // doublings: some seventeen minutes
)

// delay is the wait of the joined text.
type delay struct {
	timer   timer
	asked   int
	earlier activities.Earlier
}

func (e *entry) joinedWaits(w activities.TextWaits) {
	e.later.earlier.TriedSince = w.TriedSince
	e.later.timer.set(e.ctx, "joined text waits: "+string(w.Why), e.untilThen(w.Until, e.later.asked))
	e.later.asked++
}

// offerWaits keeps the offer until its text can be sent, or to the time at which its
// unit is passed on because that is too long: lapse then finds that nobody was told,
// and the person keeps the place. An offer whose text may have been sent without our
// knowing is kept.
func (e *entry) offerWaits(w activities.TextWaits) error {
	if e.offer.window {
		return nil // its callback came first
	}
	e.offer.waits, e.offer.morning = true, true
	e.offer.earlier.TriedSince = w.TriedSince
	e.status.TextWaits, e.status.OfferUntil = &w.TextWait, nil
	until := w.Until
	if w.MaxWaitSeconds > 0 && w.TriedSince.IsZero() {
		most := min(w.MaxWaitSeconds, e.clocks.MaxAgeSeconds)
		if ends := e.offer.at.Add(seconds(most)); ends.Before(until) {
			e.offer.morning, until = false, ends
			e.status.OfferUntil = &ends
		}
	}
	e.offer.clock.set(e.ctx, "offer text waits: "+string(w.Why), e.untilThen(until, e.offer.asked))
	e.offer.asked++
	e.show()
	return nil
}

func (e *entry) untilThen(at time.Time, asked int) time.Duration {
	return max(leastWait<<min(max(0, asked-firstWaits), mostLeast), at.Sub(workflow.Now(e.ctx)))
}

// stopWaiting: the offer's text waits no more, because it is sent or wanted no more.
func (e *entry) stopWaiting() {
	e.offer.waits, e.offer.morning, e.status.TextWaits = false, false, nil
}

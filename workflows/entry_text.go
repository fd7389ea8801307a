package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// The text of an offer, and what becomes of a text on its way.

// actorTexts ends an entry whose person no text can reach.
const actorTexts = "sms"

func (e *entry) sendOffer() {
	e.offer.telling = e.sms("offer text", contract.PriorityUnit, max(time.Second, e.ageLeft()), textActivities.SendOffer, activities.OfferTextInput{
		ToldInput: e.toldInput(), Addressee: e.addressee(), EntryID: e.in.EntryID, Phone: e.in.Phone, Earlier: e.offer.earlier,
	})
}

// onTold learns what became of the offer's text.
func (e *entry) onTold() error {
	var out activities.TextResult
	err := e.offer.telling.Get(e.ctx, &out)
	e.offer.telling = nil
	e.stopWaiting()
	switch {
	case refusedForEver(err):
		return e.end(endOfRefused(err), actorTexts)
	case e.status.State != contract.EntryOffered:
		return nil // it has ended meanwhile, or was pressed
	case out.Waits != nil:
		return e.offerWaits(*out.Waits)
	case err != nil && !e.offer.window:
		// Whatever it was, the next in line would fare no better: the unit is not
		// passed on before its time.
		workflow.GetLogger(e.ctx).Error("offer text given up", "entry", e.in.EntryID, "hold", e.status.HoldID, "error", err)
		e.offer.clock.set(e.ctx, "offer that was not told", e.ageLeft())
		return nil
	case out.Skipped:
		e.offer.earlier.TriedSince = out.TriedSince
		return e.onNotTold(out.Hold)
	}
	e.offer.told, e.offer.arrived, e.status.OfferSent = true, out.Arrived, true
	switch {
	case e.offer.window: // its callback came first
		e.show()
		return nil
	case out.Sent:
		return e.windowStarts()
	}
	return e.offerStands(out.Hold)
}

// onTextWaits learns what keeps the text that is on its way.
func (e *entry) onTextWaits() {
	var wait contract.TextWait
	if e.textWaits.ReceiveAsync(&wait) && e.offer.telling != nil && e.status.State == contract.EntryOffered {
		e.status.TextWaits = &wait
		e.show()
	}
}

// onNotTold: a paused SKU tells again when it resumes, and the outbox brings the
// offer. After the end of the sale nobody is told any more. An offer that is no more
// has been pressed or has ended.
func (e *entry) onNotTold(hold activities.HoldOutcome) error {
	switch hold.Verdict {
	case redis.Paused:
		e.offer.clock.set(e.ctx, "offer that was not told", e.ageLeft())
		return nil
	case redis.Ended:
		return e.lapse(true)
	}
	return e.offerStands(hold)
}

// onTextStatus takes the provider's word on a text. A text only moves forward. A
// word that was overtaken, a repeat, and one on the text of an offer that is no more
// cost no step.
func (e *entry) onTextStatus(m contract.TextStatus) error {
	state := sms.State(m.Status)
	switch {
	case state.Lost() && m.OptedOut: // it is about the person, whichever text
		return e.end(contract.EntryOptedOut, actorTexts)
	case m.HoldID == "":
		return e.onJoinedStatus(state, m)
	case m.HoldID != e.status.HoldID || e.status.State != contract.EntryOffered:
		return nil
	}
	was := e.offer.text
	e.offer.text = was.Advance(state)
	switch {
	case e.offer.text == was:
		return nil
	case e.offer.text.Lost():
		return e.onLost(m)
	case e.offer.text == sms.StateSent, e.offer.text.Final():
		return e.windowStarts()
	}
	return nil
}

// onJoinedStatus: a number that the joined text never reaches gets no other either,
// unless one has come through.
func (e *entry) onJoinedStatus(state sms.State, m contract.TextStatus) error {
	if !state.Lost() || sms.Class(m.Class) != sms.Never || e.status.State == contract.EntryHolding || e.offer.text == sms.StateDelivered {
		return nil
	}
	return e.end(contract.EntryUnreachable, actorTexts)
}

// onLost: who can never be reached makes room at once. Any other loss keeps the
// offer to its deadline (its page shows it, and no second text is sent), and then it
// costs no turn.
func (e *entry) onLost(m contract.TextStatus) error {
	if sms.Class(m.Class) == sms.Never {
		return e.end(contract.EntryUnreachable, actorTexts)
	}
	if sms.Class(m.Class) == sms.StopAll {
		workflow.GetLogger(e.ctx).Error("texts do not arrive: see to the provider's account", "entry", e.in.EntryID, "text", m.TextID, "code", m.ErrorCode)
	}
	e.offer.lost = fmt.Sprintf("did not arrive (%s, code %d)", m.Status, m.ErrorCode)
	e.show()
	return nil
}

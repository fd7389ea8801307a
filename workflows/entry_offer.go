package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// An offer: known → told → a press, or it lapses.

const (
	// A hold ends by a message; this is only how long after its deadline the
	// entry asks by itself.
	holdSlack = time.Minute
	// How long it waits when the gate names no deadline any more.
	holdGuard = time.Hour
)

// offer is what the workflow knows of the entry's present offer, beside the gate's
// record. Its id is status.HoldID.
type offer struct {
	at      time.Time       // offered
	telling workflow.Future // its text, on its way to the provider
	told    bool            // the provider has taken its text, or it was pressed
	window  bool            // runs from the sending of the text
	text    sms.State       // how far the text has come
	lost    string          // what became of a lost text, for people
	arrived bool            // there is nothing more to hear of its text
	ended   time.Time       // by the gate's clock
	clock   timer           // of the offer, or of the hold
	waits   bool            // its text waits, and clock is that of the wait
	morning bool            // then it can be sent; else the wait has been too long
	asked   int             // how often it had to wait
	earlier activities.Earlier
}

// delivered says that its person has the text, as far as is ever known.
func (o *offer) delivered() bool { return o.arrived || o.text.Final() && !o.text.Lost() }

// missedText says that the person got no text: to lapse then costs no turn.
func (o *offer) missedText() bool { return !o.told || o.text.Lost() }

// present makes holdID the entry's offer, if it is another than the present one.
// That one has ended, then: nothing is left to do for it. Its text, should it be on
// its way still, asks the gate before each attempt.
func (e *entry) present(holdID string, generation int64) {
	if holdID == "" || holdID == e.status.HoldID {
		return
	}
	if s := e.status.State; s == contract.EntryOffered || s == contract.EntryHolding {
		e.become(contract.EntryWaiting, time.Time{})
	}
	e.offer.clock.clear()
	e.stopWaiting()
	e.offer = offer{}
	e.status.HoldID, e.status.Generation, e.status.TextWaits = holdID, generation, nil
}

// onOffered learns of an offer. One that it knows is ignored, unless it could
// not be told: then the outbox brings it again.
func (e *entry) onOffered(m contract.Offered) error {
	if m.HoldID == e.status.HoldID && (e.offer.told || e.offer.telling != nil || e.offer.waits) {
		return nil
	}
	out, err := gateStep[activities.KnownOffer](e.ctx, "know of the offer", entryActivities.AdoptOffer, e.offerRef(m.HoldID))
	if err != nil {
		return err
	}
	switch {
	case out.Verdict != redis.OK:
		workflow.GetLogger(e.ctx).Warn("offer without a record ignored", "entry", e.in.EntryID, "hold", m.HoldID)
		return nil
	case !out.State.Live():
		return e.sync()
	}
	e.present(m.HoldID, out.Generation)
	e.clocks = e.in.Settings.Under(out.Policy)
	e.offer.at = out.OfferedAt
	e.events.on = out.Tell
	if out.State != contract.HoldOffered {
		e.holding(out.Left())
		return nil
	}
	e.offer.clock.clear()
	e.become(contract.EntryOffered, out.OfferedAt)
	e.sendOffer()
	return nil
}

func (e *entry) offerRef(holdID string) activities.OfferRef {
	return activities.OfferRef{SKU: e.in.SKU, HoldID: holdID}
}

func (e *entry) toldInput() activities.ToldInput {
	return activities.ToldInput{OfferRef: e.offerRef(e.status.HoldID), Settings: e.clocks}
}

// ageLeft is how long the offer may still wait to be told.
func (e *entry) ageLeft() time.Duration {
	return e.offer.at.Add(seconds(e.clocks.MaxAgeSeconds)).Sub(workflow.Now(e.ctx))
}

// windowStarts: the provider has sent the text. The gate sets the deadline, once.
func (e *entry) windowStarts() error {
	if e.offer.window {
		return nil
	}
	hold, err := gateStep[activities.HoldOutcome](e.ctx, "window starts", entryActivities.OfferSent, e.toldInput())
	if err != nil {
		return err
	}
	if e.offer.waits { // an attempt whose answer was lost had sent it
		e.stopWaiting()
	}
	e.offer.window, e.offer.told, e.status.OfferSent = true, true, true
	return e.offerStands(hold)
}

// offerStands waits for the deadline of the offer, or for the hold that it has
// become.
func (e *entry) offerStands(hold activities.HoldOutcome) error {
	switch hold.State {
	case contract.HoldOffered:
		e.status.OfferUntil = &hold.Deadline
		e.offer.clock.set(e.ctx, "offer window", hold.Left())
		e.show()
		return nil
	case contract.HoldProvisional, contract.HoldHeld:
		e.holding(hold.Left())
		return nil
	default:
		return e.sync()
	}
}

// onClaimed: the Hold of the pressed offer lives, and has told its entry. Nothing is
// asked of the gate for that. A word that comes after the hold has ended is late.
func (e *entry) onClaimed(m contract.Claimed) {
	if m.HoldID == e.status.HoldID && e.status.State == contract.EntryOffered {
		e.holding(m.ExpiresAt.Sub(workflow.Now(e.ctx)))
	}
}

// holding waits for the hold to end, which hold-ended tells. The timer only
// asks again in case that a press died and gave the offer back.
func (e *entry) holding(left time.Duration) {
	wait := holdGuard
	if left > 0 {
		wait = left + holdSlack
	}
	e.offer.told = true
	e.offer.clock.set(e.ctx, "hold ends", wait)
	e.become(contract.EntryHolding, time.Time{})
}

// tellsAgain is the change by which an entry tells the gate again what that has lost: an
// older worker may have waited in its place.
const tellsAgain = "a telling that was lost is told again"

// lapse asks the gate to end the offer; the gate says what it is by now. One that
// its person was not told of costs no turn, and ends at once unless its text was sent.
func (e *entry) lapse(notTold bool) error {
	e.offer.clock.clear()
	summary := "lapse"
	if notTold {
		summary = "lapse, not told"
	}
	out, err := gateStep[activities.HoldOutcome](e.ctx, summary, entryActivities.LapseOffer,
		activities.LapseOfferInput{OfferRef: e.offerRef(e.status.HoldID), NotTold: notTold, NotDelivered: !notTold && !e.offer.delivered()})
	if err != nil {
		return err
	}
	switch out.Verdict {
	case redis.Early:
		e.become(contract.EntryOffered, out.OfferedAt)
		if out.Untold && e.status.OfferSent && workflow.GetVersion(e.ctx, tellsAgain, workflow.DefaultVersion, 1) == 1 {
			e.offer.window = false // the gate has lost that, and would keep the units for offer.max_age
			return e.windowStarts()
		}
		return e.offerStands(out)
	case redis.Claimed:
		e.holding(out.Left())
		return nil
	}
	e.offer.ended = out.EndedAt
	if err := e.sync(); err != nil {
		return err
	}
	if e.status.State == contract.EntryOffered || e.status.State == contract.EntryHolding {
		e.offer.clock.set(e.ctx, "hold ends", holdGuard) // a newer offer is on its way
	}
	return nil
}

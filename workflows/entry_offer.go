package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// An offer: known → told → a press, or it lapses.

const (
	// A hold ends by a message; this is only how long after its deadline the
	// entry asks by itself.
	holdSlack = time.Minute
	// How long it waits when the gate names no deadline any more.
	holdGuard = time.Hour
)

// onOffered learns of an offer. One that it knows is ignored, unless it could
// not be told: then the outbox brings it again.
func (e *entry) onOffered(m contract.Offered) error {
	if m.HoldID == e.status.HoldID && (e.told || e.telling != nil) {
		return nil
	}
	out, err := gateStep[activities.HoldOutcome](e.ctx, "know of the offer", entryActivities.AdoptOffer, e.offerRef(m.HoldID))
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
	e.status.HoldID, e.status.Generation = m.HoldID, out.Generation
	e.status.OfferSent, e.status.OfferUntil = false, nil
	if out.State != contract.HoldOffered {
		e.holding(out)
		return nil
	}
	e.told = false
	e.events.on = out.Tell
	e.become(contract.EntryOffered, out.OfferedAt)
	worth := max(time.Second, out.OfferedAt.Add(seconds(e.in.Settings.MaxAgeSeconds)).Sub(workflow.Now(e.ctx)))
	e.telling = e.sms("offer text", worth, textActivities.SendOffer, activities.OfferTextInput{
		ToldInput: e.toldInput(), Addressee: e.addressee(), EntryID: e.in.EntryID, Phone: e.in.Phone,
	})
	return nil
}

func (e *entry) offerRef(holdID string) activities.OfferRef {
	return activities.OfferRef{SKU: e.in.SKU, HoldID: holdID}
}

func (e *entry) toldInput() activities.ToldInput {
	return activities.ToldInput{OfferRef: e.offerRef(e.status.HoldID), Settings: e.in.Settings}
}

// onTold learns what became of the offer's text.
func (e *entry) onTold() error {
	var out activities.TextResult
	err := e.telling.Get(e.ctx, &out)
	e.telling = nil
	switch {
	case refusedForEver(err):
		return e.end(contract.EntryUnreachable, "sms")
	case err != nil:
		workflow.GetLogger(e.ctx).Warn("offer text given up", "entry", e.in.EntryID, "hold", e.status.HoldID, "error", err)
		return e.lapse()
	case out.Skipped:
		return e.onNotTold(out.Hold)
	}
	e.told, e.status.OfferSent = true, true
	hold := out.Hold
	if out.Sent {
		hold, err = gateStep[activities.HoldOutcome](e.ctx, "window starts", entryActivities.OfferSent, e.toldInput())
		if err != nil {
			return err
		}
	}
	return e.offerStands(hold)
}

// onNotTold: a paused SKU tells again when it resumes, an ended one never; an
// offer that is no more has been pressed or has ended.
func (e *entry) onNotTold(hold activities.HoldOutcome) error {
	e.told = hold.Verdict != redis.Paused
	if hold.Verdict == redis.Paused || hold.Verdict == redis.Ended {
		e.clock.set(e.ctx, "offer window", hold.Left())
		return nil
	}
	return e.offerStands(hold)
}

// offerStands waits for the deadline of the offer, or for the hold that it has
// become.
func (e *entry) offerStands(hold activities.HoldOutcome) error {
	switch hold.State {
	case contract.HoldOffered:
		e.status.OfferUntil = &hold.Deadline
		e.clock.set(e.ctx, "offer window", hold.Left())
		e.show()
		return nil
	case contract.HoldProvisional, contract.HoldHeld:
		e.holding(hold)
		return nil
	default:
		return e.sync()
	}
}

// holding waits for the hold to end, which hold-ended tells. The timer only
// asks again in case that a press died and gave the offer back.
func (e *entry) holding(hold activities.HoldOutcome) {
	wait := holdGuard
	if hold.LeftMillis > 0 {
		wait = hold.Left() + holdSlack
	}
	e.told = true
	e.clock.set(e.ctx, "hold ends", wait)
	e.become(contract.EntryHolding, time.Time{})
}

// lapse asks the gate to end the offer; the gate says what it is by now.
func (e *entry) lapse() error {
	e.clock.clear()
	out, err := gateStep[activities.HoldOutcome](e.ctx, "lapse", entryActivities.LapseOffer,
		activities.LapseOfferInput{OfferRef: e.offerRef(e.status.HoldID)})
	if err != nil {
		return err
	}
	switch out.Verdict {
	case redis.Early:
		e.become(contract.EntryOffered, out.OfferedAt)
		return e.offerStands(out)
	case redis.Claimed:
		e.holding(out)
		return nil
	}
	if err := e.sync(); err != nil {
		return err
	}
	if e.status.State == contract.EntryOffered || e.status.State == contract.EntryHolding {
		e.clock.set(e.ctx, "hold ends", holdGuard) // a newer offer is on its way
	}
	return nil
}

package starter

import (
	"context"
	"html/template"
	"net/http"

	"holdfast/contract"
	"holdfast/redis"
)

// entryPage shows a person's place.
func (d *Door) entryPage(rw http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	e, err := d.readEntry(ctx, r.PathValue("entry_id"))
	if err != nil {
		return err
	}
	d.pages.speak(r, e)
	s, err := d.standOf(ctx, d.pages.of(r), pageOf(r), []contract.Line{{SKU: e.SKU, Quantity: e.Units}})
	if err != nil {
		return err
	}
	c, err := d.entryCard(ctx, s, e)
	if err != nil {
		return err
	}
	return d.renderCard(rw, s.w, s.w.plain("place_title"), c, s.about, http.StatusOK)
}

// entryCard says how an entry stands; what it has of a hold is the hold's story.
func (d *Door) entryCard(ctx context.Context, s *stand, e redis.Entry) (card, error) {
	var h redis.Hold
	if e.HoldID != "" {
		out, ok, err := d.gate.ReadHold(ctx, e.SKU, e.HoldID)
		if err != nil {
			return card{}, err
		}
		if ok {
			h = out.Hold
		}
	}
	switch {
	case e.State == contract.EntryWaiting:
		return d.waitingCard(s, e), nil
	case e.State == contract.EntryOffered:
		return d.turnCard(ctx, s, h, e), nil
	case e.State == contract.EntryHolding && h.State == contract.HoldHeld:
		c := d.heldCard(s, h, e)
		c.More = []action{{Label: s.w.say("see_hold"), URL: "/h/" + h.ID, Quiet: true}}
		c.Sure = nil
		return c, nil
	case e.State == contract.EntryHolding: // an instant of the record
		c := s.card("making", moodWait, s.w.say("making_heading"))
		c.say(s.w.say("making"))
		c.Main, c.Again = s.look(), againSoon
		return c, nil
	case e.State == contract.EntryBought:
		c := s.soldCard(h)
		c.More = []action{{Label: s.w.say("see_hold"), URL: "/h/" + e.HoldID, Quiet: true}}
		return c, nil
	}
	return d.endedCard(ctx, s, h, e, s.w.entryEnding(e, &h))
}

func (d *Door) waitingCard(s *stand, e redis.Entry) card {
	if s.state == contract.SKUEnded {
		c := s.card("waiting", moodOver, s.w.say("place_ended_heading"))
		c.say(s.w.say("place_ended", "n", e.Position))
		return c
	}
	heading := s.w.say("place_heading", "n", e.Position)
	if e.Position == 0 {
		heading = s.w.say("place_heading_none")
	}
	c := s.card("waiting", moodWait, heading)
	switch {
	case s.state == contract.SKUPaused:
		c.say(s.w.say("place_paused"))
	case e.Generation > 0 && e.Generation == s.generation: // nobody is asked twice in one
		c.say(s.w.say("place_missed"))
	}
	c.say(s.w.say("place_how"), s.w.say("place_window", "span", s.span(s.policy.OfferWindowSeconds)))
	if e.Units > 1 {
		c.say(s.w.say("place_wish", "n", e.Units))
	}
	c.Sure, c.Again = s.leave(e, "leave_sure"), againPlace
	return c
}

func (d *Door) turnCard(ctx context.Context, s *stand, h redis.Hold, e redis.Entry) card {
	var c card
	if h.ToldAt.IsZero() {
		c = s.card("turn", moodGood, s.w.say("turn_heading"))
		c.say(d.textComing(ctx, s, e)...)
	} else {
		c = d.offerCard(s, h, e)
		if c.Clock != nil {
			c.say(s.w.say("turn_open"))
		}
		c.say(s.w.say("turn_no_text"))
	}
	c.Sure = s.leave(e, "turn_leave_sure")
	if c.Again == 0 || c.Again > againHeld {
		c.Again = againHeld
	}
	return c
}

// textComing says what becomes of a text that has not gone yet. Only the entry's
// workflow knows what keeps it.
func (d *Door) textComing(ctx context.Context, s *stand, e redis.Entry) []template.HTML {
	var status contract.EntryStatus
	if !d.status(ctx, e.ID, &status) || status.TextWaits == nil {
		return says(s.w.say("turn_coming"), s.w.say("turn_no_text"))
	}
	if status.TextWaits.Why == contract.WhyQuietHours {
		return says(s.w.say("turn_quiet", "until", s.w.until(status.TextWaits.Until, s.now)))
	}
	return says(s.w.say("turn_held_up"))
}

func (s *stand) leave(e redis.Entry, text string) *sure {
	return &sure{Label: s.w.say("leave"), Text: s.w.say(text), Yes: s.w.say("leave_yes"), URL: "/w/" + e.ID + "/leave"}
}

func (d *Door) leaveForm(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("entry_id")
	if err := d.leave(r.Context(), id); err != nil {
		return err
	}
	return seeOther(w, "/w/"+id)
}

// againForm joins once more, at the back, for a person whose entry has ended.
// Only the entry's workflow knows the number, also when it has closed.
func (d *Door) againForm(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("entry_id")
	e, err := d.readEntry(r.Context(), id)
	if err != nil {
		return err
	}
	d.pages.speak(r, e)
	if e.State.Live() {
		return seeOther(w, "/w/"+id)
	}
	var s contract.EntryStatus
	if !d.status(r.Context(), id, &s) || s.Phone == "" {
		return tryLater(retrySoon, "the entry's workflow does not answer right now")
	}
	j := joining{SKU: e.SKU, Phone: s.Phone, Quantity: e.Units, Name: s.Name, Locale: s.Locale, Consent: contract.Consent{Source: consentAgain}}
	if s.Consent != nil {
		j.Consent.TextVersion = s.Consent.TextVersion
	}
	if err := d.admit(r, j.Phone, false); err != nil {
		return err
	}
	out, err := d.join(r.Context(), j)
	if err != nil {
		return err
	}
	return seeOther(w, "/w/"+out.Entry.ID)
}

package starter

import (
	"context"
	"html/template"
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// stand is what the page of a hold or an entry is made of, beside its record.
type stand struct {
	w       *words
	from    string    // the page itself
	now     time.Time // by the gate's clock
	sku     string    // of the first line
	state   contract.SKUState
	about   contract.About // of the first line
	product *product
	lines   []template.HTML // of a cart
	// generation is the restock that the line is asked of.
	generation int64
	units      int64
	open       bool            // all of it is available to anyone, now
	policy     contract.Policy // of the first line, in effect
}

func (d *Door) standOf(ctx context.Context, w *words, from string, lines []contract.Line) (*stand, error) {
	s := &stand{w: w, from: from, open: true}
	for i, line := range lines {
		counters, about, err := d.gate.Snapshot(ctx, line.SKU)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.now, s.sku, s.state, s.about, s.generation = counters.AsOf, line.SKU, counters.State, about, counters.Generation
		}
		s.open = s.open && counters.State == contract.SKUAvailable
		s.units += line.Quantity
		s.lines = append(s.lines, w.say("line", "n", line.Quantity, "title", titleOf(line.SKU, about)))
	}
	s.product = productOf(w, s.sku, s.about, s.units > 1)
	var err error
	s.policy, err = d.effective(ctx, s.sku)
	return s, err
}

// span is a clock of the policy in words.
func (s *stand) span(seconds *int64) template.HTML {
	return s.w.span(time.Duration(*seconds) * time.Second)
}

// cart says that the hold has several products.
func (s *stand) cart() { s.product = &product{Title: s.w.plain("cart_title")} }

func (s *stand) card(kind, mood string, heading template.HTML) card {
	return card{Kind: kind, Mood: mood, Heading: heading, Product: s.product, from: s.from}
}

// holdPage shows a hold with its deadline, the way to the checkout, and the way
// to give it back. A cart leads to the checkout of its first line.
func (d *Door) holdPage(rw http.ResponseWriter, r *http.Request) error {
	out, err := d.readHold(r.Context(), r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	e, err := d.entryOf(r, out.Hold)
	if err != nil {
		return err
	}
	s, err := d.standOf(r.Context(), d.pages.of(r), pageOf(r), linesOf(out.Hold))
	if err != nil {
		return err
	}
	c, err := d.holdCard(r.Context(), s, out.Hold, e)
	if err != nil {
		return err
	}
	return d.renderCard(rw, s.w, s.product.Title, c, s.about, http.StatusOK)
}

// holdCard says how a hold stands; the entry is the zero one for a walk-in.
func (d *Door) holdCard(ctx context.Context, s *stand, h redis.Hold, entry redis.Entry) (card, error) {
	if h.Cart != nil {
		s.cart()
	}
	var c card
	switch h.State {
	case contract.HoldProvisional:
		c = s.card("making", moodWait, s.w.say("making_heading"))
		c.say(s.w.say("making"))
		c.Main, c.Again = s.look(), againSoon
	case contract.HoldOffered:
		c = d.offerCard(s, h, entry)
		c.say(s.w.say("turn_open"))
	case contract.HoldHeld:
		c = d.heldCard(s, h, entry)
	case contract.HoldSold:
		c = s.soldCard(h)
		s.refund(&c, h, d.refundFor(ctx, h))
	default:
		return d.endedCard(ctx, s, h, entry, s.w.ending(h))
	}
	if h.Cart != nil {
		c.Lines = s.lines
	}
	return c, nil
}

func (s *stand) look() *action {
	return &action{Label: s.w.say("look_again"), URL: s.from, Quiet: true}
}

// offerCard says what is kept and until when. Nobody can count on it past its
// deadline, though only the lapse ends it.
func (d *Door) offerCard(s *stand, h redis.Hold, e redis.Entry) card {
	until := d.offerUntil(h)
	if !until.After(s.now) {
		c := s.card("overdue", moodWait, s.w.say("overdue_heading"))
		c.say(s.w.say("overdue_offer"))
		c.Main, c.Again = s.look(), againSoon
		return c
	}
	c := s.card("offer", moodGood, s.w.say("turn_heading"))
	c.clockTo(s.w, until, s.now)
	c.say(s.w.count("kept", h.Units, "until", s.w.until(until, s.now)))
	if e.Units > h.Units {
		c.say(s.w.say("kept_part", "wanted", e.Units))
	}
	c.Again = againPlace
	return c
}

// heldCard leads to the checkout. Past its deadline a hold waits for a payment
// that is under way, or for its end.
func (d *Door) heldCard(s *stand, h redis.Hold, e redis.Entry) card {
	if !h.Deadline.After(s.now) {
		c := s.card("overdue", moodWait, s.w.say("overdue_heading"))
		c.Again = againSoon
		to := d.checkoutURL(s.about, h)
		if h.Extended || to == "" {
			c.say(s.w.say("overdue_paying"))
			c.Main = s.look()
			return c
		}
		c.say(s.w.say("overdue"))
		c.Main, c.More = &action{Label: s.w.say("checkout"), URL: to}, []action{*s.look()}
		return c
	}
	c := s.card("held", moodGood, s.w.say("held_heading"))
	c.clockTo(s.w, h.Deadline, s.now)
	until := s.w.until(h.Deadline, s.now)
	if h.Cart != nil {
		c.say(s.w.say("held_cart", "until", until))
	} else {
		c.say(s.w.count("held", h.Units, "until", until))
	}
	if e.Units > h.Units {
		c.say(s.w.say("kept_part", "wanted", e.Units))
	}
	if h.Extended {
		c.say(s.w.say("held_paying"))
	} else {
		c.say(s.w.say("held_pay"))
	}
	if e.Leaving {
		c.say(s.w.say("held_leaving"))
	}
	if to := d.checkoutURL(s.about, h); to != "" {
		c.Main = &action{Label: s.w.say("checkout"), URL: to}
	}
	c.Sure = &sure{Label: s.w.say("give_back"), Text: s.w.say("give_back_sure"), Yes: s.w.say("give_back_yes"), URL: "/h/" + h.ID + "/release"}
	c.Again = againHeld
	return c
}

func (s *stand) soldCard(h redis.Hold) card {
	key := "sold_heading_one"
	if h.Units > 1 || h.Cart != nil {
		key = "sold_heading_many"
	}
	c := s.card("sold", moodGood, s.w.say(key))
	if h.Cart == nil && h.Returned >= h.Units {
		c.Mood = moodOver
		c.say(s.w.say("sold_returned"))
	} else {
		c.say(s.w.say("sold"))
	}
	return c
}

// giveBackForm gives the units back for the shopper. Given back twice it shows
// the ended hold.
func (d *Door) giveBackForm(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("hold_id")
	out, err := d.giveBack(r.Context(), id, contract.ReasonShopper, redis.ActorShopper)
	if err != nil && out.Hold.State != contract.HoldSold { // a sale is shown as one
		return err
	}
	return seeOther(w, "/h/"+id)
}

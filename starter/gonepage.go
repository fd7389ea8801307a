package starter

import (
	"context"

	"holdfast/contract"
	"holdfast/redis"
)

// endedCard says how a hold or entry ended, what became of the money, and where
// the shopper stands now: the place is kept, they are at another one, or they can
// join once more.
func (d *Door) endedCard(ctx context.Context, s *stand, h redis.Hold, e redis.Entry, how told) (card, error) {
	c := s.card("ended", moodOver, how.heading)
	if c.Heading == "" {
		c.Heading = s.w.say("gone_heading")
	}
	c.say(how.text)
	paid := d.refundFor(ctx, h)
	if s.refund(&c, h, paid) {
		c.Says = c.Says[1:] // the money's story is this one
	}
	if paid == nil && h.ID != "" {
		c.Again = againHeld // a payment that came too late is told of here
	}
	if s.open && (paid == nil || !undecided(paid.State)) {
		c.say(s.w.say("available"))
	}
	if h.Cart != nil {
		c.Lines = s.lines
		return c, nil
	}
	if e.ID == "" {
		s.joinInstead(&c)
		return c, nil
	}
	return c, d.placeNow(ctx, s, &c, e, h, how.heading == "" && paid == nil)
}

// joinInstead leads whom no entry stands behind to the line.
func (s *stand) joinInstead(c *card) {
	if !s.open && s.state != contract.SKUEnded {
		c.Main = &action{Label: s.w.say("join_link"), URL: "/join/" + s.sku}
	}
}

// placeNow adds where the person of an entry stands now. Its place becomes the
// heading when nothing more important is said.
func (d *Door) placeNow(ctx context.Context, s *stand, c *card, e redis.Entry, h redis.Hold, bare bool) error {
	see := "/w/" + e.ID
	switch {
	case e.State == contract.EntryWaiting:
		if bare {
			c.Heading, c.Mood = s.w.say("gone_kept_heading"), moodWait
		}
		c.say(s.w.say("gone_kept", "n", e.Position))
	case e.State.Live():
		if e.HoldID != h.ID { // not of the link that is too old for its own offer
			c.say(s.w.say("gone_turn"))
		}
	default:
		newer, ok, err := d.gate.ReadPlace(ctx, e.SKU, e.Person)
		if err != nil {
			return err
		}
		if !ok {
			s.again(c, e)
			return nil
		}
		see = "/w/" + newer.ID
		if newer.State != contract.EntryWaiting {
			c.say(s.w.say("gone_turn"))
			break
		}
		c.Heading, c.Mood = s.w.say("gone_now_heading", "n", newer.Position), moodWait
		c.say(s.w.say("gone_now"))
	}
	if see != s.from {
		c.Main = &action{Label: s.w.say("see_place"), URL: see, Quiet: true}
	}
	return nil
}

// again offers a new place at the back. Whom texts do not reach at that number
// joins with another, or asks for texts first.
func (s *stand) again(c *card, e redis.Entry) {
	switch {
	case s.state == contract.SKUEnded || e.State == contract.EntryBought:
	case e.State == contract.EntryUnreachable || e.State == contract.EntryOptedOut:
		c.Main = &action{Label: s.w.say("join_link"), URL: "/join/" + s.sku}
	default:
		c.say(s.w.say("again_how"))
		c.Main = &action{Label: s.w.say("again"), URL: "/w/" + e.ID + "/again", Post: true}
	}
}

// refundFor is the last payment of a hold that did not become its sale; nil when
// there is none.
func (d *Door) refundFor(ctx context.Context, h redis.Hold) *contract.PaymentStatus {
	n := len(h.Refunded)
	if n == 0 {
		return nil
	}
	id := contract.PaymentID(h.ID, h.Refunded[n-1])
	p := contract.PaymentStatus{State: contract.PaymentRefundPending}
	if !d.status(ctx, id, &p) {
		p = contract.PaymentStatus{State: contract.PaymentRefundPending}
	}
	return &p
}

// undecided is money of which nobody knows yet whether it goes back.
func undecided(state string) bool {
	return state == contract.PaymentDeciding || state == contract.PaymentSold || state == contract.PaymentParked
}

// refund says what becomes of a payment that made no sale; false when there is
// none. A sale stays the heading of its page.
func (s *stand) refund(c *card, h redis.Hold, p *contract.PaymentStatus) bool {
	if p == nil {
		return false
	}
	sold := h.State == contract.HoldSold
	heading, text, mood := "refund_heading", "refund_pending", moodWait
	switch p.State {
	case contract.PaymentRefundReported:
		text = "refund_reported"
	case contract.PaymentRefundSettled:
		heading, text, mood = "refund_settled_heading", "refund_settled", moodOver
	case contract.PaymentParked:
		heading, text = "refund_parked_heading", "refund_parked"
	case contract.PaymentDeciding, contract.PaymentSold:
		heading, text, c.Again = "refund_parked_heading", "refund_deciding", againSoon
	}
	why := "refund_late"
	switch {
	case sold:
		why = "refund_second"
	case p.Cause == contract.CauseMismatched:
		why = "refund_mismatched"
	}
	money := any(s.w.say("refund_money"))
	if p.Amount != nil {
		if sum := s.w.money(*p.Amount, p.Currency); sum != "" {
			money = sum
		}
	}
	if !sold {
		c.Kind, c.Heading, c.Mood = "refund", s.w.say(heading), mood
	}
	if !undecided(p.State) {
		c.say(s.w.say(why))
	}
	c.say(s.w.say(text, "money", money))
	if c.Again == 0 && p.State != contract.PaymentRefundSettled {
		c.Again = againPlace
	}
	return true
}

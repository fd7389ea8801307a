package starter

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/keys"
	"holdfast/redis"
)

// Kinds of the page behind a reserve link.
const (
	linkOffer   = "offer"   // can be pressed
	linkHeld    = "held"    // pressed, and its hold lives
	linkSold    = "sold"    // bought
	linkMissed  = "missed"  // lapsed, released or expired
	linkPastDue = "pastdue" // the link is past its hard expiry
)

// link is a reserve link whose signature is right and whose record exists.
type link struct {
	hold    redis.Hold
	expired bool
}

// readLink reads what a link names and takes nothing. An edited or guessed
// token, and one whose record is gone, get one answer.
func (d *Door) readLink(ctx context.Context, token string) (link, error) {
	unknown := problem(unknownLink, "this link is not known")
	id, err := d.keys.ParseToken(token, time.Now())
	if err != nil && !errors.Is(err, keys.ErrTokenExpired) {
		return link{}, unknown
	}
	l := link{expired: err != nil}
	out, err := d.readHold(ctx, id)
	var p *Problem
	if errors.As(err, &p) && p.Code == unknownHold {
		return l, unknown
	}
	l.hold = out.Hold
	return l, err
}

// kind is what the link is good for now.
func (l link) kind() string {
	switch h := l.hold; {
	case h.State == contract.HoldSold:
		return linkSold
	case h.State == contract.HoldHeld:
		return linkHeld
	case !h.State.Live():
		return linkMissed
	case l.expired:
		return linkPastDue
	}
	return linkOffer
}

// linkPage is for people and for the machines that open links before them. It
// takes nothing, ever.
func (d *Door) linkPage(w http.ResponseWriter, r *http.Request) error {
	l, err := d.readLink(r.Context(), r.PathValue("token"))
	if err != nil {
		return err
	}
	return d.renderLink(w, r, l)
}

func (d *Door) renderLink(rw http.ResponseWriter, r *http.Request, l link) error {
	ctx, h := r.Context(), l.hold
	e, err := d.entryOf(r, h)
	if err != nil {
		return err
	}
	s, err := d.standOf(ctx, d.pages.of(r), pageOf(r), linesOf(h))
	if err != nil {
		return err
	}
	var c card
	status := http.StatusOK
	switch l.kind() {
	case linkOffer, linkPastDue:
		if l.expired {
			status = http.StatusGone
			c, err = d.endedCard(ctx, s, h, e, told{"", s.w.say("end_pastdue")})
			break
		}
		c = d.pressCard(s, h, e)
	case linkMissed:
		status = http.StatusGone
		fallthrough
	default:
		c, err = d.holdCard(ctx, s, h, e)
	}
	if err != nil {
		return err
	}
	return d.renderCard(rw, s.w, s.product.Title, c, s.about, status)
}

// entryOf reads the entry of a hold, the zero one when it has none or that is gone,
// and makes the page speak its language.
func (d *Door) entryOf(r *http.Request, h redis.Hold) (redis.Entry, error) {
	if h.EntryID == "" {
		return redis.Entry{}, nil
	}
	e, _, err := d.gate.ReadEntry(r.Context(), h.SKU, h.EntryID)
	if err == nil {
		d.pages.speak(r, e)
	}
	return e, err
}

// pressCard is the offer with its button. The button stays while the offer is
// past its deadline and has not lapsed: the press finds out.
func (d *Door) pressCard(s *stand, h redis.Hold, e redis.Entry) card {
	if h.State == contract.HoldProvisional { // pressed a moment ago
		h.State = contract.HoldOffered
	}
	c := d.offerCard(s, h, e)
	if c.Clock == nil {
		c.say(s.w.say("offer_late"))
	} else {
		c.say(s.w.say("offer_press", "span", s.span(s.policy.HoldSeconds)))
	}
	c.Main = &action{Label: s.w.say("offer_button"), URL: s.from, Post: true}
	c.More = []action{{Label: s.w.say("see_place"), URL: "/w/" + h.EntryID, Quiet: true}}
	return c
}

// pressForm turns an offer into a hold and leads to the checkout. Pressed again
// it leads to the same hold.
func (d *Door) pressForm(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), takeTimeout)
	defer cancel()
	l, err := d.readLink(ctx, r.PathValue("token"))
	if err != nil {
		return err
	}
	if _, err := d.entryOf(r, l.hold); err != nil { // for the words of a refusal
		return err
	}
	_, about, err := d.gate.Snapshot(ctx, l.hold.SKU)
	if err != nil {
		return err
	}
	switch l.kind() {
	case linkHeld:
		return d.toCheckout(w, about, l.hold)
	case linkOffer:
	default:
		return d.renderLink(w, r, l)
	}
	offer := l.hold
	in := d.holdInput(offer.ID, []contract.Line{{SKU: offer.SKU, Quantity: offer.Units}})
	in.Customer, in.EntryID, in.Person, in.Generation = offer.EntryID, offer.EntryID, offer.Person, offer.Generation
	got, err := d.take(ctx, in, []redis.ReserveRequest{
		{SKU: offer.SKU, HoldID: offer.ID, Press: true, Actor: redis.ActorShopper},
	})
	if err != nil {
		return err
	}
	if l.hold = got.out.Hold; l.kind() != linkHeld {
		return d.renderLink(w, r, l)
	}
	return d.toCheckout(w, about, l.hold)
}

func (d *Door) toCheckout(w http.ResponseWriter, about contract.About, h redis.Hold) error {
	to := d.checkoutURL(about, h)
	if d.cfg.Hold.After == "page" || to == "" {
		to = "/h/" + h.ID
	}
	return seeOther(w, to)
}

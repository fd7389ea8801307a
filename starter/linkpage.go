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

type linkBody struct {
	Kind     string
	Title    string
	Units    int64
	Kept     string // how many of the entry's wish, for a sentence
	Until    time.Time
	PayTime  string // after the press
	Ending   string // of an offer or hold that made no sale
	PressURL string
	HoldURL  string
	EntryURL string
	AgainURL string // empty while the entry still lives
	Position int64  // in the line now; 0 when in none
	// Available is to anyone, now.
	Available bool
}

// link is a reserve link whose signature is right and whose record exists.
type link struct {
	token     string
	out       redis.HoldOutcome
	about     contract.About
	available bool // to anyone
	expired   bool
}

// readLink reads what a link names and takes nothing. An edited or guessed
// token, and one whose record is gone, get one answer.
func (d *Door) readLink(ctx context.Context, token string) (link, error) {
	unknown := problem(unknownLink, "this link is not known")
	id, err := d.keys.ParseToken(token, time.Now())
	if err != nil && !errors.Is(err, keys.ErrTokenExpired) {
		return link{}, unknown
	}
	l := link{token: token, expired: err != nil}
	l.out, err = d.readHold(ctx, id)
	var p *Problem
	if errors.As(err, &p) && p.Code == unknownHold {
		return l, unknown
	}
	if err != nil {
		return l, err
	}
	counters, about, err := d.gate.Snapshot(ctx, l.out.Hold.SKU)
	l.about, l.available = about, counters.State == contract.SKUAvailable
	return l, err
}

// kind is what the link is good for now.
func (l link) kind() string {
	switch h := l.out.Hold; {
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

func (d *Door) renderLink(w http.ResponseWriter, r *http.Request, l link) error {
	h := l.out.Hold
	e, ok, err := d.gate.ReadEntry(r.Context(), h.SKU, h.EntryID)
	if err != nil {
		return err
	}
	clocks, err := d.holdClocks(r.Context(), []contract.Line{{SKU: h.SKU, Quantity: h.Units}})
	if err != nil {
		return err
	}
	b := linkBody{
		Kind: l.kind(), Title: titleOf(h.SKU, l.about), Units: h.Units, Kept: kept(h.Units, e.Units), Until: d.offerUntil(h),
		PayTime: spoken(time.Duration(clocks.HoldSeconds) * time.Second), Ending: ending(h), Available: l.available, Position: e.Position,
		PressURL: "/r/" + l.token, HoldURL: "/h/" + h.ID, EntryURL: "/w/" + h.EntryID,
	}
	if ok && !e.State.Live() {
		b.AgainURL = b.EntryURL + "/again"
	}
	v := view{Title: b.Title, image: l.about.ImageURL, to: l.about.CheckoutURL}
	switch b.Kind {
	case linkOffer:
		b.Kept = capital(b.Kept)
	case linkMissed, linkPastDue:
		v.status = http.StatusGone
	}
	v.Body = b
	return d.render(w, "link", v)
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
	switch l.kind() {
	case linkHeld:
		return d.toCheckout(w, l.about, l.out.Hold)
	case linkOffer:
	default:
		return d.renderLink(w, r, l)
	}
	offer := l.out.Hold
	in := d.holdInput(offer.ID, []contract.Line{{SKU: offer.SKU, Quantity: offer.Units}})
	in.Customer, in.EntryID, in.Person, in.Generation = offer.EntryID, offer.EntryID, offer.Person, offer.Generation
	got, err := d.take(ctx, in, []redis.ReserveRequest{
		{SKU: offer.SKU, HoldID: offer.ID, Press: true, Actor: redis.ActorShopper},
	})
	if err != nil {
		return err
	}
	if l.out = got.out; l.kind() != linkHeld {
		return d.renderLink(w, r, l)
	}
	return d.toCheckout(w, l.about, l.out.Hold)
}

func (d *Door) toCheckout(w http.ResponseWriter, about contract.About, h redis.Hold) error {
	to := d.checkoutURL(about, h)
	if d.cfg.Hold.After == "page" || to == "" {
		to = "/h/" + h.ID
	}
	return seeOther(w, to)
}

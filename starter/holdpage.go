package starter

import (
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

type holdBody struct {
	Hold        redis.Hold
	Title       string
	Lines       []lineBody // of a cart
	Several     bool       // more than one unit
	Until       time.Time
	Ending      string // of a hold that made no sale
	Available   bool   // all of it, to anyone, now
	CheckoutURL string
	GiveBackURL string
	EntryURL    string
}

type lineBody struct {
	Title string
	Units int64
}

// holdPage shows a hold with its deadline, the way to the checkout, and the way
// to give it back. A cart leads to the checkout of its first line.
func (d *Door) holdPage(w http.ResponseWriter, r *http.Request) error {
	out, err := d.readHold(r.Context(), r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	h := out.Hold
	b := holdBody{Hold: h, Title: "Your cart", Until: d.offerUntil(h), Ending: ending(h), Available: true, Several: h.Units > 1 || h.Cart != nil}
	var first contract.About
	for i, line := range linesOf(h) {
		counters, about, err := d.gate.Snapshot(r.Context(), line.SKU)
		if err != nil {
			return err
		}
		if i == 0 {
			first = about
		}
		b.Available = b.Available && counters.State == contract.SKUAvailable
		b.Lines = append(b.Lines, lineBody{Title: titleOf(line.SKU, about), Units: line.Quantity})
	}
	if h.Cart == nil {
		b.Title, b.Lines = b.Lines[0].Title, nil
	}
	if h.State == contract.HoldHeld {
		b.CheckoutURL, b.GiveBackURL = d.checkoutURL(first, h), "/h/"+h.ID+"/release"
	}
	if h.EntryID != "" {
		b.EntryURL = "/w/" + h.EntryID
	}
	return d.render(w, "hold", view{Title: b.Title, Body: b, image: first.ImageURL, to: first.CheckoutURL})
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

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
	Until       time.Time
	Ending      string // of a hold that made no sale
	Available   bool   // to anyone, now
	CheckoutURL string
	GiveBackURL string
	EntryURL    string
}

// holdPage shows a hold with its deadline, the way to the checkout, and the way
// to give it back.
func (d *Door) holdPage(w http.ResponseWriter, r *http.Request) error {
	out, err := d.readHold(r.Context(), r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	h := out.Hold
	counters, about, err := d.gate.Snapshot(r.Context(), h.SKU)
	if err != nil {
		return err
	}
	b := holdBody{
		Hold: h, Title: titleOf(h.SKU, about), Until: d.offerUntil(h), Ending: ending(h),
		Available: counters.State == contract.SKUAvailable,
	}
	if h.State == contract.HoldHeld {
		b.CheckoutURL, b.GiveBackURL = d.checkoutURL(about, h), "/h/"+h.ID+"/release"
	}
	if h.EntryID != "" {
		b.EntryURL = "/w/" + h.EntryID
	}
	return d.render(w, "hold", view{Title: b.Title, Body: b, image: about.ImageURL, to: about.CheckoutURL})
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

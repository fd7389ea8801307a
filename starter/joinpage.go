package starter

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"holdfast/config"
	"holdfast/contract"
)

// strangerMost is how many pieces anybody may wait for: a slip of the finger is no
// order, and who is first in line is offered all that is free, up to what they want.
// The shop's servers may ask for more.
const strangerMost = 10

type joinBody struct {
	SKU      string
	Product  *product
	Now      template.HTML // what the line is like
	Phone    string
	Name     string
	Quantity string
	Most     int // pieces
	Agreed   bool
	Wrong    map[string]template.HTML // field → what is wrong with it
	Consent  template.HTML            // the words
	Shop     config.Shop
}

func (d *Door) joinPage(w http.ResponseWriter, r *http.Request) error {
	return d.renderJoin(w, r, joinBody{Quantity: "1"}, http.StatusOK)
}

func (d *Door) renderJoin(rw http.ResponseWriter, r *http.Request, b joinBody, status int) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	c, about, err := d.gate.Snapshot(r.Context(), sku)
	if err != nil {
		return err
	}
	w := d.pages.of(r)
	b.SKU, b.Product, b.Most, b.Shop = sku, productOf(w, sku, about, false), strangerMost, d.cfg.Shop
	b.Consent = w.say("join_consent", "shop", d.cfg.Shop.Name)
	switch {
	case c.State == contract.SKUEnded:
		return problem(saleEnded, "the sale of SKU %s has ended", sku)
	case c.State == contract.SKUAvailable:
		b.Now = w.say("join_available")
	case c.State == contract.SKUPaused:
		b.Now = w.say("join_paused")
	case c.Waiting > 0:
		b.Now = w.count("join_waiting", c.Waiting)
	}
	return d.render(rw, w, "join", view{Title: w.plain("join_title"), From: "/join/" + sku, Body: b, image: about.ImageURL, status: status})
}

// joinForm joins the line. The page that follows is the same whether the number
// is new, waits already, or has opted out.
func (d *Door) joinForm(rw http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	b := joinBody{Phone: r.PostForm.Get("phone"), Name: r.PostForm.Get("name"), Quantity: r.PostForm.Get("quantity"), Agreed: r.PostForm.Get("consent") == consentYes}
	w := d.pages.of(r)
	f := formFields(sku, b)
	j := d.readJoining(f, false)
	j.Locale = localeOf(r)
	j.Consent = contract.Consent{TextVersion: consentVersion(w, d.cfg.Shop), Source: consentForm}
	var p *Problem
	if err := f.done(); errors.As(err, &p) {
		b.Wrong = wrongFields(w, b, p)
		return d.renderJoin(rw, r, b, p.Status)
	}
	if err := d.admit(r, j.Phone, false); err != nil {
		return err
	}
	if _, err := d.join(r.Context(), j); unsaid(err) != nil {
		return err
	}
	_, about, err := d.gate.Snapshot(r.Context(), sku)
	if err != nil {
		about = contract.About{} // the place is written down; only its title is missing
	}
	c := card{Kind: "joined", Mood: moodGood, Heading: w.say("joined_heading"), Product: productOf(w, sku, about, false), from: pageOf(r)}
	c.say(w.say("joined_text", "phone", spokenPhone(j.Phone), "title", c.Product.Title))
	// Everybody reads it: who has opted out is not told apart.
	if from := d.startsAt(); from != "" {
		c.say(w.say("joined_stopped", "number", spokenPhone(from)))
	} else {
		c.say(w.say("joined_stopped_any"))
	}
	c.say(w.say("joined_done"))
	c.Main = &action{Label: w.say("joined_wrong"), URL: c.from, Quiet: true}
	return d.renderCard(rw, w, w.plain("joined_title"), c, about, http.StatusAccepted)
}

// wrongFields says next to each field what is wrong with it.
func wrongFields(w *words, b joinBody, p *Problem) map[string]template.HTML {
	wrong := map[string]template.HTML{}
	for _, e := range p.Errors {
		name := strings.TrimPrefix(e.Pointer, "/")
		switch {
		case name == "quantity":
			wrong[name] = w.say("wrong_quantity", "most", strangerMost)
		case name == "name" || name == "consent":
			wrong[name] = w.say("wrong_" + name)
		case strings.TrimSpace(b.Phone) == "":
			wrong["phone"] = w.say("wrong_phone_missing")
		case e.Detail == otherCountry:
			wrong["phone"] = w.say("wrong_phone_region")
		case e.Detail == servicePhone:
			wrong["phone"] = w.say("wrong_phone_service")
		default:
			wrong["phone"] = w.say("wrong_phone")
		}
	}
	return wrong
}

// formFields lets a form be read as the API's body is.
func formFields(sku string, b joinBody) *fields {
	members := map[string]any{"sku": sku, "consent": b.Agreed}
	for name, value := range map[string]string{"phone": b.Phone, "name": b.Name} {
		if value = strings.TrimSpace(value); value != "" {
			members[name] = value
		}
	}
	q := strings.TrimSpace(b.Quantity)
	if q != "" {
		members["quantity"] = json.Number(q)
	}
	f := newFields(members)
	if n, err := strconv.Atoi(q); q != "" && (err != nil || !wholeNumber.MatchString(q) || n < 1 || n > strangerMost) {
		f.complain("quantity", "must be a whole number from 1 to %d", strangerMost)
	}
	return f
}

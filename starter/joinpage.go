package starter

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"holdfast/contract"
	"holdfast/redis"
)

type joinBody struct {
	SKU      string
	Title    string
	State    contract.SKUState
	Waiting  int64
	Phone    string
	Name     string
	Quantity string
	Wrong    map[string]string // field → what is wrong with it
}

func (d *Door) joinPage(w http.ResponseWriter, r *http.Request) error {
	return d.renderJoin(w, r, joinBody{Quantity: "1"}, http.StatusOK)
}

func (d *Door) renderJoin(w http.ResponseWriter, r *http.Request, b joinBody, status int) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	c, about, err := d.gate.Snapshot(r.Context(), sku)
	if err != nil {
		return err
	}
	b.SKU, b.Title, b.State, b.Waiting = sku, titleOf(sku, about), c.State, c.Waiting
	return d.render(w, "join", view{Title: "Join the line for " + b.Title, Body: b, image: about.ImageURL, status: status})
}

// joinForm joins the line. The page that follows is the same whether the number
// is new or waits already.
func (d *Door) joinForm(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	b := joinBody{Phone: r.PostForm.Get("phone"), Name: r.PostForm.Get("name"), Quantity: r.PostForm.Get("quantity")}
	f := formFields(sku, b, r.PostForm.Get("consent") != "")
	j := d.readJoining(f)
	var p *Problem
	if err := f.done(); errors.As(err, &p) {
		b.Wrong = map[string]string{}
		for _, e := range p.Errors {
			b.Wrong[strings.TrimPrefix(e.Pointer, "/")] = e.Detail
		}
		return d.renderJoin(w, r, b, p.Status)
	}
	if _, err := d.join(r.Context(), j); err != nil {
		return err
	}
	_, about, err := d.gate.Snapshot(r.Context(), sku)
	if err != nil {
		about = contract.About{} // the place is written down; only its title is missing
	}
	return d.render(w, "joined", view{Title: "Look at your phone", Body: titleOf(sku, about), status: http.StatusAccepted})
}

// formFields lets a form be read as the API's body is.
func formFields(sku string, b joinBody, consent bool) *fields {
	members := map[string]any{"sku": sku, "consent": consent}
	for name, value := range map[string]string{"phone": b.Phone, "name": b.Name} {
		if value = strings.TrimSpace(value); value != "" {
			members[name] = value
		}
	}
	if q := strings.TrimSpace(b.Quantity); q != "" {
		members["quantity"] = json.Number(q)
	}
	return newFields(members)
}

type entryBody struct {
	Entry redis.Entry
	Title string
	Until string
	// HoldURL leads to the hold that the entry pressed.
	HoldURL  string
	LeaveURL string
	AgainURL string
}

// entryPage shows a person's place.
func (d *Door) entryPage(w http.ResponseWriter, r *http.Request) error {
	e, err := d.readEntry(r.Context(), r.PathValue("entry_id"))
	if err != nil {
		return err
	}
	_, about, err := d.gate.Snapshot(r.Context(), e.SKU)
	if err != nil {
		return err
	}
	b := entryBody{Entry: e, Title: titleOf(e.SKU, about), LeaveURL: "/w/" + e.ID + "/leave", AgainURL: "/w/" + e.ID + "/again"}
	if e.HoldID != "" {
		out, ok, err := d.gate.ReadHold(r.Context(), e.SKU, e.HoldID)
		if err != nil {
			return err
		}
		if ok && out.Hold.State == contract.HoldOffered {
			b.Until = clockTime(out.Hold.Deadline)
		}
		if ok && (mayBePaid(out.Hold) || out.Hold.State == contract.HoldSold) {
			b.HoldURL = "/h/" + e.HoldID
		}
	}
	return d.render(w, "entry", view{Title: "Your place for " + b.Title, Body: b, image: about.ImageURL})
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
	if e.State.Live() {
		return seeOther(w, "/w/"+id)
	}
	var s contract.EntryStatus
	if !d.status(r.Context(), id, &s) || s.Phone == "" {
		return tryLater(retrySoon, "the entry's workflow does not answer right now")
	}
	out, err := d.join(r.Context(), joining{SKU: e.SKU, Phone: s.Phone, Quantity: e.Units, Name: s.Name})
	if err != nil {
		return err
	}
	return seeOther(w, "/w/"+out.Entry.ID)
}

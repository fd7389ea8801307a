package starter

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// formMost is how many pieces the form takes: a slip of the finger is no order.
// The API takes what the shop's server sends.
const formMost = 10

type joinBody struct {
	SKU      string
	Title    string
	State    contract.SKUState
	Waiting  int64
	Phone    string
	Name     string
	Quantity string
	Most     int               // pieces
	Wrong    map[string]string // field → what is wrong with it
	Consent  string            // the words
	Shop     config.Shop
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
	b.Consent, b.Shop = consentText(d.cfg.Shop.Name), d.cfg.Shop
	b.SKU, b.Title, b.State, b.Waiting, b.Most = sku, titleOf(sku, about), c.State, c.Waiting, formMost
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
	f := formFields(sku, b, r.PostForm.Get("consent") == consentYes)
	j := d.readJoining(f)
	j.Consent = contract.Consent{TextVersion: consentVersion(d.cfg.Shop), Source: consentForm}
	var p *Problem
	if err := f.done(); errors.As(err, &p) {
		b.Wrong = map[string]string{}
		for _, e := range p.Errors {
			b.Wrong[strings.TrimPrefix(e.Pointer, "/")] = e.Detail
		}
		return d.renderJoin(w, r, b, p.Status)
	}
	if err := d.admit(r, j.Phone, false); err != nil {
		return err
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
	q := strings.TrimSpace(b.Quantity)
	if q != "" {
		members["quantity"] = json.Number(q)
	}
	f := newFields(members)
	if n, err := strconv.Atoi(q); q != "" && (err != nil || !wholeNumber.MatchString(q) || n < 1 || n > formMost) {
		f.complain("quantity", "must be a whole number from 1 to %d", formMost)
	}
	return f
}

type entryBody struct {
	Entry redis.Entry
	Title string
	// Kept is how many the offer or hold has, for a sentence; Until is its
	// deadline, zero when there is none to go by.
	Kept      string
	Until     time.Time
	Ending    string // of an ended entry
	Available bool   // to anyone, now
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
	counters, about, err := d.gate.Snapshot(r.Context(), e.SKU)
	if err != nil {
		return err
	}
	b := entryBody{
		Entry: e, Title: titleOf(e.SKU, about), Available: counters.State == contract.SKUAvailable,
		LeaveURL: "/w/" + e.ID + "/leave", AgainURL: "/w/" + e.ID + "/again",
	}
	var hold *redis.Hold
	if e.HoldID != "" {
		out, ok, err := d.gate.ReadHold(r.Context(), e.SKU, e.HoldID)
		if err != nil {
			return err
		}
		if ok {
			hold = &out.Hold
			d.showHold(&b, out.Hold)
		}
	}
	b.Ending = entryEnding(e, hold)
	return d.render(w, "entry", view{Title: "Your place for " + b.Title, Body: b, image: about.ImageURL})
}

// showHold adds the offer or hold of an entry to its page.
func (d *Door) showHold(b *entryBody, h redis.Hold) {
	b.Kept = kept(h.Units, b.Entry.Units)
	if h.State == contract.HoldHeld || h.State == contract.HoldOffered && !h.ToldAt.IsZero() {
		b.Until = d.offerUntil(h)
	}
	if mayBePaid(h) || h.State == contract.HoldSold {
		b.HoldURL = "/h/" + h.ID
	}
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

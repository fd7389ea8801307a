package starter

import (
	"context"
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

type offerView struct {
	HoldID    string `json:"hold_id"`
	Quantity  int64  `json:"quantity"`
	ExpiresAt string `json:"expires_at"`
}

type entryView struct {
	EntryID   string              `json:"entry_id"`
	SKU       string              `json:"sku"`
	Title     string              `json:"title"`
	State     contract.EntryState `json:"state"`
	Quantity  int64               `json:"quantity"`
	Position  int64               `json:"position,omitempty"` // in the line, from 1
	Ahead     *int64              `json:"ahead,omitempty"`
	Offer     *offerView          `json:"offer,omitempty"`
	HoldID    string              `json:"hold_id,omitempty"`
	JoinedAt  string              `json:"joined_at"`
	ExpiresAt string              `json:"expires_at"`
	EndedAt   string              `json:"ended_at,omitempty"`
	Now       string              `json:"now"`
}

// postWaitlist joins the line: for the shop's servers, which get the entry, and
// for anyone, who gets the same answer whatever the number is. Then only the
// text that goes to the number carries the entry's link.
func (d *Door) postWaitlist(w http.ResponseWriter, r *http.Request) error {
	trusted, source := r.Header.Get("Authorization") != "", consentPublic
	if trusted {
		caller, err := d.caller(r)
		if err != nil {
			return err
		}
		source = consentAPI + caller
	}
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	j := d.readJoining(f, trusted)
	j.Consent.TextVersion, _ = f.optionalText("consent_version", 64)
	j.Consent.Source = source
	if err := f.done(); err != nil {
		return err
	}
	if j.SKU, err = d.skus.bySKU(r.Context(), j.SKU); err != nil {
		return err
	}
	if err := d.admit(r, j.Phone, trusted); err != nil {
		return err
	}
	out, err := d.join(r.Context(), j)
	if !trusted {
		err = unsaid(err)
	}
	if err != nil {
		return err
	}
	if !trusted {
		return writeJSON(w, http.StatusAccepted, struct {
			Status string `json:"status"`
		}{"accepted"})
	}
	view, err := d.viewEntry(r.Context(), out.Entry)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if out.Created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/waitlist/"+out.Entry.ID)
	}
	return writeJSON(w, status, view)
}

const mostLocale = 35 // characters of a language tag

func (d *Door) readJoining(f *fields, trusted bool) joining {
	j := joining{SKU: f.sku("sku"), Phone: d.textable(f, "phone"), Quantity: f.quantity("quantity", true)}
	if !trusted && j.Quantity > strangerMost {
		f.complain("quantity", "must be from 1 to %d; only the shop's servers may ask for more", strangerMost)
	}
	j.Name, _ = f.optionalText("name", 100)
	j.Locale, _ = f.optionalText("locale", mostLocale)
	if !f.boolean("consent") {
		f.complain("consent", "must be true: the person agreed to get texts about their place")
	}
	return j
}

// viewEntry shows an entry's record. ExpiresAt is reckoned with today's
// time-to-live of the SKU; the entry's own clock runs in its workflow.
func (d *Door) viewEntry(ctx context.Context, e redis.Entry) (entryView, error) {
	counters, about, err := d.gate.Snapshot(ctx, e.SKU)
	if err != nil {
		return entryView{}, err
	}
	policy, err := d.effective(ctx, e.SKU)
	if err != nil {
		return entryView{}, err
	}
	v := entryView{
		EntryID: e.ID, SKU: e.SKU, Title: titleOf(e.SKU, about), State: e.State, Quantity: e.Units, Position: e.Position,
		HoldID: e.HoldID, JoinedAt: stamp(e.JoinedAt), ExpiresAt: stamp(e.JoinedAt.Add(time.Duration(*policy.WaitlistTTLSeconds) * time.Second)),
		EndedAt: stampIf(e.EndedAt), Now: stamp(counters.AsOf),
	}
	if e.Position > 0 {
		ahead := e.Position - 1
		v.Ahead = &ahead
	}
	if e.State == contract.EntryOffered && e.HoldID != "" {
		out, ok, err := d.gate.ReadHold(ctx, e.SKU, e.HoldID)
		if err != nil {
			return v, err
		}
		if ok && out.Hold.State == contract.HoldOffered {
			v.Offer = &offerView{HoldID: e.HoldID, Quantity: out.Hold.Units, ExpiresAt: stamp(d.offerUntil(out.Hold))}
		}
	}
	return v, nil
}

func titleOf(sku string, about contract.About) string {
	if about.Title == "" {
		return sku
	}
	return about.Title
}

// readEntry reads the entry that a path names.
func (d *Door) readEntry(ctx context.Context, id string) (redis.Entry, error) {
	sku, err := d.skus.byEntry(ctx, id)
	if err != nil {
		return redis.Entry{}, err
	}
	e, ok, err := d.gate.ReadEntry(ctx, sku, id)
	if err == nil && !ok {
		err = problem(unknownEntry, "there is no waitlist entry %.80q", id)
	}
	return e, err
}

func (d *Door) getEntry(w http.ResponseWriter, r *http.Request) error {
	e, err := d.readEntry(r.Context(), r.PathValue("entry_id"))
	if err != nil {
		return err
	}
	view, err := d.viewEntry(r.Context(), e)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// deleteEntry leaves the line. A hold already pressed runs on.
func (d *Door) deleteEntry(w http.ResponseWriter, r *http.Request) error {
	if err := d.leave(r.Context(), r.PathValue("entry_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) leave(ctx context.Context, id string) error {
	sku, err := d.skus.byEntry(ctx, id)
	if err != nil {
		return err
	}
	out, err := d.gate.Leave(ctx, redis.LeaveRequest{SKU: sku, EntryID: id, State: contract.EntryLeft, Actor: redis.ActorShopper})
	if err != nil {
		return err
	}
	d.wakeIf(sku, out.Base)
	if out.Verdict == redis.Unknown {
		return problem(unknownEntry, "there is no waitlist entry %.80q", id)
	}
	return nil
}

package starter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// Why was nobody told? The gate says how the line stands, the entries' workflows
// what their texts wait for.

const (
	whyHeads   = 10              // of the line, named one by one
	whyOffers  = 20              // of those offered, whose texts are looked at
	whyTimeout = 4 * time.Second // for all workflows together
)

type reasonView struct {
	Why     contract.Why `json:"why"`
	EntryID string       `json:"entry_id,omitempty"`
	Detail  string       `json:"detail"`
	Do      string       `json:"do"`
	Until   string       `json:"until,omitempty"`
}

// whyView is empty when nothing is wrong; Happening says what goes on.
type whyView struct {
	Data       []reasonView `json:"data"`
	NextCursor *string      `json:"next_cursor"`
	Happening  string       `json:"happening"`
	Now        string       `json:"now"`
}

func (d *Door) getSKUWhy(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	return d.writeWhy(w, r, sku, "")
}

func (d *Door) getEntryWhy(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("entry_id")
	sku, err := d.skus.byEntry(r.Context(), id)
	if err != nil {
		return err
	}
	return d.writeWhy(w, r, sku, id)
}

func (d *Door) writeWhy(w http.ResponseWriter, r *http.Request, sku, entryID string) error {
	heads := 0
	if entryID == "" {
		heads = whyHeads
	}
	st, err := d.gate.Why(r.Context(), sku, entryID, heads)
	var closed *redis.ClosedError
	if errors.As(err, &closed) {
		d.metClosed(closed)
		return writeJSON(w, http.StatusOK, whyView{Data: []reasonView{isClosed(sku)}, Happening: "nothing moves until it opens", Now: stamp(time.Now())})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
	defer cancel()
	a := asker{door: d, ctx: ctx, sku: sku, Standing: st}
	switch {
	case entryID == "":
		a.line()
	case st.Entry == nil:
		return problem(unknownEntry, "there is no waitlist entry %q", entryID)
	default:
		a.entry(*st.Entry)
	}
	list := a.reasons
	if list == nil {
		list = []reasonView{}
	}
	return writeJSON(w, http.StatusOK, whyView{Data: list, Happening: a.happening, Now: stamp(st.Counters.AsOf)})
}

// asker collects the reasons of one answer.
type asker struct {
	redis.Standing
	door      *Door
	ctx       context.Context
	sku       string
	reasons   []reasonView
	happening string
}

func (a *asker) say(r reasonView) { a.reasons = append(a.reasons, r) }

// ofSKU are the reasons that keep everybody from being told.
func (a *asker) ofSKU() {
	if a.Counters.Paused {
		a.say(isPaused(a.sku))
	}
	if a.Counters.Ended {
		a.say(hasEnded())
	}
}

// ofUnits says why there is none for anybody.
func (a *asker) ofUnits() {
	switch {
	case a.Counters.Shortfall > 0:
		a.say(isShort(a.Counters.Shortfall))
	case a.Counters.Available <= 0:
		a.say(noUnits(a.Counters))
	}
}

// owner asks an entry's workflow how its text stands.
type owner struct {
	contract.EntryStatus
	gone   bool // does not run
	silent bool // runs, for all we know, and does not answer
}

func (a *asker) owner(id string) owner {
	var o owner
	switch err := a.door.launcher.OpenStatus(a.ctx, id, &o.EntryStatus); {
	case errors.Is(err, launch.ErrNoOwner):
		o.gone = true
	case err != nil:
		o.silent = true
		a.door.log.Warn("an entry's workflow did not answer", "entry", id, "error", err)
	}
	return o
}

func (a *asker) entry(e redis.Waiter) {
	switch {
	case e.State == contract.EntryOptedOut:
		a.say(textedStop(e.EndedAt))
		a.happening = "its place ended at " + stamp(e.EndedAt)
	case e.State == contract.EntryUnreachable:
		a.say(unreachable(e.EndedAt))
		a.happening = "its place ended at " + stamp(e.EndedAt)
	case !e.State.Live():
		a.happening = "its place ended at " + stamp(e.EndedAt) + ": " + string(e.State)
	case e.State == contract.EntryHolding:
		a.happening = "it was told, and holds what it was offered"
		if a.Hold != nil {
			a.happening += " until " + stamp(a.Hold.Deadline)
		}
	case e.State == contract.EntryOffered:
		a.offered(e)
	default:
		a.waiting(e)
	}
}

// offered is an entry that has an offer, which it was told of or not.
func (a *asker) offered(e redis.Waiter) {
	o := a.owner(e.ID)
	if o.OfferSent || a.Hold != nil && !a.Hold.SentAt.IsZero() {
		a.happening = "it was told"
		if a.Hold != nil {
			a.happening += " at " + stamp(a.Hold.ToldAt) + ", waits for a press until " + stamp(a.door.offerUntil(*a.Hold))
		}
		return
	}
	a.ofSKU()
	a.untold(e.ID, e.In, o)
	if len(a.reasons) == 0 {
		a.happening = "it has an offer; its text is on its way"
		return
	}
	a.happening = "it has an offer and was not told of it yet"
	if a.Hold != nil {
		a.happening = "it has an offer since " + stamp(a.Hold.OfferedAt) + " and was not told of it yet"
	}
}

// untold says what keeps the text of an offer, besides a pause.
func (a *asker) untold(id string, in redis.Place, o owner) {
	switch {
	case o.gone:
		a.say(noWorkflow(id, "does not run"))
	case o.silent:
		a.say(noWorkflow(id, "does not answer"))
	case in == redis.PlaceOffer && !a.Counters.Paused:
		a.say(noWorkflow(id, "has not acknowledged the offer"))
	case o.TextWaits != nil:
		a.say(textWaits(id, *o.TextWaits, o.OfferUntil))
	}
}

func (a *asker) waiting(e redis.Waiter) {
	if !e.Acknowledged {
		r := noWorkflow(e.ID, "has not acknowledged the place")
		if until := e.JoinedAt.Add(a.door.cfg.Gate.Lease); until.After(a.Counters.AsOf) {
			r.Until = stamp(until)
		}
		a.say(r)
	} else if o := a.owner(e.ID); o.gone || o.silent {
		a.untold(e.ID, e.In, o)
	}
	a.ofSKU()
	switch e.In {
	case redis.PlaceParked:
		a.say(isParked(e.ID, a.Hold))
	case redis.PlaceLimit:
		a.say(atLimit(e.ID, a.Counters.Limit))
	}
	a.ofUnits()
	if a.Ahead > 0 {
		a.say(beforeYou(a.Ahead))
	}
	a.happening = "it waits"
	if len(a.reasons) == 0 {
		a.happening = "it is its turn: the next movement of the SKU makes it an offer"
	}
}

// line says what keeps the heads of the line from being told.
func (a *asker) line() {
	offered := a.offers()
	if a.Counters.Waiting == 0 && len(offered) == 0 {
		a.happening = "nobody waits to be told"
		if a.Counters.Offered > 0 {
			a.happening += "; who has an offer was told"
		}
		return
	}
	a.ofSKU()
	for _, r := range offered {
		a.say(r)
	}
	if a.Counters.Waiting == 0 {
		a.happening = "all who wait have an offer"
		return
	}
	for _, h := range a.Heads {
		switch {
		case h.In == redis.PlaceFresh:
			a.say(noWorkflow(h.ID, "has not acknowledged the place"))
		case h.In == redis.PlaceLimit:
			a.say(atLimit(h.ID, a.Counters.Limit))
		}
	}
	if head := a.firstEligible(); head != "" {
		if o := a.owner(head); o.gone || o.silent {
			a.untold(head, redis.PlaceLine, o)
		}
	}
	if a.Parked > 0 {
		a.say(someParked(a.Parked, a.FirstParked))
	}
	a.ofUnits()
	a.happening = waits(a.Counters.Waiting)
	if len(a.reasons) == 0 {
		a.happening += "; the next movement of the SKU makes the offers"
	}
}

func (a *asker) firstEligible() string {
	for _, h := range a.Heads {
		if h.In == redis.PlaceLine {
			return h.ID
		}
	}
	return ""
}

// offers are the reasons of those who have an offer and were not told. The gate
// knows whose workflow has not heard; of the others Temporal's visibility, which is
// a little behind.
func (a *asker) offers() []reasonView {
	ids, err := a.door.directory.Offered(a.ctx, a.sku, whyOffers)
	if err != nil {
		a.door.log.Warn("offered entries could not be listed", "sku", a.sku, "error", err)
		return []reasonView{noTemporal()}
	}
	var list []reasonView
	if !a.Counters.Paused { // a paused SKU keeps its offers in the outbox
		for _, id := range a.Unknown {
			list = append(list, noWorkflow(id, "has not acknowledged the offer"))
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(a.Unknown, id) })
	found, err := readAll(a.ctx, ids, func(_ context.Context, id string) (*reasonView, error) {
		o := a.owner(id)
		var r reasonView
		switch {
		case o.silent:
			r = noWorkflow(id, "does not answer")
		case !o.gone && o.State == contract.EntryOffered && !o.OfferSent && o.TextWaits != nil:
			r = textWaits(id, *o.TextWaits, o.OfferUntil)
		default:
			return nil, nil // told, on its way, or over since
		}
		return &r, nil
	})
	if err != nil {
		return []reasonView{noTemporal()}
	}
	for _, v := range found {
		list = append(list, *v.(*reasonView))
	}
	return list
}

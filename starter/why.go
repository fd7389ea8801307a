package starter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
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

	// A text that no attempt has spoken of is on its way for so long after its offer,
	// and in the hands of the sender for so long after the gate was told: there it may
	// wait up to ten seconds for its turn.
	textSoon   = 5 * time.Second
	textInHand = 15 * time.Second
)

type reasonView struct {
	Why     contract.Why `json:"why"`
	EntryID string       `json:"entry_id,omitempty"`
	More    int          `json:"more,omitempty"` // others that the same keeps, of those looked at
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
	a := asker{door: d, ctx: ctx, sku: sku, Standing: st, texts: sync.OnceValues(func() (TextQueue, error) { return d.directory.TextQueue(ctx) })}
	switch {
	case entryID == "":
		a.line()
	case st.Entry == nil:
		return problem(unknownEntry, "there is no waitlist entry %.80q", entryID)
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
	texts     func() (TextQueue, error) // asked once
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
	case a.Hold != nil:
		if r := a.silently(id, *a.Hold); r != nil {
			a.say(*r)
		}
	}
}

// silently says what keeps a text that nothing has been heard of: before its first
// attempt it is in the queue, which says nothing to the entry. nil: it is on its way,
// or a pause or the end of the sale keeps it.
func (a *asker) silently(id string, h redis.Hold) *reasonView {
	now := a.Counters.AsOf
	switch {
	case a.Counters.Paused || a.Counters.Ended || h.State != contract.HoldOffered || !h.SentAt.IsZero():
		return nil
	case !h.ToldAt.IsZero() && now.Sub(h.ToldAt) >= textInHand:
		r := noAnswer(id)
		return &r
	case !h.ToldAt.IsZero() || now.Sub(h.OfferedAt) < textSoon:
		return nil
	}
	q, err := a.texts()
	r := inQueue(id, q, a.door.cfg.SMS)
	switch {
	case err != nil:
		a.door.log.Warn("the queue of texts cannot be looked at", "error", err)
		r = noTemporal()
	case !q.Polled:
		r = nobodySends(id)
	}
	return &r
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
		case o.gone || o.State != contract.EntryOffered || o.OfferSent:
			return nil, nil // told, or over since
		case o.TextWaits != nil:
			r = textWaits(id, *o.TextWaits, o.OfferUntil)
		default:
			h, ok, err := a.door.gate.ReadHold(a.ctx, a.sku, o.HoldID)
			if err != nil || !ok {
				return nil, err
			}
			return a.silently(id, h.Hold), nil
		}
		return &r, nil
	})
	if err != nil {
		return []reasonView{noTemporal()}
	}
	for _, v := range found {
		list = append(list, *v.(*reasonView))
	}
	return together(list)
}

// together makes one of the reasons that say the same of several entries.
func together(list []reasonView) []reasonView {
	var out []reasonView
	for _, r := range list {
		same := func(o reasonView) bool {
			return o.Why == r.Why && o.Detail == r.Detail && o.Do == r.Do && o.Until == r.Until
		}
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].More++
			continue
		}
		out = append(out, r)
	}
	return out
}

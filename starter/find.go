package starter

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	findTimeout = 10 * time.Second
	findSeek    = 5 * time.Second // of it, to find out who is meant
	findMost    = 50              // holds and entries of one answer

	// Lines of ledgers, for what no index knows: of each SKU, of all together, and of
	// each however many there are. A thousand take some 10 ms of the server.
	findLines      = 20_000
	findLinesAll   = 200_000
	findLinesLeast = 200
)

// finding collects what a term stands for, then what happened to it.
type finding struct {
	d         *Door
	seekFor   time.Duration
	holds     []string
	entries   []string
	payments  []string
	events    []string
	whole     bool        // every ledger was read to its beginning
	left      bool        // there is more than findMost
	story     []storyView // from the ledgers
	marks     []storyView // from elsewhere
	things    []thingView
	withdrawn []string         // holds that ended as offers
	applied   map[string]int64 // SKU → what the stock event moved on_hand by, as its ledger says
	missing   []string         // who could not be asked, in words
	unasked   error            // the answer when nothing is found without them
}

// postFind answers the story of whatever a person on call was told: a phone number, a
// customer, the id of a hold, an entry, a payment or an event, or the shop's reference
// of a payment or an order. It is a POST so that no log of a proxy keeps a number.
func (d *Door) postFind(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	term := f.text("term", 255)
	if err := f.done(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), findTimeout)
	defer cancel()
	find := &finding{d: d, seekFor: findSeek, applied: map[string]int64{}, whole: true, story: []storyView{}, things: []thingView{}, missing: []string{}}
	if err := find.seek(ctx, term); err != nil {
		return err
	}
	switch err := find.tell(ctx); {
	case err == nil:
	case len(find.things) > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
		find.whole, find.left = false, true // what is known by now helps more than nothing
	default:
		return err
	}
	find.unowned()
	// In one instant a line of a ledger comes first: the rest follows from it.
	story := append(find.story, find.marks...)
	slices.SortStableFunc(story, func(a, b storyView) int { return cmp.Compare(a.At, b.At) })
	if len(find.things)+len(story) == 0 && find.unasked != nil {
		return find.unasked // not known is not nothing
	}
	return writeJSON(w, http.StatusOK, findView{
		Things: find.things, Story: story, Missing: find.missing, Whole: find.whole, More: find.left, Now: stamp(time.Now()),
	})
}

func (f *finding) hold(id string)    { f.note(&f.holds, id) }
func (f *finding) entry(id string)   { f.note(&f.entries, id) }
func (f *finding) payment(id string) { f.note(&f.payments, id) }

func (f *finding) note(list *[]string, id string) {
	switch {
	case id == "" || slices.Contains(*list, id):
	case len(*list) == findMost:
		f.left = true
	default:
		*list = append(*list, id)
	}
}

// seek finds the ids that a term stands for. A term with the shape of an id is that id.
func (f *finding) seek(ctx context.Context, term string) error {
	switch f.thingOf(term); {
	case len(f.holds)+len(f.entries) > 0:
	case contract.ValidPaymentID(term):
		f.payment(term)
	case contract.ValidEventID(term):
		f.events = append(f.events, term)
	default:
		return f.seekWords(ctx, term)
	}
	return nil
}

// seekWords tries a term as each thing that has no shape of its own.
func (f *finding) seekWords(ctx context.Context, term string) error {
	persons := []string{f.d.keys.PersonOfCustomer(term)}
	if e164, ok := normalisePhone(term, f.d.cfg.Phone.DefaultRegion); ok {
		persons = append(persons, f.d.keys.PersonOfPhone(e164))
	}
	if err := f.seekNames(ctx, term); err != nil {
		return err
	}
	skus, err := f.d.skus.all(ctx)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, f.seekFor)
	defer cancel()
	for _, p := range persons {
		entries, err := f.d.gate.LiveEntries(ctx, p, skus)
		if err != nil {
			return err
		}
		for _, sku := range skus {
			f.entry(entries[sku])
		}
	}
	for _, sku := range skus {
		if err := f.seekIn(soon, sku, term, persons, linesOfEach(len(skus))); err != nil {
			if soon.Err() == nil || ctx.Err() != nil {
				return err
			}
			f.whole = false
			break
		}
	}
	if err := f.seekStock(ctx, term, skus); err != nil {
		return err
	}
	if len(f.holds)+len(f.entries)+len(f.payments)+len(f.things)+len(f.story) == 0 {
		f.seekBooks(ctx, soon, term, skus)
	}
	return nil
}

// linesOfEach is how many lines of the ledger of each of n SKUs are read.
func linesOfEach(n int) int {
	return max(findLinesLeast, min(findLines, findLinesAll/max(n, 1)))
}

func (f *finding) seekIn(ctx context.Context, sku, term string, persons []string, most int) error {
	// A ledger that was lost shows nothing, and what is rebuilt comes with the opening.
	if _, _, err := f.d.gate.Snapshot(ctx, sku); err != nil && !f.isClosed(err) {
		return err
	}
	lines, whole, err := f.d.gate.FindLines(ctx, sku, time.Time{}, most, func(l redis.LedgerLine) bool {
		return l.PaymentRef == term || l.Verb == "stock" && (l.RefID == term || l.OtherID == term) || slices.Contains(persons, l.Person)
	})
	if err != nil {
		return err
	}
	f.whole = f.whole && whole
	for _, l := range slices.Backward(lines) { // the newest first: they are asked for most
		if l.Verb == "stock" {
			f.happened(sku, l)
			if l.RefID == term || l.OtherID == term { // and not a return of what a payment had bought
				f.applied[sku] = l.Units
			}
			continue
		}
		f.thingOf(l.RefID)
		f.thingOf(l.OtherID)
	}
	return nil
}

// thingOf notes a hold or an entry by the shape of its id.
func (f *finding) thingOf(id string) {
	switch {
	case strings.HasPrefix(id, contract.HoldPrefix):
		f.hold(id)
	case strings.HasPrefix(id, contract.EntryPrefix):
		f.entry(id)
	}
}

// tell reads what each thing is now and what happened to it. One thing leads to
// others: an entry to its holds, a hold to its payments, a payment to its hold.
func (f *finding) tell(ctx context.Context) error {
	spans := map[string]time.Time{} // SKU → since when its ledger may tell of them
	for h, e, p := 0, 0, 0; ; {
		var err error
		switch {
		case p < len(f.payments):
			f.tellPayment(ctx, f.payments[p])
			p++
		case e < len(f.entries):
			err = f.tellEntry(ctx, f.entries[e], spans)
			e++
		case h < len(f.holds):
			err = f.tellHold(ctx, f.holds[h], spans)
			h++
		default:
			for _, id := range f.events {
				f.tellEvent(ctx, id)
			}
			return f.tellLedgers(ctx, spans)
		}
		if err != nil {
			return err
		}
	}
}

// tellLedgers adds the lines about the holds and entries that were found, and the
// holds that an entry had before the one on its record.
func (f *finding) tellLedgers(ctx context.Context, spans map[string]time.Time) error {
	skus := make([]string, 0, len(spans))
	for sku := range spans {
		skus = append(skus, sku)
	}
	slices.Sort(skus)
	for _, sku := range skus {
		lines, whole, err := f.d.gate.FindLines(ctx, sku, spans[sku], linesOfEach(len(skus)), func(l redis.LedgerLine) bool {
			return l.Verb != "stock" && (slices.Contains(f.holds, l.RefID) || slices.Contains(f.entries, l.RefID) || slices.Contains(f.entries, l.OtherID))
		})
		if err != nil {
			return err
		}
		f.whole = f.whole && whole
		for _, l := range lines {
			f.happened(sku, l)
		}
	}
	return nil
}

func begin(spans map[string]time.Time, sku string, at time.Time) {
	if was, ok := spans[sku]; !ok || at.Before(was) {
		spans[sku] = at
	}
}

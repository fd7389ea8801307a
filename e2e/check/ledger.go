package check

import (
	"fmt"
	"slices"
	"time"
)

// lineKind is what a line of one verb and kind says of its hold: from which state
// to which. The states on the left take the same from the counters.
type lineKind struct {
	from []string // "" is no record
	to   string
}

// holdLines are the lines that move a hold. An end that stands in no list on the
// left is the last line of a hold.
var holdLines = map[string]lineKind{
	"offer offered":     {[]string{""}, "offered"},
	"reserve walk-in":   {[]string{"", "swept"}, "provisional"},
	"reserve afresh":    {[]string{"", "swept"}, "provisional"},
	"reserve press":     {[]string{"offered"}, "provisional"},
	"sweep swept":       {[]string{"provisional"}, "swept"},
	"sweep offered":     {[]string{"provisional"}, "offered"},
	"adopt held":        {[]string{"provisional"}, "held"},
	"adopt extended":    {[]string{"held"}, "held"},
	"adopt refused":     {[]string{"", "swept"}, "refused"},
	"confirm sold":      {[]string{"held", "provisional"}, "sold"},
	"confirm retaken":   {[]string{"expired"}, "sold"},
	"unconfirm held":    {[]string{"sold"}, "held"},
	"unconfirm expired": {[]string{"sold"}, "expired"},
	"release released":  {[]string{"held", "provisional"}, "released"},
	"release expired":   {[]string{"held", "provisional"}, "expired"},
	"withdraw released": {[]string{"offered"}, "released"},
	"withdraw expired":  {[]string{"offered"}, "expired"},
	"lapse lapsed":      {[]string{"offered"}, "lapsed"},
	"repair restored":   {[]string{"held", "provisional"}, "held"},
}

// plainLines move no hold: what they do besides stands in replay.
var plainLines = map[string]bool{
	"open new": true, "open checked": true, "settings paused": true, "settings resumed": true, "settings policy": true, "join waiting": true,
	"leave left": true, "leave expired": true, "leave opted_out": true, "leave unreachable": true, "leave removed": true,
	"stock restock": true, "stock correction": true, "stock level": true, "stock return": true, "stock discarded": true,
	"refund marked": true, "repair entry": true, "repair place": true, "repair counted": true, "repair rebuilt": true,
}

func isEnd(state string) bool {
	switch state {
	case "sold", "lapsed", "released", "expired", "refused":
		return true
	}
	return false
}

// share is what one hold in a state takes from the counters.
func share(state string, units int64) Counters {
	switch state {
	case "offered":
		return Counters{Offered: units}
	case "provisional", "held":
		return Counters{Held: units}
	case "sold":
		return Counters{OnHand: -units, Sold: units}
	}
	return Counters{}
}

func (c *Counters) move(d Counters, sign int64) {
	c.OnHand += sign * d.OnHand
	c.Held += sign * d.Held
	c.Offered += sign * d.Offered
	c.Sold += sign * d.Sold
}

func (c Counters) parts() string {
	return fmt.Sprintf("on_hand %d, held %d, offered %d, sold %d", c.OnHand, c.Held, c.Offered, c.Sold)
}

func (c Counters) flows() string {
	return fmt.Sprintf("received %d, corrected %d, returned %d", c.Received, c.Corrected, c.Returned)
}

func (c Counters) free() int64 { return c.OnHand - c.Held - c.Offered }

// told is what the ledger says of one hold after the last line.
type told struct {
	state    string
	person   string
	entry    string // "" of a walk-in
	units    int64
	returned int64 // units that came back after the sale, sold again or not
	retaken  bool
	sale     string   // the payment that made it
	refunded []string // payments marked for refund
}

// story is what the whole ledger says.
type story struct {
	holds  map[string]told
	before []string // for each line the state that its hold had before it
	// short is true when a stock event took units that were promised.
	short bool
	// partly is true when lines were trimmed: a hold may have a past that is not
	// told.
	partly bool
}

// replay walks the ledger from an empty shelf, or from the opening balance that
// stands for lines which were trimmed: I1 (each line's counters follow from the
// line before), I2, I3 (one end a hold), I7 (no payment both sells and is
// refunded), I8 (one effect a stock event).
func (r *report) replay(f Facts) story {
	s := story{holds: map[string]told{}, before: make([]string, len(f.Ledger))}
	var sum Counters
	var n int64
	if f.Opening != nil {
		sum, n = *f.Opening, f.Opening.Ledger
		s.partly, s.short = true, sum.free() < 0
	}
	epoch := int64(-1)
	events := map[string]bool{}
	var opened time.Time // when the gate was last opened after a check
	var back int64       // units of Holds that were listed late, not yet counted again
	for i, l := range f.Ledger {
		where := fmt.Sprintf("ledger line %s (%s %s %s)", l.ID, l.Verb, l.Kind, l.Ref)
		// Numbers have no gap within an epoch; a later one may begin where it likes.
		if i > 0 && l.Epoch != epoch {
			n = l.N - 1
		}
		epoch = l.Epoch
		if n++; l.N != n {
			r.add("I1", where, fmt.Sprintf("line %d of epoch %d", n, epoch), "line %d", l.N)
			n = l.N
		}
		free, late := sum.free(), int64(0)
		kind, moves := holdLines[l.Verb+" "+l.Kind]
		switch {
		case moves && s.holds[l.Ref].state == "" && f.listedLate(l, opened):
			// The counters stand as they are until the line that counts it again.
			s.holds[l.Ref] = told{state: kind.to, units: l.Units, person: l.Person, entry: l.Other}
			back += l.Units
		case moves:
			s.before[i] = r.step(&sum, s, kind, l)
		case !plainLines[l.Verb+" "+l.Kind]:
			r.add("I1", where, "a verb and kind of the gate", "%s %s", l.Verb, l.Kind)
		case l.Verb == "stock":
			if id := l.event(); events[id] {
				r.add("I8", id, "one ledger line for a stock event", "a second: %s", where)
			}
			events[l.event()] = true
			r.stock(&sum, s, l)
		case l.Verb == "refund":
			r.marked(s, l)
		case l.Verb == "repair" && l.Kind == "rebuilt": // its lines may be lost
			h := s.holds[l.Ref]
			h.state, h.units, h.person, h.entry, h.sale = l.Reason, l.Units, l.Person, l.Other, l.Payment
			s.holds[l.Ref] = h
			sum.OnHand, sum.Held, sum.Offered, sum.Sold = l.OnHand, l.Held, l.Offered, l.SoldTo
		case l.Verb == "repair" && l.Kind == "counted": // the counters were not what their parts were
			if l.Reason == "rebuilt" { // and the totals, which no line carries
				later := flowsOf(f.Ledger[i+1:])
				sum.Received, sum.Corrected = f.Counters.Received-later.Received, f.Counters.Corrected-later.Corrected
				sum.Returned = f.Counters.Returned - later.Returned
			}
			if l.Other == "held" {
				late = max(0, min(back, l.Units))
				back -= late
			}
			sum.OnHand, sum.Held, sum.Offered, sum.Sold = l.OnHand, l.Held, l.Offered, l.SoldTo
		}
		if l.Verb == "open" && l.Kind == "checked" {
			opened = l.At
		}
		got := Counters{OnHand: l.OnHand, Held: l.Held, Offered: l.Offered, Sold: l.SoldTo}
		if got.parts() != sum.parts() {
			r.add("I1", where, sum.parts(), "%s", got.parts())
			sum.OnHand, sum.Held, sum.Offered, sum.Sold = got.OnHand, got.Held, got.Offered, got.Sold
		}
		r.notNegative(where, got)
		if now := got.free(); now < 0 && now < free {
			switch {
			case l.Verb == "stock":
				s.short = true
			case min(0, free)-now <= late:
				s.short = true // a walk-in has the unit of a Hold that was listed late
			default:
				r.add("I2", where, "units that are there", "available %d before and %d after", free, now)
			}
		}
	}
	if want, got := sum, f.Counters; got.parts() != want.parts() || got.flows() != want.flows() {
		r.add("I1", "the stock hash", "what the ledger adds up to: "+want.parts()+", "+want.flows(), "%s, %s", got.parts(), got.flows())
	}
	if got := f.Counters; got.Ledger != n {
		r.add("I1", "the stock hash", fmt.Sprintf("ledger number %d", n), "%d", got.Ledger)
	}
	return s
}

// flowsOf is what stock events of these lines brought.
func flowsOf(lines []Line) (sum Counters) {
	for _, l := range lines {
		switch {
		case l.Verb != "stock":
		case l.Kind == "restock":
			sum.Received += l.Units
		case l.Kind == "correction" || l.Kind == "level":
			sum.Corrected += l.Units
		case l.Kind == "return":
			sum.Returned += l.Units
		}
	}
	return sum
}

// step takes one line of a hold into the sum and answers the state before it.
func (r *report) step(sum *Counters, s story, kind lineKind, l Line) (before string) {
	h, known := s.holds[l.Ref]
	if !known && s.partly && !slices.Contains(kind.from, "") {
		h.state, h.units = kind.from[0], l.Units
		h.retaken, h.sale = l.Verb == "unconfirm" && l.Kind == "expired", l.Payment
	}
	before = h.state
	fresh := before == "" || before == "swept" // it may be of anybody
	if fresh || !known {
		h.person, h.entry = l.Person, l.Other
	}
	r.names(h, l, l.Other)
	fits := slices.Contains(kind.from, h.state)
	switch {
	case !fits && isEnd(h.state):
		r.add("I3", l.Ref, "nothing after its end "+h.state, "%s %s in ledger line %s", l.Verb, l.Kind, l.ID)
	case !fits:
		r.add("I8", l.Ref, fmt.Sprintf("one of %q before %s %s", kind.from, l.Verb, l.Kind), "%q in ledger line %s", h.state, l.ID)
	}
	if !fresh && h.units != l.Units {
		r.add("I1", l.Ref, fmt.Sprintf("%d units in each of its lines", h.units), "%d in ledger line %s", l.Units, l.ID)
	}
	switch l.Verb {
	case "confirm":
		if slices.Contains(h.refunded, l.Payment) {
			r.add("I7", l.Ref, "no sale by a payment that is marked for refund", "%s in ledger line %s", l.Payment, l.ID)
		}
		h.sale, h.retaken = l.Payment, l.Kind == "retaken"
	case "unconfirm":
		if h.sale != l.Payment || h.returned > 0 || h.retaken != (l.Kind == "expired") {
			r.add("I8", l.Ref, fmt.Sprintf("the undoing of a sale by %s, retaken %t, 0 returned", h.sale, h.retaken),
				"%s by %s, returned %d in ledger line %s", l.Kind, l.Payment, h.returned, l.ID)
		}
		h.sale, h.retaken = "", false
		h.refunded = append(slices.Clone(h.refunded), l.Payment)
	}
	sum.move(share(h.state, h.units), -1)
	h.state, h.units = kind.to, l.Units
	sum.move(share(h.state, h.units), +1)
	s.holds[l.Ref] = h
	return before
}

// stock takes one line of a stock event into the sum. A return belongs to a sale.
func (r *report) stock(sum *Counters, s story, l Line) {
	switch l.Kind {
	case "restock":
		sum.OnHand += l.Units
		sum.Received += l.Units
		return
	case "correction", "level":
		sum.OnHand += l.Units
		sum.Corrected += l.Units
		return
	}
	h, known := s.holds[l.Ref]
	if !known && s.partly {
		h.state, h.units, h.sale = "sold", l.Units, l.Payment
	}
	if known {
		r.names(h, l, h.entry) // a return names its event
	}
	if h.returned += l.Units; h.state != "sold" || h.sale != l.Payment || h.returned > h.units && known {
		r.add("I8", l.Ref, fmt.Sprintf("units of a sale by %q to come back, at most %d", l.Payment, h.units),
			"hold %q by %q, %d returned in ledger line %s", h.state, h.sale, h.returned, l.ID)
	}
	if known {
		s.holds[l.Ref] = h
	}
	if l.Kind == "return" {
		sum.OnHand += l.Units
		sum.Sold -= l.Units
		sum.Returned += l.Units
	}
}

// marked notes a payment that goes back.
func (r *report) marked(s story, l Line) {
	h, known := s.holds[l.Ref]
	if !known && !s.partly {
		r.add("I7", l.Ref, "a hold whose payment is marked for refund", "none in ledger line %s", l.ID)
	}
	if known {
		r.names(h, l, l.Other)
	}
	if h.state == "sold" && h.sale == l.Payment {
		r.add("I7", l.Ref, "no refund of the payment that made the sale", "%s in ledger line %s", l.Payment, l.ID)
	}
	if h.refunded = append(slices.Clone(h.refunded), l.Payment); known {
		s.holds[l.Ref] = h
	}
}

// names: each line of a hold names the same person and entry.
func (r *report) names(h told, l Line, entry string) {
	if l.Person != h.person || entry != h.entry {
		r.add("I4", l.Ref, fmt.Sprintf("person %q and entry %q in each of its lines", h.person, h.entry), "%q and %q in ledger line %s", l.Person, entry, l.ID)
	}
}

func (r *report) notNegative(where string, c Counters) {
	for name, v := range map[string]int64{"on_hand": c.OnHand, "held": c.Held, "offered": c.Offered, "sold": c.Sold} {
		if v < 0 {
			r.add("I2", where, name+" of 0 or more", "%d", v)
		}
	}
}

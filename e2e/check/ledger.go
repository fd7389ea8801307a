package check

import "fmt"

// after says which states a hold may come to from a state. "" is no record.
// An end is in no list on the left: nothing follows it.
var after = map[string][]string{
	"":            {"offered", "provisional", "held", "refused"},
	"offered":     {"provisional", "lapsed", "released", "expired"},
	"provisional": {"provisional", "held", "sold", "offered", "swept", "released", "expired", "refused"},
	"held":        {"held", "sold", "released", "expired"},
	"swept":       {"provisional", "held", "refused"},
}

func isEnd(state string) bool {
	switch state {
	case "sold", "lapsed", "released", "expired", "refused":
		return true
	}
	return false
}

func allowed(from, to string) bool {
	for _, s := range after[from] {
		if s == to {
			return true
		}
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

// told is what the ledger says of one hold after the last line.
type told struct {
	state string
	units int64
}

// replay walks the ledger from an empty shelf: I1 (each line's counters follow
// from the line before), I2, I3 (one end a hold), I8 (one effect a stock
// event). It returns what the ledger says of each hold, and for each line the
// state that its hold had before it.
func (r *report) replay(f Facts) (holds map[string]told, before []string) {
	var sum Counters
	holds = map[string]told{}
	before = make([]string, len(f.Ledger))
	events := map[string]bool{}
	var n, epoch int64
	for i, l := range f.Ledger {
		before[i] = holds[l.Ref].state
		where := fmt.Sprintf("ledger line %s (%s %s %s)", l.ID, l.Verb, l.Kind, l.Ref)
		if l.Epoch != epoch {
			n, epoch = 0, l.Epoch
		}
		if n++; l.N != n {
			r.add("I1", where, fmt.Sprintf("line %d of epoch %d", n, epoch), "line %d", l.N)
			n = l.N
		}
		switch {
		case l.Verb == "stock":
			if events[l.Ref] {
				r.add("I8", l.Ref, "one ledger line for a stock event", "a second: %s", where)
			}
			events[l.Ref] = true
			sum.OnHand += l.Units
			if l.Kind == "restock" {
				sum.Received += l.Units
			} else {
				sum.Corrected += l.Units
			}
		case l.State != "":
			r.step(&sum, holds, l)
		}
		got := Counters{OnHand: l.OnHand, Held: l.Held, Offered: l.Offered, Sold: l.SoldTo}
		if got.parts() != sum.parts() {
			r.add("I1", where, sum.parts(), "%s", got.parts())
			sum.OnHand, sum.Held, sum.Offered, sum.Sold = got.OnHand, got.Held, got.Offered, got.Sold
		}
		r.notNegative(where, got)
	}
	want, got := sum, f.Counters
	if got.parts() != want.parts() || got.Received != want.Received || got.Corrected != want.Corrected {
		r.add("I1", "the stock hash", fmt.Sprintf("what the ledger adds up to: %s, received %d, corrected %d", want.parts(), want.Received, want.Corrected),
			"%s, received %d, corrected %d", got.parts(), got.Received, got.Corrected)
	}
	if got.Ledger != n {
		r.add("I1", "the stock hash", fmt.Sprintf("ledger number %d", n), "%d", got.Ledger)
	}
	return holds, before
}

// step takes one line of a hold into the sum.
func (r *report) step(sum *Counters, holds map[string]told, l Line) {
	h := holds[l.Ref]
	if isEnd(h.state) {
		r.add("I3", l.Ref, "nothing after its end "+h.state, "%s %s in ledger line %s", l.Verb, l.Kind, l.ID)
	} else if !allowed(h.state, l.State) {
		r.add("I8", l.Ref, fmt.Sprintf("one of %v after %q", after[h.state], h.state), "%s %s in ledger line %s", l.Verb, l.Kind, l.ID)
	}
	if live(h.state) && h.units != l.Units {
		r.add("I1", l.Ref, fmt.Sprintf("%d units in each of its lines", h.units), "%d in ledger line %s", l.Units, l.ID)
	}
	sum.move(share(h.state, h.units), -1)
	h.state, h.units = l.State, l.Units
	sum.move(share(h.state, h.units), +1)
	holds[l.Ref] = h
}

func (r *report) notNegative(where string, c Counters) {
	for name, v := range map[string]int64{"on_hand": c.OnHand, "held": c.Held, "offered": c.Offered, "sold": c.Sold} {
		if v < 0 {
			r.add("I2", where, name+" of 0 or more", "%d", v)
		}
	}
}

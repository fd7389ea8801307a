package check

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// parts is I1 and I2 over the records: the counters are the sums of the live
// holds, and every unit that came is on the shelf or sold.
func (r *report) parts(f Facts, s story) {
	var sum Counters
	for _, h := range f.Holds {
		sum.move(share(h.State, h.Units), +1)
	}
	c := f.Counters
	for name, pair := range map[string][2]int64{
		"held":    {sum.Held, c.Held},
		"offered": {sum.Offered, c.Offered},
		"sold":    {sum.Sold - c.Returned, c.Sold},
	} {
		if pair[0] != pair[1] {
			r.add("I1", "counter "+name, fmt.Sprintf("%d, the sum of the holds", pair[0]), "%d", pair[1])
		}
	}
	if c.Received+c.Corrected != c.OnHand+c.Sold {
		r.add("I1", "the stock hash", fmt.Sprintf("received %d + corrected %d = on_hand + sold", c.Received, c.Corrected), "on_hand %d + sold %d", c.OnHand, c.Sold)
	}
	// Below 0 only when a stock event took units that were promised.
	if free := c.free(); free < 0 && !s.short {
		r.add("I2", "the stock hash", "available of 0 or more", "%d", free)
	}
	r.notNegative("the stock hash", c)
}

// agree is I3 and I8 between records and ledger: each tells the same end.
func (r *report) agree(f Facts, s story) {
	for id, h := range f.Holds {
		l, known := s.holds[id]
		if (known || !s.partly) && l.state != h.State {
			r.add("I3", id, fmt.Sprintf("record %q as the ledger's last line", l.state), "record %q", h.State)
		}
		if known && (l.person != h.Person || l.entry != h.Entry) {
			r.add("I4", id, fmt.Sprintf("person %q and entry %q as in the ledger's last line", l.person, l.entry), "%q and %q", h.Person, h.Entry)
		}
		if !s.partly && (l.returned != h.Returned || !slices.Equal(l.refunded, h.Refunded)) {
			r.add("I8", id, fmt.Sprintf("%d units returned and payments %q marked for refund, as in the ledger", l.returned, l.refunded), "%d and %q", h.Returned, h.Refunded)
		}
		if isEnd(h.State) && h.Ended.IsZero() {
			r.add("I3", id, "a time of its end", "none on a record %q", h.State)
		}
		if h.State == "expired" && h.Ended.Before(h.Deadline) {
			r.add("I3", id, "an expiry at its deadline "+stamp(h.Deadline)+" or later", "%s", stamp(h.Ended))
		}
		if (h.State == "sold") != (h.PaymentRef != "") {
			r.add("I3", id, "a payment_ref on sold holds and no others", "%q on a record %q", h.PaymentRef, h.State)
		}
	}
	for id, l := range s.holds {
		if _, ok := f.Holds[id]; !ok && live(l.state) {
			r.add("I3", id, "a record, live in the ledger as "+l.state, "none")
		}
	}
}

// people is I4: one live entry a person, one live hold an entry, and each side
// names the other.
func (r *report) people(f Facts) {
	entryOf := map[string]string{}
	for _, id := range sorted(f.Entries) {
		e := f.Entries[id]
		if !entryLive(e.State) {
			continue
		}
		if other, twice := entryOf[e.Person]; twice {
			r.add("I4", id, "one live entry of its person", "also %s", other)
		}
		entryOf[e.Person] = id
		if f.People[e.Person] != id {
			r.add("I4", id, "its person to name it", "%q", f.People[e.Person])
		}
	}
	for person, id := range f.People {
		if !entryLive(f.Entries[id].State) {
			r.add("I4", id, "a live entry, named by person "+person, "%q", f.Entries[id].State)
		}
	}
	holdOf := map[string]string{}
	for _, id := range sorted(f.Holds) {
		h := f.Holds[id]
		if !live(h.State) || h.Entry == "" {
			continue
		}
		if other, twice := holdOf[h.Entry]; twice {
			r.add("I4", id, "one live hold of entry "+h.Entry, "also %s", other)
		}
		holdOf[h.Entry] = id
		if e := f.Entries[h.Entry]; e.Hold != id || e.Person != h.Person {
			r.add("I4", id, "entry "+h.Entry+" to name it, and its person", "%q, person %q", e.Hold, e.Person)
		}
	}
	for id, e := range f.Entries {
		if claim := e.State == "offered" || e.State == "holding"; claim && holdOf[id] == "" {
			r.add("I4", id, "a live hold of an entry "+e.State, "none (names %q)", e.Hold)
		}
	}
}

// places: everything that waits stands in the set that wakes it.
func (r *report) places(f Facts) {
	for id, e := range f.Entries {
		line, inLine := f.Line[id]
		fresh, inFresh := f.Fresh[id]
		parked, inParked := f.Parked[id]
		if inParked && !inLine { // it keeps its place
			line, inLine = parked, true
		} else if inParked {
			r.add("order", id, "a place in the line or among the parked", "both")
		}
		switch {
		case e.State != "waiting":
			if inLine || inFresh {
				r.add("order", id, "no place in the line once it is "+e.State, "one")
			}
		case e.Acknowledged && (!inLine || inFresh || line != e.Arrival):
			r.add("order", id, fmt.Sprintf("a place %d in the line", e.Arrival), "line %d, fresh %d", line, fresh)
		case !e.Acknowledged && (inLine || !inFresh || fresh != e.Arrival):
			r.add("order", id, fmt.Sprintf("a place %d among the fresh", e.Arrival), "line %d, fresh %d", line, fresh)
		}
	}
	for member := range f.Parcels {
		if _, queued := f.Outbox[strings.TrimPrefix(member, "#")]; !queued {
			r.add("I6", member, "nothing kept of what has left the outbox", "a parcel")
		}
	}
	for id := range f.Leases {
		if h := f.Holds[id]; h.State != "provisional" {
			r.add("I6", id, "a lease of provisional holds only", "record %q", h.State)
		}
	}
}

func sorted[T any](m map[string]T) []string {
	ids := make([]string, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

package check

import (
	"fmt"
	"math"
	"time"
)

// turns are the entries' turns, told by the ledger up to one of its lines. Stock that
// is added begins a generation, in which nobody is offered twice.
type turns struct {
	generation int64
	left       map[string]bool
	offered    map[string]int64 // entry → generation of its last offer
	over       map[string]int64 // entry → generation in which that, or its hold, ended
}

// served says that an entry has no right to the units of this line: it has an offer
// or a hold, or had one that ended in this generation.
func (t turns) served(entry string) bool {
	_, ever := t.offered[entry]
	over, ended := t.over[entry]
	return ever && (!ended || over == t.generation)
}

// order is I5: units go to the line in order of arrival among those eligible
// at that time, and to a walk-in only when nobody eligible waits.
//
// The gate keeps no time of acknowledgement, so the histories give it: an
// entry was surely eligible once its history shows an answer of the gate, and
// surely not before its workflow had started. In between nothing is judged.
func (r *report) order(f Facts, before []string) {
	t := turns{left: map[string]bool{}, offered: map[string]int64{}, over: map[string]int64{}}
	for i, l := range f.Ledger {
		entry := f.Holds[l.Ref].Entry
		switch {
		case l.Verb == "stock" && l.Kind != "discarded" && l.Units > 0:
			t.generation++
		case l.Verb == "repair" && l.Kind == "rebuilt" && entry != "": // the lines that led to it are lost
			if isEnd(l.Reason) {
				t.over[entry] = t.generation
				break
			}
			t.offered[entry] = t.generation
			delete(t.over, entry)
		case l.Verb == "open": // whose hold is listed late has had a turn that is forgotten
			for j, late := range f.Ledger[i:] {
				if late.Kind == "restored" && late.Other != "" && before[i+j] == "" {
					t.offered[late.Other] = t.generation
					delete(t.over, late.Other)
				}
			}
		case l.Verb == "repair" && l.Kind == "restored": // what it takes was taken before it was lost
		case l.Verb == "leave":
			t.left[l.Ref] = true
		case l.Kind == "retaken":
			r.passedOver(f, l, math.MaxInt64, t)
		case l.State == "" || live(before[i]) || l.Verb == "unconfirm":
			// No unit leaves the free ones.
			if entry != "" && isEnd(l.State) {
				t.over[entry] = t.generation
			}
		case l.State == "offered":
			e := f.Entries[entry]
			if e.Arrival == 0 {
				r.add("order", l.Ref, "an offer to an entry on record", "entry %q", entry)
				continue
			}
			last, ever := t.offered[entry]
			if _, over := t.over[entry]; t.left[entry] || ever && (!over || last == t.generation) {
				r.add("order", l.Ref, "one offer to entry "+entry+", while it waits", "left %t, offered before %t", t.left[entry], ever)
			}
			r.passedOver(f, l, e.Arrival, t)
			t.offered[entry] = t.generation
			delete(t.over, entry)
		case live(l.State):
			r.passedOver(f, l, math.MaxInt64, t)
		}
	}
}

// passedOver reports entries that came before arrival and had the right to the
// units of this line.
func (r *report) passedOver(f Facts, l Line, arrival int64, t turns) {
	to := l.Ref + ", " + l.Verb
	for _, id := range sorted(f.Entries) {
		e := f.Entries[id]
		joined := time.UnixMicro(e.Arrival)
		if e.Arrival >= arrival || !joined.Before(l.At) || t.served(id) {
			continue
		}
		if !e.Ended.IsZero() && !e.Ended.After(l.At) {
			continue
		}
		w, started := f.Workflows[id]
		switch {
		case !w.Knew.IsZero() && w.Knew.Before(l.At):
			r.add("order", id, "the units of "+to+", as the first eligible", "arrived %d, passed over at %s in ledger line %s", e.Arrival, stamp(l.At), l.ID)
		case started && !w.Started.After(l.At):
			// Started, and perhaps not yet acknowledged.
		case l.At.Before(joined.Add(f.Lease)):
			r.add("order", id, fmt.Sprintf("its turn kept for the %s of its lease", f.Lease), "%s at %s in ledger line %s", to, stamp(l.At), l.ID)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }

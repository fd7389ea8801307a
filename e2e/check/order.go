package check

import (
	"fmt"
	"math"
	"time"
)

// order is I5: units go to the line in order of arrival among those eligible
// at that time, and to a walk-in only when nobody eligible waits.
//
// The gate keeps no time of acknowledgement, so the histories give it: an
// entry was surely eligible once its history shows an answer of the gate, and
// surely not before its workflow had started. In between nothing is judged.
func (r *report) order(f Facts, before []string) {
	offered, left := map[string]bool{}, map[string]bool{}
	for i, l := range f.Ledger {
		entry := f.Holds[l.Ref].Entry
		switch {
		case l.Verb == "leave":
			left[l.Ref] = true
		case l.Kind == "retaken":
			r.passedOver(f, l, math.MaxInt64, offered)
		case l.State == "" || live(before[i]) || l.Verb == "unconfirm":
			// No unit leaves the free ones.
		case l.State == "offered":
			e := f.Entries[entry]
			if e.Arrival == 0 {
				r.add("order", l.Ref, "an offer to an entry on record", "entry %q", entry)
				continue
			}
			if left[entry] || offered[entry] {
				r.add("order", l.Ref, "one offer to entry "+entry+", while it waits", "left %t, offered before %t", left[entry], offered[entry])
			}
			r.passedOver(f, l, e.Arrival, offered)
			offered[entry] = true
		case live(l.State):
			r.passedOver(f, l, math.MaxInt64, offered)
		}
	}
}

// passedOver reports entries that came before arrival and had the right to the
// units of this line.
func (r *report) passedOver(f Facts, l Line, arrival int64, offered map[string]bool) {
	to := l.Ref + ", " + l.Verb
	for _, id := range sorted(f.Entries) {
		e := f.Entries[id]
		joined := time.UnixMicro(e.Arrival)
		if e.Arrival >= arrival || !joined.Before(l.At) || offered[id] {
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

package check

import "time"

// outage is how long an entry that nobody has acknowledged keeps its turn while nobody
// who joined later has acknowledged either.
const outage = 5 * time.Minute

// unserved is the other half of I5: units that are free while somebody eligible waits
// become an offer. A line that is served in bites has another head in the next look.
func (r *report) unserved(f Facts) {
	free := f.Counters.free()
	ended := !f.Ends.IsZero() && !f.Now.Before(f.Ends)
	if free <= 0 || f.Paused || ended || len(f.Line) == 0 {
		return
	}
	head := ""
	for id, arrival := range f.Line {
		if head == "" || arrival < f.Line[head] {
			head = id
		}
	}
	for id, arrival := range f.Fresh {
		if arrival < f.Line[head] && f.keepsItsTurn(id, arrival) {
			return
		}
	}
	r.add("I5", head, "an offer of the free units to the first eligible", "%d free while it waits", free)
}

// keepsItsTurn says that the line stops at an entry which nobody has acknowledged: for
// its lease, and after it until somebody who joined later has acknowledged a lease ago.
func (f Facts) keepsItsTurn(id string, arrival int64) bool {
	waits := f.Now.Sub(time.UnixMicro(arrival))
	if waits < f.Lease || waits >= outage {
		return waits < f.Lease
	}
	for later, e := range f.Entries {
		knew := f.Workflows[later].Knew
		if e.Arrival > arrival && !knew.IsZero() && f.Now.Sub(knew) >= f.Lease {
			return false
		}
	}
	return true
}

// Mended are the live records that Reconcile ended because nobody owned them: I6 was
// broken before it looked. Only a hand or a lost workflow may bring that about.
func Mended(f Facts) []Violation {
	r := &report{sku: f.SKU}
	for _, l := range f.Ledger {
		if l.Reason == "reconcile" && (l.Verb == "release" || l.Verb == "withdraw" || l.Verb == "leave") {
			r.add("I6", l.Ref, "an owner as long as it lives", "ended by Reconcile, %s %s in ledger line %s", l.Verb, l.Kind, l.ID)
		}
	}
	return r.found
}

// Owned is how many live holds have an open workflow: what I6 has been asked about.
func (f Facts) Owned() (n int) {
	for id, h := range f.Holds {
		if h.State == "held" && f.open(id) || h.State == "offered" && f.open(h.Entry) {
			n++
		}
	}
	return n
}

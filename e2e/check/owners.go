package check

// owners is I6 and I8 between records and workflows. Redis and Temporal cannot
// be read in one instant, so Check looks twice before it believes this part.
func (r *report) owners(f Facts) {
	for id, h := range f.Holds {
		switch h.State {
		case "offered":
			if _, queued := f.Outbox["o:"+id]; !queued && !f.open(h.Entry) {
				r.add("I6", id, "an offer whose entry's workflow is open, or a place in the outbox", "workflow %s %s", h.Entry, f.status(h.Entry))
			}
		case "provisional":
			if _, leased := f.Leases[id]; !leased {
				r.add("I6", id, "a lease of a provisional hold", "none")
			}
		case "held":
			if !f.open(id) {
				r.add("I6", id, "an open Hold workflow of a held hold", "%s", f.status(id))
			}
		}
	}
	for id, e := range f.Entries {
		if !entryLive(e.State) {
			continue
		}
		_, queued := f.Outbox["s:"+id]
		switch {
		case e.Acknowledged && !f.open(id):
			r.add("I6", id, "an open workflow of a live entry that acknowledged", "%s", f.status(id))
		case !e.Acknowledged && (!queued || !f.Parcels["s:"+id]):
			r.add("I6", id, "a start in the outbox with its sealed input", "start %t, sealed %t", queued, f.Parcels["s:"+id])
		}
	}
	for id, w := range f.Workflows {
		if w.Type != "Hold" {
			continue
		}
		h, known := f.Holds[id]
		switch {
		case !known:
			r.add("I8", id, "a record of every Hold workflow", "none, the workflow is %s", w.Status)
		case w.Status == "Running":
		case w.Status != "Completed":
			r.add("I8", id, "a Hold workflow that completes", "%s", w.Status)
		case !isEnd(h.State) && (h.State != "swept" || len(w.Lines) < 2): // a cart refused before it came to this line
			r.add("I8", id, "an ended record of a closed Hold workflow", "record %q", h.State)
		case h.State == "sold" && h.Retaken && w.Result == "expired": // paid late, and a unit was free
		case len(w.Lines) > 1: // told from all its lines
			if sold := h.State == "sold"; sold != (w.Result == "sold") {
				r.add("I8", id, "a line sold as its cart, which closed as "+w.Result, "record %q", h.State)
			}
		case w.Result != h.State:
			r.add("I8", id, "a workflow that closed as its record, "+h.State, "closed as %q", w.Result)
		}
	}
}

func (f Facts) open(id string) bool { return f.Workflows[id].Status == "Running" }

func (f Facts) status(id string) string {
	if w, ok := f.Workflows[id]; ok {
		return w.Status
	}
	return "unknown to Temporal"
}

package check

import "time"

// Promise is what a client was told of one hold, and what it asked for.
type Promise struct {
	HoldID   string
	Until    time.Time // the latest deadline that it was told
	Released bool      // it asked for the hold's end
	Paid     bool      // it told of a payment
}

// JudgePromises is the clients' side of I3: a hold that was promised ends by a payment
// that its client told of, by its client's word, or not before its deadline.
func JudgePromises(f Facts, promises []Promise) []Violation {
	r := &report{sku: f.SKU}
	for _, p := range promises {
		switch h := f.Holds[p.HoldID]; h.State {
		case "held":
		case "sold":
			if !p.Paid {
				r.add("promise", p.HoldID, "no sale without a payment that its client told of", "sold at %s", stamp(h.Ended))
			}
		case "released":
			if !p.Released {
				r.add("promise", p.HoldID, "no release that its client did not ask for", "released at %s", stamp(h.Ended))
			}
		case "expired":
			if h.Ended.Before(p.Until) {
				r.add("promise", p.HoldID, "the hold until "+stamp(p.Until), "expired at %s", stamp(h.Ended))
			}
		default:
			r.add("promise", p.HoldID, "a hold, or what becomes of one", "record %q", h.State)
		}
	}
	return r.found
}

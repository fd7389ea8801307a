package check

import (
	"fmt"
	"regexp"
)

var link = regexp.MustCompile(`https?://\S+/r/\S+`)

// texts: an offer's text goes to the phone of the entry that has the offer, and
// a second one carries the same link. Nobody gets a link without an offer.
func (r *report) texts(f Facts) {
	links := map[string]string{}
	for _, t := range f.Texts {
		found := link.FindString(t.Body)
		if found == "" {
			continue
		}
		h, ok := f.Holds[t.Hold]
		switch {
		case !ok:
			r.add("texts", t.Hold, "an offer on record behind the link in a text", "none, text to entry %s", t.Entry)
			continue
		case h.Entry != t.Entry:
			r.add("texts", t.Hold, "a text to entry "+h.Entry, "to entry %s", t.Entry)
		case f.Workflows[h.Entry].Phone != t.To:
			r.add("texts", t.Hold, fmt.Sprintf("a text to %q, the phone of its entry", f.Workflows[h.Entry].Phone), "to %q", t.To)
		}
		if first, again := links[t.Hold]; again && first != found {
			r.add("texts", t.Hold, "the same link in each of its texts: "+first, "%s", found)
		}
		links[t.Hold] = found
	}
}

package redis

import (
	"context"
	"encoding/json"
	"fmt"
)

// Place says where an entry stands in the line.
type Place string

// Places. An entry with an offer that its workflow knows of, with a hold or at its
// end has none.
const (
	PlaceNone   Place = ""
	PlaceLine   Place = "line"   // eligible
	PlaceFresh  Place = "fresh"  // its workflow has not acknowledged
	PlaceParked Place = "parked" // had its turn in this generation
	PlaceLimit  Place = "limit"  // its person has as much as one may
	PlaceOffer  Place = "offer"  // has an offer that its workflow does not know of
)

// Waiter is an entry with its place.
type Waiter struct {
	Entry
	In Place
}

// Standing is how a SKU's line stands, and one entry in it.
type Standing struct {
	Counters    Counters
	Heads       []Waiter // first come first, parked ones left out
	Parked      int64    // those at the limit too
	FirstParked string
	Unknown     []string // entries whose workflows do not know of their offers

	Entry *Waiter // that was asked for; nil when there is no such entry
	Ahead int64   // eligible ones before it, and those whose acknowledgement the line waits for
	Hold  *Hold   // its last one, if that has a record
}

// Why reads what `why` is told from: of an entry, or with "" of the line alone.
// At most heads of the line and as many offers are named.
func (g *Gate) Why(ctx context.Context, sku, entryID string, heads int) (Standing, error) {
	r, err := g.decide(ctx, verbWhy, sku, entryID, heads)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Counters: parseCounters(sku, r, 10), Parked: r.int(3), FirstParked: r.str(4), Ahead: r.int(7)}
	var list []string
	if err := json.Unmarshal([]byte(r.str(2)), &list); err != nil {
		return Standing{}, fmt.Errorf("heads of %s do not parse: %w", sku, err)
	}
	for i := 0; i+2 < len(list); i += 3 {
		e, err := parseEntry(sku, list[i], list[i+2], 0)
		if err != nil {
			return Standing{}, err
		}
		s.Heads = append(s.Heads, Waiter{e, Place(list[i+1])})
	}
	if err := json.Unmarshal([]byte(r.str(5)), &s.Unknown); err != nil {
		return Standing{}, fmt.Errorf("offers of %s do not parse: %w", sku, err)
	}
	if raw := r.str(8); raw != "" {
		e, err := parseEntry(sku, entryID, raw, 0)
		if err != nil {
			return Standing{}, err
		}
		s.Entry = &Waiter{e, Place(r.str(6))}
	}
	if raw := r.str(9); raw != "" {
		h, err := g.parseHold(sku, s.Entry.HoldID, raw)
		if err != nil {
			return Standing{}, err
		}
		s.Hold = &h
	}
	return s, nil
}

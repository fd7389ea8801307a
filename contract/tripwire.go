package contract

import (
	"slices"
	"time"
)

// Wires of the tripwire: what must never be, whatever has brought it about.
const (
	WireOversold  = "oversold"  // more is sold than was ever received, corrections included
	WireShortfall = "shortfall" // more is held and offered than is on hand
	WireNegative  = "negative"  // a counter is below 0
	WireLedger    = "ledger"    // the counters, or the lines of the ledger, do not add up
)

// Ring is a wire that rings, with a sentence for a person.
type Ring struct {
	Wire string `json:"wire"`
	Says string `json:"says"`
}

// FreshRings are the rings of wires that do not ring in before.
func FreshRings(rings, before []Ring) (fresh []Ring) {
	for _, r := range rings {
		if !slices.ContainsFunc(before, func(b Ring) bool { return b.Wire == r.Wire }) {
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// WiresOf are their wires.
func WiresOf(rings []Ring) (wires []string) {
	for _, r := range rings {
		wires = append(wires, r.Wire)
	}
	return wires
}

// Rung is the payload of the signal tripwire of a Stock: what somebody has seen ring,
// or with nothing that what rang is silent. The Stock looks for itself.
type Rung struct {
	Rings []Ring    `json:"rings,omitempty"`
	At    time.Time `json:"at"` // by the gate's clock
}

// StockAlarm is the alarm of a SKU whose tripwire rings.
type StockAlarm struct {
	Rings []Ring    `json:"rings"`
	Since time.Time `json:"since"`
}

// States of a TripwireEvent.
const (
	TripwireRinging = "ringing"
	TripwireOver    = "over"
)

// TripwireEvent is the data of stock.shortfall: an alarm that began or got one more
// wire, with all that rings, or one that is over. Paused says that the SKU is, whoever
// has paused it.
type TripwireEvent struct {
	SKU    string      `json:"sku"`
	State  string      `json:"state"`
	Rings  []Ring      `json:"rings"`
	Since  string      `json:"since"`
	Paused bool        `json:"paused"`
	Stock  StockCounts `json:"stock"`
}

package activities

import (
	"context"

	"holdfast/contract"
)

// TripwireLook is what a look at a SKU's tripwire has found.
type TripwireLook struct {
	Rings []contract.Ring `json:"rings,omitempty"`
	Stock StockNow        `json:"stock"`
	// Pause says that a SKU whose tripwire begins to ring is to be paused.
	Pause bool `json:"pause,omitempty"`
	// Tell says that the shop has an endpoint for events.
	Tell bool `json:"tell,omitempty"`
}

// ReadTripwire looks at every wire of a SKU, also at the lines of its ledger.
func (a *Stock) ReadTripwire(ctx context.Context, in SKURef) (TripwireLook, error) {
	defer beating(ctx)()
	c, rings, err := a.Gate.TripwireAndLedger(ctx, in.SKU)
	if err != nil {
		return TripwireLook{}, a.gateError(ctx, in.SKU, "look at the tripwire of", err)
	}
	return TripwireLook{Rings: rings, Stock: *stockNow(c), Pause: a.PauseOnTrip, Tell: a.Tell}, nil
}

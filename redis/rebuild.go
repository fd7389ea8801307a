package redis

import (
	"context"
	"fmt"
	"time"

	"holdfast/contract"
)

// Rebuilding a closed SKU. Every script refuses when the server is not the one that
// the rebuild began with.

// Rebuilding is the gate of a rebuild: its repairs are of closed SKUs on the server
// with this replication id.
func (g *Gate) Rebuilding(replID string) *Gate {
	closed := *g
	closed.rebuilding = replID
	return &closed
}

// RebuiltHold is a hold as its workflow tells it. Version is that of the record
// that was read, 0 for none.
type RebuiltHold struct {
	LostHold
	Version    int64
	State      contract.HoldState
	EndedAt    time.Time
	Reason     string
	PaymentRef string
	Retaken    bool
	Uncounted  bool // a sale that the counters do not have yet
}

// RebuildBegin answers until when the counters have counted: what the SKU did later
// was lost.
func (g *Gate) RebuildBegin(ctx context.Context, sku string) (time.Time, error) {
	r, err := g.run(ctx, verbRebuildBegin, sku, g.rebuilding)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(r.int(2)).UTC(), nil
}

// RebuildHold writes a hold's record. OK; Changed, also for a record that is sold.
func (g *Gate) RebuildHold(ctx context.Context, sku string, h RebuiltHold) (Base, error) {
	var ended int64
	if !h.EndedAt.IsZero() {
		ended = h.EndedAt.UnixMilli()
	}
	ref := ""
	if h.PaymentRef != "" {
		ref = g.opts.Refs.Seal(h.PaymentRef)
	}
	return g.repair(ctx, verbRebuildHold, sku, lostHold(h.LostHold),
		h.ID, h.Version, string(h.State), h.Units, h.Person, h.EntryID, h.Generation, h.CreatedAt.UnixMilli(), h.ExpiresAt.UnixMilli(),
		bit(h.Extended), cartText(h.Cart), ended, h.Reason, ref, bit(h.Retaken), bit(h.Uncounted && h.State == contract.HoldSold))
}

// Totals are the counters of a SKU that is opened after a rebuild.
type Totals struct {
	Epoch                                                      int64 // at least; it rises in any case
	OnHand, Held, Offered, Sold, Received, Corrected, Returned int64
	Generation                                                 int64 // at least
	N                                                          int64 // ledger numbers go on above it
}

// RebuildOpen sets the counters and the fence. OK.
func (g *Gate) RebuildOpen(ctx context.Context, sku string, t Totals) (Base, error) {
	return g.repair(ctx, verbRebuildOpen, sku, within("on hand", t.OnHand, 0, mostUnits),
		t.Epoch, t.OnHand, t.Held, t.Offered, t.Sold, t.Received, t.Corrected, t.Returned, t.Generation, t.N)
}

// claimsBatch is how many persons one script writes.
const claimsBatch = 500

// RebuildClaims writes what each person has (units, and the live entry), as records
// say.
func (g *Gate) RebuildClaims(ctx context.Context, sku string, holds map[string]Hold, entries map[string]Entry) error {
	claims := claimed{units: map[string]int64{}, entries: map[string]string{}}
	for _, h := range holds {
		claims.hold(h)
	}
	for _, e := range entries {
		claims.entry(e)
	}
	for name, all := range map[string]map[string]string{"tally": decimals(claims.units), "people": claims.entries} {
		batch := []any{name, 1}
		for person, value := range all {
			if batch = append(batch, person, value); len(batch) >= 2*claimsBatch {
				if _, err := g.repair(ctx, verbRebuildClaims, sku, nil, batch...); err != nil {
					return err
				}
				batch = []any{name, 0}
			}
		}
		if _, err := g.repair(ctx, verbRebuildClaims, sku, nil, batch...); err != nil {
			return err
		}
	}
	return nil
}

// Records are all records of a SKU. They are of one instant only while it is closed.
type Records struct {
	Holds      map[string]Hold
	Entries    map[string]Entry
	Generation int64 // the latest that a record names
	Unreadable []string
}

// ReadRecords reads all records of a SKU.
func (g *Gate) ReadRecords(ctx context.Context, sku string) (Records, error) {
	r := Records{Holds: map[string]Hold{}, Entries: map[string]Entry{}}
	err := g.scan(ctx, key(sku, "holds"), func(id, raw string) {
		h, err := g.parseHold(sku, id, raw)
		if err != nil {
			r.Unreadable = append(r.Unreadable, err.Error())
			return
		}
		r.Holds[id] = h
		r.Generation = max(r.Generation, h.Generation)
	})
	if err == nil {
		err = g.scan(ctx, key(sku, "entries"), func(id, raw string) {
			e, err := parseEntry(sku, id, raw, 0)
			if err != nil {
				r.Unreadable = append(r.Unreadable, err.Error())
				return
			}
			r.Entries[id] = e
			r.Generation = max(r.Generation, e.Generation)
		})
	}
	if err != nil {
		return Records{}, fmt.Errorf("%w: records of %s: %w", ErrUnavailable, sku, err)
	}
	return r, nil
}

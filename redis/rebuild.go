package redis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/contract"
)

// Rebuilding a closed SKU. Every script refuses when the server is not the one that
// the rebuild began with.

// Rebuilding is the gate of one rebuild: its repairs are of closed SKUs on the server
// with this replication id, until another rebuild of the SKU begins.
func (g *Gate) Rebuilding(replID string) *Gate {
	closed := *g
	closed.server, closed.word = replID, rand.Text()
	closed.rebuilding = replID + " " + closed.word
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
	Uncounted  bool      // a sale that the counters do not have yet
	ToldAt     time.Time // of an offer, unless the record has it
	Refunded   []string  // payments that are marked for refund
}

// RebuildStart is what a book knows of a SKU that is rebuilt.
type RebuildStart struct {
	Audited    time.Time // the SKU's time goes on from there
	Generation int64     // at least
	Returned   int64     // units that came back, for counters that are gone
}

// ErrOpen says that a SKU was to be rebuilt that is open. Nothing was written.
var ErrOpen = errors.New("the sku is open: nothing of it is rebuilt")

// RebuildBegin makes the SKU this rebuild's, with a stock hash of its own when that is
// gone, and answers until when its counters have counted: what the SKU did later was
// lost. Zero when nothing is left that has counted. ErrOpen when it is not closed.
func (g *Gate) RebuildBegin(ctx context.Context, sku string, b RebuildStart) (time.Time, error) {
	var audited int64
	if !b.Audited.IsZero() {
		audited = b.Audited.UnixMicro()
	}
	r, err := g.run(ctx, verbRebuildBegin, sku, g.server, g.word, audited, b.Generation, b.Returned)
	if err != nil {
		return time.Time{}, err
	}
	if r.base().Verdict != OK {
		return time.Time{}, fmt.Errorf("rebuild of %s: %w", sku, ErrOpen)
	}
	if r.int(2) == 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(r.int(2)).UTC(), nil
}

// RebuildHold writes a hold's record. OK; Changed, also for a record that is sold.
func (g *Gate) RebuildHold(ctx context.Context, sku string, h RebuiltHold) (Base, error) {
	var ended int64
	if !h.EndedAt.IsZero() {
		ended = h.EndedAt.UnixMilli()
	}
	var told int64
	if !h.ToldAt.IsZero() {
		told = h.ToldAt.UnixMilli()
	}
	ref, refunded := "", ""
	if h.PaymentRef != "" {
		ref = g.opts.Refs.Seal(h.PaymentRef)
	}
	if len(h.Refunded) > 0 {
		sealed := make([]string, len(h.Refunded))
		for i, r := range h.Refunded {
			sealed[i] = g.opts.Refs.Seal(r)
		}
		raw, err := json.Marshal(sealed)
		if err != nil {
			return Base{}, err
		}
		refunded = string(raw)
	}
	return g.repair(ctx, verbRebuildHold, sku, lostHold(h.LostHold),
		h.ID, h.Version, string(h.State), h.Units, h.Person, h.EntryID, h.Generation, h.CreatedAt.UnixMilli(), h.ExpiresAt.UnixMilli(),
		bit(h.Extended), cartText(h.Cart), ended, h.Reason, ref, bit(h.Retaken), bit(h.Uncounted && h.State == contract.HoldSold),
		told, refunded)
}

// Totals are the counters of a SKU that is opened after a rebuild.
type Totals struct {
	Epoch                                                      int64 // at least; it rises in any case
	OnHand, Held, Offered, Sold, Received, Corrected, Returned int64
	Generation                                                 int64 // at least
	N                                                          int64 // ledger numbers go on above it
	Level                                                      int64 // version of the last level, at least
}

// RebuildOpen sets the counters and the fence. OK.
func (g *Gate) RebuildOpen(ctx context.Context, sku string, t Totals) (Base, error) {
	return g.repair(ctx, verbRebuildOpen, sku, within("on hand", t.OnHand, 0, mostUnits),
		t.Epoch, t.OnHand, t.Held, t.Offered, t.Sold, t.Received, t.Corrected, t.Returned, t.Generation, t.N, t.Level)
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

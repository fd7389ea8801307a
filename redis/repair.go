package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/contract"
)

// The verbs of Reconcile: guarded corrections. Each names what its caller saw, and
// changes nothing when that is so no longer.

// ActorReconcile is the actor of a repair.
const ActorReconcile = "reconcile"

// RepairGone ends a live record whose owner does not live: a held hold gives its
// units back, an entry leaves the line and its offer passes on. version is that of
// the record when its owner was looked for afterwards. OK; Changed, Young (nothing of the last
// lease and a minute is touched), Unknown.
func (g *Gate) RepairGone(ctx context.Context, sku, id string, version int64) (Base, error) {
	return g.repair(ctx, verbRepairGone, sku, named("id", id), id, version, ActorReconcile)
}

// LostHold is a hold whose open workflow has no record in the gate.
type LostHold struct {
	ID, Person, EntryID  string
	Units, Generation    int64
	CreatedAt, ExpiresAt time.Time
	Extended             bool
	Cart                 []contract.Line // all lines, with the first line of a cart only
}

// RepairHold writes the record of a held hold again; the counters stay as they are.
// OK; Existing, Young.
func (g *Gate) RepairHold(ctx context.Context, sku string, h LostHold) (Base, error) {
	return g.repair(ctx, verbRepairHold, sku, lostHold(h),
		h.ID, h.Units, h.Person, h.EntryID, h.Generation, h.CreatedAt.UnixMilli(), h.ExpiresAt.UnixMilli(), bit(h.Extended), cartText(h.Cart), ActorReconcile)
}

func lostHold(h LostHold) error {
	return errors.Join(named("hold id", h.ID), named("person", h.Person), within("units", h.Units, 1, mostUnits))
}

// LostEntry is an entry whose open workflow has no record in the gate. HoldID is
// its last offer's, "" before the first.
type LostEntry struct {
	ID, Person, HoldID string
	Units, Generation  int64
	JoinedAt           time.Time // its place in the line
	Missed             int64     // turns
	Leaving            bool      // its person left while its hold ran on
	Unheard            bool      // its workflow takes that offer or hold for live
	Language           string    // of its pages, "" when that is left to their reader
}

// RepairEntry writes an entry's record again, at the place of its arrival. OK;
// Existing, Young.
func (g *Gate) RepairEntry(ctx context.Context, sku string, e LostEntry) (Base, error) {
	return g.repair(ctx, verbRepairEntry, sku,
		errors.Join(named("entry id", e.ID), named("person", e.Person), within("units", e.Units, 1, mostUnits)),
		e.ID, e.Units, e.Person, e.JoinedAt.UnixMicro(), e.HoldID, e.Generation, ActorReconcile,
		e.Missed, bit(e.Leaving), bit(e.Unheard), e.Language)
}

// RepairPlace makes what points at one record agree with it: an entry's place in
// the line, its person's live entry and its start; a hold's lease and, when untold
// says that its entry's workflow does not know it, the offer's place in the outbox.
// OK; Existing when all was right.
func (g *Gate) RepairPlace(ctx context.Context, sku, id string, untold bool) (Base, error) {
	return g.repair(ctx, verbRepairPlace, sku, named("id", id), id, ActorReconcile, bit(untold))
}

// RepairCount adds delta to the counter of a part that Drift found apart from its
// parts, in a statement with this number of mendings. OK; Changed.
func (g *Gate) RepairCount(ctx context.Context, sku, part string, delta, mended int64, why string) (Base, error) {
	var bad error
	switch part {
	case PartHeld, PartOffered, PartSold, PartOnHand:
	default:
		bad = fmt.Errorf("%q is no counter of %s", part, strings.Join([]string{PartHeld, PartOffered, PartSold, PartOnHand}, ", "))
	}
	return g.repair(ctx, verbRepairCount, sku, bad, part, delta, mended, ActorReconcile, why)
}

// Counters that RepairCount corrects.
const (
	PartHeld    = "held"
	PartOffered = "offered"
	PartSold    = "sold" // and on_hand with it
	PartOnHand  = "on_hand"
)

func (g *Gate) repair(ctx context.Context, v *script, sku string, bad error, args ...any) (Base, error) {
	if err := invalid("repair", bad); err != nil {
		return Base{}, err
	}
	r, err := g.run(ctx, v, sku, append([]any{g.rebuilding}, args...)...)
	if err != nil {
		return Base{}, err
	}
	return r.base(), nil
}

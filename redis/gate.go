package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

// Options are the gate's settings. Durations are rounded down to milliseconds.
type Options struct {
	Lease           time.Duration // 2 s to 60 s
	RecordRetention time.Duration // of ended holds and entries
	SaleRetention   time.Duration // of sold holds
	FenceOff        bool          // only for stand-ins that forget
	OfferMaxAge     time.Duration // an offer with no text accepted by then lapses
	MissedKeep      int           // missed turns after which a person still keeps their place
	Refs            Refs          // nil keeps them as they come
	Observer        Observer      // nil for none
	Log             *slog.Logger
}

// Refs seals the references of payments on their way into Redis. The scripts
// compare what they get: the same reference must always make the same text, and
// "" must make "". Open answers what it cannot read as it stands.
type Refs interface {
	Seal(ref string) string
	Open(stored string) string
}

// plainRefs keeps references as they come.
type plainRefs struct{}

func (plainRefs) Seal(ref string) string    { return ref }
func (plainRefs) Open(stored string) string { return stored }

// Gate is the atomic gate: every method is one call of one script on one SKU
// (or a plain read), safe for concurrent use and for repetition with the same
// ids. Errors are *ClosedError, *LayoutError, ErrUnavailable (outcome unknown) or a
// programming error of a caller, who asked for what cannot be: then nothing was
// sent. Units are 1 to 10^9.
type Gate struct {
	rdb  goredis.UniversalClient
	opts Options
	log  *slog.Logger
	// testClock stands in for Redis TIME in this package's tests: microseconds,
	// 0 for the real one. Negative it is the SKU's own time.
	testClock int64
	// rebuilding names the rebuild whose closed SKUs are repaired, by its server and
	// its word; "" for open ones.
	rebuilding, server, word string
}

// New returns a gate over rdb, which must send scripts to a master only.
func New(rdb goredis.UniversalClient, opts Options) *Gate {
	log := opts.Log
	if log == nil {
		log = slog.Default()
	}
	if opts.Refs == nil {
		opts.Refs = plainRefs{}
	}
	if opts.Observer == nil {
		opts.Observer = nobody{}
	}
	return &Gate{rdb: rdb, opts: opts, log: log}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Stock applies a stock event once by its event id. Reasons of one that is not
// applied: would-oversell, too-many (units of a SKU stay below 10^9); of a level
// also level-outdated, counts-unknown-sales; of a return also unknown-hold,
// not-sold, more-than-sold.
func (g *Gate) Stock(ctx context.Context, sku string, ev contract.StockEvent) (StockOutcome, error) {
	if err := badEvent(ev); err != nil {
		return StockOutcome{}, err
	}
	units := ev.Units
	if ev.Kind == contract.StockCorrection {
		units = ev.Delta
	}
	r, err := g.decide(ctx, verbStock, sku, ev.EventID, ev.Kind, units, bit(ev.AllowShortfall), ev.Actor, ev.Reason,
		ev.HoldID, ev.ReturnID, bit(ev.Resell), ev.Version, ev.CountsSold, ev.Movement())
	if err != nil {
		return StockOutcome{}, err
	}
	return StockOutcome{
		Base: r.base(), EventID: ev.EventID, Applied: r.int(2) == 1, Reason: r.str(3), Delta: r.int(4), N: r.int(5),
		Movement: r.str(6), Counters: parseCounters(sku, r, 7),
	}, nil
}

// EventOutcome reads the outcome of a stock event; ok is false while it is
// undecided.
func (g *Gate) EventOutcome(ctx context.Context, sku, eventID string) (out StockOutcome, ok bool, err error) {
	events, err := g.InspectEvents(ctx, sku, []string{eventID})
	if err != nil {
		return StockOutcome{}, false, err
	}
	out, ok = events[eventID]
	if !ok {
		return StockOutcome{}, false, nil
	}
	out.Counters, _, err = g.Snapshot(ctx, sku)
	return out, err == nil, err
}

// startDelay is how long a joined entry's start may take at the door before the
// outbox hands it out.
const startDelay = 3 * time.Second

// Join gives a person a place at the end of the line, or answers their live
// entry. Ended when the sale has.
func (g *Gate) Join(ctx context.Context, req JoinRequest) (JoinOutcome, error) {
	if err := invalid("join", named("entry id", req.EntryID), named("person", req.Person), within("units", req.Units, 1, mostUnits)); err != nil {
		return JoinOutcome{}, err
	}
	r, err := g.run(ctx, verbJoin, req.SKU, req.EntryID, req.Person, req.Units, req.Sealed, startDelay.Milliseconds(), req.Language)
	if err != nil {
		return JoinOutcome{}, err
	}
	out := JoinOutcome{Base: r.base(), Backlog: r.int(3), Created: r.int(6) == 1}
	if out.Verdict == OK {
		out.Entry, err = parseEntry(req.SKU, r.str(5), r.str(4), r.int(2))
	}
	return out, err
}

// Leave ends an entry. An offer ends with it at once; a hold already pressed
// runs on and the entry stays holding, marked Leaving. Unknown, or OK with the
// entry as it is now.
func (g *Gate) Leave(ctx context.Context, req LeaveRequest) (EntryOutcome, error) {
	if err := badLeave(req); err != nil {
		return EntryOutcome{}, err
	}
	r, err := g.run(ctx, verbLeave, req.SKU, req.EntryID, string(req.State), req.Actor, bit(req.Owner))
	return entryOutcome(req.SKU, req.EntryID, r, err)
}

func entryOutcome(sku, id string, r reply, err error) (EntryOutcome, error) {
	if err != nil {
		return EntryOutcome{}, err
	}
	out := EntryOutcome{Base: r.base()}
	if raw := r.str(4); raw != "" {
		out.Entry, err = parseEntry(sku, id, raw, r.int(2))
	}
	return out, err
}

func (g *Gate) holdOutcome(sku, id string, r reply, err error) (HoldOutcome, error) {
	if err != nil {
		return HoldOutcome{}, err
	}
	out := HoldOutcome{Base: r.base(), Left: ms(r.int(2)), Now: at(r.int(3)), Waiting: r.int(4)}
	if raw := r.str(5); raw != "" {
		out.Hold, err = g.parseHold(sku, id, raw)
	}
	return out, err
}

// AdoptEntry says that the entry's workflow runs: the entry becomes eligible
// and its sealed input goes. On an ended entry it takes the end out of the
// outbox.
func (g *Gate) AdoptEntry(ctx context.Context, sku, entryID string) (EntryOutcome, error) {
	r, err := g.run(ctx, verbAdoptEntry, sku, entryID)
	return entryOutcome(sku, entryID, r, err)
}

// AdoptOffer says that the entry's workflow knows of an offer (or of what
// became of it) and takes it out of the outbox. OK with the hold as it is now;
// Unknown.
func (g *Gate) AdoptOffer(ctx context.Context, sku, holdID string) (HoldOutcome, error) {
	r, err := g.run(ctx, verbAdoptOffer, sku, holdID)
	return g.holdOutcome(sku, holdID, r, err)
}

// Snapshot reads the counters; About comes with them. An ended lease counts as free,
// or as the offer that it came from: it is swept, and what that frees is offered.
func (g *Gate) Snapshot(ctx context.Context, sku string) (Counters, contract.About, error) {
	var about contract.About
	r, err := g.decide(ctx, verbSnapshot, sku)
	if err != nil {
		return Counters{}, about, err
	}
	if raw := r.str(2); raw != "" {
		if err := json.Unmarshal([]byte(raw), &about); err != nil {
			return Counters{}, about, fmt.Errorf("about of %s does not parse: %w", sku, err)
		}
	}
	return parseCounters(sku, r, 3), about, nil
}

// ReadHold reads a hold's record; ok is false when there is none. Left is as in
// HoldOutcome.
func (g *Gate) ReadHold(ctx context.Context, sku, holdID string) (HoldOutcome, bool, error) {
	r, err := g.run(ctx, verbRead, sku, "hold", holdID)
	out, err := g.holdOutcome(sku, holdID, r, err)
	return out, err == nil && out.Verdict == OK, err
}

// ReadEntry reads an entry's record with its position; ok is false when there
// is none.
func (g *Gate) ReadEntry(ctx context.Context, sku, entryID string) (Entry, bool, error) {
	r, err := g.run(ctx, verbRead, sku, "entry", entryID)
	if err != nil || r.str(0) != string(OK) {
		return Entry{}, false, err
	}
	e, err := parseEntry(sku, entryID, r.str(5), r.int(2))
	return e, err == nil, err
}

// Drain settles and hands out at most limit (1 to 500) due items of the outbox,
// each moved 30 s ahead. After 20 handings an item comes last.
func (g *Gate) Drain(ctx context.Context, sku string, limit int) (DrainOutcome, error) {
	if err := invalid("drain", within("limit", int64(limit), 1, mostItems)); err != nil {
		return DrainOutcome{}, err
	}
	r, err := g.run(ctx, verbDrain, sku, limit)
	if err != nil {
		return DrainOutcome{}, err
	}
	out := DrainOutcome{Base: r.base()}
	if left := r.int(2); left >= 0 {
		out.Next, out.AtOnce = max(ms(left), time.Millisecond), left == 0
	}
	kinds := map[byte]ItemKind{'s': ItemStart, 'o': ItemOffer, 'e': ItemEnd}
	const places = 7
	for i := 3; i+places <= len(r); i += places {
		item := Item{Kind: kinds[r.str(i)[0]], Handed: r.int(i + 1), EntryID: r.str(i + 3), HoldID: r.str(i + 5)}
		if sealed := r.str(i + 2); sealed != "" {
			item.Sealed = []byte(sealed)
		}
		if raw := r.str(i + 4); raw != "" {
			if item.Entry, err = parseEntry(sku, item.EntryID, raw, 0); err != nil {
				return DrainOutcome{}, err
			}
		}
		if raw := r.str(i + 6); raw != "" {
			h, err := g.parseHold(sku, item.HoldID, raw)
			if err != nil {
				return DrainOutcome{}, err
			}
			item.Hold = &h
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// Open sets the fence. OK; Moved when the server's replication id is not
// ReplID any more; Existing when the SKU is open already. A SKU that New names
// and that has lost only some of its keys stays closed.
func (g *Gate) Open(ctx context.Context, req OpenRequest) (Base, error) {
	r, err := g.run(ctx, verbOpen, req.SKU, req.ReplID, bit(req.New), max(req.Epoch, 1))
	if err != nil {
		return Base{}, err
	}
	return r.base(), nil
}

// renewBite is how many leases one call renews: some ten microseconds each.
const renewBite = 100

// Renew begins the leases of those holds of a closed SKU anew that are provisional: for
// as long as nothing expires after an opening. OK; Moved when the SKU is not closed on
// the server with this replication id any more.
func (g *Gate) Renew(ctx context.Context, sku, replID string, holdIDs []string) (Base, error) {
	for some := range slices.Chunk(holdIDs, renewBite) {
		args := []any{replID}
		for _, id := range some {
			args = append(args, id)
		}
		r, err := g.run(ctx, verbRenew, sku, args...)
		if err != nil {
			return Base{}, err
		}
		if base := r.base(); base.Verdict != OK {
			return base, nil
		}
	}
	return Base{Verdict: OK}, nil
}

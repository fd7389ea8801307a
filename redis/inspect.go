package redis

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

// Reading a SKU whose gate is closed. Nothing moves while it is, so plain reads
// are enough; an opening then names the replication id that was read first.

// Inspection is what a closed SKU holds.
type Inspection struct {
	ReplID  string
	Missing bool // no stock key
	// Problems says where counters and records disagree; empty when they agree.
	Problems []string
	Counters Counters // OnHand, Held, Offered, Sold, Returned, Received, Corrected, Epoch only
	// Owned are the holds and entries that must have an open workflow: held
	// holds, and live entries that have acknowledged.
	Owned []string

	stock map[string]string // as it was read first
}

var replIDPattern = regexp.MustCompile(`master_replid:([0-9a-f]+)`)

// master is the server that holds a SKU's keys. In a Cluster each has a
// replication id of its own, and a command without a key goes to any of them.
func (g *Gate) master(ctx context.Context, sku string) (goredis.Cmdable, error) {
	if cluster, ok := g.rdb.(*goredis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key(sku, "stock"))
	}
	return g.rdb, nil
}

// identity is what every change of a SKU, and of the server that it is on, changes.
func (g *Gate) identity(ctx context.Context, sku string) (replID string, stock map[string]string, err error) {
	if !g.opts.FenceOff {
		node, err := g.master(ctx, sku)
		if err != nil {
			return "", nil, err
		}
		info, err := node.Info(ctx, "replication").Result()
		if err != nil {
			return "", nil, err
		}
		if m := replIDPattern.FindStringSubmatch(info); m != nil {
			replID = m[1]
		}
	}
	stock, err = g.rdb.HGetAll(ctx, key(sku, "stock")).Result()
	return replID, stock, err
}

// Moved says that a SKU is not as it was when it was inspected: it was opened since, is
// being rebuilt, or is on another server. What was read of it meanwhile is of no one
// instant.
func (g *Gate) Moved(ctx context.Context, sku string, since Inspection) (bool, error) {
	replID, stock, err := g.identity(ctx, sku)
	if err != nil {
		return false, fmt.Errorf("%w: look at %s again: %w", ErrUnavailable, sku, err)
	}
	return replID != since.ReplID || !maps.Equal(stock, since.stock), nil
}

// Inspect adds a SKU's records up and compares them with its counters.
func (g *Gate) Inspect(ctx context.Context, sku string) (Inspection, error) {
	var in Inspection
	unavailable := func(err error) (Inspection, error) {
		return Inspection{}, fmt.Errorf("%w: inspect %s: %w", ErrUnavailable, sku, err)
	}
	var err error
	if in.ReplID, in.stock, err = g.identity(ctx, sku); err != nil {
		return unavailable(err)
	}
	stock := in.stock
	if len(stock) == 0 {
		in.Missing = true
		return in, nil
	}
	if err := otherLayout(sku, stock); err != nil {
		return Inspection{}, err
	}
	num := func(field string) int64 {
		n, err := strconv.ParseInt(stock[field], 10, 64)
		if err != nil && stock[field] != "" {
			in.Problems = append(in.Problems, fmt.Sprintf("%s reads %q", field, stock[field]))
		}
		return n
	}
	if stock["rebuild"] != "" {
		in.Problems = append(in.Problems, "a rebuild has begun and did not come to its end")
	}
	in.Counters = Counters{
		SKU: sku, OnHand: num("on_hand"), Held: num("held"), Offered: num("offered"), Sold: num("sold"),
		Returned: num("returned"), Received: num("received"), Corrected: num("corrected"), Epoch: num("epoch"),
	}
	var held, offered, sold int64
	claims := claimed{units: map[string]int64{}, entries: map[string]string{}}
	err = g.scan(ctx, key(sku, "holds"), func(id, raw string) {
		h, err := g.parseHold(sku, id, raw)
		if err != nil {
			in.Problems = append(in.Problems, err.Error())
			return
		}
		switch h.State {
		case contract.HoldOffered:
			offered += h.Units
		case contract.HoldProvisional:
			held += h.Units
		case contract.HoldHeld:
			held += h.Units
			in.Owned = append(in.Owned, id)
		case contract.HoldSold:
			sold += h.Units
		}
		claims.hold(h)
	})
	if err != nil {
		return unavailable(err)
	}
	waiting := map[string]bool{}
	err = g.scan(ctx, key(sku, "entries"), func(id, raw string) {
		e, err := parseEntry(sku, id, raw, 0)
		if err != nil {
			in.Problems = append(in.Problems, err.Error())
			return
		}
		if e.State.Live() && e.Acknowledged {
			in.Owned = append(in.Owned, id)
		}
		claims.entry(e)
		if e.State == contract.EntryWaiting {
			waiting[id] = true
		}
	})
	if err != nil {
		return unavailable(err)
	}
	astray, err := g.astray(ctx, sku, waiting)
	if err != nil {
		return unavailable(err)
	}
	in.Problems = append(in.Problems, astray...)
	wrong, err := claims.compare(ctx, g, sku)
	if err != nil {
		return unavailable(err)
	}
	in.Problems = append(in.Problems, wrong...)
	newest, err := g.rdb.XRevRangeN(ctx, key(sku, "ledger"), "+", "-", 1).Result()
	if err != nil {
		return unavailable(err)
	}
	if n := num("n"); len(newest) == 0 || g.parseLine(newest[0]).N != n {
		in.Problems = append(in.Problems, fmt.Sprintf("line no. %d is not the ledger's newest", n))
	}
	c := in.Counters
	// Old sales are purged: their records may add up to less, never to more.
	for _, part := range []struct {
		name          string
		counter, adds int64
		wrong         bool
	}{
		{"held", c.Held, held, c.Held != held},
		{"offered", c.Offered, offered, c.Offered != offered},
		{"sold + returned", c.Sold + c.Returned, sold, c.Sold+c.Returned < sold},
		{"received + corrected", c.Received + c.Corrected, c.OnHand + c.Sold, c.Received+c.Corrected != c.OnHand+c.Sold},
	} {
		if part.wrong {
			in.Problems = append(in.Problems, fmt.Sprintf("%s is %d, the parts add up to %d", part.name, part.counter, part.adds))
		}
	}
	return in, nil
}

// astray says how many waiting entries stand in no line, which everybody would
// pass, and how many places are of nobody who waits, or second ones.
func (g *Gate) astray(ctx context.Context, sku string, waiting map[string]bool) (problems []string, err error) {
	var strays []string
	for _, name := range []string{"line", "back", "fresh", "parked", "limited"} {
		const page = 1000
		for from := int64(0); ; from += page {
			ids, err := g.rdb.ZRange(ctx, key(sku, name), from, from+page-1).Result()
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				if !waiting[id] {
					strays = append(strays, id+" in "+name)
				}
				delete(waiting, id)
			}
			if len(ids) < page {
				break
			}
		}
	}
	if lost := slices.Sorted(maps.Keys(waiting)); len(lost) > 0 {
		problems = append(problems, fmt.Sprintf("%d entries wait and have no place in the line, such as %s", len(lost), lost[0]))
	}
	if len(strays) > 0 {
		problems = append(problems, fmt.Sprintf("%d places in the line are of nobody who waits, or second ones, such as %s", len(strays), strays[0]))
	}
	return problems, nil
}

// scan visits each field of a hash once; Redis may hand one out twice while it
// grows or shrinks the table.
func (g *Gate) scan(ctx context.Context, key string, visit func(field, value string)) error {
	seen := map[string]bool{}
	iter := g.rdb.HScan(ctx, key, 0, "", 500).Iterator()
	for iter.Next(ctx) {
		field := iter.Val()
		if !iter.Next(ctx) {
			break
		}
		if seen[field] {
			continue
		}
		seen[field] = true
		visit(field, iter.Val())
	}
	return iter.Err()
}

// InspectRecords answers those of ids (of holds and entries) that have no
// record.
func (g *Gate) InspectRecords(ctx context.Context, sku string, ids []string) ([]string, error) {
	names := map[string][]string{}
	for _, id := range ids {
		name := "entries"
		if strings.HasPrefix(id, contract.HoldPrefix) {
			name = "holds"
		}
		names[name] = append(names[name], id)
	}
	known := map[string]bool{}
	for name, mine := range names {
		if err := g.inspect(ctx, sku, name, mine, func(id, _ string) { known[id] = true }); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return known[id] }), nil
}

// InspectHolds answers the records of those holds of ids that have one which can be
// read; Inspect says which cannot.
func (g *Gate) InspectHolds(ctx context.Context, sku string, ids []string) (map[string]Hold, error) {
	found := map[string]Hold{}
	err := g.inspect(ctx, sku, "holds", ids, func(id, raw string) {
		if h, err := g.parseHold(sku, id, raw); err == nil {
			found[id] = h
		}
	})
	return found, err
}

// InspectEntries is InspectHolds of entries, without their positions.
func (g *Gate) InspectEntries(ctx context.Context, sku string, ids []string) (map[string]Entry, error) {
	found := map[string]Entry{}
	err := g.inspect(ctx, sku, "entries", ids, func(id, raw string) {
		if e, err := parseEntry(sku, id, raw, 0); err == nil {
			found[id] = e
		}
	})
	return found, err
}

// inspect visits the records of those of ids that have one.
func (g *Gate) inspect(ctx context.Context, sku, name string, ids []string, visit func(id, raw string)) error {
	if len(ids) == 0 {
		return nil
	}
	records, err := g.rdb.HMGet(ctx, key(sku, name), ids...).Result()
	if err != nil {
		return fmt.Errorf("%w: inspect %s: %w", ErrUnavailable, sku, err)
	}
	for i, r := range records {
		if raw, ok := r.(string); ok {
			visit(ids[i], raw)
		}
	}
	return nil
}

// InspectEvents answers the outcomes of those of eventIDs that the gate has
// decided, without counters.
func (g *Gate) InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]StockOutcome, error) {
	out := make(map[string]StockOutcome, len(eventIDs))
	if len(eventIDs) == 0 {
		return out, nil
	}
	values, err := g.rdb.HMGet(ctx, key(sku, "events"), eventIDs...).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: events of %s: %w", ErrUnavailable, sku, err)
	}
	for i, v := range values {
		raw, ok := v.(string)
		if !ok {
			continue
		}
		if out[eventIDs[i]], err = parseOutcome(eventIDs[i], raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseOutcome(eventID, raw string) (StockOutcome, error) {
	r, err := parseRecord(eventID, raw, 6)
	if err != nil {
		return StockOutcome{}, err
	}
	return StockOutcome{Base: Base{Verdict: OK}, EventID: eventID, Applied: r.int(1) == 1, Reason: r.str(2), Delta: r.int(3), N: r.int(5), Movement: r.str(6)}, nil
}

package check

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
)

func key(sku, name string) string { return "hf:{" + sku + "}:" + name }

// readGate reads all keys of a SKU in one transaction of plain commands.
func readGate(ctx context.Context, rdb goredis.UniversalClient, f *Facts) error {
	key := func(name string) string { return key(f.SKU, name) }
	pipe := rdb.TxPipeline()
	now := pipe.Time(ctx)
	stock := pipe.HGetAll(ctx, key("stock"))
	holds := pipe.HGetAll(ctx, key("holds"))
	entries := pipe.HGetAll(ctx, key("entries"))
	people := pipe.HGetAll(ctx, key("people"))
	line := pipe.ZRangeWithScores(ctx, key("line"), 0, -1)
	back := pipe.ZRangeWithScores(ctx, key("back"), 0, -1)
	fresh := pipe.ZRangeWithScores(ctx, key("fresh"), 0, -1)
	parked := pipe.ZRangeWithScores(ctx, key("parked"), 0, -1)
	limited := pipe.ZRangeWithScores(ctx, key("limited"), 0, -1)
	leases := pipe.ZRangeWithScores(ctx, key("leases"), 0, -1)
	outbox := pipe.ZRangeWithScores(ctx, key("outbox"), 0, -1)
	offers := pipe.ZRangeWithScores(ctx, key("offers"), 0, -1)
	parcels := pipe.HKeys(ctx, key("parcels"))
	ledger := pipe.XRange(ctx, key("ledger"), "-", "+")
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read sku %s: %w", f.SKU, err)
	}
	if len(stock.Val()) == 0 {
		return fmt.Errorf("sku %s has no stock key", f.SKU)
	}
	f.Now, f.People = now.Val(), people.Val()
	f.Parked = scores(append(parked.Val(), limited.Val()...))
	if f.Line = scores(append(line.Val(), back.Val()...)); len(f.Line) < len(line.Val())+len(back.Val()) {
		return fmt.Errorf("an entry of %s stands in the line and among those who came back", f.SKU)
	}
	f.Fresh, f.Leases, f.Outbox = scores(fresh.Val()), scores(leases.Val()), scores(append(outbox.Val(), offers.Val()...))
	f.Parcels = map[string]bool{}
	for _, member := range parcels.Val() {
		f.Parcels[member] = true
	}
	var err error
	if f.Counters, err = decodeCounters(stock.Val()); err != nil {
		return fmt.Errorf("stock of %s: %w", f.SKU, err)
	}
	if f.Paused, f.Ends, err = decodeSale(stock.Val()); err != nil {
		return fmt.Errorf("stock of %s: %w", f.SKU, err)
	}
	if f.Holds, err = decodeAll(holds.Val(), decodeHold); err != nil {
		return err
	}
	if f.Entries, err = decodeAll(entries.Val(), decodeEntry); err != nil {
		return err
	}
	if f.Opening, err = decodeOpening(stock.Val()["opening"]); err != nil {
		return fmt.Errorf("stock of %s: %w", f.SKU, err)
	}
	for _, m := range ledger.Val() {
		l, err := decodeLine(m.ID, m.Values)
		if err != nil {
			return fmt.Errorf("ledger line %s of %s: %w", m.ID, f.SKU, err)
		}
		f.Ledger = append(f.Ledger, l)
	}
	return nil
}

func decodeAll[T any](raw map[string]string, decode func(string) (T, error)) (map[string]T, error) {
	out := make(map[string]T, len(raw))
	for id, text := range raw {
		v, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", id, err)
		}
		out[id] = v
	}
	return out, nil
}

func scores(zs []goredis.Z) map[string]int64 {
	out := make(map[string]int64, len(zs))
	for _, z := range zs {
		out[z.Member.(string)] = int64(z.Score)
	}
	return out
}

// Ledger reads a SKU's ledger, oldest line first.
func (c *Checker) Ledger(ctx context.Context, sku string) ([]Line, error) {
	f := Facts{SKU: sku}
	err := readGate(ctx, c.Redis, &f)
	return f.Ledger, err
}

// Gate reads what Redis knows of a SKU.
func (c *Checker) Gate(ctx context.Context, sku string) (Facts, error) {
	f := Facts{SKU: sku, Lease: c.Lease}
	return f, readGate(ctx, c.Redis, &f)
}

// Acknowledged says whether an entry's workflow has told the gate that it runs.
func (c *Checker) Acknowledged(ctx context.Context, sku, entryID string) (bool, error) {
	raw, err := c.Redis.HGet(ctx, key(sku, "entries"), entryID).Result()
	if err != nil {
		return false, fmt.Errorf("entry %s: %w", entryID, err)
	}
	e, err := decodeEntry(raw)
	return e.Acknowledged, err
}

// Unacknowledged counts the entries whose workflows have not yet told the gate
// that they run.
func (c *Checker) Unacknowledged(ctx context.Context, sku string) (int64, error) {
	return c.Redis.ZCard(ctx, key(sku, "fresh")).Result()
}

// KeysWith looks at every key of Redis, name and content, and answers the keys
// that contain what is looked for.
func (c *Checker) KeysWith(ctx context.Context, contains func(string) bool) ([]string, error) {
	var found []string
	keys := c.Redis.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		dump, err := plain(ctx, c.Redis, key)
		if err != nil {
			return nil, err
		}
		if contains(key) || contains(dump) {
			found = append(found, key)
		}
	}
	return found, keys.Err()
}

// plain is all text in a key.
func plain(ctx context.Context, rdb goredis.UniversalClient, key string) (string, error) {
	kind, err := rdb.Type(ctx, key).Result()
	if err != nil {
		return "", err
	}
	switch kind {
	case "string":
		v, err := rdb.Get(ctx, key).Result()
		return v, err
	case "hash":
		v, err := rdb.HGetAll(ctx, key).Result()
		return fmt.Sprint(v), err
	case "zset":
		v, err := rdb.ZRange(ctx, key, 0, -1).Result()
		return fmt.Sprint(v), err
	case "set":
		v, err := rdb.SMembers(ctx, key).Result()
		return fmt.Sprint(v), err
	case "list":
		v, err := rdb.LRange(ctx, key, 0, -1).Result()
		return fmt.Sprint(v), err
	case "stream":
		v, err := rdb.XRange(ctx, key, "-", "+").Result()
		return fmt.Sprint(v), err
	case "none": // gone meanwhile
		return "", nil
	}
	return "", fmt.Errorf("key %s is a %s, which nobody reads here", key, kind)
}

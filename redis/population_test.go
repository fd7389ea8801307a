package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

// Populations for the benchmarks and budgets: a SKU with many waiting entries or
// live holds. Their records are copies of one that the verbs wrote, under other
// ids, and go in by plain commands: a million of them in seconds.

// ownServer is a real Redis for measuring, which no other test uses.
func ownServer(tb testing.TB) *goredis.Client {
	tb.Helper()
	server, err := redistest.Start("--appendonly", "no")
	require.NoError(tb, err)
	rdb := server.Client()
	tb.Cleanup(func() {
		rdb.Close()
		server.Close()
	})
	return rdb
}

// openSKU is an open SKU on the server's own clock.
func openSKU(tb testing.TB, rdb goredis.UniversalClient, name string, units int64) *fixture {
	tb.Helper()
	opts := testOptions()
	f := &fixture{t: tb, g: New(rdb, opts), sku: name}
	_, err := f.g.Open(context.Background(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(tb, err)
	about := contract.About{Title: "Oak Chair", CheckoutURL: "https://shop.example/pay?hold={hold_id}&until={expires_at}&sig={sig}"}
	_, err = f.g.Settings(context.Background(), SettingsRequest{SKU: f.sku, About: &about, Version: 1})
	require.NoError(tb, err)
	if units > 0 {
		require.True(tb, f.restock("first", units).Applied)
	}
	return f
}

// fresh draws an id or a person as long as the product's.
func fresh(build func(string, []byte) string, sku string) string {
	return build(sku, fmt.Appendf(nil, "%08x%03x", rand.Uint32(), rand.Uint32N(4096)))
}

func freshPerson() string { return fmt.Sprintf("%022x", rand.Uint64()) }

const batch = 500

// sample reads a record that the verbs wrote.
func (f *fixture) sample(name, id string) []any {
	f.t.Helper()
	raw, err := f.g.rdb.HGet(context.Background(), key(f.sku, name), id).Result()
	require.NoError(f.t, err)
	var record []any
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	require.NoError(f.t, dec.Decode(&record))
	return record
}

// fillLine joins n acknowledged entries, all but the first by copies.
func (f *fixture) fillLine(n int) {
	f.t.Helper()
	ctx := context.Background()
	record := f.sample("entries", f.waits(freshPerson(), 1))
	arrival := time.Now().UnixMicro() - int64(n)
	for left := n - 1; left > 0; {
		size := min(left, batch)
		left -= size
		var entries, people []any
		var line []goredis.Z
		for range size {
			id, person := fresh(contract.EntryID, f.sku), freshPerson()
			arrival++
			record[2], record[3] = person, fmt.Sprint(arrival)
			raw, err := json.Marshal(record)
			require.NoError(f.t, err)
			entries, people = append(entries, id, raw), append(people, person, id)
			line = append(line, goredis.Z{Score: float64(arrival), Member: id})
		}
		_, err := f.g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.HSet(ctx, key(f.sku, "entries"), entries...)
			p.HSet(ctx, key(f.sku, "people"), people...)
			p.ZAdd(ctx, key(f.sku, "line"), line...)
			return nil
		})
		require.NoError(f.t, err)
	}
}

// fillHolds takes n units into holds, held or still under a lease, all but the
// first by copies. The units are received first.
func (f *fixture) fillHolds(n int, adopted bool) {
	f.t.Helper()
	ctx := context.Background()
	f.restock(fmt.Sprint("holds", n), int64(n))
	first := fresh(contract.HoldID, f.sku)
	req := ReserveRequest{SKU: f.sku, HoldID: first, Units: 1, Person: freshPerson()}
	require.Equal(f.t, OK, must[HoldOutcome](f)(f.g.Reserve(ctx, req)).Verdict)
	if adopted {
		adopt := AdoptHoldRequest{SKU: f.sku, HoldID: first, HoldFor: 10 * time.Minute}
		require.Equal(f.t, OK, must[HoldOutcome](f)(f.g.AdoptHold(ctx, adopt)).Verdict)
	}
	record := f.sample("holds", first)
	for left := n - 1; left > 0; {
		size := min(left, batch)
		left -= size
		var holds, tally []any
		var leases []goredis.Z
		for range size {
			id, person := fresh(contract.HoldID, f.sku), freshPerson()
			record[2] = person
			raw, err := json.Marshal(record)
			require.NoError(f.t, err)
			holds, tally = append(holds, id, raw), append(tally, person, 1)
			leases = append(leases, goredis.Z{Score: float64(time.Now().Add(testLease).UnixMilli()), Member: id})
		}
		_, err := f.g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.HSet(ctx, key(f.sku, "holds"), holds...)
			p.HSet(ctx, key(f.sku, "tally"), tally...)
			p.HIncrBy(ctx, key(f.sku, "stock"), "held", int64(size))
			if !adopted {
				p.ZAdd(ctx, key(f.sku, "leases"), leases...)
			}
			return nil
		})
		require.NoError(f.t, err)
	}
}

// fillOffers makes n offers that nobody was told of, all but the first by copies.
func (f *fixture) fillOffers(n int) {
	f.t.Helper()
	ctx := context.Background()
	first := f.waits(freshPerson(), 1)
	f.restock(fmt.Sprint("offers", n), int64(n))
	entry := f.sample("entries", first)
	hold := f.sample("holds", entry[5].(string))
	due := time.Now().UnixMicro() - int64(n)
	for left := n - 1; left > 0; {
		size := min(left, batch)
		left -= size
		var holds, entries, people, tally []any
		var offers []goredis.Z
		for range size {
			id, holdID, person := fresh(contract.EntryID, f.sku), fresh(contract.HoldID, f.sku), freshPerson()
			due++
			entry[2], entry[3], entry[5] = person, fmt.Sprint(due), holdID
			hold[2], hold[3] = person, id
			for _, put := range []struct {
				to     *[]any
				id     string
				record []any
			}{{&entries, id, entry}, {&holds, holdID, hold}} {
				raw, err := json.Marshal(put.record)
				require.NoError(f.t, err)
				*put.to = append(*put.to, put.id, raw)
			}
			people, tally = append(people, person, id), append(tally, person, 1)
			offers = append(offers, goredis.Z{Score: float64(due), Member: "o:" + holdID})
		}
		_, err := f.g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.HSet(ctx, key(f.sku, "holds"), holds...)
			p.HSet(ctx, key(f.sku, "entries"), entries...)
			p.HSet(ctx, key(f.sku, "people"), people...)
			p.HSet(ctx, key(f.sku, "tally"), tally...)
			p.HIncrBy(ctx, key(f.sku, "stock"), "offered", int64(size))
			p.ZAdd(ctx, key(f.sku, "offers"), offers...)
			return nil
		})
		require.NoError(f.t, err)
	}
}

// A population is what the verbs would have made: its books add up, its entries
// stand in line, and a copy looks like the original.
func TestPopulationsAreTrue(t *testing.T) {
	rdb := ownServer(t)
	offers := openSKU(t, rdb, "OFFERS", 0)
	offers.fillOffers(1200)
	in, err := offers.g.Inspect(t.Context(), offers.sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems)
	require.Equal(t, [4]int64{1200, 0, 1200, 0}, offers.parts())
	require.Len(t, offers.drain().Items, 100)
	f := openSKU(t, rdb, "POPULATION", 0)
	f.fillHolds(1200, true)
	f.fillLine(1200)
	in, err = f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems)
	require.Equal(t, [4]int64{1200, 1200, 0, 0}, f.parts())
	require.Equal(t, int64(1200), f.counters().Waiting)
	last := f.waits(freshPerson(), 1)
	require.Equal(t, int64(1201), f.entry(last).Position)
	records, err := f.g.rdb.HVals(t.Context(), key(f.sku, "entries")).Result()
	require.NoError(t, err)
	for _, raw := range records {
		require.Len(t, raw, len(records[0]))
	}
}

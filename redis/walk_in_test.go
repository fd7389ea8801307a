package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// walkIns are taken one after another by the same calls from two SKUs: from one by
// walk_in.lua, from the other by the rest of the script, for something waits in its
// outbox that is not due.
var walkIns = []struct {
	name  string
	limit int64
	req   ReserveRequest
}{
	{"plain", 0, ReserveRequest{Units: 1, Person: "ada", Actor: "door"}},
	{"several units", 0, ReserveRequest{Units: 3, Person: "bob"}},
	{"the same person", 0, ReserveRequest{Units: 1, Person: "ada", Actor: "door"}},
	{"a cart", 0, ReserveRequest{Units: 2, Person: "cyd", Cart: []contract.Line{{SKU: "A-1", Quantity: 2}, {SKU: "B_2", Quantity: 1}}}},
	{"a cart of one line", 0, ReserveRequest{Units: 1, Person: "cyd", Cart: []contract.Line{{SKU: "A-1", Quantity: 1}}}},
	{"any text", 0, ReserveRequest{Units: 1, Person: "\"d\\e/\n\x01é", Actor: "\"\\\n"}},
	{"under a limit", 5, ReserveRequest{Units: 3, Person: "ada"}},
	{"many", 0, ReserveRequest{Units: 123_456_789, Person: "eve"}},
}

// The short way writes what the long one does, byte for byte, and answers what
// stands in the record.
func TestTheShortWayOfAWalkInIsTheLongOne(t *testing.T) {
	ctx := t.Context()
	short, long := open(t, 0), open(t, 0)
	long.pass(time.Second)
	short.g.testClock = long.g.testClock
	for _, f := range []*fixture{short, long} {
		must[StockOutcome](f)(f.g.Stock(ctx, f.sku, contract.StockEvent{EventID: "all", Kind: contract.StockRestock, Units: 900_000_000}))
		must[StockOutcome](f)(f.g.Stock(ctx, f.sku, contract.StockEvent{EventID: "less", Kind: contract.StockCorrection, Delta: -1}))
	}
	require.NoError(t, shared.ZAdd(ctx, key(long.sku, "outbox"), goredis.Z{Score: 1e16, Member: "e:nobody"}).Err())
	ran := func(f *fixture, req ReserveRequest) HoldOutcome {
		out := must[HoldOutcome](f)(f.g.Reserve(ctx, req))
		r := must[reply](f)(f.g.run(ctx, verbRead, f.sku, "hold", req.HoldID))
		h, err := f.g.parseHold(f.sku, req.HoldID, r.str(5))
		require.NoError(t, err)
		require.Equal(t, h, out.Hold, "the answer is the record")
		return out
	}
	for i, w := range walkIns {
		t.Run(w.name, func(t *testing.T) {
			var outs [2]HoldOutcome
			for j, f := range []*fixture{short, long} {
				f.limit(w.limit)
				f.pass(time.Millisecond)
				w.req.SKU, w.req.HoldID = f.sku, contract.HoldID("ANY", fmt.Appendf(nil, "%011d", i))
				outs[j] = ran(f, w.req)
				outs[j].Hold.SKU = ""
				require.Equal(t, OK, outs[j].Verdict)
			}
			require.Equal(t, outs[1], outs[0])
		})
	}
	for _, name := range []string{"holds", "tally", "leases", "stock", "purge", "events"} {
		require.Equal(t, dump(t, long, name), dump(t, short, name), name)
	}
	lines := [2][]goredis.XMessage{shared.XRange(ctx, key(short.sku, "ledger"), "-", "+").Val(), shared.XRange(ctx, key(long.sku, "ledger"), "-", "+").Val()}
	require.Len(t, lines[0], len(lines[1]))
	for i := 1; i < len(lines[0]); i++ { // the first is the opening, of another time
		require.Equal(t, lines[1][i].Values, lines[0][i].Values)
	}
	for f, want := range map[*fixture]bool{short: true, long: false} {
		r := must[reply](f)(f.g.run(ctx, verbReserve, f.sku, f.id(contract.HoldID), 1, "p", 0, "", ""))
		require.Equal(t, want, r.str(5) == "", "the short way was taken where it should be")
	}
	require.NoError(t, shared.Del(ctx, key(long.sku, "outbox")).Err())
}

// dump is one key as text, without what names its SKU.
func dump(t *testing.T, f *fixture, name string) string {
	all := f.everything()
	from := strings.Index(all, key(f.sku, name)+" ")
	if from < 0 {
		return ""
	}
	line, _, _ := strings.Cut(all[from:], "\n")
	fence := shared.HGet(t.Context(), key(f.sku, "stock"), "fence").Val()
	return strings.NewReplacer(f.sku, "SKU", fence, "FENCE").Replace(line)
}

// What is not plain goes the long way, and ends as it must.
func TestWhatIsNotPlainIsNotTakenTheShortWay(t *testing.T) {
	takes := func(f *fixture, person string, units int64) Verdict {
		return f.reserveAs(person, f.id(contract.HoldID), units).Verdict
	}
	t.Run("a known id", func(t *testing.T) {
		f := open(t, 2)
		id := f.held()
		lines := f.lines()
		require.Equal(t, Existing, f.reserve(id, 1).Verdict)
		require.Equal(t, [4]int64{2, 1, 0, 0}, f.parts())
		require.Equal(t, lines, f.lines())
	})
	t.Run("more than is free", func(t *testing.T) {
		f := open(t, 2)
		require.Equal(t, SoldOut, takes(f, "ada", 3))
		require.Equal(t, OK, takes(f, "ada", 2))
	})
	t.Run("more than the limit leaves", func(t *testing.T) {
		f := open(t, 9)
		f.limit(2)
		require.Equal(t, OK, takes(f, "ada", 1))
		require.Equal(t, LimitReached, takes(f, "ada", 2))
		require.Equal(t, OK, takes(f, "ada", 1))
		require.Equal(t, LimitReached, takes(f, "ada", 1))
	})
	t.Run("paused and ended", func(t *testing.T) {
		f := open(t, 9)
		f.pause(true)
		require.Equal(t, Paused, takes(f, "ada", 1))
		f.pause(false)
		ends := time.UnixMicro(f.g.testClock)
		must[Base](f)(f.g.Settings(t.Context(), SettingsRequest{SKU: f.sku, Ends: &ends}))
		require.Equal(t, Ended, takes(f, "ada", 1))
	})
	t.Run("somebody waits", func(t *testing.T) {
		f := open(t, 1)
		require.Equal(t, OK, takes(f, "ada", 1))
		entry := f.joinAs("bob", 1).Entry.ID
		f.restock("e1", 1)
		require.Equal(t, ReservedForLine, takes(f, "cyd", 1), "who has not acknowledged keeps their turn for a lease")
		f.ack(entry)
		require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	})
	t.Run("a clock that was put back", func(t *testing.T) {
		f := open(t, 9)
		f.pass(-time.Hour)
		out := f.reserve(f.id(contract.HoldID), 1)
		require.Equal(t, OK, out.Verdict)
		f.pass(time.Minute)
		later := f.reserve(f.id(contract.HoldID), 1)
		require.False(t, later.Now.Before(out.Now))
		f.pass(2 * time.Hour)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		require.Equal(t, "0", shared.HGet(t.Context(), key(f.sku, "stock"), "ahead").Val())
	})
}

package redis

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// parks moves every third of the line's first 3n into the parked set, as if each had
// missed a turn of this generation, and answers them in order of arrival.
func (f *fixture) parks(n int) (ids []string) {
	f.t.Helper()
	ctx := context.Background()
	line, err := f.g.rdb.ZRangeWithScores(ctx, key(f.sku, "line"), 0, int64(3*n)-1).Result()
	require.NoError(f.t, err)
	var some []goredis.Z
	for i := 0; i < len(line); i += 3 {
		some = append(some, line[i])
		ids = append(ids, line[i].Member.(string))
	}
	for len(some) > 0 {
		bite := some[:min(batch, len(some))]
		some = some[len(bite):]
		_, err := f.g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.ZAdd(ctx, key(f.sku, "parked"), bite...)
			for _, z := range bite {
				p.ZRem(ctx, key(f.sku, "line"), z.Member)
			}
			return nil
		})
		require.NoError(f.t, err)
	}
	return ids
}

func (f *fixture) size(name string) int64 {
	f.t.Helper()
	n, err := f.g.rdb.ZCard(context.Background(), key(f.sku, name)).Result()
	require.NoError(f.t, err)
	return n
}

// asks puts one stock event to the gate once, and answers the verdict.
func (f *fixture) asks(event string, units int64) string {
	f.t.Helper()
	ev := contract.StockEvent{EventID: event, Kind: contract.StockRestock, Units: units}
	return must[reply](f)(f.g.run(f.t.Context(), verbStock, f.sku, ev.EventID, ev.Kind, units, 0, "", "", "", "", 0, 0, 0, ev.Movement())).str(0)
}

// standing are all who wait, in order of arrival.
func (f *fixture) standing() []string {
	f.t.Helper()
	var keys []string
	for _, name := range []string{"line", "back", "fresh", "parked", "limited"} {
		keys = append(keys, key(f.sku, name))
	}
	ids, err := f.g.rdb.ZUnion(context.Background(), goredis.ZStore{Keys: keys}).Result()
	require.NoError(f.t, err)
	return ids
}

// All who were parked come back with one restock, however many, at their places
// between those who never were. A second restock finds room for the next ones in
// bites, and until then it is not decided: nobody has a turn too many, nobody loses a
// place, and whoever dies in the middle leaves nothing behind.
func TestParkedPeopleComeBackInBites(t *testing.T) {
	for name, in := range map[string]struct{ parked, left int }{
		"into the longer line":      {250, 900},
		"the shorter line to them":  {400, 550},
		"where nobody else is left": {400, 400},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, shared, 0)
			f.fillLine(1200)
			first := f.parks(in.parked)
			require.Equal(t, string(OK), f.asks("one", 1))
			require.Equal(t, [2]int64{0, int64(in.parked) - 1}, [2]int64{f.size("parked"), f.size("back")}, "all of them are back at once")
			require.Equal(t, contract.EntryOffered, f.entry(first[0]).State, "the first of all is next")
			line, err := f.g.rdb.ZRange(t.Context(), key(f.sku, "line"), 0, -1).Result()
			require.NoError(t, err)
			for _, id := range line[in.left-in.parked:] {
				f.leave(id, contract.EntryLeft)
			}
			second := f.parks(50)
			order, gen, agains := f.standing(), f.counters().Generation, 0
			require.Len(t, order, in.left-1)
			for f.asks("two", 3) == string(Again) {
				agains++
				require.Equal(t, gen, f.counters().Generation, "nothing is decided yet")
				require.Empty(t, must[map[string]StockOutcome](f)(f.g.InspectEvents(t.Context(), f.sku, []string{"two"})))
				require.Equal(t, int64(len(second)), f.size("parked"), "nobody is back before that")
				require.Equal(t, order, f.standing(), "everybody keeps their place")
				require.Equal(t, ReservedForLine, f.reserve(f.id(contract.HoldID), 1).Verdict)
			}
			smaller := min(in.parked-1, in.left-in.parked-len(second))
			require.Equal(t, max(0, smaller-1)/100, agains, "a hundred a call")
			require.Equal(t, gen+1, f.counters().Generation)
			require.Equal(t, order[3:], f.standing())
			for _, id := range order[:3] {
				require.Equal(t, contract.EntryOffered, f.entry(id).State, "the first three, wherever they stood")
			}
			require.Equal(t, string(OK), f.asks("two", 3))
			require.Equal(t, gen+1, f.counters().Generation, "a repeat makes no room and brings nobody back")
		})
	}
}

// Nobody overtakes those who came back and whose turn no call has had the time for.
func TestAWalkInNeverOvertakesWhoCameBack(t *testing.T) {
	f := newFixture(t, shared, 0)
	f.fillLine(120)
	f.parks(40)
	for _, id := range f.standing() {
		if f.g.rdb.ZScore(t.Context(), key(f.sku, "parked"), id).Err() != nil {
			f.leave(id, contract.EntryLeft)
		}
	}
	require.Equal(t, string(OK), f.asks("forty", 50))
	require.Equal(t, int64(24), f.size("back"), "sixteen in one call")
	require.Zero(t, f.size("line"))
	require.Zero(t, f.counters().OpenToAll)
	verdicts := map[Verdict]int{}
	for verdicts[OK] == 0 {
		verdicts[f.reserve(f.id(contract.HoldID), 1).Verdict]++
	}
	require.Equal(t, map[Verdict]int{Again: 1, OK: 1}, verdicts)
	require.Zero(t, f.size("back"))
	require.Equal(t, [4]int64{50, 1, 40, 0}, f.parts())
}

// budgetParked restocks where a million people have missed a turn, where the line has
// to make room for the next ones and where they have to: by the server's clock.
func budgetParked(t *testing.T, rdb *goredis.Client) {
	ctx := t.Context()
	f := openSKU(t, rdb, "PARKED", 0)
	park := func() {
		require.NoError(t, rdb.Rename(ctx, key(f.sku, "line"), key(f.sku, "parked")).Err())
	}
	took := func(what string) {
		calls, slow, longest := 0, 0, time.Duration(0)
		watchScripts(t, rdb, 100)
		began := time.Now()
		for f.asks(what, 1) == string(Again) {
			calls++
		}
		all := time.Since(began)
		for _, l := range slowScripts(t, rdb) {
			longest = max(longest, l.Duration)
			if l.Duration >= slowMicros*time.Microsecond {
				slow++
			}
		}
		t.Logf("%s: %d bites in %v, %d in line and %d back; the longest call %v by the server's clock", what, calls, all.Round(time.Millisecond), f.size("line"), f.size("back"), longest)
		require.Zero(t, f.size("parked"))
		require.LessOrEqual(t, float64(slow), slowShare*float64(calls), "of %d calls", calls)
	}
	f.fillLine(1_000_000)
	park()
	took("a million come back")
	f.fillLine(100_000)
	park()
	f.fillLine(100_000)
	took("the line makes room")
	f.fillLine(1000)
	require.NoError(t, rdb.ZAdd(ctx, key(f.sku, "parked"), rdb.ZPopMax(ctx, key(f.sku, "line"), 100).Val()...).Err())
	took("they make room")
}

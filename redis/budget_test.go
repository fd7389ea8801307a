package redis

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The budgets of docs/gate.md. A busy machine can fail them, so they are checked
// in the long form only; each logs what it saw.
const (
	flat        = 1.3 // median at a million waiting to that at a thousand
	entryBytes  = 450
	holdBytes   = 450
	refusalLeft = 1 << 20 // bytes that a million refusals may leave
	slowMicros  = 2000
	slowShare   = 0.001
)

func TestBudgets(t *testing.T) {
	if !long {
		t.Log("budgets are checked with HOLDFAST_LONG=1")
		return
	}
	rdb := ownServer(t)
	t.Run("rate", func(t *testing.T) { budgetRate(t, rdb) })
	t.Run("memory", func(t *testing.T) { budgetMemory(t, rdb) })
	t.Run("line", func(t *testing.T) { budgetLine(t, rdb) })
	t.Run("parked", func(t *testing.T) { budgetParked(t, rdb) })
	t.Run("refusals", func(t *testing.T) { budgetRefusals(t, rdb) })
}

func usedMemory(t *testing.T, rdb *goredis.Client) int64 {
	t.Helper()
	info, err := rdb.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	n, err := strconv.ParseInt(regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(info)[1], 10, 64)
	require.NoError(t, err)
	return n
}

func budgetMemory(t *testing.T, rdb *goredis.Client) {
	const n = 100_000
	each := func(name string, most int64, fill func(f *fixture)) {
		f := openSKU(t, rdb, name, 0)
		before := usedMemory(t, rdb)
		fill(f)
		bytes := (usedMemory(t, rdb) - before) / n
		t.Logf("%s: %d bytes each", name, bytes)
		require.LessOrEqual(t, bytes, most, name)
		require.NoError(t, rdb.Del(t.Context(), keysOf(f.sku)...).Err())
	}
	each("waiting", entryBytes, func(f *fixture) { f.fillLine(n) })
	each("held", holdBytes, func(f *fixture) { f.fillHolds(n, true) })
	each("provisional", holdBytes, func(f *fixture) { f.fillHolds(n, false) })
}

// budgetLine runs every verb over a short and a very long line, in turns.
func budgetLine(t *testing.T, rdb *goredis.Client) {
	ctx := t.Context()
	small, big := openSKU(t, rdb, "SMALL", 0), openSKU(t, rdb, "BIG", 0)
	small.fillLine(1_000)
	before := usedMemory(t, rdb)
	big.fillLine(1_000_000)
	bytes := (usedMemory(t, rdb) - before) / 1_000_000
	t.Logf("a million waiting: %d bytes each", bytes)
	require.LessOrEqual(t, bytes, int64(entryBytes))

	watchScripts(t, rdb, slowMicros)
	const runs = 1000
	missed := map[string]float64{}
	for _, v := range overALine {
		fixtures := []*fixture{small, big}
		var ids [2][]string
		var took [2][]time.Duration
		for i, f := range fixtures {
			ids[i] = v.prepare(f, runs)
		}
		for n := range runs {
			for i, f := range fixtures {
				began := time.Now()
				verdict := v.run(f, ids[i][n])
				took[i] = append(took[i], time.Since(began))
				require.Equal(t, v.want, verdict, v.name)
			}
		}
		ratio := float64(median(took[1])) / float64(median(took[0]))
		t.Logf("%-12s %6s at a thousand, %6s at a million: %.2f", v.name, median(took[0]).Round(time.Microsecond), median(took[1]).Round(time.Microsecond), ratio)
		if ratio > flat {
			missed[v.name] = ratio
		}
	}
	require.Empty(t, missed, "medians that are not flat")

	expireMany(t, rdb)

	stats, err := rdb.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	calls, err := strconv.Atoi(regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(stats)[1])
	require.NoError(t, err)
	verbs := map[string]string{}
	for _, v := range all {
		verbs[v.shebang.Hash()] = v.name
	}
	slow, of := 0, map[string]int{}
	for _, l := range slowScripts(t, rdb) {
		slow++
		of[verbs[l.Args[1]]]++
	}
	t.Logf("%d of %d script runs took %d µs or more by the server's clock: %v", slow, calls, slowMicros, of)
	require.Less(t, float64(slow), slowShare*float64(calls))
}

// watchScripts has the server note whatever takes so many microseconds of its clock.
func watchScripts(t *testing.T, rdb *goredis.Client, micros int) {
	t.Helper()
	require.NoError(t, rdb.ConfigSet(t.Context(), "slowlog-max-len", "1000000").Err())
	require.NoError(t, rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", fmt.Sprint(micros)).Err())
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	require.NoError(t, rdb.Do(t.Context(), "SLOWLOG", "RESET").Err())
}

// slowScripts are the runs of scripts that the server has noted.
func slowScripts(t *testing.T, rdb *goredis.Client) []goredis.SlowLog {
	t.Helper()
	logged, err := rdb.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	return slices.DeleteFunc(logged, func(l goredis.SlowLog) bool { return l.Args[0] != "evalsha" })
}

// expireMany ends ten thousand leases at once, each call sweeping its share.
func expireMany(t *testing.T, rdb *goredis.Client) {
	f := openSKU(t, rdb, "LEASES", 0)
	f.fillHolds(10_000, false)
	f.g.testClock = time.Now().Add(2 * testLease).UnixMicro()
	f.fillLine(20_000)
	for {
		f.drainSome()
		left, err := rdb.ZCard(t.Context(), key(f.sku, "leases")).Result()
		require.NoError(t, err)
		offered, err := rdb.HGet(t.Context(), key(f.sku, "stock"), "offered").Result()
		require.NoError(t, err)
		if left == 0 && offered == "10000" {
			return
		}
	}
}

// budgetRefusals refuses a million times.
func budgetRefusals(t *testing.T, rdb *goredis.Client) {
	f := openSKU(t, rdb, "REFUSALS", 0)
	f.fillLine(1000)
	refuse := func(n int) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range n / 16 {
					require.Equal(t, ReservedForLine, must[HoldOutcome](f)(f.g.Reserve(t.Context(), ReserveRequest{
						SKU: f.sku, HoldID: fresh(contract.HoldID, f.sku), Units: 1, Person: freshPerson(),
					})).Verdict)
				}
			})
		}
		wg.Wait()
	}
	refuse(16_000)
	before := usedMemory(t, rdb)
	refuse(1_000_000)
	left := usedMemory(t, rdb) - before
	t.Logf("a million refusals left %d bytes", left)
	require.Less(t, left, int64(refusalLeft))
}

package redis

import (
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

// rateOfOne is the aim, as a share of the rate of a one-line script. rateBounds are
// near what is seen on a busy machine; docs/gate.md says why a win stays below.
const rateOfOne = 0.6

var rateBounds = []struct {
	callers      int
	refusal, win float64
}{
	{1, 0.45, 0.35},
	{16, 0.45, 0.28},
}

// budgetRate holds refusals and wins against the one-line script and against the
// least that any verb must do, in turns so that all meet the same machine: called
// one after another, as a Go benchmark does, and by sixteen at once, which keeps
// the server busy. It logs what each takes of the server by the server's own clock.
func budgetRate(t *testing.T, rdb *goredis.Client) {
	line := openSKU(t, rdb, "RATE-LINE", 0)
	line.fillLine(1000)
	open := openSKU(t, rdb, "RATE-OPEN", 10_000_000)
	open.g.opts.Lease = time.Hour // no sweep in between
	ops := []func(){
		oneLine(t, rdb),
		leastOfAVerb(t, rdb, line.sku),
		leastOfAWin(t, rdb, "RATE-LEAST"),
		func() { require.Equal(t, ReservedForLine, overALine[0].run(line, "")) },
		func() { require.Equal(t, OK, open.reserve(fresh(contract.HoldID, open.sku), 1).Verdict) },
	}
	for _, bound := range rateBounds {
		callers := bound.callers
		var share, micros [5][]float64
		for round := range 16 {
			var rates, took [5]float64
			for i, op := range ops {
				require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
				rates[i] = rate(op, callers, 400*time.Millisecond)
				took[i] = scriptMicros(t, rdb)
			}
			if round == 0 {
				continue // it warms everything up
			}
			for i := range rates {
				share[i], micros[i] = append(share[i], rates[i]/rates[0]), append(micros[i], took[i])
			}
			t.Logf("per second: one line %.0f, least of a verb %.0f, least of a win %.0f, refusal %.0f, win %.0f", rates[0], rates[1], rates[2], rates[3], rates[4])
		}
		var mid, of [5]float64
		for i := range share {
			slices.Sort(share[i])
			slices.Sort(micros[i])
			mid[i], of[i] = share[i][len(share[i])/2], micros[i][len(micros[i])/2]
		}
		t.Logf("%d callers, µs of the server: one line %.1f, least of a verb %.1f, least of a win %.1f, refusal %.1f, win %.1f", callers, of[0], of[1], of[2], of[3], of[4])
		t.Logf("%d callers, of the one-line script: least of a verb %.2f, least of a win %.2f, refusal %.2f, win %.2f; the aim is %.1f",
			callers, mid[1], mid[2], mid[3], mid[4], rateOfOne)
		require.GreaterOrEqual(t, mid[3], bound.refusal, "refusal")
		require.GreaterOrEqual(t, mid[4], bound.win, "win")
	}
}

// scriptMicros is what a run of a script took since the server's figures were reset,
// by its own clock.
func scriptMicros(t *testing.T, rdb *goredis.Client) float64 {
	t.Helper()
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	us, err := strconv.ParseFloat(regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([\d.]+)`).FindStringSubmatch(stats)[1], 64)
	require.NoError(t, err)
	return us
}

// leastOfAVerb is what no verb can do without: its keys, the clock, the fence and
// the stock; it decides nothing.
func leastOfAVerb(tb testing.TB, rdb goredis.UniversalClient, sku string) func() {
	script := goredis.NewScript(`#!lua
local now = redis.call('TIME')
local v = redis.call('HMGET', KEYS[1], 'fence', 'on_hand', 'held', 'offered', 'paused', 'ends', 'limit')
local info = redis.call('INFO', 'replication')
local _, last = string.find(info, 'master_replid:', 1, true)
return string.sub(info, last + 1, last + 40) == v[1] and 1 or 0`)
	require.NoError(tb, script.Load(tb.Context(), rdb).Err())
	keys := keysOf(sku)
	return func() {
		open, err := script.EvalSha(tb.Context(), rdb, keys).Int()
		require.NoError(tb, err)
		require.Equal(tb, 1, open)
	}
}

// leastOfAWin takes a unit with as little as the contract lets anybody write: the
// stock in one string, the record, its lease, the person's count, and a ledger
// line of one field. It knows walk-ins only: no press, no repeat, no limit, no
// line.
func leastOfAWin(tb testing.TB, rdb goredis.UniversalClient, sku string) func() {
	script := goredis.NewScript(`#!lua
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local fence, on_hand, held, n = string.match(redis.call('GET', KEYS[1]), '(%S+) (%S+) (%S+) (%S+)')
local info = redis.call('INFO', 'replication')
local _, last = string.find(info, 'master_replid:', 1, true)
if string.sub(info, last + 1, last + 40) ~= fence then return 'closed' end
local id, person = ARGV[10], ARGV[12]
if redis.call('HEXISTS', KEYS[2], id) == 1 or redis.call('ZCOUNT', KEYS[7], '-inf', now) > 0 or
  redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) > 0 or held + 0 >= on_hand + 0 then return 'more to do' end
held, n = held + 1, n + 1
local record = '["provisional",1,"' .. person .. '",' .. string.format('%.0f,%.0f', now, now + ARGV[3]) .. ']'
redis.call('SET', KEYS[1], fence .. ' ' .. on_hand .. ' ' .. held .. ' ' .. n)
redis.call('HSET', KEYS[2], id, record)
redis.call('ZADD', KEYS[7], now + ARGV[3], id)
redis.call('HINCRBY', KEYS[14], person, 1)
redis.call('XADD', KEYS[12], '*', 'l', n .. ' reserve walk-in 1 ' .. id .. ' ' .. person .. ' ' .. on_hand .. ' ' .. held)
return { 'ok', 0, ARGV[3], now, 0, record }`)
	require.NoError(tb, script.Load(tb.Context(), rdb).Err())
	keys := keysOf(sku)
	info, err := rdb.Info(tb.Context(), "replication").Result()
	require.NoError(tb, err)
	id := regexp.MustCompile(`master_replid:(\w{40})`).FindStringSubmatch(info)[1]
	require.NoError(tb, rdb.Set(tb.Context(), keys[0], id+" 100000000 0 0", 0).Err())
	return func() {
		hold := fresh(contract.HoldID, sku)
		out, err := script.EvalSha(tb.Context(), rdb, keys, "0123456789abcdef", contract.SKUNumber(sku), 3_600_000, 0, 0, 1, 0, 0, 0,
			hold, 1, hold, "", "shop").Slice()
		require.NoError(tb, err)
		require.Equal(tb, "ok", out[0])
	}
}

// rate runs op by several callers for a while and answers how often a second.
func rate(op func(), callers int, for_ time.Duration) float64 {
	var wg sync.WaitGroup
	counts := make([]int, callers)
	began := time.Now()
	for i := range callers {
		wg.Go(func() {
			for time.Since(began) < for_ {
				op()
				counts[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(began).Seconds()
}

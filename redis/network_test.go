package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

// lossy is the network between the gate and its server.
type lossy struct {
	t *testing.T
	*toxiproxy.Proxy
}

// network starts a proxy before the server at addr.
func network(t *testing.T, addr string) lossy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", addr)
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	return lossy{t, p}
}

// add makes the network worse; stream is upstream (requests) or downstream
// (answers).
func (n lossy) add(kind, stream, attributes string) {
	_, err := n.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%s}}`, kind, stream, attributes)))
	if err != nil {
		n.t.Errorf("%s on the %s: %v", kind, stream, err)
	}
}

func (n lossy) heal() { n.Toxics.ResetToxics(context.Background()) }

const (
	slowAnswer = 60 * time.Millisecond // latency each way
	impatience = 30 * time.Millisecond // of the client
)

// faults are what a network does while a history runs, on and off.
var faults = []struct {
	name    string
	on, off func(n lossy)
	timeout time.Duration
	// A fault begins once in so many tries and lasts for so many, and for so long at least:
	// many clients have begun that many before any of them is late.
	every, lasts int64
	least        time.Duration
}{
	// The answer is dropped with its connection, after the request went through.
	// So many bytes let a new connection greet, and an old one answer once.
	{"dropped replies", func(n lossy) { n.add("limit_data", "downstream", `"bytes": 250`) }, lossy.heal, 3 * time.Second, 200, 40, 0},
	// All connections end at once, wherever request and answer are.
	{"cut connections", lossy.cut, func(lossy) {}, 3 * time.Second, 200, 1, 0},
	// Requests and answers arrive, but long after the client gave them up.
	{"latency above the time-out", func(n lossy) {
		for _, stream := range []string{"upstream", "downstream"} {
			n.add("latency", stream, fmt.Sprintf(`"latency": %d`, slowAnswer.Milliseconds()))
		}
	}, lossy.heal, impatience, 200, 10, 2 * impatience},
}

func (n lossy) cut() {
	n.Stop()
	if err := n.Start(); err != nil {
		n.t.Errorf("the proxy does not start again: %v", err)
	}
}

// TestTheGateIsLinearizableOverABadNetwork is TestTheGateIsLinearizable over a
// network that loses answers, connections and time. Whatever is lost is asked
// for again with the same ids.
func TestTheGateIsLinearizableOverABadNetwork(t *testing.T) {
	for _, fault := range faults {
		for _, size := range sizes {
			t.Run(fault.name+"/"+size.name, func(t *testing.T) {
				var sum summary
				for range histories(1) {
					h := newHistory(t, shared, size.skus+2)
					n := network(t, backendAddrs[0])
					h.over(connect(t, func(opts *goredis.UniversalOptions) {
						opts.Addrs = []string{n.Listen}
						opts.DialerRetries = 1
						opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = time.Second, fault.timeout, fault.timeout
					}))
					var changing sync.RWMutex
					var began time.Time
					h.each = func(try int64) { // no try begins while a fault comes or goes
						switch try % fault.every {
						case 1:
							changing.Lock()
							defer changing.Unlock()
							fault.on(n)
							began = time.Now()
						case 1 + fault.lasts:
							changing.RLock()
							left := time.Until(began.Add(fault.least))
							changing.RUnlock()
							<-time.After(left)
							changing.Lock()
							defer changing.Unlock()
							fault.off(n)
						default:
							changing.RLock()
							defer changing.RUnlock()
						}
					}
					calls := size.calls / 2
					if long {
						calls = size.calls
					}
					h.play(size.clients, calls)
					sum.check(h)
				}
				sum.report(t)
				require.Positive(t, sum.unanswered+sum.lost, "the network lost nothing")
			})
		}
	}
}

// B94: it lets the client library repeat what was
// lost, of which its caller never learns.
func TestRetriesOfTheClientMoveNothingTwice(t *testing.T) {
	f := open(t, 0)
	n := network(t, backendAddrs[0])
	rdb := goredis.NewClient(&goredis.Options{Addr: n.Listen, MaxRetries: 50, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 4 * time.Millisecond})
	defer rdb.Close()
	through := *f.g
	through.rdb = rdb
	const clients, each = 8, 20
	var calls atomic.Int64
	ids := make([]string, clients*each)
	for i := range ids {
		ids[i] = f.id(contract.HoldID)
	}
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for _, id := range ids[client*each:][:each] {
				if calls.Add(1)%5 == 0 {
					n.cut()
				}
				event, err := through.Stock(t.Context(), f.sku, contract.StockEvent{EventID: "e" + id, Kind: contract.StockRestock, Units: 1})
				taken, err2 := through.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
				sale, err3 := through.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi"})
				if err := errors.Join(err, err2, err3); err != nil || !event.Applied || taken.Verdict != OK || sale.Verdict != OK {
					t.Errorf("applied %v, reserve %v, confirm %v, %v", event.Applied, taken.Verdict, sale.Verdict, err)
				}
			}
		})
	}
	wg.Wait()
	c := f.counters()
	require.Equal(t, int64(clients*each), c.Received)
	require.Equal(t, [4]int64{0, 0, 0, clients * each}, f.parts())
	require.Equal(t, 1+3*clients*each, f.lines(), "one line for each movement")
}

// B96: what was not answered in time is unknown, and a
// repeat by the same id finds out.
func TestADeadlineBoundsACall(t *testing.T) {
	f := open(t, 2)
	n := network(t, backendAddrs[0])
	rdb := goredis.NewClient(&goredis.Options{Addr: n.Listen, ContextTimeoutEnabled: true})
	defer rdb.Close()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	through := *f.g
	through.rdb = rdb
	n.add("latency", "downstream", `"latency": 5000`)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
	defer cancel()
	req := ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"}
	began := time.Now()
	_, err := through.Reserve(ctx, req)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), time.Second)
	n.heal()
	out, err := through.Reserve(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, [4]int64{2, 1, 0, 0}, f.parts(), "it arrived the first time, and counts once")
}

// B103: while Redis is away every call says so, none
// is refused as sold out; when it is back, so is the pool.
func TestThePoolRecoversFromAnOutage(t *testing.T) {
	f := open(t, 100_000)
	n := network(t, backendAddrs[0])
	rdb := goredis.NewClient(&goredis.Options{
		Addr: n.Listen, ContextTimeoutEnabled: true, PoolSize: 8, MaxActiveConns: 8, DialerRetries: 1, MaxRetryBackoff: 10 * time.Millisecond,
	})
	defer rdb.Close()
	through := *f.g
	through.rdb = rdb
	ctx, stop := context.WithCancel(t.Context())
	var taken, away atomic.Int64
	var wg sync.WaitGroup
	for client := range 32 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := contract.HoldID(f.sku, fmt.Appendf(nil, "%03d%08d", client, i))
				out, err := through.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
				switch {
				case err == nil && out.Verdict == OK:
					taken.Add(1)
				case errors.Is(err, ErrUnavailable):
					away.Add(1)
				default:
					t.Errorf("%v, %v", out.Verdict, err)
				}
			}
		})
	}
	more := func(count *atomic.Int64, by int64, within time.Duration, msg string) {
		want := count.Load() + by
		require.Eventually(t, func() bool { return count.Load() >= want }, within, time.Millisecond, msg)
	}
	more(&taken, 50, time.Minute, "nothing works before the outage")
	n.Stop()
	more(&away, 1000, time.Minute, "calls hang while Redis is away")
	require.NoError(t, n.Start())
	more(&taken, 1, 5*time.Second, "the pool does not recover")
	more(&taken, 50, time.Minute, "the pool recovers in part only")
	stop()
	wg.Wait()
	require.LessOrEqual(t, rdb.PoolStats().TotalConns, uint32(8))
}

// TestTheScriptsComeBackAfterARestart: a restarted server knows no script, and
// nobody notices. Loss is the fence's business, which is off here.
func TestTheScriptsComeBackAfterARestart(t *testing.T) {
	server, err := redistest.Start("--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { rdb.Close() })
	f := newFixture(t, rdb, 2)
	f.g.opts.FenceOff = true
	f.held()
	server.Kill()
	require.NoError(t, server.Run())
	f.held()
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
}

// B92: scripts are flushed between and during calls.
func TestScriptsMayBeFlushedAtAnyTime(t *testing.T) {
	f := open(t, 200)
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = f.id(contract.HoldID)
	}
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			for i, id := range ids[client*50:][:50] {
				if i%5 == client {
					if err := shared.ScriptFlush(t.Context()).Err(); err != nil {
						t.Error(err)
					}
				}
				out, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
				if err != nil || out.Verdict != OK {
					t.Errorf("%v, %v", out.Verdict, err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, [4]int64{200, 200, 0, 0}, f.parts())
}

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/connect"
	"holdfast/contract"
	"holdfast/internal/redistest"
	"holdfast/redis"
)

const (
	outageCallers  = 32
	outagePool     = 8                      // connections for all of them
	outagePace     = 5 * time.Millisecond   // between two calls of a caller
	outageDeadline = 250 * time.Millisecond // of a call; shorter than any time-out of the client
	outageSlack    = 750 * time.Millisecond // of a machine with more to do than this
)

// Redis hangs, is killed and comes back, all under load. Nothing of ours is
// started again, nobody hears sold-out, and nothing that was promised is lost.
func TestRedisIsKilledUnderLoad(t *testing.T) {
	length, wait := 5*time.Second, 3*time.Second
	if os.Getenv("HOLDFAST_LONG") != "" {
		length, wait = 60*time.Second, 20*time.Second
	}
	t.Run("fence off", func(t *testing.T) {
		o := newOutage(t, config.FenceOff)
		o.play(length)
		require.Zero(t, o.closed.Load())
		require.LessOrEqual(t, o.firstSuccess(), 5*time.Second)
	})
	t.Run("fence on", func(t *testing.T) {
		o := newOutage(t, config.FenceOn)
		o.reopenWait = wait
		o.play(length)
		require.Positive(t, o.closed.Load(), "the gate was never closed")
		require.LessOrEqual(t, o.firstSuccess(), wait+10*time.Second)
		require.Greater(t, o.firstSuccess(), wait, "it opened before every lease had ended")
	})
}

type outage struct {
	t          *testing.T
	server     *redistest.Server
	rdb        goredis.UniversalClient
	gate       *redis.Gate
	sku        string
	conns      *counted
	reopenWait time.Duration

	taken, away, closed atomic.Int64
	slowest             peak // call, ns
	routines, pooled    peak
	check               sync.Once // of the closed gate

	mu       sync.Mutex
	promised []string  // holds that were answered
	start    time.Time // of the server after its outage
	first    time.Time // success after start
}

// newOutage opens a SKU over the very client that door and worker use.
func newOutage(t *testing.T, fence string) *outage {
	t.Helper()
	server, err := redistest.Start("--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	cfg, err := config.Load("", []string{
		"mode=dev", "shop.name=Test", "sms.provider=console", "payment.provider=none", "http.public_url=http://127.0.0.1:8080",
		"redis.addrs=" + server.Addr, fmt.Sprint("redis.pool_size=", outagePool), "gate.fence=" + fence,
	})
	require.NoError(t, err)
	base := int64(runtime.NumGoroutine())
	rdb, err := connect.Redis(cfg)
	require.NoError(t, err)
	o := &outage{t: t, server: server, rdb: rdb, sku: "OUTAGE", conns: &counted{}}
	rdb.AddHook(o.conns)
	o.gate = connect.Gate(cfg, rdb, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		require.NoError(t, rdb.Close())
		require.Zero(t, o.conns.open.Load(), "connections that nobody closes")
		const looking = 1 // the goroutine in which Eventually looks
		require.Eventually(t, func() bool { return int64(runtime.NumGoroutine()) <= base+looking }, 10*time.Second, 10*time.Millisecond, "goroutines leak")
		require.LessOrEqual(t, o.routines.most(), base+2*outageCallers+4*outagePool, "goroutines pile up during the outage")
	})
	_, err = o.gate.Open(t.Context(), redis.OpenRequest{SKU: o.sku, New: true})
	require.NoError(t, err)
	_, err = o.gate.Stock(t.Context(), o.sku, contract.StockEvent{EventID: "all", Kind: contract.StockRestock, Units: 1_000_000_000})
	require.NoError(t, err)
	return o
}

func (o *outage) play(length time.Duration) {
	o.t.Helper()
	ctx, stop := context.WithCancel(o.t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for caller := range outageCallers {
		wg.Go(func() { o.call(ctx, caller) })
	}
	wg.Go(func() { o.watch(ctx) })
	o.more(&o.taken, 200, 30*time.Second, "nothing works before the outage")
	require.NoError(o.t, o.server.Freeze())
	o.more(&o.away, 4*outageCallers, 30*time.Second, "calls hang with the server")
	o.server.Kill()
	select { // as long as the story says, and not a condition that is waited for
	case <-time.After(length):
	case <-ctx.Done():
	}
	before := o.taken.Load()
	o.mu.Lock()
	o.start = time.Now()
	o.mu.Unlock()
	require.NoError(o.t, o.server.Run())
	o.more(&o.taken, 500, o.reopenWait+30*time.Second, "it does not recover")
	stop()
	wg.Wait()
	o.t.Logf("figure: first success %.2f s after the start of the server; %d taken before, %d after, %d unavailable, %d closed; slowest call %s, most connections %d (%d in the pool), most goroutines %d",
		o.firstSuccess().Seconds(), before, o.taken.Load()-before, o.away.Load(), o.closed.Load(), time.Duration(o.slowest.most()), o.conns.peak.most(), o.pooled.most(), o.routines.most())
	require.False(o.t, o.t.Failed())

	missing, err := o.gate.InspectRecords(o.t.Context(), o.sku, o.promised)
	require.NoError(o.t, err)
	require.Empty(o.t, missing, "promised before the outage, and forgotten")
	in, err := o.gate.Inspect(o.t.Context(), o.sku)
	require.NoError(o.t, err)
	require.Empty(o.t, in.Problems)
	// One that is being closed stands beside the one in its place for a moment.
	require.LessOrEqual(o.t, o.conns.peak.most(), int64(2*outagePool))
	require.LessOrEqual(o.t, o.pooled.most(), int64(outagePool))
	require.LessOrEqual(o.t, time.Duration(o.slowest.most()), outageDeadline+outageSlack, "a deadline was not honoured")
}

func (o *outage) firstSuccess() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first.Sub(o.start)
}

// more waits for so many more of count.
func (o *outage) more(count *atomic.Int64, by int64, within time.Duration, msg string) {
	o.t.Helper()
	want := count.Load() + by
	require.Eventually(o.t, func() bool { return count.Load() >= want }, within, 5*time.Millisecond, msg)
}

// call takes unit after unit and sorts what it is told.
func (o *outage) call(ctx context.Context, caller int) {
	tick := time.NewTicker(outagePace)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		id := contract.HoldID(o.sku, fmt.Appendf(nil, "%03d%08d", caller, i))
		began := time.Now()
		deadline, cancel := context.WithTimeout(ctx, outageDeadline)
		out, err := o.gate.Reserve(deadline, redis.ReserveRequest{SKU: o.sku, HoldID: id, Units: 1, Person: id})
		cancel()
		o.slowest.see(int64(time.Since(began)))
		var shut *redis.ClosedError
		switch {
		case err == nil && out.Verdict == redis.OK:
			o.took(id)
		case err == nil && out.Verdict == redis.Again: // leases of before the outage are swept in bites
		case errors.As(err, &shut):
			o.closed.Add(1)
			o.check.Do(func() { go o.reopen(ctx) })
		case errors.Is(err, redis.ErrUnavailable):
			o.away.Add(1)
		default:
			o.t.Errorf("caller %d was told %q, %v", caller, out.Verdict, err)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (o *outage) took(id string) {
	o.taken.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.promised = append(o.promised, id)
	if !o.start.IsZero() && o.first.IsZero() {
		o.first = time.Now()
	}
}

// reopen does what Reconcile does once somebody has met the closed gate.
func (o *outage) reopen(ctx context.Context) {
	select {
	case <-time.After(o.reopenWait):
	case <-ctx.Done():
		return
	}
	in, err := o.gate.Inspect(ctx, o.sku)
	if err != nil || len(in.Problems) > 0 {
		o.t.Errorf("the check found %v, %v", in.Problems, err)
		return
	}
	base, err := o.gate.Open(ctx, redis.OpenRequest{SKU: o.sku, ReplID: in.ReplID})
	if err != nil || base.Verdict != redis.OK {
		o.t.Errorf("the opening was answered %q, %v", base.Verdict, err)
	}
}

// watch counts the process' goroutines and the pool's connections.
func (o *outage) watch(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		o.routines.see(int64(runtime.NumGoroutine()))
		o.pooled.see(int64(o.rdb.PoolStats().TotalConns))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// peak is the greatest number seen.
type peak struct {
	mu sync.Mutex
	n  int64
}

func (p *peak) see(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n = max(p.n, n)
}

func (p *peak) most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// counted is a hook that counts a client's connections, those that are being
// made with them.
type counted struct {
	open atomic.Int64
	peak peak
}

func (c *counted) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.peak.see(c.open.Add(1))
		conn, err := next(ctx, network, addr)
		if err != nil {
			c.open.Add(-1)
			return nil, err
		}
		return &countedConn{Conn: conn, open: &c.open}, nil
	}
}

func (c *counted) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (c *counted) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// part is a worker, a door or both, with networks of their own, by the server behind them.
type part struct {
	*stack.Stack
	dir  string
	nets map[string]*toxiproxy.Proxy
}

// part starts one beside a house.
func (h *house) part(t *testing.T, opts stack.Options) part {
	t.Helper()
	p := part{dir: t.TempDir(), nets: map[string]*toxiproxy.Proxy{
		stack.Redis: networkTo(t, h.RedisAddr()), stack.Temporal: networkTo(t, h.TemporalAddr()),
	}}
	opts.Dir, opts.Holdfast = p.dir, binary(t, "HOLDFAST_BIN")
	opts.External = stack.External{Redis: p.nets[stack.Redis].Listen, Temporal: p.nets[stack.Temporal].Listen}
	opts.Env = with(opts.Env, "HOLDFAST_GATE_LEASE", h.check.Lease.String(), "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "10000")
	var err error
	p.Stack, err = stack.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	t.Cleanup(func() { (&house{dir: p.dir}).complain(t) })
	return p
}

// networkTo is a network to an address, which can be cut and slowed.
func networkTo(t *testing.T, addr string) *toxiproxy.Proxy {
	t.Helper()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), addr, "127.0.0.1:0", addr)
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	return p
}

// The network between Temporal and one door is cut, then that between Temporal and the
// worker. The door says "unavailable" and never "sold-out", and takes joins; another door
// does not notice. Without its worker a hold stands past its deadline, new ones are given,
// payments wait; then each ends once, as it should have.
func TestOnePartIsCutOffFromTemporal(t *testing.T) {
	const sku, line, short = "cut", "cut-line", "cut-due"
	ctx := t.Context()
	h := ownHouse(t, stack.Options{NoWorker: true}, 3*time.Second)
	worker, other := h.part(t, stack.Options{}), h.part(t, stack.Options{NoWorker: true})
	workersNet, doorsNet := worker.nets[stack.Temporal], other.nets[stack.Temporal]
	h.outbox = &shop.Outbox{Path: worker.TextsFile()}
	cut := h.shop.At(other.URL())
	h.opened(t, sku, 100)
	h.opened(t, line, 0)
	h.opened(t, short, 2)
	h.putPolicy(t, short, map[string]any{"hold_seconds": 5})
	held := func(door *shop.Shop, sku, who string) error {
		return until(ctx, who+" has a hold", func() error {
			a, err := door.AskHold(ctx, sku, who, who)
			if err == nil && a.Status != http.StatusCreated && a.Status != http.StatusOK {
				err = errors.New(a.String())
			}
			return err
		})
	}
	require.NoError(t, held(cut, sku, "before"))

	doorsNet.Stop()
	a, err := cut.AskHold(ctx, sku, "meanwhile", "meanwhile")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, a.Status, a)
	a, err = cut.AskJoin(ctx, line, phone(0))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	joined, err := shop.ParseEntry(a)
	require.NoError(t, err)
	a, err = h.shop.AskHold(ctx, sku, "elsewhere", "elsewhere")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	require.NoError(t, doorsNet.Start())
	require.NoError(t, held(cut, sku, "meanwhile"))
	require.NoError(t, within(ctx, 2*time.Minute, "the join is known to its workflow", func() error {
		known, err := h.check.Acknowledged(ctx, line, joined.EntryID)
		if err == nil && !known {
			err = errNotYet
		}
		return err
	}))

	due, err := h.shop.Hold(ctx, short, "due")
	require.NoError(t, err)
	paid, err := h.shop.Hold(ctx, sku, "payer")
	require.NoError(t, err)
	workersNet.Stop()
	log := &customersLog{}
	mob := &mob{arena: &arena{house: h}, customersLog: log}
	promise := log.promised(paid.HoldID)
	paying := make(chan struct{})
	go func() {
		defer close(paying)
		mob.pay(ctx, promise, "pay_while_cut")
	}()
	require.NoError(t, held(h.shop, short, "later"))
	require.NoError(t, lasts(ctx, time.Until(due.ExpiresAt)+time.Second))
	late, err := h.shop.ReadHold(ctx, due.HoldID)
	require.NoError(t, err)
	require.Equal(t, "held", late.State, "nobody has ended it")
	require.NoError(t, workersNet.Start())
	require.NoError(t, within(ctx, time.Minute, "what was due has ended", func() error {
		stock, err := h.shop.Stock(ctx, short)
		if err == nil && stock.Held != 0 {
			err = fmt.Errorf("%d are held", stock.Held)
		}
		return err
	}))
	<-paying
	require.Empty(t, log.faults)
	require.NoError(t, mob.kept(ctx, promise))
	ends := h.expiries(t, short)
	require.Len(t, ends, 2)
	for id, n := range ends {
		require.Equal(t, 1, n, id)
	}
	require.NoError(t, h.shop.Restock(ctx, line, 1))
	text, err := h.offerText(context.WithoutCancel(ctx), joined.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	h.judge(t, sku, line, short)
}

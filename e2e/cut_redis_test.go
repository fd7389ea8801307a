package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// The network between Redis and the worker is cut while the door's holds: the door
// promises, takes joins and writes stock down; a hold stands past its deadline, payments
// wait. Then each hold ends once, the payment in time is a sale, the stock has counted
// once and the first in line is told.
func TestTheWorkerIsCutOffFromRedis(t *testing.T) {
	c := newRedisCut(t)
	ctx := t.Context()
	c.begins(t)
	net := c.parts[stack.Worker].nets[stack.Redis]
	net.Stop()
	paid := c.paysNow(ctx)
	later, err := c.shop.Hold(ctx, c.short, "later")
	require.NoError(t, err, "the door needs no worker for a promise")
	second, err := c.shop.Join(ctx, c.line, phone(1))
	require.NoError(t, err)
	restock := map[string]any{"event_id": "while-cut", "sku": c.line, "kind": "restock", "units": 1}
	a, err := c.shop.Inventory(ctx, restock)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, a.Status, "written down, and not decided: %s", a)
	require.NoError(t, lasts(ctx, time.Until(later.ExpiresAt)+time.Second))
	for _, id := range []string{c.due, later.HoldID} {
		late, err := c.shop.ReadHold(ctx, id)
		require.NoError(t, err)
		require.Equal(t, "held", late.State, "nobody has ended it")
	}
	require.NoError(t, net.Start())

	c.ended(t, c.due, later.HoldID)
	c.paidInTime(t, paid)
	out, err := c.shop.Decided(ctx, restock)
	require.NoError(t, err)
	require.True(t, out.Applied)
	text, err := c.offerText(ctx, c.first)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	require.NoError(t, within(ctx, 2*time.Minute, "the join is known to its workflow", func() error {
		known, err := c.check.Acknowledged(ctx, c.line, second.EntryID)
		if err == nil && !known {
			err = errNotYet
		}
		return err
	}))
	facts, err := c.check.Gate(ctx, c.line)
	require.NoError(t, err)
	require.Equal(t, int64(1), facts.Counters.Received)
	c.judge(t, c.sku, c.line, c.short)
}

// The network between Redis and a door is cut while the worker's holds: that door says
// "unavailable" and never "sold out", and writes stock down. The worker goes on without
// it: a hold ends at its deadline, the stock counts, the line is told. Another door does
// not notice.
func TestADoorIsCutOffFromRedis(t *testing.T) {
	c := newRedisCut(t)
	ctx := t.Context()
	other := c.door(t)
	c.begins(t)
	net := c.parts[stack.Door].nets[stack.Redis]
	net.Stop()
	paid := c.paysNow(ctx)
	unavailable := func(what string, a shop.Answer, err error) {
		require.NoError(t, err, what)
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s: %s", what, a)
		require.NotEmpty(t, a.Header.Get("Retry-After"), what)
	}
	a, err := c.shop.AskHold(ctx, c.sku, "meanwhile", "meanwhile")
	unavailable("a hold", a, err)
	a, err = c.shop.AskJoin(ctx, c.line, phone(1))
	unavailable("a join", a, err)
	restock := map[string]any{"event_id": "while-cut", "sku": c.line, "kind": "restock", "units": 1}
	a, err = c.shop.Inventory(ctx, restock)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, a.Status, "the book has it: %s", a)
	text, err := c.offerText(ctx, c.first)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	_, err = other.Hold(ctx, c.sku, "elsewhere")
	require.NoError(t, err)
	require.NoError(t, until(ctx, "the hold has ended at its deadline", func() error {
		facts, err := c.check.Gate(ctx, c.short)
		if err == nil && facts.Holds[c.due].State != "expired" {
			err = fmt.Errorf("it is %s", facts.Holds[c.due].State)
		}
		return err
	}))
	require.NoError(t, net.Start())

	require.NoError(t, until(ctx, "the door gives holds again", func() error {
		a, err := c.shop.AskHold(ctx, c.sku, "meanwhile", "meanwhile")
		if err == nil && a.Status != http.StatusCreated && a.Status != http.StatusOK {
			err = fmt.Errorf("%s", a)
		}
		return err
	}))
	c.ended(t, c.due)
	c.paidInTime(t, paid)
	page, err := c.linkPage(ctx, c.first)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, page.Status)
	c.judge(t, c.sku, c.line, c.short)
}

// redisCut is a house whose worker or door will be cut off from Redis.
type redisCut struct {
	*mob
	sku, short string
	first      string   // entry of the first in line
	due        string   // hold of short, which ends in between
	payer      *promise // who will pay in between
}

func newRedisCut(t *testing.T) *redisCut {
	t.Helper()
	c := &redisCut{mob: &mob{arena: newArena(t, 3*time.Second), customersLog: &customersLog{}, line: "cut-line"}, sku: "cut", short: "cut-due"}
	c.opened(t, c.sku, 100)
	c.opened(t, c.line, 0)
	c.opened(t, c.short, 3)
	c.putPolicy(t, c.short, map[string]any{"hold_seconds": 5})
	return c
}

// begins has somebody wait, somebody hold for five seconds and somebody about to pay.
func (c *redisCut) begins(t *testing.T) {
	t.Helper()
	first, err := c.inLine(t.Context(), c.shop, c.line, phone(0))
	require.NoError(t, err)
	due, err := c.shop.Hold(t.Context(), c.short, "due")
	require.NoError(t, err)
	hold, err := c.shop.Hold(t.Context(), c.sku, "payer")
	require.NoError(t, err)
	c.first, c.due, c.payer = first.EntryID, due.HoldID, c.promised(hold.HoldID)
}

// paysNow tells of the payment until it is answered.
func (c *redisCut) paysNow(ctx context.Context) (answered chan struct{}) {
	answered = make(chan struct{})
	go func() {
		defer close(answered)
		c.pay(ctx, c.payer, "pay_while_cut")
	}()
	return answered
}

// paidInTime: the payment made its sale.
func (c *redisCut) paidInTime(t *testing.T, answered chan struct{}) {
	t.Helper()
	<-answered
	require.Empty(t, c.faults)
	require.NoError(t, c.kept(t.Context(), c.payer))
	hold, err := c.shop.ReadHold(t.Context(), c.payer.holdID)
	require.NoError(t, err)
	require.Equal(t, "sold", hold.State)
}

// ended waits until these holds, which were due, have ended, and nothing else; each once.
func (c *redisCut) ended(t *testing.T, ids ...string) {
	t.Helper()
	require.NoError(t, within(t.Context(), time.Minute, "what was due has ended", func() error {
		stock, err := c.shop.Stock(t.Context(), c.short)
		if err == nil && stock.Held != 0 {
			err = fmt.Errorf("%d are held", stock.Held)
		}
		return err
	}))
	ends := c.expiries(t, c.short)
	require.Len(t, ends, len(ids))
	for _, id := range ids {
		require.Equal(t, 1, ends[id], id)
	}
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// The worker is killed and stays away while holds are due and paid, people join a SKU of
// which everything is held, and somebody presses a link: the door still promises, takes
// joins and leads to the checkout; each hold that was due ends once, within a minute after
// the worker is back, and what was paid in time is sold. B8: the units go to the line in
// its order, those that joined meanwhile, too.
func TestTheWorkerIsAwayWhileHoldsAreDue(t *testing.T) {
	holds, length := 100, 8*time.Second
	if long() {
		holds, length = 500, 30*time.Second
	}
	const sku, line, payers, joins = "no-worker", "no-worker-line", 5, 5
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	h.opened(t, sku, int64(holds+payers))
	h.opened(t, line, 0)
	h.putPolicy(t, sku, map[string]any{"hold_seconds": 5})
	first, err := h.inLine(ctx, h.shop, line, phone(10))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, line, 1))
	link, err := h.linkPage(ctx, first.EntryID)
	require.NoError(t, err)
	worker := h.Child(stack.Worker)
	log := &customersLog{}
	mob := &mob{arena: &arena{house: h}, customersLog: log}
	paid := make([]*promise, payers)

	worker.Kill()
	went := time.Now()
	var paying sync.WaitGroup
	for i := range paid {
		hold, err := h.shop.Hold(ctx, sku, fmt.Sprint("payer-", i))
		require.NoError(t, err)
		paid[i] = log.promised(hold.HoldID)
		paying.Go(func() { mob.pay(ctx, paid[i], fmt.Sprint("pay_no_worker_", i)) })
	}
	ids := make([]string, holds)
	require.NoError(t, each(ctx, holds, 8, func(ctx context.Context, i int) error {
		hold, err := h.shop.Hold(ctx, sku, fmt.Sprint("customer-", i))
		ids[i] = hold.HoldID
		return err
	}))
	last, err := h.shop.ReadHold(ctx, ids[holds-1])
	require.NoError(t, err)
	waiting := make([]string, joins)
	for i := range waiting {
		e, err := h.shop.Join(ctx, sku, phone(i))
		require.NoError(t, err)
		waiting[i] = e.EntryID
	}
	_, err = h.shop.Join(ctx, line, phone(0))
	require.NoError(t, err)
	pressed, err := h.shop.Press(ctx, link, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, pressed.Status, pressed.Text)
	text, err := h.offerText(ctx, first.EntryID)
	require.NoError(t, err)
	held, err := h.shop.ReadHold(ctx, text.HoldID)
	require.NoError(t, err)
	require.Equal(t, "held", held.State, "the door has adopted it")
	require.NoError(t, lasts(ctx, max(length-time.Since(went), time.Until(last.ExpiresAt))))
	require.NoError(t, worker.Start(ctx))
	back := time.Now()
	require.NoError(t, within(ctx, time.Minute, "every unit that was not paid is back", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && stock.Held != 0 {
			err = fmt.Errorf("%d are held", stock.Held)
		}
		return err
	}))
	figure(t, "worker_back_to_all_due_ended", time.Since(back).Seconds(), "s")
	figure(t, "worker_away", back.Sub(went).Seconds(), "s")
	paying.Wait()
	require.Empty(t, log.faults)
	for _, p := range paid {
		require.NoError(t, mob.kept(ctx, p))
	}
	ends := h.expiries(t, sku)
	for _, id := range ids {
		require.Equal(t, 1, ends[id], id)
	}
	for i, entry := range waiting {
		text, err := h.offerText(ctx, entry)
		require.NoError(t, err, "no. %d of the line", i+1)
		require.Equal(t, phone(i), text.To)
	}
	require.Equal(t, waiting, h.offeredTo(t, sku), "one offer each, in the order of the line")
	h.status(t, first.EntryID, "knows that it was pressed", func(s map[string]any) bool { return s["state"] == "holding" })
	confirmed(t, h, text.HoldID, "pay_pressed")
	require.NoError(t, h.shop.Restock(ctx, line, 1))
	require.NoError(t, until(ctx, "who joined meanwhile is told", func() error {
		texts, err := h.outbox.Texts()
		for _, text := range texts {
			if text.To == phone(0) && text.HoldID != "" {
				return nil
			}
		}
		return errors.Join(err, errNotYet)
	}))
	h.judge(t, sku, line)
}

// offeredTo are the entries that a SKU's ledger has offers to, in its order.
func (h *house) offeredTo(t *testing.T, sku string) (entries []string) {
	t.Helper()
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "offer" {
			entries = append(entries, l.Other)
		}
	}
	return entries
}

// lasts is how long a story says that something lasts; nothing is waited for.
func lasts(ctx context.Context, d time.Duration) error {
	if err := wait(ctx, d); err != nil {
		return fmt.Errorf("the story was broken off: %w", err)
	}
	return nil
}

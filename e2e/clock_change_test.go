package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
)

// B87: worker and door live where clocks change, and a hold and an offer begin five
// minutes before. Each lasts as long as it was promised to, its instants are those of
// UTC, and so are the hours on its page. Others end by themselves while the clocks change.
func TestClocksChangeUnderAHold(t *testing.T) {
	const sku, line, short = "clock-change", "clock-change-line", 6 * time.Second
	ctx := t.Context()
	gate := miniredis.RunT(t) // no Redis of ours can be told what time it is
	rush := runs(t, gate, time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC))
	h := ownHouse(t, stack.Options{
		External: stack.External{Redis: gate.Addr()},
		Env:      map[string]string{"TZ": "America/New_York", "HOLDFAST_GATE_FENCE": "off"},
	}, lease)
	h.opened(t, sku, 4)
	for round, c := range []struct {
		change      time.Time
		hold, offer string // the hours of the two deadlines
	}{
		{time.Date(2027, 3, 14, 7, 0, 0, 0, time.UTC), "07:05 UTC", "07:10 UTC"},
		{time.Date(2027, 11, 7, 6, 0, 0, 0, time.UTC), "06:05 UTC", "06:10 UTC"},
	} {
		line := fmt.Sprint(line, "-", round)
		h.opened(t, line, 0)
		long, err := h.inLine(ctx, h.shop, line, phone(0))
		require.NoError(t, err)
		next, err := h.inLine(ctx, h.shop, line, phone(1))
		require.NoError(t, err)

		begin := c.change.Add(-5 * time.Minute)
		rush(begin)
		hold, err := h.shop.Hold(ctx, sku, fmt.Sprint("customer-", round))
		require.NoError(t, err)
		require.WithinRange(t, hold.ExpiresAt, begin.Add(10*time.Minute), begin.Add(11*time.Minute))
		require.WithinRange(t, hold.ExpiresAt, hold.CreatedAt.Add(10*time.Minute), hold.CreatedAt.Add(10*time.Minute+lease))
		require.Equal(t, time.UTC, hold.ExpiresAt.Location())
		page, err := h.shop.Visit(ctx, hold.Links.Page)
		require.NoError(t, err)
		require.Contains(t, page.Text, c.hold)
		require.NoError(t, h.shop.Restock(ctx, line, 1))
		h.status(t, long.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
		long, err = h.shop.ReadEntry(ctx, long.EntryID)
		require.NoError(t, err)
		require.WithinRange(t, long.Offer.ExpiresAt, begin.Add(15*time.Minute), begin.Add(16*time.Minute))
		page, err = h.linkPage(ctx, long.EntryID)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, page.Status)
		require.Contains(t, page.Text, c.offer)

		require.NoError(t, h.setPolicy(ctx, sku, map[string]any{"hold_seconds": int(short / time.Second)}))
		require.NoError(t, h.setPolicy(ctx, line, map[string]any{"offer_window_seconds": int(short / time.Second)}))
		rush(c.change.Add(-short / 2))
		brief, err := h.shop.Hold(ctx, sku, fmt.Sprint("brief-", round))
		require.NoError(t, err)
		require.NoError(t, h.shop.Restock(ctx, line, 1))
		brief, err = h.holdState(ctx, brief.HoldID, "expired")
		require.NoError(t, err)
		require.WithinRange(t, *brief.EndedAt, brief.CreatedAt.Add(short), brief.CreatedAt.Add(short+patience))
		var began, ended time.Time
		require.NoError(t, until(ctx, "the short offer lapses", func() error {
			for _, l := range h.ledger(t, line) {
				switch {
				case l.Verb == "offer" && l.Other == next.EntryID:
					began = l.At
				case l.Verb == "lapse":
					ended = l.At
				}
			}
			if ended.IsZero() {
				return errNotYet
			}
			return nil
		}))
		require.WithinRange(t, ended, began.Add(short), began.Add(short+patience))
		require.NoError(t, h.setPolicy(ctx, sku, map[string]any{"hold_seconds": 600}))
		still, err := h.shop.ReadHold(ctx, hold.HoldID)
		require.NoError(t, err)
		require.Equal(t, []any{"held", hold.ExpiresAt}, []any{still.State, still.ExpiresAt}, "the long one stands as it was promised")
	}
}

// B89: the machine of worker and door is a minute and a half behind the gate's, or before
// it. A hold and an offer last as long as they were promised to, by the gate's clock.
func TestMachinesWhoseClocksDiffer(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": 90 * time.Second, "ahead": -90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			const sku, line, short, late = "clocks-differ", "clocks-differ-line", 8 * time.Second, 75 * time.Second
			ctx := t.Context()
			gate := miniredis.RunT(t)
			runs(t, gate, time.Now().Add(skew))
			h := ownHouse(t, stack.Options{External: stack.External{Redis: gate.Addr()}, Env: map[string]string{
				"HOLDFAST_GATE_FENCE": "off", "HOLDFAST_HOLD_TTL": short.String(), "HOLDFAST_OFFER_WINDOW": short.String(),
			}}, lease)
			h.opened(t, sku, 1)
			h.opened(t, line, 0)
			_, err := h.inLine(ctx, h.shop, line, phone(0))
			require.NoError(t, err)
			next, err := h.inLine(ctx, h.shop, line, phone(1))
			require.NoError(t, err)
			hold, err := h.shop.Hold(ctx, sku, "customer")
			require.NoError(t, err)
			require.WithinRange(t, hold.ExpiresAt, hold.CreatedAt.Add(short), hold.CreatedAt.Add(short+lease))
			require.NoError(t, h.shop.Restock(ctx, line, 1))
			hold, err = h.holdState(ctx, hold.HoldID, "expired")
			require.NoError(t, err)
			require.WithinRange(t, *hold.EndedAt, hold.CreatedAt.Add(short), hold.CreatedAt.Add(late))
			page, err := h.linkPage(ctx, next.EntryID) // the first one's offer has lapsed
			require.NoError(t, err)
			ends := h.ledger(t, line)
			require.WithinRange(t, when(t, ends, "lapse"), when(t, ends, "offer").Add(short), when(t, ends, "offer").Add(late))
			page, err = h.shop.Press(ctx, page, "/r/")
			require.NoError(t, err)
			require.Equal(t, http.StatusSeeOther, page.Status, "the link counts by the gate's clock: %s", page.Text)
		})
	}
}

// when is the time of the first line of a verb.
func when(t *testing.T, lines []check.Line, verb string) time.Time {
	t.Helper()
	for _, l := range lines {
		if l.Verb == verb {
			return l.At
		}
	}
	require.Fail(t, "no line of "+verb)
	return time.Time{}
}

// runs sets a stand-in's clock, which goes on from there as clocks do, and answers what
// sets it again.
func runs(t *testing.T, gate *miniredis.Miniredis, at time.Time) (set func(time.Time)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	sets := make(chan time.Time)
	gate.SetTime(at)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		began := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case at = <-sets:
				began = time.Now()
			case <-tick.C:
			}
			gate.SetTime(at.Add(time.Since(began)))
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return func(to time.Time) { sets <- to }
}

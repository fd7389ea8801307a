package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// Temporal is killed, is at its rate limit, is stopped and started again, gives no
// answer, and cannot write to its database, while people ask, join and pay and holds are
// due. The door answers "unavailable", never "sold-out", and stays ready; joins go on; each
// hold that was due ends once, within a minute after; each payment is a sale or a refund
// that somebody owns.
func TestTemporalIsAwayForAWhile(t *testing.T) {
	length := 6 * time.Second // longer than the holds that are due
	if long() {
		length = 45 * time.Second
	}
	h, m := newMetered(t, 3*time.Second)
	temporal := h.Child(stack.Temporal)
	outages := []struct {
		name     string
		down, up func() error
	}{
		{"killed", func() error { temporal.Kill(); return nil }, func() error { return comesBack(t.Context(), temporal) }},
		{"limited", func() error { m.full.Store(true); return nil }, func() error { m.full.Store(false); return nil }},
		{"restarted", temporal.Stop, func() error { return comesBack(t.Context(), temporal) }},
		{"frozen", temporal.Suspend, temporal.Resume},
	}
	for _, o := range outages {
		length := length
		if o.name == "frozen" {
			length = max(length, 15*time.Second) // the door waits ten for an answer
		}
		if !t.Run(o.name, func(t *testing.T) { h.temporalAway(t, o.name, length, o.down, o.up) }) {
			t.FailNow() // the others would only say the same
		}
	}
	require.Positive(t, m.refused.Load(), "the rate limit refused nothing")
	t.Run("locked", func(t *testing.T) {
		lock := newLock(t, filepath.Join(h.dir, stack.Temporal))
		h.temporalAway(t, "locked", length, lock.take, lock.give)
	})
}

func (h *house) temporalAway(t *testing.T, name string, length time.Duration, down, up func() error) {
	ctx := t.Context()
	const due, joins = 10, 4
	sku, line, short := "away-"+name, "away-line-"+name, "away-due-"+name
	h.opened(t, sku, 100_000)
	h.opened(t, line, 0)
	h.opened(t, short, due)
	h.putPolicy(t, short, map[string]any{"hold_seconds": 5})
	paid := make([]*promise, 6)
	log := &customersLog{}
	for i := range paid {
		hold, err := h.shop.Hold(ctx, sku, fmt.Sprint("payer-", i))
		require.NoError(t, err)
		paid[i] = log.promised(hold.HoldID)
	}
	c := &customers{h: h, sku: sku}
	stop := c.ask(ctx, 4)
	defer stop()
	c.until(t, "customers are served", func() bool { return len(c.won) >= 5 })
	overdue := make([]string, due)
	require.NoError(t, each(ctx, due, due, func(ctx context.Context, i int) error {
		hold, err := h.shop.Hold(ctx, short, fmt.Sprint("due-", i))
		overdue[i] = hold.HoldID
		return err
	}))

	require.NoError(t, down())
	went := time.Now()
	mob := &mob{arena: &arena{house: h}, customersLog: log}
	var payers sync.WaitGroup
	for i, p := range paid {
		payers.Go(func() { mob.pay(ctx, p, fmt.Sprint("pay_", name, i)) })
	}
	entries := make([]shop.Entry, joins)
	for i := range entries {
		began := time.Now()
		a, err := h.shop.AskJoin(ctx, line, phone(i))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "a join never waits for Temporal: %s", a)
		entries[i], err = shop.ParseEntry(a)
		require.NoError(t, err)
		figure(t, "join_while_temporal_is_"+name, time.Since(began).Seconds(), "s")
	}
	h.staysReady(t, name)
	require.NoError(t, lasts(ctx, length-time.Since(went)))
	c.mu.Lock()
	c.start = time.Now()
	c.mu.Unlock()
	require.NoError(t, up())
	back := time.Now()

	require.NoError(t, within(ctx, time.Minute, "every hold that was due has ended", func() error {
		var left error
		for _, id := range overdue {
			hold, err := h.shop.ReadHold(ctx, id)
			if err == nil && hold.State != "expired" {
				err = fmt.Errorf("%s is %s", id, hold.State)
			}
			left = errors.Join(left, err)
		}
		return left
	}))
	figure(t, "back_to_all_due_ended_"+name, time.Since(back).Seconds(), "s")
	c.until(t, "customers are served again", func() bool { return !c.first.IsZero() })
	stop()
	payers.Wait()
	require.Positive(t, c.refused, "nobody asked while Temporal was %s", name)
	require.NoError(t, errors.Join(c.faults...))
	require.Empty(t, log.faults)
	t.Logf("%d holds, %d times unavailable", len(c.won), c.refused)
	figure(t, "back_to_first_hold_"+name, c.first.Sub(c.start).Seconds(), "s")

	for _, p := range paid {
		require.NoError(t, mob.kept(ctx, p))
	}
	h.expiredOnce(t, short, due)
	// Who joined meanwhile is told, in the order of their coming. A wake that was lost is
	// made up for by the pass of every minute.
	require.NoError(t, within(ctx, 2*time.Minute, "the joins are known to their workflows", func() error {
		for _, e := range entries {
			known, err := h.check.Acknowledged(ctx, line, e.EntryID)
			if err == nil && !known {
				err = fmt.Errorf("%s is not", e.EntryID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	figure(t, "back_to_all_joins_known_"+name, time.Since(back).Seconds(), "s")
	// Their texts have waited with everything else; at the rate limit a call in a few goes
	// through.
	require.NoError(t, within(ctx, time.Minute, "who joined has a text of it", func() error { return h.joinedTexts(entries, 1) }))
	texts, err := h.outbox.Texts()
	require.NoError(t, err)
	for _, text := range texts {
		if slices.ContainsFunc(entries, func(e shop.Entry) bool { return e.EntryID == text.EntryID }) && name != "limited" {
			require.False(t, text.At.Before(c.start), "a text left while Temporal was %s", name)
		}
	}
	require.NoError(t, h.shop.Restock(ctx, line, 1))
	offered, err := h.offerText(ctx, entries[0].EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), offered.To)
	require.NoError(t, h.joinedTexts(entries, 1))
	h.judge(t, sku, line, short)
}

// staysReady wants the door in a balancer's list, for what goes on without Temporal, and
// that it names Temporal when that gives no answer at all.
func (h *house) staysReady(t *testing.T, temporal string) {
	began := time.Now()
	a, err := h.shop.Call(t.Context(), http.MethodGet, "/readyz", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "while Temporal is %s: %s", temporal, a)
	figure(t, "readyz_while_temporal_is_"+temporal, time.Since(began).Seconds(), "s")
	if temporal != "limited" && temporal != "locked" {
		var says struct{ Gate, Temporal string }
		require.NoError(t, json.Unmarshal(a.Body, &says), a)
		require.Equal(t, "unavailable", says.Temporal, a)
		require.Equal(t, "open", says.Gate, a)
	}
}

// joinedTexts wants so many texts of each entry that its place is kept.
func (h *house) joinedTexts(entries []shop.Entry, want int) error {
	texts, err := h.outbox.Texts()
	sent := map[string]int{}
	for _, text := range texts {
		if text.HoldID == "" {
			sent[text.EntryID]++
		}
	}
	for _, e := range entries {
		if n := sent[e.EntryID]; n != want {
			err = errors.Join(err, fmt.Errorf("%s has %d texts", e.EntryID, n))
		}
	}
	return err
}

// comesBack starts a server again. Temporal's gives up by itself when a busy machine
// has not let it start in time; whoever runs it starts it again.
func comesBack(ctx context.Context, child *stack.Child) error {
	return within(ctx, 2*time.Minute, child.Name()+" is back", func() error { return child.Start(ctx) })
}

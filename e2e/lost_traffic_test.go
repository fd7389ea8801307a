package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// lossEnv are the clocks of a house whose Redis is lost: it opens soon, though not before
// Temporal's lists have caught up on a busy machine; no hold expires meanwhile; and sales
// are audited as soon as they may be.
var lossEnv = map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "6s", "HOLDFAST_GATE_AUDIT_AGE": "1s"}

// rush is a flash sale and a line through which Redis is lost: some pay at once, some
// give back, and most hold on to what they were promised until it is over.
type rush struct {
	*mob
	mu     sync.Mutex
	kept   []*promise
	given  map[string]bool // back, by their shoppers
	skus   []string        // that are lost with it
	line   []string        // entries in the order of their joins
	over   atomic.Bool
	people sync.WaitGroup
}

// newRush opens two SKUs and lets people in.
func newRush(t *testing.T, h *house, name string, units int64) *rush {
	t.Helper()
	log := &customersLog{restocked: map[string]int64{}}
	r := &rush{mob: &mob{arena: &arena{house: h}, customersLog: log, flash: name + "-flash", line: name + "-line"}, given: map[string]bool{}}
	r.skus = []string{r.flash, r.mob.line}
	h.opened(t, r.flash, units)
	h.opened(t, r.mob.line, 0)
	r.restocked[r.flash] = units
	for who := range 6 {
		r.people.Go(func() { r.buyer(t.Context(), who) })
	}
	t.Cleanup(func() { r.over.Store(true); r.people.Wait() })
	return r
}

func (r *rush) buyer(ctx context.Context, who int) {
	for n := 0; !r.over.Load() && ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%d-%d", r.flash, who, n)
		p, ok := r.take(ctx, r.flash, key)
		if !ok {
			return
		}
		if p != nil {
			r.spend(ctx, p, n)
		}
		if wait(ctx, 300*time.Millisecond) != nil {
			return
		}
	}
}

func (r *rush) spend(ctx context.Context, p *promise, n int) {
	switch n % 4 {
	case 0:
		r.pay(ctx, p, "pay_"+p.holdID)
	case 1:
		r.definite(ctx, "release of "+p.holdID, func() (shop.Answer, error) {
			return r.shop.Call(ctx, http.MethodPost, "/v1/holds/"+p.holdID+"/release", map[string]any{})
		})
		r.mu.Lock()
		r.given[p.holdID] = true
		r.mu.Unlock()
	default:
		r.mu.Lock()
		r.kept = append(r.kept, p)
		r.mu.Unlock()
	}
}

// more waits until so many more holds were promised.
func (r *rush) more(t *testing.T, n int) {
	t.Helper()
	from := r.holds()
	require.NoError(t, until(t.Context(), fmt.Sprintf("%d more holds", n), func() error {
		if now := r.holds(); now < from+n {
			return fmt.Errorf("%d more", now-from)
		}
		return nil
	}))
}

// joins puts so many people into the line, one after the other.
func (r *rush) joins(t *testing.T, n int) {
	t.Helper()
	for range n {
		e, err := r.inLine(t.Context(), r.shop, r.mob.line, phone(len(r.line)))
		require.NoError(t, err)
		r.line = append(r.line, e.EntryID)
	}
}

// opens waits until all SKUs sell again, by themselves, and answers since when it has.
func (r *rush) opens(t *testing.T) (since time.Time) {
	t.Helper()
	began := time.Now()
	r.reopens(t, r.skus...)
	figure(t, "loss_to_open_gate", time.Since(began).Seconds(), "s")
	return began
}

// opensAsItIs is opens of a Redis that has lost nothing.
func (r *rush) opensAsItIs(t *testing.T) {
	t.Helper()
	since := r.opens(t)
	for _, sku := range r.skus {
		require.False(t, r.rebuilt(t, sku, since), "%s has lost nothing, and was rebuilt", sku)
	}
}

// opensRebuilt is opens of a Redis that has lost something: a report of this time says what.
func (r *rush) opensRebuilt(t *testing.T) {
	t.Helper()
	r.opensRebuiltSince(t, time.Now())
}

// opensRebuiltSince is opensRebuilt of a loss whose check may have begun already.
func (r *rush) opensRebuiltSince(t *testing.T, since time.Time) {
	t.Helper()
	r.opens(t)
	require.True(t, r.rebuilt(t, r.flash, since), "it was rebuilt")
	require.NoError(t, until(t.Context(), "the difference is reported", func() error {
		runs, err := r.reports(t.Context(), r.flash)
		if err == nil && !slices.ContainsFunc(runs, func(p lossReport) bool { return p.Opened && len(p.Differences) > 0 && p.Checked.After(since) }) {
			err = errors.New("no report has one")
		}
		return err
	}))
}

// rebuilt says whether a SKU's ledger tells of a rebuild since then.
func (h *house) rebuilt(t *testing.T, sku string, since time.Time) bool {
	t.Helper()
	return slices.ContainsFunc(h.ledger(t, sku), func(l ledgerLine) bool {
		return l.Verb == "repair" && l.Reason == "rebuilt" && l.At.After(since)
	})
}

// reopens waits until SKUs have opened by themselves. Who asks for one has it checked.
func (h *house) reopens(t *testing.T, skus ...string) {
	t.Helper()
	require.NoError(t, until(t.Context(), fmt.Sprint(skus, " have opened by themselves"), func() (err error) {
		for _, sku := range skus {
			s, failed := h.shop.Stock(t.Context(), sku)
			if failed == nil && s.State == "closed" {
				failed = errors.New(sku + " is closed")
			}
			err = errors.Join(err, failed)
		}
		return err
	}))
}

// ends brings the story to its end and holds it against the clients' log: each hold that
// was promised and not given back is sold to whoever has it, the line is served in its
// order, and the books agree.
func (r *rush) ends(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	r.over.Store(true)
	r.people.Wait()
	require.NoError(t, each(ctx, len(r.kept), 8, func(ctx context.Context, i int) error {
		p := r.kept[i]
		r.pay(ctx, p, "pay_"+p.holdID)
		if a := p.paid["pay_"+p.holdID]; a.Status != http.StatusOK {
			return fmt.Errorf("%s was promised, and its payment was answered %s", p.holdID, a)
		}
		return nil
	}))
	for i, entry := range r.line {
		require.NoError(t, r.shop.Restock(ctx, r.mob.line, 1))
		r.restocked[r.mob.line]++
		text, err := r.offerText(ctx, entry)
		require.NoError(t, err, "no. %d of the line", i+1)
		require.Equal(t, phone(i), text.To)
	}
	r.account(ctx, t)
	stock, err := r.shop.Stock(ctx, r.flash)
	require.NoError(t, err)
	require.EqualValues(t, len(r.promises)-len(r.given), stock.Sold, "units sold and promises that were paid")
	require.Equal(t, [3]int64{r.restocked[r.flash] - stock.Sold, 0, 0}, [3]int64{stock.OnHand, stock.Held, stock.Offered})
	r.judge(t, r.flash, r.mob.line)
}

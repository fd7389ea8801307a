package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// patience is how long a story waits for what must come.
const patience = 60 * time.Second

// long says whether the large forms are played.
func long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// until repeats try until it has no complaint; the last one is the error.
func until(ctx context.Context, what string, try func() error) error {
	return within(ctx, patience, what, try)
}

func within(ctx context.Context, patience time.Duration, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, err)
		}
	}
}

// each runs do(0) to do(n-1), at most width of them at once.
func each(ctx context.Context, n, width int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// race releases two functions in the same instant; the one that stands first at
// the barrier is let go first.
func race(first, second func()) {
	barrier := make(chan struct{})
	ready, done := make(chan struct{}), make(chan struct{})
	for _, side := range []func(){first, second} {
		go func() {
			ready <- struct{}{}
			<-barrier
			side()
			done <- struct{}{}
		}()
		<-ready
	}
	close(barrier)
	<-done
	<-done
}

// areaCodes have numbers 555-0100 to 555-0199, which are kept for fiction.
var areaCodes = []int{
	201, 202, 203, 205, 206, 207, 208, 209, 210, 212, 213, 214, 215, 216, 217, 218, 219, 224, 225, 228, 229, 231, 234, 239,
	240, 248, 251, 252, 253, 254, 256, 260, 262, 267, 269, 270, 276, 281, 301, 302, 303, 304, 305, 307, 308, 309, 310, 312,
}

// phone is the i-th number, from 0 to 4,799, that belongs to nobody, in E.164.
func phone(i int) string { return fmt.Sprintf("+1%d55501%02d", areaCodes[i/100], i%100) }

// opened opens a SKU and gives it units.
func (h *house) opened(t *testing.T, sku string, units int64) {
	t.Helper()
	require.NoError(t, h.open(t.Context(), sku, units))
}

func (h *house) open(ctx context.Context, sku string, units int64) error {
	if err := h.shop.Open(ctx, sku, "Chair "+sku); err != nil {
		return err
	}
	if units == 0 {
		return nil
	}
	return h.shop.Restock(ctx, sku, units)
}

// inLine joins through a door and waits until the entry's workflow has
// acknowledged: from then on it has a right to its turn.
func (h *house) inLine(ctx context.Context, door *shop.Shop, sku, phone string) (shop.Entry, error) {
	e, err := door.Join(ctx, sku, phone)
	if err != nil {
		return e, err
	}
	return e, until(ctx, "entry "+e.EntryID+" is acknowledged", func() error {
		known, err := h.check.Acknowledged(ctx, sku, e.EntryID)
		if err == nil && !known {
			err = errors.New("not yet")
		}
		return err
	})
}

// offerText waits for the text that brings an entry its link.
func (h *house) offerText(ctx context.Context, entryID string) (shop.Text, error) {
	var text shop.Text
	err := until(ctx, "entry "+entryID+" is told of an offer", func() error {
		var told bool
		var err error
		if text, told, err = h.outbox.OfferTo(entryID); err == nil && !told {
			err = errors.New("no text with a link yet")
		}
		return err
	})
	return text, err
}

// linkPage opens an entry's link as its shopper does.
func (h *house) linkPage(ctx context.Context, entryID string) (shop.Page, error) {
	text, err := h.offerText(ctx, entryID)
	if err != nil {
		return shop.Page{}, err
	}
	page, err := h.shop.Visit(ctx, text.Link())
	if err == nil && page.Status != http.StatusOK {
		err = fmt.Errorf("link %s shows %d %q", text.Link(), page.Status, page.Text)
	}
	return page, err
}

// presses takes what an entry is offered, as its shopper does.
func (h *house) presses(t *testing.T, entryID string) shop.Entry {
	t.Helper()
	ctx := t.Context()
	page, err := h.linkPage(ctx, entryID)
	require.NoError(t, err)
	to, err := h.shop.Press(ctx, page, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, to.Status, to.Text)
	entry, err := h.entryState(ctx, entryID, "holding")
	require.NoError(t, err)
	return entry
}

// holdState waits until the API shows a hold in a state.
func (h *house) holdState(ctx context.Context, holdID, state string) (shop.Hold, error) {
	var hold shop.Hold
	return hold, until(ctx, "hold "+holdID+" is "+state, func() error {
		var err error
		if hold, err = h.shop.ReadHold(ctx, holdID); err == nil && hold.State != state {
			err = fmt.Errorf("it is %s", hold.State)
		}
		return err
	})
}

// entryState waits until the API shows an entry in a state.
func (h *house) entryState(ctx context.Context, entryID, state string) (shop.Entry, error) {
	var entry shop.Entry
	return entry, until(ctx, "entry "+entryID+" is "+state, func() error {
		var err error
		if entry, err = h.shop.ReadEntry(ctx, entryID); err == nil && entry.State != state {
			err = fmt.Errorf("it is %s", entry.State)
		}
		return err
	})
}

// closed waits until a workflow has closed.
func (h *house) closed(ctx context.Context, id string) error {
	return until(ctx, "workflow "+id+" has closed", func() error {
		d, err := h.temporal.DescribeWorkflow(ctx, id, "")
		if err == nil && d.WorkflowCloseTime == nil {
			err = errors.New("it is open")
		}
		return err
	})
}

// judge lets the checker loose on SKUs; the product's own statement must find
// nothing either.
func (h *house) judge(t *testing.T, skus ...string) {
	t.Helper()
	for _, sku := range skus {
		found, err := h.check.Check(t.Context(), sku)
		require.NoError(t, err)
		for _, v := range found {
			t.Error(v)
		}
		alarms, err := h.shop.Alarms(t.Context(), sku)
		require.NoError(t, err)
		require.Empty(t, alarms, "the statement of %s", sku)
	}
}

// ledger is a SKU's ledger as the checker reads it.
func (h *house) ledger(t *testing.T, sku string) []check.Line {
	t.Helper()
	lines, err := h.check.Ledger(t.Context(), sku)
	require.NoError(t, err)
	return lines
}

// figure prints one number for the note.
func figure(t *testing.T, name string, value float64, unit string) {
	t.Helper()
	t.Logf("figure: %s %.4g %s", name, value, unit)
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

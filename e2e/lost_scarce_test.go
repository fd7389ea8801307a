package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// scarce is a SKU of which nothing is free when Redis is lost: a hold was given, a sale was
// retaken after its hold had expired, an offer was pressed and another one told. Two people
// wait on, and walk-ins ask all the time. Whatever Redis forgets, each unit stays with
// whom it was promised to, and none goes to somebody else.
type scarce struct {
	*house
	sku        string
	late, held shop.Hold
	line       []string
	pressed    shop.Hold
	told       shop.Page
	before     []int64 // its parts

	over    atomic.Bool
	asking  sync.WaitGroup
	refused atomic.Int64 // walk-ins that heard "unavailable" since the last look
	mu      sync.Mutex
	faults  []string
}

// scarce opens such a SKU beside a rush. One of its two units is held for five seconds.
func (r *rush) scarce(t *testing.T, sku string) *scarce {
	t.Helper()
	s := &scarce{house: r.house, sku: sku}
	r.skus = append(r.skus, sku)
	s.opened(t, sku, 2)
	s.putPolicy(t, sku, map[string]any{"hold_seconds": 5})
	var err error
	s.late, err = s.shop.Hold(t.Context(), sku, "late")
	require.NoError(t, err)
	s.putPolicy(t, sku, map[string]any{})
	return s
}

// expires waits until the short hold has. No hold expires in the minute after a gate
// was opened.
func (s *scarce) expires(t *testing.T) {
	t.Helper()
	_, err := s.holdState(t.Context(), s.late.HoldID, "expired")
	require.NoError(t, err)
	require.NoError(t, s.closed(t.Context(), s.late.HoldID))
}

// promises gives everything away.
func (s *scarce) promises(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	s.held, err = s.shop.Hold(ctx, s.sku, "in time")
	require.NoError(t, err)
	confirmed(t, s.house, s.late.HoldID, "pay_late_"+s.sku)
	for i := range 4 {
		e, err := s.inLine(ctx, s.shop, s.sku, phone(i))
		require.NoError(t, err)
		s.line = append(s.line, e.EntryID)
	}
	require.NoError(t, s.shop.Restock(ctx, s.sku, 2))
	entry := s.presses(t, s.line[0])
	s.pressed, err = s.holdState(ctx, entry.HoldID, "held")
	require.NoError(t, err)
	// Until then its offer would come back, for whoever pressed it to take again.
	s.status(t, entry.HoldID, "knows that it was pressed", func(s map[string]any) bool { return s["state"] == "held" })
	s.told, err = s.linkPage(ctx, s.line[1])
	require.NoError(t, err)
	stock, err := s.shop.Stock(ctx, s.sku)
	require.NoError(t, err)
	s.before = parts(stock)
	require.Equal(t, []int64{3, 2, 1, 1, 0, 2, 0}, s.before)
	s.asking.Go(func() { s.walkIns(ctx) })
	t.Cleanup(func() { s.over.Store(true); s.asking.Wait() })
}

func (s *scarce) walkIns(ctx context.Context) {
	for n := 0; !s.over.Load() && ctx.Err() == nil; n++ {
		a, err := s.shop.AskHold(ctx, s.sku, "walk-in", fmt.Sprintf("walk-in-%s-%d", s.sku, n))
		switch {
		case err != nil:
		case a.Status == http.StatusServiceUnavailable && a.Code() == "unavailable":
			s.refused.Add(1)
		case a.Code() != "reserved-for-line":
			s.mu.Lock()
			s.faults = append(s.faults, a.String())
			s.mu.Unlock()
		}
		if wait(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

// stands: it has opened, and everything is as it was.
func (s *scarce) stands(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	stock, err := s.shop.Stock(ctx, s.sku)
	require.NoError(t, err)
	require.Equal(t, s.before, parts(stock), "on_hand, held, offered, sold, returned, waiting, shortfall")
	require.Positive(t, s.refused.Swap(0), "no walk-in asked while it was closed")
	retaken, err := s.shop.ReadHold(ctx, s.late.HoldID)
	require.NoError(t, err)
	require.Equal(t, [2]string{"sold", "pay_late_" + s.sku}, [2]string{retaken.State, retaken.PaymentRef})
	for i, state := range []string{"holding", "offered", "waiting", "waiting"} {
		e, err := s.shop.ReadEntry(ctx, s.line[i])
		require.NoError(t, err)
		require.Equal(t, state, e.State, "no. %d of the line", i+1)
	}
}

// ends has everybody take what they were promised, and brings one more unit.
func (s *scarce) ends(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	confirmed(t, s.house, s.held.HoldID, "pay_held_"+s.sku)
	confirmed(t, s.house, s.pressed.HoldID, "pay_pressed_"+s.sku)
	pressed, err := s.shop.Press(ctx, s.told, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, pressed.Status, pressed.Text)
	require.NoError(t, s.shop.Restock(ctx, s.sku, 1))
	text, err := s.offerText(ctx, s.line[2])
	require.NoError(t, err)
	require.Equal(t, phone(2), text.To)
	s.over.Store(true)
	s.asking.Wait()
	require.Empty(t, s.faults, "of walk-ins: a unit that is somebody's, or no word of the line")
	_, told, err := s.outbox.OfferTo(s.line[3])
	require.NoError(t, err)
	require.False(t, told, "there was no unit for the last in line")
	stock, err := s.shop.Stock(ctx, s.sku)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1, 1, 3, 0, 1, 0}, parts(stock))
	s.judge(t, s.sku)
}

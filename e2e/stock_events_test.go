package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// event is one stock event of a SKU; more wins over what stands here.
func event(sku, kind string, members map[string]any) map[string]any {
	ev := map[string]any{"event_id": shop.Token(), "sku": sku, "kind": kind}
	maps.Copy(ev, members)
	return ev
}

// decided posts an event whose outcome the story knows: "" is applied.
func (h *house) decided(t *testing.T, ev map[string]any, refused string) shop.Stock {
	t.Helper()
	out, err := h.shop.Decided(t.Context(), ev)
	require.NoError(t, err)
	require.Equal(t, refused, out.Reason, "%v", ev)
	require.Equal(t, refused == "", out.Applied, "%v", ev)
	return out.Stock
}

// sale sells units of a SKU to one customer and answers the hold.
func (h *house) sale(t *testing.T, sku string, units int64) string {
	t.Helper()
	a, err := h.shop.Call(t.Context(), http.MethodPost, "/v1/holds",
		map[string]any{"sku": sku, "quantity": units, "customer": "buyer"}, "Idempotency-Key", shop.Token())
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a)
	hold, err := shop.ParseHold(a)
	require.NoError(t, err)
	confirmed(t, h, hold.HoldID, "pay_"+hold.HoldID)
	return hold.HoldID
}

// book is what the SKU's Stock workflow has counted.
type book struct {
	Received  int64 `json:"received"`
	Returned  int64 `json:"returned"`
	Corrected int64 `json:"corrected"`
	Refused   int64 `json:"refused"`
}

func (h *house) book(t *testing.T, sku string) book {
	t.Helper()
	var out book
	v, err := h.temporal.QueryWorkflow(t.Context(), "stock."+sku, "", "status")
	require.NoError(t, err)
	require.NoError(t, v.Get(&out))
	return out
}

// parts are on_hand, held, offered, sold, returned, waiting, shortfall.
func parts(s shop.Stock) []int64 {
	return []int64{s.OnHand, s.Held, s.Offered, s.Sold, s.Returned, s.Waiting, s.Shortfall}
}

// Three units were sold and two people wait. Units that come back go to them, one
// by one; a broken one goes to nobody.
// B31, B39, B60, B62, B63.
func TestASoldUnitComesBack(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	const sku = "comes-back"
	h.opened(t, sku, 3)
	sold := h.sale(t, sku, 3)
	var people [2]shop.Entry
	for i := range people {
		var err error
		people[i], err = h.inLine(ctx, h.shop, sku, phone(i))
		require.NoError(t, err)
	}
	h.judge(t, sku)
	back := func(returnID string, units int64, resell bool) map[string]any {
		return event(sku, "return", map[string]any{"return_id": returnID, "hold_id": sold, "units": units, "resell": resell})
	}

	broken := h.decided(t, back("rma-1", 1, false), "")
	require.Equal(t, []int64{0, 0, 0, 3, 0, 2, 0}, parts(broken))
	good := back("rma-2", 1, true)
	require.Equal(t, []int64{1, 0, 1, 2, 1, 1, 0}, parts(h.decided(t, good, "")))
	text, err := h.offerText(ctx, people[0].EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)

	// The event again, many times at once; the return again in another event;
	// another return in the first one's event; more than the sale still has.
	require.NoError(t, each(ctx, 20, 20, func(ctx context.Context, _ int) error {
		again, err := h.shop.Decided(ctx, good)
		if err == nil && !again.Applied {
			err = fmt.Errorf("a repeat was answered %+v", again)
		}
		return err
	}))
	h.decided(t, back("rma-2", 1, true), "")
	another := maps.Clone(good)
	another["units"] = 2
	a, err := h.shop.Inventory(ctx, another)
	require.NoError(t, err)
	require.Equal(t, "idempotency-key-reused", a.Code(), "%s", a)
	require.Equal(t, []int64{1, 0, 1, 2, 1, 1, 0}, parts(h.decided(t, back("rma-3", 2, true), "more-than-sold")))
	_, told, err := h.outbox.OfferTo(people[1].EntryID)
	require.NoError(t, err)
	require.False(t, told, "one unit came back, and two people were told")

	require.Equal(t, []int64{2, 0, 2, 1, 2, 0, 0}, parts(h.decided(t, back("rma-4", 1, true), "")))
	text, err = h.offerText(ctx, people[1].EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(1), text.To)
	entry := h.presses(t, people[0].EntryID)
	confirmed(t, h, entry.HoldID, "pay_next")
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0, 1, 2, 2, 0, 0}, parts(stock))
	require.Equal(t, book{Received: 3, Returned: 2, Refused: 1}, h.book(t, sku))

	var lines []string
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "stock" || l.Verb == "offer" {
			lines = append(lines, l.Verb+" "+l.Kind)
		}
	}
	require.Equal(t, []string{"stock restock", "stock discarded", "stock return", "offer offered", "stock return", "offer offered"}, lines)
	h.judge(t, sku)
}

// Two counts of the shelf, made while units were sold, arrive in either order
// and come to the same stock.
// B67.
func TestCountsArriveInEitherOrder(t *testing.T) {
	h := sharedHouse(t)
	for sku, order := range map[string][]int{"counts-in-order": {0, 1}, "counts-reversed": {1, 0}} {
		h.opened(t, sku, 10)
		h.sale(t, sku, 1)
		first := event(sku, "level", map[string]any{"version": 1, "units": 9, "counts_sold": 1})
		h.sale(t, sku, 2)
		second := event(sku, "level", map[string]any{"version": 2, "units": 12, "counts_sold": 3, "reason": "five in the cellar"})
		h.sale(t, sku, 1)
		counts := []map[string]any{first, second}
		late := ""
		if order[0] == 1 {
			late = "level-outdated"
		}
		h.decided(t, counts[order[0]], "")
		h.decided(t, counts[order[1]], late)
		require.Equal(t, []int64{11, 0, 0, 4, 0, 0, 0}, parts(h.decided(t, second, "")), "12 counted less the sale since")
		require.Equal(t, int64(5), h.book(t, sku).Corrected)
		require.Equal(t, int64(10), h.book(t, sku).Received)
	}
	h.judge(t, "counts-in-order", "counts-reversed")
}

// Two units are held, and one of them is found to be missing.
// B2, B6.
func TestACorrectionBelowWhatIsHeld(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	const sku = "missing"
	h.opened(t, sku, 2)
	var held [2]shop.Hold
	for i := range held {
		var err error
		held[i], err = h.shop.Hold(ctx, sku, fmt.Sprint("customer-", i))
		require.NoError(t, err)
	}
	waits, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	missing := event(sku, "correction", map[string]any{"delta": -1, "reason": "one fell"})
	require.Equal(t, []int64{2, 2, 0, 0, 0, 1, 0}, parts(h.decided(t, missing, "would-oversell")))
	missing = event(sku, "correction", map[string]any{"delta": -1, "reason": "one fell", "allow_shortfall": true})
	for range 2 {
		require.Equal(t, []int64{1, 2, 0, 0, 0, 1, 1}, parts(h.decided(t, missing, "")))
	}
	walkIn, err := h.shop.AskHold(ctx, sku, "walk-in", shop.Token())
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, walkIn.Status, "%s", walkIn)

	// What comes in makes the shortfall good first, and only then goes to the line.
	require.Equal(t, []int64{2, 2, 0, 0, 0, 1, 0}, parts(h.decided(t, event(sku, "restock", map[string]any{"units": 1}), "")))
	lines := h.ledger(t, sku)
	require.False(t, slices.ContainsFunc(lines, func(l check.Line) bool { return l.Verb == "offer" }), "an offer of what was promised to others")
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	for _, hold := range held {
		confirmed(t, h, hold.HoldID, "pay_"+hold.HoldID)
	}
	require.Equal(t, book{Received: 4, Corrected: -1, Refused: 1}, h.book(t, sku))
	h.judge(t, sku)
}

// Nothing makes the shortfall good: the first to pay gets what is there, and the
// other's money goes back.
// B2.
func TestOfAShortfallTheFirstToPayWins(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	const sku = "first-to-pay"
	h.opened(t, sku, 2)
	slow, err := h.shop.Hold(ctx, sku, "slow")
	require.NoError(t, err)
	quick, err := h.shop.Hold(ctx, sku, "quick")
	require.NoError(t, err)
	h.decided(t, event(sku, "level", map[string]any{"version": 1, "units": 1, "counts_sold": 0, "allow_shortfall": true}), "")
	confirmed(t, h, quick.HoldID, "pay_quick")
	a, err := h.shop.Confirm(ctx, slow.HoldID, "pay_slow")
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), "%s", a)
	require.NotNil(t, a.Problem().Refund, "%s", a)
	require.Equal(t, "pay_slow", a.Problem().Refund.PaymentRef)
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, 0, 1, 0, 0, 0}, parts(stock))
	h.judge(t, sku)
}

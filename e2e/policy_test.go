package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// putPolicy replaces a SKU's policy, whatever it is, and wants it taken.
func (h *house) putPolicy(t *testing.T, sku string, policy map[string]any) {
	t.Helper()
	require.NoError(t, h.setPolicy(t.Context(), sku, policy))
}

func (h *house) setPolicy(ctx context.Context, sku string, policy map[string]any) error {
	a, err := h.shop.Call(ctx, http.MethodPut, "/v1/stock/"+sku+"/policy", policy, "If-Match", "*")
	if err == nil && a.Status != http.StatusOK {
		err = errors.New(a.String())
	}
	return err
}

// A policy counts for the next offer and the next hold, also of those who joined
// before it, and the book has it.
func TestAPolicyCountsFromItsAnswerOn(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	const sku = "own-policy"
	path := "/v1/stock/" + sku + "/policy"
	h.opened(t, sku, 0)
	ada, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	ben, err := h.inLine(ctx, h.shop, sku, phone(1))
	require.NoError(t, err)

	a, err := h.shop.Call(ctx, http.MethodGet, path, nil)
	require.NoError(t, err)
	seen := a.Header.Get("ETag")
	require.Equal(t, `"1"`, seen)
	mine := map[string]any{"offer_window_seconds": 5, "hold_seconds": 40, "missed_keep": 0}
	a, err = h.shop.Call(ctx, http.MethodPut, path, mine, "If-Match", seen)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a)
	require.Equal(t, `"2"`, a.Header.Get("ETag"))
	for other, want := range map[string]int{`"1"`: http.StatusPreconditionFailed, "": http.StatusPreconditionFailed} {
		a, err = h.shop.Call(ctx, http.MethodPut, path, map[string]any{"hold_seconds": 7}, "If-Match", other)
		require.NoError(t, err)
		require.Equal(t, want, a.Status, "%s", a)
		require.Equal(t, "precondition-failed", a.Code())
	}
	a, err = h.shop.Call(ctx, http.MethodPut, path, mine, "If-Match", seen)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "a repeat whose answer was lost: %s", a)
	v, err := h.temporal.QueryWorkflow(ctx, "stock."+sku, "", "status")
	require.NoError(t, err)
	var book struct {
		Version int64            `json:"version"`
		Policy  map[string]int64 `json:"policy"`
	}
	require.NoError(t, v.Get(&book))
	require.EqualValues(t, 2, book.Version)
	require.Equal(t, map[string]int64{"offer_window_seconds": 5, "hold_seconds": 40, "missed_keep": 0}, book.Policy)

	// Ada joined with a window of minutes; her offer has the policy's five seconds.
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, ada.EntryID)
	require.NoError(t, err)
	_, err = h.entryState(ctx, ada.EntryID, "lapsed")
	require.NoError(t, err)
	lapse, ok := h.lapse(t, sku)
	require.True(t, ok)
	stood := h.ledger(t, sku)[lapse].At.Sub(text.At)
	require.Greater(t, stood, 5*time.Second-50*time.Millisecond)
	require.Less(t, stood, time.Minute, "not the window of before")
	entry := h.presses(t, ben.EntryID)
	hold, err := h.shop.ReadHold(ctx, entry.HoldID)
	require.NoError(t, err)
	left := hold.ExpiresAt.Sub(hold.Now)
	require.True(t, left > 0 && left <= 40*time.Second, "a press holds for the policy's time, not for %s", left)
	confirmed(t, h, entry.HoldID, "pay_"+entry.HoldID)
	h.judge(t, sku)
}

// B46: whatever frees a unit wakes the line, and B45: while it does, nobody else sees
// a unit that is free. B16, B27, B51.
func TestEveryRouteTellsTheNext(t *testing.T) {
	h := sharedHouse(t)
	quick := h.door(t, "HOLDFAST_HOLD_TTL", "5s", "HOLDFAST_HOLD_GRACE", "0s")
	type freeing func(ctx context.Context, sku string, hold shop.Hold) error
	says := func(verb string, body any) freeing {
		return func(ctx context.Context, _ string, hold shop.Hold) error {
			a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/"+verb, body)
			if err == nil && a.Status != http.StatusOK {
				err = errors.New(a.String())
			}
			return err
		}
	}
	moves := func(kind string, members map[string]any) freeing {
		return func(ctx context.Context, sku string, _ shop.Hold) error {
			_, err := h.shop.Decided(ctx, event(sku, kind, members))
			return err
		}
	}
	for name, free := range map[string]freeing{
		"expires":        func(context.Context, string, shop.Hold) error { return nil },
		"shopper":        func(ctx context.Context, _ string, hold shop.Hold) error { return h.giveBack(ctx, hold.HoldID) },
		"operator":       says("release", map[string]any{"reason": "shop"}),
		"payment-failed": says("payment-failed", map[string]any{"final": true}),
		"restock":        moves("restock", map[string]any{"units": 1}),
		"correction":     moves("correction", map[string]any{"delta": 1, "reason": "found"}),
		"level":          moves("level", map[string]any{"units": 2, "version": 1, "counts_sold": 0}),
		"return": func(ctx context.Context, sku string, hold shop.Hold) error {
			if a, err := h.shop.Confirm(ctx, hold.HoldID, "pay_"+hold.HoldID); err != nil || a.Status != http.StatusOK {
				return errors.Join(err, errors.New(a.String()))
			}
			return moves("return", map[string]any{"return_id": "rma-" + sku, "hold_id": hold.HoldID, "units": 1, "resell": true})(ctx, sku, hold)
		},
		"policy": func(ctx context.Context, sku string, _ shop.Hold) error {
			if err := h.setPolicy(ctx, sku, map[string]any{"ends_at": "2020-01-01T00:00:00Z"}); err != nil {
				return err
			}
			if _, err := h.shop.Decided(ctx, event(sku, "restock", map[string]any{"units": 1})); err != nil {
				return err
			}
			stock, err := h.shop.Stock(ctx, sku)
			if err == nil && (stock.State != "ended" || stock.Available != 1 || stock.OpenToAll != 0 || stock.Offered != 0) {
				err = fmt.Errorf("B51: a unit after the end is left over, not %+v", stock)
			}
			return errors.Join(err, h.setPolicy(ctx, sku, map[string]any{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			sku := "route-" + name
			h.opened(t, sku, 1)
			door := h.shop
			if name == "expires" {
				door = quick
			}
			hold, err := door.Hold(ctx, sku, "walk-in")
			require.NoError(t, err)
			next, err := h.inLine(ctx, h.shop, sku, phone(0))
			require.NoError(t, err)
			require.NoError(t, free(ctx, sku, hold))
			require.NoError(t, until(ctx, "the next is told", func() error {
				stock, err := h.shop.Stock(ctx, sku)
				require.NoError(t, err)
				require.Zero(t, stock.OpenToAll, "a walk-in sees a unit that is the line's: %+v", stock)
				_, told, err := h.outbox.OfferTo(next.EntryID)
				if err == nil && !told {
					err = errors.New("not yet")
				}
				return err
			}))
			a, err := h.shop.AskHold(ctx, sku, "another", shop.Token())
			require.NoError(t, err)
			require.Equal(t, "reserved-for-line", a.Code(), "%s", a)
			h.judge(t, sku)
		})
	}
}

// giveBack presses "give it back" on a hold's page.
func (h *house) giveBack(ctx context.Context, holdID string) error {
	page, err := h.shop.Visit(ctx, h.URL()+"/h/"+holdID)
	if err != nil {
		return err
	}
	to, err := h.shop.Press(ctx, page, "/h/")
	if err == nil && to.Status != http.StatusSeeOther {
		err = fmt.Errorf("the page answered %d %q", to.Status, to.Text)
	}
	return err
}

// One person's limit: who has all that one may have waits, and is told when the shop
// raises it.
// B16.
func TestTheLimitOfOnePerson(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	const sku = "limited"
	h.opened(t, sku, 2)
	h.putPolicy(t, sku, map[string]any{"limit_per_person": 1})
	ask := func(key string) shop.Answer {
		t.Helper()
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{
			"sku": sku, "quantity": 1, "customer": "ada", "customer_phone": phone(0),
		}, "Idempotency-Key", key)
		require.NoError(t, err)
		return a
	}
	first := ask("limited-1")
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, "limit-reached", ask("limited-2").Code())
	same, err := shop.ParseHold(ask("limited-1"))
	require.NoError(t, err)
	mine, err := shop.ParseHold(first)
	require.NoError(t, err)
	require.Equal(t, []string{mine.HoldID, "held"}, []string{same.HoldID, same.State}, "who has it all sees it, and no empty shop")
	entry, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1}, []int64{stock.Offered, stock.OpenToAll}, "who is at the limit keeps nobody out")
	h.putPolicy(t, sku, map[string]any{"limit_per_person": 2})
	_, err = h.offerText(ctx, entry.EntryID)
	require.NoError(t, err)
	h.judge(t, sku)
}

package e2e

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast/e2e/shop"
)

// path is a story that walks one path or a few that belong together.
type path struct {
	name string
	walk func(t *testing.T, p *play)
}

type money map[string]any

func euros(ref string, cents int) money {
	return money{"payment_ref": ref, "amount": cents, "currency": "EUR"}
}

var pathsOfAWorkingHouse = []path{
	{"hold-sold-by-update", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "by-update")
		p.confirm(t, hold, money{"payment_ref": payOf(hold, "1")}, http.StatusOK)
		p.ended(t, "hold-sold-by-update", hold)
	}},
	{"hold-sold-by-signal", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "by-signal")
		p.signal(t, hold, "payment-succeeded", euros(payOf(hold, "1"), 500))
		p.ended(t, "hold-sold-by-signal", hold)
	}},
	{"hold-extended", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "extended")
		p.checkout(t, hold, euros(payOf(hold, "1"), 500))
		p.confirm(t, hold, euros(payOf(hold, "1"), 500), http.StatusOK)
		p.ended(t, "hold-extended", hold)
	}},
	{"hold-failed-then-sold", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "failed-then-sold")
		p.checkout(t, hold, euros(payOf(hold, "1"), 500))
		p.signal(t, hold, "payment-failed", money{"payment_ref": payOf(hold, "1"), "reason": "card declined", "final": false})
		p.checkout(t, hold, euros(payOf(hold, "2"), 500))
		p.confirm(t, hold, euros(payOf(hold, "2"), 500), http.StatusOK)
		p.ended(t, "hold-failed-then-sold", hold)
	}},
	{"hold-mismatched", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "mismatched")
		p.checkout(t, hold, euros(payOf(hold, "1"), 500))
		p.confirm(t, hold, euros(payOf(hold, "1"), 400), http.StatusConflict)
		p.signal(t, hold, "release", money{"reason": "shop"})
		p.ended(t, "hold-mismatched", hold)
		p.settled(t, "payment-mismatched", paymentID(hold, payOf(hold, "1")), "refund-pending")
	}},
	{"hold-mismatched-then-sold", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "mismatched-then-sold")
		p.checkout(t, hold, euros(payOf(hold, "1"), 500))
		p.confirm(t, hold, euros(payOf(hold, "1"), 400), http.StatusConflict)
		p.confirm(t, hold, euros(payOf(hold, "1"), 500), http.StatusOK)
		p.ended(t, "hold-mismatched-then-sold", hold)
	}},
	{"hold-undecodable", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "undecodable")
		p.signal(t, hold, "payment-succeeded", money{"payment_ref": 17})
		p.confirm(t, hold, euros(payOf(hold, "1"), 500), http.StatusOK)
		p.ended(t, "hold-undecodable", hold)
	}},
	{"hold-released", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "released")
		p.post(t, "/v1/holds/"+hold+"/release", nil, http.StatusOK)
		p.ended(t, "hold-released", hold)
	}},
	{"hold-declined", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "declined")
		p.decline(t, hold)
		p.ended(t, "hold-declined", hold)
		p.confirm(t, hold, euros(payOf(hold, "late"), 500), http.StatusConflict)
		p.settled(t, "payment-refunded", paymentID(hold, payOf(hold, "late")), "refund-pending")
	}},
	{"hold-cancelled", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.shop, "cancelled")
		require.NoError(t, p.temporal.CancelWorkflow(t.Context(), hold, ""))
		p.ended(t, "hold-cancelled", hold)
	}},
	{"hold-refused", func(t *testing.T, p *play) {
		given := p.walkIn(t, p.shop, "refused")
		p.ended(t, "hold-refused", p.startHold(t, given, "refused")) // there is no other unit
	}},
	{"hold-cart-sold", func(t *testing.T, p *play) {
		p.opened(t, "cart-sold-2", 1)
		cart := p.cart(t, "cart-sold-1", "cart-sold-2")
		p.status(t, cart, "is held", inState("held"))
		p.signal(t, cart, "payment-succeeded", euros(payOf(cart, "1"), 500))
		p.ended(t, "hold-cart-sold", cart)
	}},
	{"hold-cart-refused", func(t *testing.T, p *play) {
		p.opened(t, "cart-refused-2", 0)
		p.ended(t, "hold-cart-refused", p.cart(t, "cart-refused-1", "cart-refused-2"))
	}},
	{"hold-cart-undone", func(t *testing.T, p *play) {
		const second = "cart-undone-2"
		p.opened(t, second, 1)
		cart := p.cart(t, "cart-undone-1", second)
		p.status(t, cart, "is held", inState("held"))
		p.decided(t, event(second, "correction", map[string]any{"delta": -1, "reason": "stolen", "allow_shortfall": true}), "")
		p.signal(t, cart, "payment-succeeded", euros(payOf(cart, "1"), 500))
		p.ended(t, "hold-cart-undone", cart)
	}},
	{"hold-expired", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.quick, "expired")
		p.ended(t, "hold-expired", hold)
		p.confirm(t, hold, euros(payOf(hold, "late"), 500), http.StatusOK) // the unit is still free
		p.ended(t, "payment-retake", paymentID(hold, payOf(hold, "late")))
	}},
	{"hold-unfinished-payment", func(t *testing.T, p *play) {
		hold := p.walkIn(t, p.quick, "unfinished")
		p.checkout(t, hold, euros(payOf(hold, "1"), 500))
		p.ended(t, "hold-unfinished-payment", hold)
	}},
	{"payment-unknown", func(t *testing.T, p *play) {
		given := p.walkIn(t, p.shop, "unknown-hold")
		unknown := given[:len(given)-18] + "aaaaaaaaaaaaaaaaaa"
		p.confirm(t, unknown, euros(payOf(unknown, "1"), 500), http.StatusConflict)
		p.settled(t, "payment-unknown-settled", paymentID(unknown, payOf(unknown, "1")), "parked")
		p.confirm(t, unknown, euros(payOf(unknown, "2"), 500), http.StatusConflict)
		p.keep("payment-parked", paymentID(unknown, payOf(unknown, "2")), "")
	}},
	{"entry-bought", func(t *testing.T, p *play) {
		entry := p.joined(t, p.shop, "bought", 1)
		p.keep("entry-idle", p.joined(t, p.shop, "bought", 2), "")
		hold := p.pressed(t, "bought", entry)
		p.confirm(t, hold, euros(payOf(hold, "1"), 500), http.StatusOK)
		p.ended(t, "hold-of-a-link", hold)
		p.ended(t, "entry-bought", entry)
		p.keep("stock-drained", "stock.bought", "")
	}},
	{"entry-hold-expired", func(t *testing.T, p *play) {
		entry := p.joined(t, p.shop, "hold-expired", 3)
		hold := p.pressed(t, "hold-expired", entry)
		p.decline(t, hold)
		_, err := p.entryState(t.Context(), entry, "waiting")
		require.NoError(t, err)
		p.leave(t, entry)
		p.ended(t, "entry-hold-ended", entry)
	}},
	{"entry-lapsed", func(t *testing.T, p *play) {
		door := p.door(t, "HOLDFAST_OFFER_WINDOW", "5s", "HOLDFAST_SMS_SENT_GRACE", "1s")
		entry := p.joined(t, door, "lapsed", 4)
		require.NoError(t, p.shop.Restock(t.Context(), "lapsed", 1))
		require.NoError(t, until(t.Context(), "the first turn has passed", func() error {
			if _, ok := p.lapse(t, "lapsed"); !ok {
				return errors.New("not yet")
			}
			return nil
		}))
		require.NoError(t, p.shop.Restock(t.Context(), "lapsed", 1))
		p.ended(t, "entry-lapsed", entry)
	}},
	{"entry-left", func(t *testing.T, p *play) {
		entry := p.joined(t, p.shop, "left", 5)
		p.leave(t, entry)
		p.ended(t, "entry-left", entry)
	}},
	{"entry-left-an-offer", func(t *testing.T, p *play) {
		entry := p.joined(t, p.shop, "left-an-offer", 6)
		require.NoError(t, p.shop.Restock(t.Context(), "left-an-offer", 1))
		_, err := p.offerText(t.Context(), entry)
		require.NoError(t, err)
		p.leave(t, entry)
		p.ended(t, "entry-left-an-offer", entry)
	}},
	{"entry-removed", func(t *testing.T, p *play) {
		entry := p.joined(t, p.shop, "removed", 7)
		require.NoError(t, p.temporal.CancelWorkflow(t.Context(), entry, ""))
		p.ended(t, "entry-removed", entry)
	}},
	{"entry-expired", func(t *testing.T, p *play) {
		p.ended(t, "entry-expired", p.joined(t, p.quick, "entry-expired", 8))
	}},
	{"stock-events", func(t *testing.T, p *play) {
		const sku = "all-events"
		p.opened(t, sku, 5)
		sold := p.sale(t, sku, 2)
		p.decided(t, event(sku, "correction", map[string]any{"delta": -1, "reason": "broken"}), "")
		p.decided(t, event(sku, "return", map[string]any{"return_id": "rma", "hold_id": sold, "units": 1, "resell": true}), "")
		p.decided(t, event(sku, "level", map[string]any{"units": 7, "version": 1, "counts_sold": 1}), "")
		p.decided(t, event(sku, "level", map[string]any{"units": 9, "version": 1, "counts_sold": 1}), "level-outdated")
		p.post(t, "/v1/stock/"+sku+"/pause", nil, http.StatusOK)
		p.post(t, "/v1/stock/"+sku+"/resume", nil, http.StatusOK)
		require.NoError(t, p.shop.Open(t.Context(), sku, "Another title"))
		p.keep("stock-events", "stock."+sku, "")
	}},
}

// walkIn opens a SKU of one unit and holds it.
func (p *play) walkIn(t *testing.T, door *shop.Shop, sku string) string {
	t.Helper()
	p.opened(t, sku, 1)
	hold, err := door.Hold(t.Context(), sku, "customer")
	require.NoError(t, err)
	p.status(t, hold.HoldID, "knows that it is held", inState("held"))
	return hold.HoldID
}

// startHold starts a hold of one unit of each SKU from outside the door. Its id is
// of the SKU of a hold that was given.
func (p *play) startHold(t *testing.T, given string, skus ...string) string {
	t.Helper()
	id := given[:len(given)-18] + "aaaaaaaaaaaaaaaaaa"
	var lines []any
	for _, sku := range skus {
		lines = append(lines, map[string]any{"sku": sku, "quantity": 1})
	}
	_, err := p.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "holdfast"}, "Hold", map[string]any{
		"hold_id": id, "customer": "a stranger", "person": "nobody", "lines": lines, "settings": map[string]int{"hold_seconds": 60},
	})
	require.NoError(t, err)
	return id
}

// cart starts a hold of two SKUs, the first of which it opens.
func (p *play) cart(t *testing.T, first, second string) string {
	t.Helper()
	given := p.walkIn(t, p.shop, first)
	require.NoError(t, p.shop.Restock(t.Context(), first, 1))
	return p.startHold(t, given, second, first)
}

func (p *play) post(t *testing.T, path string, body any, status int) {
	t.Helper()
	a, err := p.shop.Call(t.Context(), http.MethodPost, path, body)
	require.NoError(t, err)
	require.Equal(t, status, a.Status, a)
}

func (p *play) confirm(t *testing.T, hold string, m money, status int) {
	t.Helper()
	p.post(t, "/v1/holds/"+hold+"/confirm", m, status)
}

// checkout starts a payment and waits until the hold knows.
func (p *play) checkout(t *testing.T, hold string, m money) {
	t.Helper()
	p.post(t, "/v1/holds/"+hold+"/checkout", m, http.StatusOK)
	p.status(t, hold, "is extended", func(s map[string]any) bool { return s["extended"] == true })
}

func (p *play) decline(t *testing.T, hold string) {
	t.Helper()
	_, err := p.shop.Declined(t.Context(), hold, "pay_declined")
	require.NoError(t, err)
	_, err = p.holdState(t.Context(), hold, "released")
	require.NoError(t, err)
	require.NoError(t, p.closed(t.Context(), hold))
}

// settled waits until a Payment needs a person, settles it and keeps it.
func (p *play) settled(t *testing.T, name, id, state string) {
	t.Helper()
	p.status(t, id, "needs a person", func(s map[string]any) bool {
		return s["state"] == state && (state == "parked" || s["by_hand"] != nil)
	})
	p.signal(t, id, "refund-settled", map[string]string{"reference": "re_1", "actor": "story"})
	p.ended(t, name, id)
}

// joined opens a SKU, when nobody has, and joins its line.
func (p *play) joined(t *testing.T, door *shop.Shop, sku string, person int) string {
	t.Helper()
	require.NoError(t, p.shop.Open(t.Context(), sku, "Chair"))
	e, err := p.inLine(t.Context(), door, sku, phone(person))
	require.NoError(t, err)
	return e.EntryID
}

// pressed restocks one unit and presses the link of the entry that gets it.
func (p *play) pressed(t *testing.T, sku, entry string) (hold string) {
	t.Helper()
	require.NoError(t, p.shop.Restock(t.Context(), sku, 1))
	page, err := p.linkPage(t.Context(), entry)
	require.NoError(t, err)
	_, err = p.shop.Press(t.Context(), page, "/r/")
	require.NoError(t, err)
	e, err := p.entryState(t.Context(), entry, "holding")
	require.NoError(t, err)
	return e.HoldID
}

func (p *play) leave(t *testing.T, entry string) {
	t.Helper()
	a, err := p.shop.Call(t.Context(), http.MethodDelete, "/v1/waitlist/"+entry, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, a)
}

// aBookIsContinued, B104 and B105: it rings a book's bell until its run is full, with deliveries in
// between; each of them counts once.
func aBookIsContinued(t *testing.T, p *play) {
	const sku, rings = "continued", 1500
	ctx := t.Context()
	p.opened(t, sku, 1)
	first, err := p.temporal.DescribeWorkflow(ctx, "stock."+sku, "")
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, each(ctx, rings, 64, func(ctx context.Context, i int) error {
		if i%300 == 150 {
			return p.shop.Restock(ctx, sku, 1)
		}
		return p.temporal.SignalWorkflow(ctx, "stock."+sku, "", "settle", nil)
	}))
	figure(t, "signals_to_one_book", perSecond(rings, time.Since(began)), "1/s")
	require.NoError(t, until(ctx, "the book is continued", func() error {
		now, err := p.temporal.DescribeWorkflow(ctx, "stock."+sku, "")
		if err == nil && now.WorkflowExecution.RunID == first.WorkflowExecution.RunID {
			err = errNotYet
		}
		return err
	}))
	stock, err := p.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, int64(6), stock.OnHand)
	require.Equal(t, int64(6), p.book(t, sku).Received)
	p.keep("stock-continued", "stock."+sku, first.WorkflowExecution.RunID)
	p.keep("stock-continues", "stock."+sku, "")
}

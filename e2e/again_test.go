package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// checkout begins a payment of a hold and answers the hold as it is then.
func (h *house) checkout(t *testing.T, door *shop.Shop, holdID, ref string) shop.Hold {
	t.Helper()
	a, err := door.Call(t.Context(), http.MethodPost, "/v1/holds/"+holdID+"/checkout", map[string]any{"payment_ref": ref})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	hold, err := shop.ParseHold(a)
	require.NoError(t, err)
	return hold
}

// B9, B15, B38, B42, B49, B70, B74: one waits, and two restocks come in the same moment: one
// text, with its link whole behind a long foreign title, which a tool opens before the
// person does. Their card is declined; pressed again, and on another device, the link leads
// to the same hold with the same deadline, and another card buys. Whatever is repeated, they
// are told once of each thing. When they send it back the next in line has it, and their
// link is dead.
func TestAPaymentThatFailsIsTriedAgain(t *testing.T) {
	const sku = "tried-again"
	ctx := t.Context()
	h := sharedHouse(t)
	require.NoError(t, h.shop.Open(ctx, sku, strings.Repeat("Καρέκλα ξύλινη ", 8)))
	ada, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	var errs [2]error
	race(func() { errs[0] = h.shop.Restock(ctx, sku, 1) }, func() { errs[1] = h.shop.Restock(ctx, sku, 1) })
	require.Equal(t, [2]error{}, errs)
	text, err := h.offerText(ctx, ada.EntryID)
	require.NoError(t, err)
	require.Regexp(t, ` holds your Κα\p{Greek}+\.\.\. for 15 min\.`, text.Body, "cut between two letters")
	_, err = h.shop.Hold(ctx, sku, "walk-in") // the other unit is open to all
	require.NoError(t, err)
	ben, err := h.inLine(ctx, h.shop, sku, phone(1))
	require.NoError(t, err)

	var page shop.Page
	h.untouched(t, sku, func() {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			req, err := http.NewRequestWithContext(ctx, method, text.Link(), nil)
			require.NoError(t, err)
			req.Header.Set("User-Agent", "clipboard/1.0 (preview)")
			res, err := (&http.Client{}).Do(req) // no cookie and no connection of the person's
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode, method)
		}
		page, err = h.linkPage(ctx, ada.EntryID)
		require.NoError(t, err)
	})
	first, err := h.shop.Press(ctx, page, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, first.Status, first.Text)
	entry, err := h.entryState(ctx, ada.EntryID, "holding")
	require.NoError(t, err)
	pressed, err := h.shop.ReadHold(ctx, entry.HoldID)
	require.NoError(t, err)

	begun := h.checkout(t, h.shop, entry.HoldID, "pay_declined_again")
	require.True(t, begun.Extended)
	require.Equal(t, 5*time.Minute, begun.ExpiresAt.Sub(pressed.ExpiresAt), "the one extension")
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+entry.HoldID+"/payment-failed", map[string]any{
		"payment_ref": "pay_declined_again", "reason": "card declined", "final": false,
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	h.untouched(t, sku, func() {
		for _, device := range []*http.Client{h.shop.HTTP, {CheckRedirect: h.shop.HTTP.CheckRedirect}} {
			at := h.shop.At(h.shop.URL)
			at.HTTP = device
			again, err := at.Send(ctx, shop.Form{Action: text.Link(), Method: http.MethodPost})
			require.NoError(t, err)
			require.Equal(t, []any{first.Status, first.To}, []any{again.Status, again.To})
		}
		same, err := h.shop.ReadHold(ctx, entry.HoldID)
		require.NoError(t, err)
		require.Equal(t, []any{"held", begun.ExpiresAt}, []any{same.State, same.ExpiresAt})
		require.Equal(t, begun.ExpiresAt, h.checkout(t, h.shop, entry.HoldID, "pay_again").ExpiresAt, "it is not extended twice")
	})
	require.Equal(t, confirmed(t, h, entry.HoldID, "pay_again"), confirmed(t, h, entry.HoldID, "pay_again"))
	a, err = h.shop.Confirm(ctx, entry.HoldID, "pay_twice_again")
	require.NoError(t, err)
	require.Equal(t, "payment-conflict", a.Code(), a)

	h.decided(t, event(sku, "return", map[string]any{"return_id": "rma-again", "hold_id": entry.HoldID, "units": 1, "resell": true}), "")
	next, err := h.offerText(ctx, ben.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(1), next.To)
	h.untouched(t, sku, func() {
		dead, err := h.shop.Send(ctx, shop.Form{Action: text.Link(), Method: http.MethodPost})
		require.NoError(t, err)
		require.Less(t, dead.Status, http.StatusInternalServerError)
		require.NotEqual(t, http.StatusSeeOther, dead.Status, "it led to %s", dead.To)
	})
	_, err = h.entryState(ctx, ada.EntryID, "bought")
	require.NoError(t, err)
	texts, err := h.outbox.Texts()
	require.NoError(t, err)
	told := 0
	for _, sent := range texts {
		if sent.EntryID == ada.EntryID {
			told++
		}
	}
	require.Equal(t, 2, told, "of her place and of her turn")
	h.judge(t, sku)
}

// B18, B23, B24, B30: two payments begin just before the deadline. Their holds are extended
// once, and kept for the grace beyond; the one that is paid within it is sold, the other one
// is never heard of again and goes to the line, no sooner than it may. Beside them others
// are given back in the moments in which they expire, each twice: each comes back once.
func TestAPaymentOverTheDeadline(t *testing.T) {
	const sku, hasty, holds, grace = "over", "over-hasty", 8, 6 * time.Second
	ctx := t.Context()
	h := sharedHouse(t)
	door := h.door(t, "HOLDFAST_HOLD_TTL", "5s", "HOLDFAST_HOLD_EXTENSION", "2s", "HOLDFAST_HOLD_GRACE", grace.String())
	h.opened(t, sku, 2)
	h.opened(t, hasty, holds)
	var begun [2]shop.Hold
	for i := range begun {
		hold, err := door.Hold(ctx, sku, fmt.Sprint("customer-", i))
		require.NoError(t, err)
		begun[i] = h.checkout(t, door, hold.HoldID, "pay_"+hold.HoldID)
		require.Equal(t, 2*time.Second, begun[i].ExpiresAt.Sub(hold.ExpiresAt))
		require.Equal(t, begun[i].ExpiresAt, h.checkout(t, door, hold.HoldID, "pay_"+hold.HoldID).ExpiresAt, "once")
	}
	waits, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	given := make(chan error, 1)
	go func() { given <- h.givenBackInTheMoment(ctx, door, hasty, holds) }()

	paid, lost := begun[0], begun[1]
	now, err := h.shop.ReadHold(ctx, lost.HoldID)
	require.NoError(t, err)
	require.NoError(t, lasts(ctx, now.ExpiresAt.Sub(now.Now)+time.Second))
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2, 0, 0, 0, 1, 0}, parts(stock), "kept beyond their deadline")
	confirmed(t, h, paid.HoldID, "pay_"+paid.HoldID)
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	expired, err := h.holdState(ctx, lost.HoldID, "expired")
	require.NoError(t, err)
	require.False(t, expired.EndedAt.Before(lost.ExpiresAt.Add(grace)), "it ended %s", expired.EndedAt)
	a, err := h.pay(ctx, lost.HoldID, "pay_"+lost.HoldID)
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), "what it paid for is the line's: %s", a)

	require.NoError(t, <-given)
	back, err := h.shop.Stock(ctx, hasty)
	require.NoError(t, err)
	require.Equal(t, []int64{holds, 0, 0, 0, 0, 0, 0}, parts(back))
	ends := map[string]string{}
	for _, l := range h.ledger(t, hasty) {
		if l.State == "released" || l.State == "expired" {
			require.Empty(t, ends[l.Ref], "%s ends once", l.Ref)
			ends[l.Ref] = l.State
		}
	}
	require.Len(t, ends, holds)
	t.Log(slices.Sorted(maps.Values(ends)))
	h.judge(t, sku, hasty)
}

// givenBackInTheMoment takes holds and gives each back twice, from 100 ms before it expires
// to a little after.
func (h *house) givenBackInTheMoment(ctx context.Context, door *shop.Shop, sku string, holds int) error {
	return each(ctx, holds, holds, func(ctx context.Context, i int) error {
		hold, err := door.Hold(ctx, sku, fmt.Sprint("customer-", i))
		if err != nil {
			return err
		}
		if err := wait(ctx, hold.ExpiresAt.Sub(hold.Now)+time.Duration(i*40-100)*time.Millisecond); err != nil {
			return err
		}
		if err := each(ctx, 2, 2, func(ctx context.Context, _ int) error {
			a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", map[string]any{})
			if err == nil && a.Status != http.StatusOK && a.Status != http.StatusConflict {
				err = fmt.Errorf("release of %s: %s", hold.HoldID, a)
			}
			return err
		}); err != nil {
			return err
		}
		return h.closed(ctx, hold.HoldID)
	})
}

package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/check"
	"holdfast/e2e/shop"
	"holdfast/keys"
)

// B9, B73: whatever is changed in a link makes it no link, pressed twice it leads to the same
// hold with the same deadline, and what is over says so.
func TestLinks(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "links"
	h.opened(t, sku, 0)
	buyer, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	links := map[string]string{buyer.EntryID: h.link(t, buyer)}

	good := links[buyer.EntryID]
	base, token, _ := strings.Cut(good, "/r/")
	require.Len(t, token, 54)
	edited := make([]string, 0, len(token)+2)
	for i := range token {
		edited = append(edited, base+"/r/"+token[:i]+other(token[i])+token[i+1:])
	}
	edited = append(edited, base+"/r/"+strings.Repeat("A", 54), base+"/r/guess")
	h.untouched(t, sku, func() {
		first, err := h.shop.Visit(ctx, edited[0])
		require.NoError(t, err)
		for _, link := range edited {
			for _, look := range []func(context.Context, string) (shop.Page, error){h.shop.Visit, h.post} {
				page, err := look(ctx, link)
				require.NoError(t, err)
				require.Equal(t, http.StatusNotFound, page.Status, link)
				require.Equal(t, first.Text, page.Text, "one page for every wrong link: %s", link)
			}
		}
	})

	// Pressed twice: the same hold, the same deadline.
	page, err := h.shop.Visit(ctx, good)
	require.NoError(t, err)
	once, err := h.shop.Press(ctx, page, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, once.Status, once.Text)
	entry, err := h.entryState(ctx, buyer.EntryID, "holding")
	require.NoError(t, err)
	hold, err := h.shop.ReadHold(ctx, entry.HoldID)
	require.NoError(t, err)
	h.untouched(t, sku, func() {
		twice, err := h.shop.Press(ctx, page, "/r/")
		require.NoError(t, err)
		require.Equal(t, []any{once.Status, once.To}, []any{twice.Status, twice.To})
		same, err := h.shop.ReadHold(ctx, entry.HoldID)
		require.NoError(t, err)
		require.Equal(t, hold.ExpiresAt, same.ExpiresAt)
	})

	// After the sale, after a lapse, past its expiry.
	confirmed(t, h, entry.HoldID, "pay_links")
	idler, err := h.inLine(ctx, h.door(t, "HOLDFAST_OFFER_WINDOW", "5s"), sku, phone(1))
	require.NoError(t, err)
	dreamer, err := h.inLine(ctx, h.shop, sku, phone(2))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, sku, 2))
	links[idler.EntryID], links[dreamer.EntryID] = h.link(t, idler), expired(t, h, dreamer)
	require.NoError(t, until(ctx, "the idler's turn has passed", func() error {
		if _, ok := h.lapse(t, sku); !ok {
			return errors.New("not yet")
		}
		return nil
	}))
	honest := map[string]string{}
	h.untouched(t, sku, func() {
		for name, id := range map[string]string{"sold": buyer.EntryID, "lapsed": idler.EntryID, "expired": dreamer.EntryID} {
			seen, err := h.shop.Visit(ctx, links[id])
			require.NoError(t, err)
			pressed, err := h.post(ctx, links[id])
			require.NoError(t, err)
			require.Equal(t, seen.Text, pressed.Text, "a press shows what a look shows")
			require.Less(t, pressed.Status, http.StatusInternalServerError)
			require.NotEqual(t, http.StatusNotFound, pressed.Status, name)
			require.NotEqual(t, http.StatusSeeOther, pressed.Status, "%s: led to %s", name, pressed.To)
			honest[name] = seen.Text
			t.Logf("%s: %d %s", name, seen.Status, seen.Text)
		}
	})
	require.NotEqual(t, honest["sold"], honest["lapsed"])
	require.NotEqual(t, honest["sold"], honest["expired"])
	require.NotEqual(t, honest["lapsed"], honest["expired"])
	h.judge(t, sku)

	// The gate forgets ended holds after a while; units are free for all here.
	text, _, err := h.outbox.OfferTo(idler.EntryID)
	require.NoError(t, err)
	require.NoError(t, h.redis.HDel(ctx, "hf:{"+sku+"}:holds", text.HoldID).Err())
	h.untouched(t, sku, func() {
		gone, err := h.post(ctx, links[idler.EntryID])
		require.NoError(t, err)
		require.Less(t, gone.Status, http.StatusInternalServerError, gone.Text)
		require.NotEqual(t, http.StatusSeeOther, gone.Status, gone.To)
	})
}

// link waits for the link that an entry is sent.
func (h *house) link(t *testing.T, e shop.Entry) string {
	t.Helper()
	text, err := h.offerText(t.Context(), e.EntryID)
	require.NoError(t, err)
	return text.Link()
}

// expired is a link to an entry's offer, signed as the door signs, whose own
// time is over although the offer still lives.
func expired(t *testing.T, h *house, e shop.Entry) string {
	t.Helper()
	text, err := h.offerText(t.Context(), e.EntryID)
	require.NoError(t, err)
	unused := []byte("not used to sign links")
	ring, err := keys.New(unused, unused, []keys.LinkKey{{ID: 1, Secret: []byte("holdfast-dev-link-secret")}})
	require.NoError(t, err)
	token, err := ring.Token(text.HoldID, time.Now().Add(-time.Second))
	require.NoError(t, err)
	return h.shop.URL + "/r/" + token
}

// other is a character of a token that stands for other bits than c.
func other(c byte) string {
	if c == 'A' {
		return "Q"
	}
	return "A"
}

// post presses a link as whoever has only its address would.
func (h *house) post(ctx context.Context, link string) (shop.Page, error) {
	return h.shop.Send(ctx, shop.Form{Action: link, Method: http.MethodPost})
}

// untouched does something that must leave no line in the ledger and move no
// counter.
func (h *house) untouched(t *testing.T, sku string, do func()) {
	t.Helper()
	before, err := h.check.Gate(t.Context(), sku)
	require.NoError(t, err)
	do()
	after, err := h.check.Gate(t.Context(), sku)
	require.NoError(t, err)
	require.Equal(t, before.Ledger, after.Ledger)
	require.Equal(t, before.Counters, after.Counters)
	require.Equal(t, states(before), states(after))
}

func states(f check.Facts) map[string]string {
	out := map[string]string{}
	for id, h := range f.Holds {
		out[id] = h.State
	}
	return out
}

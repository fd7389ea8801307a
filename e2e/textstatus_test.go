package e2e

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
	"holdfast/internal/twiliostub"
)

// One unit walks down a line by what Twilio says of each text. The window starts when
// the text is sent; a leave, a number that no text reaches and a STOP each pass the
// unit on at once, and a word on a text of before changes nothing. Who presses is seen
// to hold at once, by whoever asks the entry's workflow.
// B32, B38, B78.
func TestTheUnitGoesByWhatTwilioSays(t *testing.T) {
	ctx := t.Context()
	provider := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: provider.env()}, lease)
	const sku = "walks"
	h.opened(t, sku, 0)
	people := make([]shop.Entry, 4)
	for i := range people {
		var err error
		people[i], err = h.inLine(ctx, h.shop, sku, phone(i))
		require.NoError(t, err)
	}
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	offered := func(i int) (m twiliostub.Message) {
		require.NoError(t, until(ctx, "the offer's text is accepted", func() error {
			for _, m = range provider.MessagesTo(phone(i)) {
				if m.Link("/r/") != "" {
					return nil
				}
			}
			return errors.New("not yet")
		}))
		h.status(t, people[i].EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
		return m
	}
	becomes := func(m twiliostub.Message, state string, code int) {
		answer, err := provider.Advance(m.SID, state, code)
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, answer)
	}

	first := offered(0)
	var before, after shop.Entry
	before, err := h.shop.ReadEntry(ctx, people[0].EntryID)
	require.NoError(t, err)
	becomes(first, twiliostub.Sent, 0)
	require.NoError(t, until(ctx, "the window starts", func() error {
		after, err = h.shop.ReadEntry(ctx, people[0].EntryID)
		if err == nil && !after.Offer.ExpiresAt.After(before.Offer.ExpiresAt) {
			err = errors.New("not yet")
		}
		return err
	}))
	require.InDelta(t, 15*time.Minute, after.Offer.ExpiresAt.Sub(after.Now), float64(20*time.Second))
	becomes(first, twiliostub.Undelivered, 30003) // the handset is off
	becomes(first, twiliostub.Delivered, 0)
	h.status(t, people[0].EntryID, "keeps the offer", func(s map[string]any) bool { return s["state"] == "offered" })
	a, err := h.shop.Call(ctx, http.MethodDelete, "/v1/waitlist/"+people[0].EntryID, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status)

	second := offered(1)
	becomes(second, twiliostub.Undelivered, 30006)
	_, err = h.entryState(ctx, people[1].EntryID, "unreachable")
	require.NoError(t, err)

	third := offered(2)
	becomes(first, twiliostub.Failed, 30006) // of somebody who has left
	becomes(third, twiliostub.Failed, 21610)
	_, err = h.entryState(ctx, people[2].EntryID, "opted_out")
	require.NoError(t, err)

	last := offered(3)
	becomes(second, twiliostub.Sent, 0)
	page, err := h.shop.Visit(ctx, last.Link("/r/"))
	require.NoError(t, err)
	to, err := h.shop.Press(ctx, page, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, to.Status, to.Text)
	h.status(t, people[3].EntryID, "knows that it holds", func(s map[string]any) bool { return s["state"] == "holding" })
	require.Len(t, provider.Messages(), 2*len(people), "one text a cause")
	h.judge(t, sku)
}

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/internal/twiliostub"
)

// undelivered tells of the offer that was texted to a number that it did not arrive.
func (s *texter) undelivered(t *testing.T, number string, state string, code int) {
	t.Helper()
	s.link(t, number)
	for _, m := range s.MessagesTo(number) {
		if m.Link("/r/") == "" {
			continue
		}
		status, err := s.Advance(m.SID, state, code)
		require.NoError(t, err)
		require.Equal(t, 204, status)
	}
}

// B78: what the callback of a lost text means for who waits. Who can never be reached
// makes room at once; whatever else it was, the offer stays to its deadline, and no
// second text is sent.
func TestWhatALostTextMeans(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	ends := map[int]string{30005: "unreachable", 30006: "unreachable", 21610: "opted_out"}
	codes := []int{30003, 30005, 30006, 30007, 30034, 39999, 21610}
	pairs := map[int]pair{}
	for i, code := range codes {
		pairs[code] = h.pair(t, twilio, fmt.Sprint("lost-", code), 2*i)
	}
	for _, code := range codes {
		require.NoError(t, h.shop.Restock(ctx, pairs[code].sku, 1))
	}
	for _, code := range codes {
		p := pairs[code]
		twilio.link(t, p.first)
		h.status(t, p.ahead.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
		lost := time.Now()
		twilio.undelivered(t, p.first, twiliostub.Undelivered, code)
		if code == 30003 { // words that come too late change nothing
			twilio.undelivered(t, p.first, twiliostub.Sent, 0)
			twilio.undelivered(t, p.first, twiliostub.Delivered, 0)
		}
		if ends[code] == "" {
			continue
		}
		twilio.link(t, p.second)
		require.Less(t, twilio.MessagesTo(p.second)[1].CreatedAt.Sub(lost), 10*time.Second, "%d: at once", code)
		_, err := h.entryState(ctx, p.ahead.EntryID, ends[code])
		require.NoError(t, err)
	}
	for _, code := range codes {
		p := pairs[code]
		want := []int{1, 1}
		if ends[code] == "" {
			want = []int{1, 0}
			kept, err := h.shop.ReadEntry(ctx, p.ahead.EntryID)
			require.NoError(t, err)
			require.Equal(t, "offered", kept.State, "%d: its page still shows the offer", code)
		}
		require.Equal(t, want, []int{twilio.linksTo(p.first), twilio.linksTo(p.second)}, "%d: offers texted", code)
		h.judge(t, p.sku)
	}
	require.NoError(t, until(ctx, "who opted out cannot join", func() error {
		a, err := h.shop.AskJoin(ctx, "lost-30003", pairs[21610].first)
		if err == nil && a.Code() != "opted-out" {
			err = errors.New(a.String())
		}
		return err
	}))
}

// B84: the provider takes a text and never says that it arrived. Its offer ends at its
// deadline as any other, the unit goes on, and a list has it; one that arrived is not on
// it.
func TestATextThatNeverArrives(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: with(twilio.env(), "HOLDFAST_OFFER_WINDOW", "5s", "HOLDFAST_SMS_SENT_GRACE", "1s")}, lease)
	const sku = "silence"
	h.opened(t, sku, 0)
	ada, ben, cleo := h.queues(t, twilio, sku, phone(0)), h.queues(t, twilio, sku, phone(1)), h.queues(t, twilio, sku, phone(2))
	require.NoError(t, h.shop.Restock(ctx, sku, 2))
	twilio.undelivered(t, phone(1), twiliostub.Sent, 0)
	twilio.undelivered(t, phone(1), twiliostub.Delivered, 0)
	twilio.link(t, phone(2)) // whose turn it is when one of theirs has passed
	require.NoError(t, until(ctx, "Ada's offer is in the list", func() error {
		out, err := h.command(ctx, "texts", sku, "--since", "1h")
		if err == nil && !strings.Contains(out, ada.EntryID) {
			err = errors.New(out)
		}
		return err
	}))
	require.NoError(t, until(ctx, "all three have lapsed", func() error {
		out, err := h.command(ctx, "texts", sku)
		if err == nil && !strings.HasPrefix(out, sku+": 2 of 3 lapsed offers without a text that arrived\n") {
			err = errors.New(out)
		}
		return err
	}))
	out, err := h.command(ctx, "texts", sku)
	require.NoError(t, err)
	require.NotContains(t, out, ben.EntryID)
	require.Contains(t, out, cleo.EntryID)
	require.Equal(t, 2, strings.Count(out, "not-delivered: "), out)
	h.judge(t, sku)
}

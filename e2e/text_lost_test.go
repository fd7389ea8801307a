package e2e

import (
	"errors"
	"fmt"
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

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
	"holdfast/internal/twiliostub"
)

// pair are two people in line for one SKU, of which the first is offered a unit
// whose text meets trouble.
type pair struct {
	sku           string
	first, second string // numbers
	ahead, behind shop.Entry
}

func (h *house) pair(t *testing.T, twilio *texter, sku string, n int) pair {
	p := pair{sku: sku, first: phone(n), second: phone(n + 1)}
	h.opened(t, sku, 0)
	p.ahead, p.behind = h.queues(t, twilio, sku, p.first), h.queues(t, twilio, sku, p.second)
	return p
}

// linksTo counts the texts with a reserve link to a number.
func (s *texter) linksTo(number string) (n int) {
	for _, m := range s.MessagesTo(number) {
		if m.Link("/r/") != "" {
			n++
		}
	}
	return n
}

// refusedAt is when the first text to a number was refused.
func (s *texter) refusedAt(t *testing.T, number string) time.Time {
	t.Helper()
	for _, r := range s.Requests() {
		if r.Method == http.MethodPost && r.Form.Get("To") == number && r.Status == http.StatusBadRequest {
			return r.At
		}
	}
	t.Fatalf("no text to %s was refused", number)
	return time.Time{}
}

// B77, B80: what a refusal of a text means for who waits. For ever: the next in line has
// the unit at once. For now: it stays where it is, and the text goes out once.
func TestWhatARefusedTextMeans(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	var never, later []pair
	for i, code := range []int{21211, 21408, 21610, 21614} {
		p := h.pair(t, twilio, fmt.Sprint("never-", code), 2*i)
		twilio.Refuse(p.first, code)
		never = append(never, p)
	}
	for i, fault := range []twiliostub.Fault{
		{Status: http.StatusTooManyRequests, Code: 20429, RetryAfter: time.Second},
		{Status: http.StatusInternalServerError, Code: 20500},
		{Status: http.StatusBadGateway, Body: "<html>bad gateway</html>"},
		{Hang: true},
		{Hang: true, Kept: true},
		{Drop: true},
		{Drop: true, Kept: true},
		{Status: http.StatusInternalServerError, Code: 20500, Kept: true},
	} {
		p := h.pair(t, twilio, fmt.Sprint("later-", i), 100+2*i)
		fault.On, fault.To = twiliostub.Create, p.first
		twilio.Next(fault)
		later = append(later, p)
	}
	for _, p := range append(never, later...) {
		require.NoError(t, h.shop.Restock(ctx, p.sku, 1))
	}

	for _, p := range never {
		twilio.link(t, p.second)
		lost := twilio.refusedAt(t, p.first)
		told := twilio.MessagesTo(p.second)[1].CreatedAt
		figure(t, "unit_goes_on_after_"+p.sku, told.Sub(lost).Seconds(), "s")
		require.Less(t, told.Sub(lost), 10*time.Second, "at once")
		want := "unreachable"
		if strings.HasSuffix(p.sku, "21610") {
			want = "opted_out"
		}
		_, err := h.entryState(ctx, p.ahead.EntryID, want)
		require.NoError(t, err, p.sku)
		require.NoError(t, h.closed(ctx, p.ahead.EntryID))
		require.Equal(t, []int{0, 1}, []int{twilio.linksTo(p.first), twilio.linksTo(p.second)}, "%s: offers texted", p.sku)
		require.Len(t, twilio.MessagesTo(p.first), 1, "its place, and nothing after it")
	}
	for _, p := range later {
		h.status(t, p.ahead.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
		require.Equal(t, []int{1, 0}, []int{twilio.linksTo(p.first), twilio.linksTo(p.second)}, "%s: offers texted", p.sku)
		_, err := h.entryState(ctx, p.ahead.EntryID, "offered")
		require.NoError(t, err)
		waits, err := h.shop.ReadEntry(ctx, p.behind.EntryID)
		require.NoError(t, err)
		require.Equal(t, "waiting", waits.State, "%s: nobody is passed over", p.sku)
		h.judge(t, p.sku)
	}
}

// The account is closed: nothing ends, nobody is passed over, everybody can see
// why, and when it is open again the texts go out by themselves.
// Who leaves meanwhile is sent nothing, and the next is told. B41, B48, B77.
func TestAnAccountThatTakesNoTexts(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	p, gone := h.pair(t, twilio, "stopped", 0), h.pair(t, twilio, "stopped-left", 2)
	twilio.Down(http.StatusUnauthorized, 20003)
	require.NoError(t, h.shop.Restock(ctx, p.sku, 1))
	require.NoError(t, h.shop.Restock(ctx, gone.sku, 1))
	_, err := h.entryState(ctx, gone.ahead.EntryID, "offered")
	require.NoError(t, err)
	a, err := h.shop.Call(ctx, http.MethodDelete, "/v1/waitlist/"+gone.ahead.EntryID, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, a)
	h.status(t, p.ahead.EntryID, "says what keeps its text", func(s map[string]any) bool {
		wait, _ := s["text_waits"].(map[string]any)
		return s["state"] == "offered" && wait["why"] == "sender-down"
	})
	ready := func() string {
		res, err := http.Get(h.WorkerOpsURL() + "/readyz")
		require.NoError(t, err)
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", raw)
		return string(raw)
	}
	require.Contains(t, ready(), `"texts":"stopped: text not accepted (stop-all): `)
	require.Contains(t, ready(), "20003")
	require.NotEqual(t, "0", scrapeOf(t, h.WorkerOpsURL()).samples[`holdfast_texts_total{outcome="stop-all"}`])

	twilio.Down(0, 0)
	began := time.Now()
	require.NoError(t, within(ctx, 2*time.Minute, "the text goes out by itself", func() error {
		if twilio.linksTo(p.first) == 0 {
			return errors.New("it has not")
		}
		return nil
	}))
	figure(t, "text_after_the_account_is_open", time.Since(began).Seconds(), "s")
	h.status(t, p.ahead.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true && s["text_waits"] == nil })
	require.Equal(t, []int{1, 0}, []int{twilio.linksTo(p.first), twilio.linksTo(p.second)})
	require.NotContains(t, ready(), `"texts"`)
	twilio.link(t, gone.second)
	require.Zero(t, twilio.linksTo(gone.first), "who has left is told of no turn")
	h.judge(t, p.sku, gone.sku)
}

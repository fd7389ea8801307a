package starter

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func TestOfferUntil(t *testing.T) {
	const window, grace = 15 * time.Minute, time.Minute
	d := &Door{cfg: &config.Config{}}
	d.cfg.Offer.Window, d.cfg.SMS.SentGrace = window, grace
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	max := at.Add(48 * time.Hour)
	for name, c := range map[string]struct {
		hold redis.Hold
		want time.Time
	}{
		"not told":              {redis.Hold{State: contract.HoldOffered, Deadline: max}, max},
		"told":                  {redis.Hold{State: contract.HoldOffered, ToldAt: at, Deadline: at.Add(window + grace)}, at.Add(window)},
		"told again":            {redis.Hold{State: contract.HoldOffered, ToldAt: at, Deadline: at.Add(time.Hour + window + grace)}, at.Add(time.Hour + window)},
		"told near the max age": {redis.Hold{State: contract.HoldOffered, ToldAt: at, Deadline: at.Add(5 * time.Minute)}, at.Add(4 * time.Minute)},
		"told at the max age":   {redis.Hold{State: contract.HoldOffered, ToldAt: at, Deadline: at.Add(grace)}, at.Add(grace)},
		"sent":                  {redis.Hold{State: contract.HoldOffered, ToldAt: at, SentAt: at.Add(time.Second), Deadline: at.Add(window + time.Second)}, at.Add(window + time.Second)},
		"pressed":               {redis.Hold{State: contract.HoldHeld, ToldAt: at, Deadline: at.Add(10 * time.Minute)}, at.Add(10 * time.Minute)},
	} {
		require.Equal(t, c.want, d.offerUntil(c.hold), name)
	}
}

// What a shopper was shown once stays true: page, place and API show one
// deadline, and it does not move to an earlier instant when the text is sent.
func TestTheDeadlineShownNeverMovesEarlier(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.SMS.SentGrace = time.Minute })
	entryID, holdID, path := h.offer()
	require.Contains(t, h.browse("GET", "/w/"+entryID, nil).text(), "A text with your link is on its way")
	shown := func() time.Time {
		t.Helper()
		var v entryView
		h.call("GET", "/v1/waitlist/"+entryID, nil).into(t, &v)
		for _, page := range []string{path, "/w/" + entryID, "/h/" + holdID} {
			require.Contains(t, h.browse("GET", page, nil).body, `<time datetime="`+v.Offer.ExpiresAt+`">`, page)
		}
		until, err := time.Parse(time.RFC3339, v.Offer.ExpiresAt)
		require.NoError(t, err)
		return until
	}
	told := redis.ToldRequest{SKU: h.sku, HoldID: holdID, Window: h.cfg.Offer.Window, SentGrace: h.cfg.SMS.SentGrace, MaxAge: h.cfg.Offer.MaxAge}
	_, err := h.gate.Told(t.Context(), told)
	require.NoError(t, err)
	first := shown()
	require.Equal(t, h.record(holdID).ToldAt.Add(h.cfg.Offer.Window).UTC(), first)
	told.Sent = true
	_, err = h.gate.Told(t.Context(), told)
	require.NoError(t, err)
	require.False(t, shown().Before(first))
	require.Equal(t, h.record(holdID).Deadline.UTC(), shown())
}

func TestSpans(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	for d, want := range map[time.Duration]string{
		50 * time.Hour: "2 days", 47 * time.Hour: "47 hours", 119 * time.Minute: "119 minutes",
		10 * time.Minute: "10 minutes", 2 * time.Minute: "2 minutes", 179 * time.Second: "2 minutes",
		119 * time.Second: "119 seconds", 20 * time.Second: "20 seconds", time.Second: "1 second",
	} {
		require.Equal(t, want, string(pages.all[0].span(d)))
	}
}

func TestTheLinkSaysWhatAPressDoes(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.Hold.TTL = 90 * time.Second })
	_, _, path := h.offer()
	page := h.browse("GET", path, nil).text()
	require.Contains(t, page, "One is kept for you until")
	require.Contains(t, page, "Press the button to take it. You then have 90 seconds to pay.")
	require.NotContains(t, page, "Nothing is reserved")
}

func TestPartOffer(t *testing.T) {
	h := newHouse(t, 0)
	a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "+12025550101", "consent": true, "quantity": 3})
	var v entryView
	a.into(t, &v)
	_, err := h.gate.AdoptEntry(t.Context(), h.sku, v.EntryID)
	require.NoError(t, err)
	h.restock(2)
	e, _, err := h.gate.ReadEntry(t.Context(), h.sku, v.EntryID)
	require.NoError(t, err)
	path := "/r/" + h.token(e.HoldID, time.Now().Add(time.Hour))
	page := h.browse("GET", path, nil).text()
	require.Contains(t, page, "2 are kept for you until")
	require.Contains(t, page, "You asked for 3. This is what came back so far.")
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	require.Contains(t, h.browse("GET", path, nil).text(), "You hold 2 until")
	require.Contains(t, h.browse("GET", "/w/"+v.EntryID, nil).text(), "You hold 2 until")
}

// The hold's page, the link and the place in line tell one story of an ending.
func TestEndingsAreToldAlike(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(h *house, holdID string)
		words string
	}{
		"by the shopper": {func(h *house, holdID string) { h.browse("POST", "/h/"+holdID+"/release", nil) }, "You gave it back"},
		"payment failed": {func(h *house, holdID string) {
			h.call("POST", "/v1/holds/"+holdID+"/payment-failed", map[string]any{"final": true})
		}, "The payment did not go through So what was kept for you has gone back."},
		"by the shop": {func(h *house, holdID string) { h.call("POST", "/v1/holds/"+holdID+"/release", nil) }, "The shop has taken it back"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, 0)
			entryID, holdID, path := h.offer()
			require.Equal(t, http.StatusSeeOther, h.press(path).status)
			c.end(h, holdID)
			require.Equal(t, contract.HoldReleased, h.record(holdID).State)
			for _, page := range []string{"/h/" + holdID, path, "/w/" + entryID} {
				body := h.browse("GET", page, nil).text()
				require.Contains(t, body, c.words, page)
				require.Contains(t, body, "It is available in the shop right now.", page)
				require.NotContains(t, body, "next in line", page)
			}
		})
	}
}

// "Available" is what a walk-in gets now, not what came back.
func TestNothingIsAvailableWhileTheLineWaits(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	next := h.join("+12025550102")
	_, err := h.gate.AdoptEntry(t.Context(), h.sku, next.EntryID)
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, h.browse("POST", "/h/"+holdID+"/release", nil).status)
	require.NotContains(t, h.browse("GET", "/h/"+holdID, nil).text(), "available in the shop")
}

func TestPlacePageWhileHolding(t *testing.T) {
	h := newHouse(t, 0)
	entryID, holdID, path := h.offer()
	require.Contains(t, h.browse("GET", "/w/"+entryID, nil).text(), "No text?")
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	page := h.browse("GET", "/w/"+entryID, nil).body
	require.Contains(t, page, `You hold one<span class="until"> until <time datetime="`+stamp(h.record(holdID).Deadline)+`">`)
	require.Contains(t, page, `href="/h/`+holdID+`"`)
	require.NotContains(t, page, "Leave the line")
}

// The form's range is narrower than the API's.
func TestJoinFormNamesItsRange(t *testing.T) {
	h := newHouse(t, 0)
	path := "/join/" + h.sku
	page := h.browse("GET", path, nil).body
	require.Contains(t, page, `min="1" max="10"`)
	require.Contains(t, page, "+1 202 555 0101")
	for _, q := range []string{"11", "0", "-1", "1.5", "many", "03", "+2"} {
		a := h.browse("POST", path, url.Values{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {q}})
		require.Equal(t, http.StatusUnprocessableEntity, a.status, q)
		require.Contains(t, a.text(), "Please write a whole number from 1 to 10.", q)
	}
	a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "+12025550101", "consent": true, "quantity": 11})
	require.Equal(t, http.StatusCreated, a.status, a.body)
}

func TestIndexPageIsForDevelopers(t *testing.T) {
	h := newHouse(t, 0)
	h.sku = "0-" + rand.Text() // before the SKUs of other tests
	h.put(h.sku)
	h.restock(3)
	a := h.browse("GET", "/", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	require.Contains(t, a.text(), `Oak Chair (`+h.sku+`): state available, 3 open to all, 0 in line`)
	require.Equal(t, http.StatusNotFound, h.browse("GET", "/nothing-here", nil).status)

	h.cfg.Mode = "production"
	a = h.browse("GET", "/", nil)
	require.Equal(t, http.StatusNotFound, a.status)
	require.Contains(t, a.body, "Oak &amp; Sons")
	require.NotContains(t, a.body, h.sku)
}

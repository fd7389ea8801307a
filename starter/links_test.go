package starter

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func (h *house) press(path string) answer {
	h.t.Helper()
	return h.browse("POST", path, nil)
}

// B69, B70: scanners, previewers and clipboard tools open the link first, and take nothing.
func TestLinkScannersTakeNothing(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, path := h.offer()
	h.untouched(func() {
		for range 5 {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := h.browse(method, path, nil)
				require.Equal(t, http.StatusOK, a.status)
				require.Contains(t, a.body, `action="`+path+`"`)
			}
		}
		// A post that no form of a page sends.
		require.Equal(t, http.StatusUnsupportedMediaType, h.send(h.request("POST", path, `{}`)).status)
		require.Equal(t, http.StatusUnsupportedMediaType, h.send(h.request("POST", path, nil)).status)
		require.Equal(t, contract.HoldOffered, h.record(holdID).State)
	})
	require.Equal(t, http.StatusSeeOther, h.press(path).status, "the person's press works")
}

func TestPress(t *testing.T) {
	h := newHouse(t, 0)
	entryID, holdID, path := h.offer()
	a := h.press(path)
	require.Equal(t, http.StatusSeeOther, a.status, a.body)
	held := h.record(holdID)
	require.Equal(t, contract.HoldHeld, held.State)
	to, err := url.Parse(a.header.Get("Location"))
	require.NoError(t, err)
	until := stamp(held.Deadline)
	require.Equal(t, "shop.example/pay", to.Host+to.Path)
	require.Equal(t, url.Values{
		"hold": {holdID}, "entry": {entryID}, "until": {until}, "sig": {h.ring.CheckoutSig(holdID, entryID, until)},
	}, to.Query())

	in := h.wf.holds[holdID]
	require.Equal(t, []any{entryID, entryID, held.Person, held.Generation}, []any{in.Customer, in.EntryID, in.Person, in.Generation})
	require.Equal(t, []contract.Line{{SKU: h.sku, Quantity: 1}}, in.Lines)

	h.untouched(func() {
		again := h.press(path)
		require.Equal(t, []string{a.header.Get("Location"), "303"}, []string{again.header.Get("Location"), fmt.Sprint(again.status)})
		require.Equal(t, held.Deadline, h.record(holdID).Deadline)
		require.Contains(t, h.browse("GET", path, nil).text(), "You hold one until")
	})
	require.Equal(t, holdID, h.call("GET", "/v1/holds/"+holdID, nil).hold(t).HoldID)
	require.Equal(t, entryID, h.call("GET", "/v1/holds/"+holdID, nil).hold(t).Customer)
	require.NotContains(t, h.log.String(), strings.TrimPrefix(path, "/r/"), "a token in the log is a key for whoever reads it")
}

func TestPressLeadsToThePage(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.Hold.After = "page" })
	_, holdID, path := h.offer()
	require.Equal(t, "/h/"+holdID, h.press(path).header.Get("Location"))
}

// The press is the same saga as a walk-in's hold: broken between two steps it
// promises nothing, and pressed again it finds out.
func TestPressCrashPoints(t *testing.T) {
	lost := fmt.Errorf("%w: connection reset", redis.ErrUnavailable)
	for name, breakIt := range map[string]func(h *house){
		"reserve's answer lost": func(h *house) { h.gate.break_("Reserve", nil, lost) },
		"start fails":           func(h *house) { h.wf.set(func() { h.wf.fail["Hold"] = errTemporalDown }) },
		"adopt's answer lost":   func(h *house) { h.gate.break_("AdoptHold", nil, lost) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, 0)
			_, holdID, path := h.offer()
			breakIt(h)
			a := h.press(path)
			require.Equal(t, http.StatusServiceUnavailable, a.status)
			require.NotEmpty(t, a.header.Get("Retry-After"))
			require.Contains(t, a.text(), "try again")
			h.gate.break_("", nil, nil)
			h.wf.set(func() { delete(h.wf.fail, "Hold") })
			require.Equal(t, http.StatusSeeOther, h.press(path).status)
			require.Equal(t, contract.HoldHeld, h.record(holdID).State)
			require.Equal(t, [4]int64{1, 1, 0, 0}, h.parts())
		})
	}
}

func TestWrongLinks(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, path := h.offer()
	token := strings.TrimPrefix(path, "/r/")
	wrong := []string{"x", strings.Repeat("A", len(token)), token + "A", token[:len(token)-1], strings.Repeat("A", 10_000)}
	for i := range token {
		c := "A"
		if token[i] == 'A' {
			c = "Q"
		}
		wrong = append(wrong, token[:i]+c+token[i+1:])
	}
	// Signed by us, but its record is gone, its hold was never offered, or its
	// SKU is nobody's.
	wrong = append(wrong, h.token(contract.HoldID(h.sku, []byte("purged since")), time.Now().Add(time.Hour)),
		h.token(contract.HoldID("NOBODY", []byte("never opened")), time.Now().Add(time.Hour)))
	h.restock(5) // free units that a link without a record must not take
	h.untouched(func() {
		want := h.browse("GET", "/r/guess", nil)
		require.Equal(t, http.StatusNotFound, want.status)
		for _, token := range wrong {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				a := h.browse(method, "/r/"+token, nil)
				require.Equal(t, []any{want.status, want.body}, []any{a.status, a.body}, "one page for every wrong link: %s", token)
			}
		}
		require.Equal(t, contract.HoldOffered, h.record(holdID).State)
	})
}

func TestLinkAfterSale(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	require.Equal(t, http.StatusOK, h.confirm(holdID, "p").status)
	h.same(path, http.StatusOK, "Bought")
}

func TestLinkAfterLapse(t *testing.T) {
	h := newHouse(t, 0, func(_ *config.Config, opts *redis.Options) { opts.OfferMaxAge = time.Millisecond })
	entryID, holdID, path := h.offer()
	h.eventually("the offer lapses", func() bool {
		out, err := h.gate.Lapse(t.Context(), redis.LapseRequest{SKU: h.sku, HoldID: holdID})
		return err == nil && out.Verdict == redis.OK
	})
	body := h.same(path, http.StatusGone, "The time is over. What was kept for you has gone back.")
	require.Contains(t, body, "available in the shop right now", "nobody else waits")
	require.Contains(t, body, `action="/w/`+entryID+`/again"`)
}

func TestLinkPastExpiry(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, _ := h.offer()
	path := "/r/" + h.token(holdID, time.Now().Add(-time.Second))
	h.same(path, http.StatusGone, "This link has expired")
	require.Equal(t, contract.HoldOffered, h.record(holdID).State)
	// A hold pressed in time is shown by its old link as long as it lives.
	require.Equal(t, http.StatusSeeOther, h.press("/r/"+h.token(holdID, time.Now().Add(time.Hour))).status)
	h.untouched(func() { require.Equal(t, http.StatusSeeOther, h.press(path).status) })
}

// same asserts that a look and a press show one page and take nothing.
func (h *house) same(path string, status int, words string) string {
	h.t.Helper()
	var looked answer
	h.untouched(func() {
		looked = h.browse("GET", path, nil)
		pressed := h.press(path)
		require.Equal(h.t, status, looked.status, looked.body)
		require.Contains(h.t, looked.text(), words)
		require.Equal(h.t, []any{looked.status, looked.body}, []any{pressed.status, pressed.body})
	})
	return looked.body
}

func TestPutMeBackInLine(t *testing.T) {
	h := newHouse(t, 0)
	first := h.join("+12025550101")
	other := h.join("+12025550102")
	h.eventually("the workflow starts", func() bool { _, ok := h.wf.entry(first.EntryID); return ok })
	again := "/w/" + first.EntryID + "/again"
	h.untouched(func() {
		require.Equal(t, "/w/"+first.EntryID, h.browse("POST", again, nil).header.Get("Location"), "still in line")
	})
	require.Equal(t, http.StatusSeeOther, h.browse("POST", "/w/"+first.EntryID+"/leave", nil).status)
	require.Contains(t, h.browse("GET", "/w/"+first.EntryID, nil).body, again)

	h.wf.set(func() { h.wf.down = true })
	h.untouched(func() { require.Equal(t, http.StatusServiceUnavailable, h.browse("POST", again, nil).status) })
	h.wf.set(func() { h.wf.down = false })

	a := h.browse("POST", again, nil)
	require.Equal(t, http.StatusSeeOther, a.status, a.body)
	fresh := strings.TrimPrefix(a.header.Get("Location"), "/w/")
	require.NotEqual(t, first.EntryID, fresh)
	e, ok, err := h.gate.ReadEntry(t.Context(), h.sku, fresh)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(2), e.Position, "at the back")
	require.Equal(t, h.ring.PersonOfPhone("+12025550101"), e.Person)
	h.untouched(func() {
		require.Equal(t, a.header.Get("Location"), h.browse("POST", again, nil).header.Get("Location"))
	})
	require.NotEqual(t, other.EntryID, fresh)
}

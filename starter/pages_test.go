package starter

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestPageHeaders(t *testing.T) {
	h := newHouse(t, 0)
	entryID, holdID, link := h.offer()
	for _, path := range []string{"/join/" + h.sku, "/w/" + entryID, "/h/" + holdID, link, "/join/NOBODY", "/r/guess"} {
		a := h.browse("GET", path, nil)
		require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"), path)
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
		require.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Contains(t, a.header.Get("X-Robots-Tag"), "noindex")
		csp := a.header.Get("Content-Security-Policy")
		require.Contains(t, csp, "default-src 'none'")
		require.NotContains(t, csp, "unsafe")
		require.Contains(t, csp, hashOf(pageStyle))
		require.Contains(t, a.body, "<style>"+pageStyle+"</style>", "the hash is of what stands in the page")
		require.Contains(t, a.body, "<script>"+pageScript+"</script>")
		require.Contains(t, a.body, "Oak &amp; Sons")
	}
	// A browser holds the redirect after a press to form-action as well.
	csp := h.browse("GET", link, nil).header.Get("Content-Security-Policy")
	require.Contains(t, csp, "form-action 'self' https://shop.example;")
	require.Contains(t, csp, "img-src https://img.example;")
}

func TestJoinPage(t *testing.T) {
	h := newHouse(t, 0)
	path := "/join/" + h.sku
	a := h.browse("GET", path, nil)
	require.Equal(t, http.StatusOK, a.status)
	for _, part := range []string{"Oak Chair", `method="post" action="` + path + `"`, `name="phone"`, `name="quantity"`, `name="consent"`} {
		require.Contains(t, a.body, part)
	}
	require.Equal(t, http.StatusNotFound, h.browse("GET", "/join/NOBODY", nil).status)

	h.untouched(func() {
		for _, form := range []url.Values{
			{},
			{"phone": {"call me"}, "consent": {"yes"}},
			{"phone": {"+12025550101"}},
			{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {"1.5"}},
			{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {"0"}},
			{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {"many"}},
			{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {"11"}},
		} {
			a := h.browse("POST", path, form)
			require.Equal(t, http.StatusUnprocessableEntity, a.status)
			require.Contains(t, a.body, `role="alert"`)
		}
		latin := h.send(h.request("POST", path, "phone=%2B12025550101&consent=yes&name=%E9", "Content-Type", formMedia))
		require.Equal(t, http.StatusBadRequest, latin.status)
		echoed := h.browse("POST", path, url.Values{"phone": {`"><script>alert(1)</script>`}})
		require.NotContains(t, echoed.body, "<script>alert")
		require.Equal(t, http.StatusUnsupportedMediaType, h.call("POST", path, map[string]any{"phone": "+12025550101"}).status)
		require.Equal(t, http.StatusRequestEntityTooLarge, h.browse("POST", path, url.Values{"name": {strings.Repeat("x", 64<<10)}}).status)
	})

	a = h.browse("POST", path, url.Values{"phone": {"07700 900001"}, "name": {"Ada"}, "consent": {"yes"}, "quantity": {"2"}})
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	h.eventually("the workflow starts", func() bool { return h.wf.started() == 1 })
	h.wf.set(func() {
		for _, in := range h.wf.entries {
			require.Equal(t, []any{"+447700900001", "Ada", int64(2)}, []any{in.Phone, in.Name, in.Quantity})
		}
	})
}

func TestEntryPage(t *testing.T) {
	h := newHouse(t, 0)
	h.join("+12025550109")
	v := h.join("+12025550101")
	path := "/w/" + v.EntryID
	a := h.browse("GET", path, nil)
	require.Contains(t, a.text(), "You are no. 2 in line")
	require.Contains(t, a.body, `method="post" action="`+path+`/leave"`)
	require.Equal(t, path, h.browse("POST", path+"/leave", nil).header.Get("Location"))
	require.Contains(t, h.browse("GET", path, nil).text(), "You have left the line")
	require.Equal(t, http.StatusNotFound, h.browse("GET", "/w/nonsense", nil).status)
	require.Equal(t, http.StatusNotFound, h.browse("POST", "/w/nonsense/leave", nil).status)
}

// An offer ends with its entry; a hold already pressed runs on.
func TestLeaveWithOfferAndHold(t *testing.T) {
	h := newHouse(t, 0)
	entryID, holdID, _ := h.offer()
	require.Contains(t, h.browse("GET", "/w/"+entryID, nil).text(), "It is your turn")
	require.Equal(t, http.StatusSeeOther, h.browse("POST", "/w/"+entryID+"/leave", nil).status)
	require.Equal(t, contract.HoldReleased, h.record(holdID).State)

	h = newHouse(t, 0)
	entryID, holdID, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	require.Equal(t, http.StatusSeeOther, h.browse("POST", "/w/"+entryID+"/leave", nil).status)
	require.Equal(t, contract.HoldHeld, h.record(holdID).State)
	page := h.browse("GET", "/w/"+entryID, nil)
	require.Contains(t, page.text(), "You have left the line. Your hold runs on")
	require.Contains(t, page.body, `href="/h/`+holdID+`"`)
	require.NotContains(t, page.body, "/leave")
}

func TestHoldPage(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	path := "/h/" + v.HoldID
	page := h.browse("GET", path, nil)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, `datetime="`+v.ExpiresAt+`"`)
	require.Contains(t, page.body, `href="https://shop.example/pay?hold=`+v.HoldID)
	h.untouched(func() { h.browse("HEAD", path, nil) })

	a := h.browse("POST", path+"/release", nil)
	require.Equal(t, []any{http.StatusSeeOther, path}, []any{a.status, a.header.Get("Location")})
	require.Equal(t, []any{contract.HoldReleased, contract.ReasonShopper}, []any{h.record(v.HoldID).State, h.record(v.HoldID).Reason})
	require.Contains(t, h.browse("GET", path, nil).text(), "You gave it back")
	h.untouched(func() { require.Equal(t, http.StatusSeeOther, h.browse("POST", path+"/release", nil).status) })

	sold := h.hold()
	require.Equal(t, http.StatusOK, h.confirm(sold.HoldID, "p").status)
	h.untouched(func() {
		require.Equal(t, http.StatusSeeOther, h.browse("POST", "/h/"+sold.HoldID+"/release", nil).status, "a sale is shown, not undone")
	})
	require.Contains(t, h.browse("GET", "/h/"+sold.HoldID, nil).text(), "Bought")
	require.Equal(t, http.StatusNotFound, h.browse("GET", "/h/nonsense", nil).status)
}

// What the script asks for again and again is small.
func TestNewsOfAPageIsSmall(t *testing.T) {
	h := newHouse(t, 1)
	path := "/h/" + h.hold().HoldID
	whole, news := h.browse("GET", path, nil), h.send(h.request("GET", path, nil, headerPart, "main"))
	require.Equal(t, http.StatusOK, news.status)
	mark := regexp.MustCompile(`data-mark="[^"]+"`)
	require.NotEmpty(t, mark.FindString(news.body))
	require.Equal(t, mark.FindString(whole.body), mark.FindString(news.body))
	require.NotContains(t, news.body, "<style>")
	require.NotContains(t, news.body, "<script>")
	require.Less(t, len(news.body), 3<<10)
	require.Less(t, len(whole.body), 20<<10)
	require.Contains(t, pageScript, headerPart)
}

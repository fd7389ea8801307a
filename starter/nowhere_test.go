package starter

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever no route takes is refused as everything else is, by a problem that says what
// there is, and a person with a browser gets a page.
func TestWhatIsNoCall(t *testing.T) {
	h := newHouse(t, 5)
	h.untouched(func() {
		for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v2/holds", "/V1/holds", "/v1/holds/", "/v1/holds/%2F", "/v1/stock/%2e%2e/holds", "/v1/stock/" + h.sku + "/", "/favicon.ico", "/.env", "/debug/pprof/", "/v1/webhooks/stripe"} {
			exact(t, h.call("GET", path, nil), 404, unknownPath)
		}
		for call, allow := range map[string]string{
			"GET /v1/holds/hold_x/confirm": "POST", "DELETE /v1/stock/" + h.sku: "GET, HEAD, PUT", "PATCH /v1/holds": "GET, HEAD, POST",
			"FOO /v1/waitlist/entry_x": "DELETE, GET, HEAD", "PUT /r/x": "GET, HEAD, POST", "GET /codec/encode": "OPTIONS, POST",
		} {
			method, path, _ := strings.Cut(call, " ")
			a := h.call(method, path, nil)
			require.Contains(t, exact(t, a, 405, methodNotAllowed).Detail, allow, call)
			require.Equal(t, allow, a.header.Get("Allow"), call)
		}
	})
	page := h.call("GET", "/nothing", nil, "Authorization", "", "Accept", "text/html,*/*;q=0.8")
	require.Equal(t, http.StatusNotFound, page.status)
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	require.Contains(t, page.body, "We do not know this page")

	// What is on another listener is no call of this one.
	rec := httptest.NewRecorder()
	h.door.handler(api).ServeHTTP(rec, h.request("GET", "/join/"+h.sku, nil, "Accept", "text/html"))
	exact(t, answer{rec.Code, rec.Header(), rec.Body.String()}, 404, unknownPath)
}

// An answer repeats what it was sent only as far as a person needs to see it.
func TestALongNameIsNotRepeatedWhole(t *testing.T) {
	h := newHouse(t, 0)
	long := strings.Repeat("x", 8000)
	for _, path := range []string{"/v1/stock/", "/v1/holds/", "/v1/holds/hold_", "/v1/waitlist/entry_"} {
		require.Less(t, len(h.call("GET", path+long, nil).body), 500, path)
	}
	require.Less(t, len(h.call("PUT", "/v1/stock/"+long, map[string]any{"title": "x", "checkout_url": "https://shop.example/"}).body), 500)
	require.Less(t, len(h.call("GET", "/v1/stock?"+long+"=1", nil).body), 500)
	require.Less(t, len(h.call("POST", "/v1/holds", "{}", "Idempotency-Key", "k", "Content-Type", long).body), 500)
	require.Less(t, len(h.call("POST", "/v1/holds", `{"`+long+`":1,"`+long+`":2}`, "Idempotency-Key", "k").body), 500)
}

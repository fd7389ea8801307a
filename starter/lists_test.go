package starter

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cursor is that of the list's second page, as the fake directory has it.
func (h *house) cursor(list string) string { return *h.door.encodeCursor(list, []byte("next")) }

// A token that is not Temporal's own is not refused there: the list would be asked
// for until its time is up, and the caller told to repeat it.
func TestACursorThatIsNotOursIsRefused(t *testing.T) {
	h := newHouse(t, 0)
	for _, list := range []string{listOfHolds, listOfRefunds, listOfEvents} {
		good := h.cursor(list)
		require.Equal(t, http.StatusOK, h.call("GET", "/v1/"+list+"?cursor="+good, nil).status)
		h.dir.listed = nil
		another := listOfHolds
		if list == listOfHolds {
			another = listOfRefunds
		}
		for name, cursor := range map[string]string{
			"garbage": "xx", "long garbage": strings.Repeat("x", 40), "a bare token": base64.RawURLEncoding.EncodeToString([]byte("next")),
			"the print alone": good[:printLen], "cut": good[:len(good)-1], "longer": good + "xx",
			"altered": good[:printLen] + base64.RawURLEncoding.EncodeToString([]byte("last")), "of another list": h.cursor(another),
		} {
			p := exact(t, h.call("GET", "/v1/"+list+"?cursor="+cursor, nil), 422, validationFailed)
			require.Contains(t, p.Detail, "cursor", "%s of %s", name, list)
		}
		require.Empty(t, h.dir.listed)
	}
}

// A part of the query that cannot be read would be left out, and the list be another
// than the one that was asked for.
func TestAQueryThatCannotBeReadIsRefused(t *testing.T) {
	h := newHouse(t, 0)
	for _, query := range []string{"sku=A;state=held", "sku=A%zz", "%"} {
		for _, path := range []string{"/v1/holds", "/v1/refunds", "/v1/events", "/v1/stock/" + h.sku + "/ledger"} {
			require.Contains(t, exact(t, h.call("GET", path+"?"+query, nil), 422, validationFailed).Detail, "the query cannot be read")
		}
	}
	exact(t, h.call("GET", "/v1/holds?sku=A;state=held", nil, "Authorization", ""), 401, unauthorized)
}

// A parameter that nobody reads, or one of two, would be left out silently.
func TestAQueryThatNobodyReadsIsRefused(t *testing.T) {
	h := newHouse(t, 0)
	ids := map[string]string{"sku": h.sku, "hold_id": "hold_x", "entry_id": "entry_x", "payment_id": "payment_x", "event_id": "event_x"}
	of := func(pattern, query string) answer {
		method, path, _ := strings.Cut(pattern, " ")
		for name, id := range ids {
			path = strings.ReplaceAll(path, "{"+name+"}", id)
		}
		return h.call(method, path+"?"+query, nil)
	}
	asked := 0
	for _, r := range h.door.routes() {
		if r.on != api || strings.Contains(r.pattern, "/webhooks/") {
			continue // anyone's, whose pages may add what they like
		}
		asked++
		require.Contains(t, exact(t, of(r.pattern, "stat=held"), 422, validationFailed).Detail, `"stat" is not known here`, r.pattern)
		for _, m := range queryOf(r.pattern) {
			require.Contains(t, exact(t, of(r.pattern, m.name+"=1&"+m.name+"=2"), 422, validationFailed).Detail, m.name+" stands more than once", r.pattern)
		}
	}
	require.Greater(t, asked, 20)
	exact(t, h.call("GET", "/v1/stock?cursor=%00", nil), 422, validationFailed)
}

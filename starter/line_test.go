package starter

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redis"
)

// Who waits is listed in the order of arrival, for the shop alone, and without a word
// of who they are.
func TestTheLineIsListed(t *testing.T) {
	h := newHouse(t, 0)
	path := "/v1/stock/" + h.sku + "/line"
	var empty struct {
		Data []waiterView `json:"data"`
		Next *string      `json:"next_cursor"`
	}
	h.call("GET", path, nil).into(t, &empty)
	require.Equal(t, []waiterView{}, empty.Data)
	require.Nil(t, empty.Next)

	entries := []entryView{h.join("+12025550101"), h.join("+12025550102"), h.join("+12025550103")}
	_, err := h.gate.AdoptEntry(t.Context(), h.sku, entries[0].EntryID)
	require.NoError(t, err)
	var got []waiterView
	for cursor := ""; ; {
		a := h.call("GET", path+"?limit=2"+cursor, nil)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.NotContains(t, a.body, "555")
		page := empty
		page.Next = nil
		a.into(t, &page)
		got = append(got, page.Data...)
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + *page.Next
	}
	want := make([]waiterView, 3)
	for i, place := range []redis.Place{redis.PlaceLine, redis.PlaceFresh, redis.PlaceFresh} {
		want[i] = waiterView{EntryID: entries[i].EntryID, Quantity: 1, Place: place, JoinedAt: entries[i].JoinedAt}
	}
	require.Equal(t, want, got)

	for _, query := range []string{"?limit=0", "?cursor=x", "?cursor=-5"} {
		exact(t, h.call("GET", path+query, nil), 422, validationFailed)
	}
	exact(t, h.call("GET", path, nil, "Authorization", ""), 401, unauthorized)
	exact(t, h.call("GET", "/v1/stock/NOBODY/line", nil), 404, unknownSKU)
	h.gate.break_("Snapshot", &redis.ClosedError{SKU: h.sku}, nil)
	exact(t, h.call("GET", path, nil), 503, unavailable)
}

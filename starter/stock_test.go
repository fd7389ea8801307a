package starter

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestPutStock(t *testing.T) {
	h := newHouse(t, 0)
	path := "/v1/stock/" + h.sku
	a := h.call("PUT", path, map[string]any{"title": "Pine Chair", "checkout_url": "https://shop.example/pay"})
	require.Equal(t, http.StatusOK, a.status, a.body)
	var v stockView
	a.into(t, &v)
	require.Equal(t, []any{h.sku, "Pine Chair", contract.SKUSoldOut, int64(0)}, []any{v.SKU, v.Title, v.State, v.OnHand})

	h.untouched(func() {
		for body, pointers := range map[string][]string{
			`{}`: {"/title", "/checkout_url"},
			`{"title":"","checkout_url":"https://s.example"}`:                                          {"/title"},
			`{"title":"T","checkout_url":"javascript:alert(1)"}`:                                       {"/checkout_url"},
			`{"title":"T","checkout_url":"/pay"}`:                                                      {"/checkout_url"},
			`{"title":"T","checkout_url":"https://{hold_id}.example/"}`:                                {"/checkout_url"},
			`{"title":"T","checkout_url":"https://s.example/{phone}"}`:                                 {"/checkout_url"},
			`{"title":"T","checkout_url":"https://s.example","image_url":"data:x"}`:                    {"/image_url"},
			`{"title":"T","checkout_url":"https://s.example","price":{"amount":1}}`:                    {"/price/currency"},
			`{"title":"T","checkout_url":"https://s.example","price":{}}`:                              {"/price"},
			`{"title":"T","checkout_url":"https://s.example","units":5}`:                               {"/units"},
			`{"title":"T","checkout_url":"https://s.example","price":{"amount":1.5,"currency":"eur"}}`: {"/price/amount", "/price/currency"},
		} {
			exact(t, h.call("PUT", path, body), 422, validationFailed, pointers...)
		}
		exact(t, h.call("PUT", "/v1/stock/a%20b", `{"title":"T","checkout_url":"https://s.example"}`), 422, validationFailed)
		exact(t, h.call("PUT", "/v1/stock/"+strings.Repeat("x", 65), `{"title":"T","checkout_url":"https://s.example"}`), 422, validationFailed)
		exact(t, h.call("PUT", path, `{}`, "Authorization", ""), 401, unauthorized)
	})

	h.wf.set(func() { h.wf.updates = nil })
	for _, key := range []string{"a", "a", "b", "", ""} {
		require.Equal(t, 200, h.call("PUT", path, `{"title":"T","checkout_url":"https://s.example"}`, "Idempotency-Key", key).status)
	}
	u := h.wf.updates
	require.Equal(t, u[0], u[1], "one Idempotency-Key, one update")
	require.Len(t, map[string]bool{u[1]: true, u[2]: true, u[3]: true, u[4]: true}, 4)

	h.wf.set(func() { h.wf.fail["Policy"] = errTemporalDown })
	exact(t, h.call("PUT", "/v1/stock/T-"+rand.Text(), `{"title":"T","checkout_url":"https://s.example"}`), 503, unavailable)
}

// A SKU whose number is another's is refused before anything is opened.
func TestPutStockWithTakenNumber(t *testing.T) {
	h := newHouse(t, 0)
	sku := "T-" + rand.Text()
	require.NoError(t, shared.HSet(t.Context(), "hf:skus", contract.SKUNumber(sku), "OTHER-"+sku).Err())
	p := exact(t, h.call("PUT", "/v1/stock/"+sku, `{"title":"T","checkout_url":"https://s.example"}`), 422, validationFailed)
	require.Contains(t, p.Detail, "OTHER-"+sku)
	exact(t, h.call("GET", "/v1/stock/"+sku, nil), 404, unknownSKU)
}

func TestReadStock(t *testing.T) {
	h := newHouse(t, 2)
	h.hold()
	var v stockView
	h.call("GET", "/v1/stock/"+h.sku, nil).into(t, &v)
	require.Equal(t, []any{contract.SKUAvailable, int64(2), int64(1), int64(1), int64(1)}, []any{v.State, v.OnHand, v.Held, v.Available, v.OpenToAll})
	pub := h.call("GET", "/v1/stock/"+h.sku+"/public", nil, "Authorization", "")
	require.Equal(t, "*", pub.header.Get("Access-Control-Allow-Origin"))
	require.JSONEq(t, `{"sku":"`+h.sku+`","state":"available","open_to_all":1}`, pub.body)
	for _, path := range []string{"NOBODY", "a%20b", "NOBODY/public", "NOBODY/ledger"} {
		exact(t, h.call("GET", "/v1/stock/"+path, nil), 404, unknownSKU)
	}

	h.call("POST", "/v1/stock/"+h.sku+"/pause", `{}`).into(t, &v)
	require.Equal(t, []any{contract.SKUPaused, true}, []any{v.State, v.Paused})
	v = stockView{}
	h.call("POST", "/v1/stock/"+h.sku+"/resume", nil).into(t, &v)
	require.Equal(t, []any{contract.SKUAvailable, false}, []any{v.State, v.Paused})
	exact(t, h.call("POST", "/v1/stock/NOBODY/pause", nil), 404, unknownSKU)
}

func TestListStockAndLedger(t *testing.T) {
	h := newHouse(t, 3)
	for range 2 {
		h.hold()
	}
	walk := func(path string) (rows []map[string]any) {
		for cursor := ""; ; {
			var list struct {
				Data []map[string]any
				Next *string `json:"next_cursor"`
			}
			a := h.call("GET", path+"limit=2&cursor="+cursor, nil)
			require.Equal(t, http.StatusOK, a.status, a.body)
			a.into(t, &list)
			rows = append(rows, list.Data...)
			if list.Next == nil {
				return rows
			}
			require.Len(t, list.Data, 2)
			cursor = *list.Next
		}
	}
	lines := walk("/v1/stock/" + h.sku + "/ledger?")
	require.Len(t, lines, len(h.ledger()))
	for i, l := range lines {
		require.Equal(t, float64(i+1), l["n"])
	}
	names := map[any]bool{}
	for _, row := range walk("/v1/stock?") {
		require.False(t, names[row["sku"]], "twice in the list")
		names[row["sku"]] = true
	}
	require.True(t, names[h.sku])
	exact(t, h.call("GET", "/v1/stock/"+h.sku+"/ledger?cursor=x", nil), 422, validationFailed)
}

// A key belongs to one request: another one under it changes nothing.
func TestIdempotencyKeyOfStockCalls(t *testing.T) {
	h := newHouse(t, 0)
	put := func(title, key string) answer {
		return h.call("PUT", "/v1/stock/"+h.sku, map[string]any{"title": title, "checkout_url": "https://shop.example/c"}, "Idempotency-Key", key)
	}
	require.Equal(t, http.StatusOK, put("One", "k1").status)
	require.Equal(t, http.StatusOK, put("One", "k1").status, "a repeat")
	exact(t, put("Two", "k1"), 422, idempotencyKeyReused)
	require.Contains(t, h.call("GET", "/v1/stock/"+h.sku, nil).body, `"title":"One"`)

	require.Equal(t, http.StatusOK, h.call("POST", "/v1/stock/"+h.sku+"/pause", nil, "Idempotency-Key", "k2").status)
	exact(t, h.call("POST", "/v1/stock/"+h.sku+"/resume", nil, "Idempotency-Key", "k2"), 422, idempotencyKeyReused)
	require.Contains(t, h.call("GET", "/v1/stock/"+h.sku, nil).body, `"paused":true`)
}

// What Temporal did not take leaves no SKU behind.
func TestAFailedPutLeavesNothing(t *testing.T) {
	h := newHouse(t, 0)
	h.wf.fail["Policy"] = errTemporalDown
	sku := h.sku + "-NEW"
	require.NoError(t, h.gate.MarkMapWhole(t.Context()))
	exact(t, h.call("PUT", "/v1/stock/"+sku, map[string]any{"title": "New", "checkout_url": "https://shop.example/c"}), 503, unavailable)
	exact(t, h.call("GET", "/v1/stock/"+sku, nil), 404, unknownSKU)
}

// A closed gate is never "sold out": it is named, checked, and asked for again.
func TestClosedGate(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", "another server").Err())
	for _, a := range []answer{
		h.askHold("k"), h.call("GET", "/v1/holds/"+v.HoldID, nil),
		h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "+12025550101", "consent": true}),
		h.confirm(v.HoldID, "p"),
	} {
		exact(t, a, 503, unavailable)
		require.Equal(t, "5", a.header.Get("Retry-After"))
	}
	exact(t, h.call("GET", "/v1/stock/"+h.sku+"/public", nil), 503, unavailable)
	a := h.call("GET", "/v1/stock/"+h.sku, nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Contains(t, a.body, `"state":"closed"`)
	require.Equal(t, http.StatusServiceUnavailable, h.browse("GET", "/join/"+h.sku, nil).status)
	h.eventually("whoever meets it has it checked", func() bool {
		var checked []contract.ReconcileInput
		h.wf.set(func() { checked = h.wf.checked })
		return len(checked) > 0 && checked[0] == contract.ReconcileInput{SKU: h.sku, ReopenSeconds: 20}
	})
	require.Empty(t, h.wf.decided)
}

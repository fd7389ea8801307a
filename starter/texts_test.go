package starter

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

func (h *house) missedTexts(query string) missedTextsView {
	h.t.Helper()
	var v struct {
		Data []missedTextView `json:"data"`
		missedTextsView
	}
	h.untouched(func() {
		a := h.call("GET", "/v1/stock/"+h.sku+"/texts"+query, nil)
		require.Equal(h.t, http.StatusOK, a.status, a.body)
		require.Contains(h.t, a.body, `"data":[`)
		a.into(h.t, &v)
	})
	out := v.missedTextsView
	for _, d := range v.Data {
		out.Data = append(out.Data, d)
	}
	return out
}

// lapses lets the offer of an entry lapse; told says whether its text was handed over.
func (h *house) lapses(entryID string, told bool, req redis.LapseRequest) string {
	h.t.Helper()
	hold := h.knows(entryID, contract.EntryStatus{})
	if told {
		_, err := h.gate.Told(h.t.Context(), redis.ToldRequest{SKU: h.sku, HoldID: hold, MaxAge: time.Hour}) // a window of no length
		require.NoError(h.t, err)
	}
	req.SKU, req.HoldID = h.sku, hold
	out, err := h.gate.Lapse(h.t.Context(), req)
	require.NoError(h.t, err)
	require.Equal(h.t, redis.OK, out.Verdict)
	return hold
}

// B84: offers whose texts never arrived are listed, with what is known of each.
func TestTextsThatNeverArrived(t *testing.T) {
	h := newHouse(t, 0)
	require.Empty(t, h.missedTexts("").Data)
	read, silent, lost, nightly := h.waits(1), h.waits(2), h.waits(3), h.waits(4)
	h.restock(4)
	h.lapses(read, true, redis.LapseRequest{})
	held := h.lapses(silent, true, redis.LapseRequest{NotDelivered: true})
	require.Equal(t, contract.ReasonNotDelivered, h.record(held).Reason)
	h.lapses(lost, true, redis.LapseRequest{NotTold: true})
	h.lapses(nightly, false, redis.LapseRequest{NotTold: true, NotDelivered: true})

	v := h.missedTexts("")
	require.Equal(t, []any{4, 3, true}, []any{v.Lapsed, v.Missed, v.Whole})
	require.Len(t, v.Data, 3)
	for i, want := range []struct {
		entry, why, detail string
		told               bool
	}{
		{nightly, contract.ReasonNotTold, "no text was tried", false},
		{lost, contract.ReasonNotTold, "was lost on its way", true},
		{silent, contract.ReasonNotDelivered, "never said that it arrived", true},
	} {
		got := v.Data[i].(missedTextView)
		require.Equal(t, []any{want.entry, want.why, int64(1)}, []any{got.EntryID, got.Why, got.Units})
		require.Contains(t, got.Detail, want.detail)
		require.Equal(t, want.told, got.ToldAt != "")
		require.NotEmpty(t, got.At)
	}
	one := h.missedTexts("?limit=1")
	require.Len(t, one.Data, 1)
	require.Equal(t, 3, one.Missed, "all are counted")
	require.Zero(t, h.missedTexts("?since="+stamp(time.Now().Add(time.Minute))).Lapsed)

	code, out, errs := h.operator("texts", h.sku, "--since", "1h")
	require.Zero(t, code, errs)
	require.Contains(t, out, h.sku+": 3 of 4 lapsed offers without a text that arrived\n")
	require.Contains(t, out, silent)
	require.NotContains(t, out, read)
	_, out, _ = h.operator("texts", h.sku, "--json")
	require.Contains(t, out, `"missed": 3`)
	code, _, errs = h.operator("texts", h.sku, "--since", "soon")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--since")
	code, _, _ = h.operator("texts", "a b")
	require.Equal(t, 2, code)
	require.Equal(t, http.StatusUnauthorized, h.call("GET", "/v1/stock/"+h.sku+"/texts", nil, "Authorization", "").status)
	require.Equal(t, unknownSKU, h.call("GET", "/v1/stock/NONE/texts", nil).problem(t).Code)
	require.Equal(t, validationFailed, h.call("GET", "/v1/stock/"+h.sku+"/texts?cursor=x", nil).problem(t).Code)
}

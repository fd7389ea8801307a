package starter

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func (h *house) putPolicy(body, match string, header ...string) answer {
	return h.call("PUT", "/v1/stock/"+h.sku+"/policy", body, append([]string{"If-Match", match}, header...)...)
}

func TestAPolicyIsReadAndReplaced(t *testing.T) {
	h := newHouse(t, 1)
	path := "/v1/stock/" + h.sku + "/policy"
	const configured = `"hold_seconds":600,"extension_seconds":60,"grace_seconds":60,"offer_window_seconds":900,` +
		`"offer_max_age_seconds":172800,"waitlist_ttl_seconds":15552000,"missed_keep":0`
	first := h.call("GET", path, nil)
	require.Equal(t, http.StatusOK, first.status)
	require.Equal(t, `"1"`, first.header.Get("ETag"))
	require.JSONEq(t, `{"sku":"`+h.sku+`","policy_version":1,"effective":{`+configured+`}}`, first.body)

	put := h.putPolicy(`{"hold_seconds":300,"limit_per_person":2,"grace_seconds":null,"ends_at":"2030-01-31T22:00:00.1234+01:00"}`, `"1"`)
	require.Equal(t, http.StatusOK, put.status, put.body)
	require.Equal(t, `"2"`, put.header.Get("ETag"))
	want := `{"sku":"` + h.sku + `","policy_version":2,"hold_seconds":300,"limit_per_person":2,"ends_at":"2030-01-31T21:00:00.123Z",
		"effective":{"hold_seconds":300,"extension_seconds":60,"grace_seconds":60,"offer_window_seconds":900,"offer_max_age_seconds":172800,
		"waitlist_ttl_seconds":15552000,"missed_keep":0,"limit_per_person":2,"ends_at":"2030-01-31T21:00:00.123Z"}}`
	require.JSONEq(t, want, put.body)
	got := h.call("GET", path, nil)
	require.JSONEq(t, want, got.body)
	require.Equal(t, `"2"`, got.header.Get("ETag"))
	var v stockView
	h.call("GET", "/v1/stock/"+h.sku, nil).into(t, &v)
	require.EqualValues(t, 2, v.Version)

	require.Equal(t, http.StatusOK, h.putPolicy(`{}`, "2").status, "a bare version is one too")
	require.JSONEq(t, `{"sku":"`+h.sku+`","policy_version":3,"effective":{`+configured+`}}`, h.call("GET", path, nil).body,
		"what is missing falls back")
	require.Equal(t, http.StatusOK, h.putPolicy(`{"missed_keep":1}`, `"1", "3"`).status)
	require.Equal(t, http.StatusOK, h.putPolicy(`{}`, `*`).status)
}

func TestAPolicyIsNeverReplacedUnseen(t *testing.T) {
	h := newHouse(t, 1)
	h.untouched(func() {
		for match, word := range map[string]string{
			"": "send the header If-Match", `"7"`: "is at version 1", `W/"1"`: "names no version", "abc": "names no version", `"0"`: "names no version",
		} {
			a := h.putPolicy(`{"hold_seconds":30}`, match)
			p := exact(t, a, 412, preconditionFailed)
			require.Contains(t, p.Detail, word)
			if match == `"7"` {
				require.Equal(t, `"1"`, a.header.Get("ETag"))
			}
		}
		for body, pointers := range map[string][]string{
			`{"hold_seconds":4}`:    {"/hold_seconds"},
			`{"hold_seconds":"60"}`: {"/hold_seconds"},
			`{"hold_seconds":7201,"grace_seconds":601,"extension_seconds":-1}`: {"/hold_seconds", "/extension_seconds", "/grace_seconds"},
			`{"offer_window_seconds":604801}`:                                  {"/offer_window_seconds"},
			`{"offer_window_seconds":172801}`:                                  {"/offer_window_seconds"}, // more than the configured greatest age
			`{"offer_max_age_seconds":899}`:                                    {"/offer_max_age_seconds"},
			`{"waitlist_ttl_seconds":34560001}`:                                {"/waitlist_ttl_seconds"},
			`{"missed_keep":1.5}`:                                              {"/missed_keep"},
			`{"limit_per_person":0}`:                                           {"/limit_per_person"},
			`{"ends_at":"tomorrow"}`:                                           {"/ends_at"},
			`{"ends_at":"1969-12-31T23:59:59Z"}`:                               {"/ends_at"},
			`{"hold_second":60,"policy_version":1}`:                            {"/hold_second", "/policy_version"},
		} {
			exact(t, h.putPolicy(body, `"1"`), 422, validationFailed, pointers...)
		}
		exact(t, h.call("PUT", "/v1/stock/NOBODY/policy", `{}`, "If-Match", "*"), 404, unknownSKU)
		exact(t, h.call("GET", "/v1/stock/NOBODY/policy", nil), 404, unknownSKU)
		exact(t, h.putPolicy(`{}`, `"1"`, "Authorization", ""), 401, unauthorized)
		h.wf.set(func() { h.wf.fail["Policy"] = errTemporalDown })
		exact(t, h.putPolicy(`{}`, `"1"`), 503, unavailable)
		h.wf.set(func() { h.wf.fail = map[string]error{} })
	})
	require.Equal(t, `"1"`, h.call("GET", "/v1/stock/"+h.sku+"/policy", nil).header.Get("ETag"))

	require.Equal(t, http.StatusOK, h.putPolicy(`{"hold_seconds":30}`, `"1"`, "Idempotency-Key", "k").status)
	exact(t, h.putPolicy(`{"hold_seconds":31}`, `"1"`, "Idempotency-Key", "k"), 422, idempotencyKeyReused)
}

// Whoever takes a unit after the answer has the policy's clocks, at the gate and in
// the workflow; who took one before keeps theirs.
func TestHoldsHaveThePolicyOfTheirTime(t *testing.T) {
	h := newHouse(t, 5)
	kept := func(v holdView) time.Duration {
		r := h.record(v.HoldID)
		return r.Deadline.Sub(r.CreatedAt).Round(5 * time.Second)
	}
	before := h.hold()
	require.Equal(t, http.StatusOK, h.putPolicy(`{"hold_seconds":30,"extension_seconds":0,"grace_seconds":7}`, `"1"`).status)
	after := h.hold()
	require.Equal(t, []time.Duration{10 * time.Minute, 30 * time.Second}, []time.Duration{kept(before), kept(after)})
	require.Equal(t, contract.HoldSettings{HoldSeconds: 30, GraceSeconds: 7}, h.wf.holds[after.HoldID].Settings)
	require.Equal(t, contract.HoldSettings{HoldSeconds: 600, ExtensionSeconds: 60, GraceSeconds: 60}, h.wf.holds[before.HoldID].Settings)

	// A cart has the smallest clocks of its SKUs.
	other := "T-" + rand.Text()
	h.put(other)
	_, err := h.gate.Stock(t.Context(), other, contract.StockEvent{EventID: rand.Text(), Kind: contract.StockRestock, Units: 1})
	require.NoError(t, err)
	a := h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": []any{
		map[string]any{"sku": h.sku, "quantity": 1}, map[string]any{"sku": other, "quantity": 1},
	}}, "Idempotency-Key", "cart")
	require.Equal(t, http.StatusCreated, a.status, a.body)
	var cart holdView
	a.into(t, &cart)
	require.Equal(t, contract.HoldSettings{HoldSeconds: 30, GraceSeconds: 7}, h.wf.holds[cart.HoldID].Settings)

	// A press too, and the page says so before.
	require.Equal(t, http.StatusOK, h.putPolicy(`{"hold_seconds":90}`, `*`).status)
	for range 2 {
		h.hold()
	}
	_, holdID, path := h.offer()
	require.Contains(t, h.browse("GET", path, nil).body, "90 seconds")
	require.Equal(t, http.StatusSeeOther, h.browse("POST", path, nil).status)
	require.EqualValues(t, 90, h.wf.holds[holdID].Settings.HoldSeconds)
	left := time.Until(h.record(holdID).Deadline)
	require.Greater(t, left, 60*time.Second)
	require.LessOrEqual(t, left, 90*time.Second)
}

// A unit whose clocks cannot be read is promised to nobody: its lease ends by itself.
func TestWithoutItsPolicyNothingIsPromised(t *testing.T) {
	h := newHouse(t, 1)
	h.gate.break_("Policy", redis.ErrUnavailable, nil)
	exact(t, h.askHold("k"), 503, unavailable)
	require.Zero(t, h.wf.started())
	h.gate.break_("", nil, nil)
	require.Equal(t, http.StatusCreated, h.askHold("k").status, "the repeat")
}

func TestJoinsHaveThePolicyOfTheirTime(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.SMS.SentGrace = time.Minute })
	require.Equal(t, http.StatusOK, h.putPolicy(`{"waitlist_ttl_seconds":3600,"offer_window_seconds":60,"offer_max_age_seconds":120}`, `"1"`).status)
	v := h.join("+12025550101")
	joined, err := time.Parse(time.RFC3339, v.JoinedAt)
	require.NoError(t, err)
	expires, err := time.Parse(time.RFC3339, v.ExpiresAt)
	require.NoError(t, err)
	require.Equal(t, time.Hour, expires.Sub(joined))
	h.eventually("its workflow is started", func() bool { _, ok := h.wf.entry(v.EntryID); return ok })
	in, _ := h.wf.entry(v.EntryID)
	require.Equal(t, contract.EntrySettings{TTLSeconds: 3600, WindowSeconds: 900, SentGraceSeconds: 60, MaxAgeSeconds: 48 * 3600}, in.Settings,
		"its offers ask for their clocks when they come")
}

func TestOneWhoHasAllThatOneMayHaveIsRefused(t *testing.T) {
	h := newHouse(t, 3)
	require.Equal(t, http.StatusOK, h.putPolicy(`{"limit_per_person":1}`, `"1"`).status)
	require.Equal(t, http.StatusCreated, h.askHold("a", "customer", "ada").status)
	p := exact(t, h.askHold("b", "customer", "ada"), 409, limitReached)
	require.Equal(t, h.sku, p.SKU)
	require.Equal(t, http.StatusCreated, h.askHold("c", "customer", "ben").status)
}

// B51: what is free after the end of the sale is left over: it is shown, and nobody
// gets it.
func TestWhatIsLeftOverIsShown(t *testing.T) {
	h := newHouse(t, 1)
	require.Equal(t, http.StatusOK, h.putPolicy(`{"ends_at":"2020-01-01T00:00:00Z"}`, `"1"`).status)
	var v stockView
	h.call("GET", "/v1/stock/"+h.sku, nil).into(t, &v)
	require.Equal(t, []any{contract.SKUEnded, int64(1), int64(0)}, []any{v.State, v.Available, v.OpenToAll})
	exact(t, h.askHold("a"), 409, saleEnded)
	exact(t, h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "+12025550101", "consent": true}), 409, saleEnded)
	require.Equal(t, http.StatusOK, h.putPolicy(`{}`, `*`).status)
	require.Equal(t, http.StatusCreated, h.askHold("b").status)
}

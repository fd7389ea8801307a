package starter

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/limits"
	"holdfast/redis"
)

// goodBodies are what each call takes; a call that is not here takes none.
func (h *house) goodBodies() map[string]any {
	return map[string]any{
		"PUT /v1/stock/{sku}":                     map[string]any{"title": "Oak Chair", "checkout_url": checkout},
		"PUT /v1/stock/{sku}/policy":              map[string]any{"hold_seconds": 60},
		"POST /v1/waitlist":                       map[string]any{"sku": h.sku, "phone": "+12025550107", "consent": true},
		"POST /v1/holds":                          map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"},
		"POST /v1/holds/{hold_id}/checkout":       map[string]any{"payment_ref": "p"},
		"POST /v1/holds/{hold_id}/confirm":        map[string]any{"payment_ref": "p"},
		"POST /v1/find":                           map[string]any{"term": "order-7"},
		"POST /v1/refunds/{payment_id}/settle":    map[string]any{"reference": "r"},
		"POST /v1/stock/{sku}/reconcile":          map[string]any{},
		"POST /v1/holds/{hold_id}/payment-failed": map[string]any{"final": true},
		"POST /join/{sku}":                        url.Values{"phone": {"+12025550108"}, "consent": {"yes"}},
		"POST /w/{entry_id}/leave":                url.Values{},
		"POST /w/{entry_id}/again":                url.Values{},
		"POST /r/{token}":                         url.Values{},
		"POST /h/{hold_id}/release":               url.Values{},
	}
}

// askRoute makes the good call of a route about what ids names.
func (h *house) askRoute(pattern string, ids map[string]string) answer {
	h.t.Helper()
	method, path, _ := strings.Cut(strings.Replace(pattern, "{$}", "", 1), " ")
	for name, id := range ids {
		path = strings.Replace(path, "{"+name+"}", id, 1)
	}
	switch body := h.goodBodies()[pattern].(type) {
	case url.Values:
		return h.browse(method, path, body)
	case nil:
		if path == "/v1/webhooks/inventory" {
			return h.send(h.signedEvent(`{"event_id":"e-away","sku":"`+h.sku+`","kind":"restock","units":1}`, time.Now(), webhookSecret))
		}
		return h.call(method, path, nil)
	default:
		return h.call(method, path, body, "Idempotency-Key", digest(pattern), "If-Match", "*")
	}
}

// Redis is away: whatever is asked, nobody hears that something is sold out, unknown or
// over. The calls that need no gate answer as ever.
func TestWithoutRedisNothingIsRefused(t *testing.T) {
	for _, known := range []bool{true, false} {
		h := newHouse(t, 0)
		entry, hold, path := h.offer()
		ids := map[string]string{
			"sku": h.sku, "entry_id": entry, "hold_id": hold, "token": strings.TrimPrefix(path, "/r/"),
			"payment_id": contract.PaymentID(hold, "p"), "event_id": contract.EventID(hold, "hold.created", ""),
		}
		dead := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1, DialerRetryTimeout: time.Millisecond})
		t.Cleanup(func() { _ = dead.Close() })
		if !known {
			h.door.skus.known.Clear() // a door that has just started
		}
		away := redis.New(dead, redis.Options{Lease: 10 * time.Second, RecordRetention: time.Hour, SaleRetention: time.Hour, OfferMaxAge: time.Hour, Log: h.door.log})
		h.door.gate, h.door.skus.gate, h.door.limits = away, away, limits.New(dead)
		h.wf.set(func() { h.wf.fail["Decide"] = context.DeadlineExceeded }) // a Payment asks the gate
		answers := map[string]int{}
		for _, r := range h.door.routes() {
			a := h.askRoute(r.pattern, ids)
			answers[r.pattern] = a.status
			if r.pattern == "GET /v1/attention" {
				require.Contains(t, a.body, `"redis":"unavailable","temporal":"open"`)
				require.Contains(t, a.body, contract.LookRedisSilent)
			}
			if a.status == http.StatusServiceUnavailable && r.pattern != "GET /readyz" {
				require.NotEmpty(t, a.header.Get("Retry-After"), r.pattern)
				require.NotContains(t, a.body, "sold")
			}
		}
		// What says nothing of a thing that the gate has, or is refused before it is asked.
		as := map[string]int{
			"GET /healthz": 200, "GET /metrics": 404, "GET /docs": 200, "GET /openapi.json": 200, "OPTIONS /codec/encode": 204, "OPTIONS /codec/decode": 204,
			"POST /codec/encode": 415, "POST /codec/decode": 415,
			"POST /v1/webhooks/twilio/status": 401, "POST /v1/webhooks/twilio/inbound": 401,
			// Of Temporal, which knows nothing here.
			"GET /v1/attention": 200, // it names what is silent
			"GET /v1/holds":     200, "GET /v1/refunds": 200, "GET /v1/events": 200,
			"POST /v1/refunds/{payment_id}/settle": 404, "POST /v1/refunds/{payment_id}/retry": 404,
			"POST /v1/events/{event_id}/retry": 404, "POST /v1/events/test": 422,
		}
		if known {
			as["POST /v1/webhooks/inventory"] = http.StatusAccepted // the book has it
		}
		for pattern, got := range answers {
			want, ok := as[pattern]
			if !ok {
				want = http.StatusServiceUnavailable
			}
			assert.Equal(t, want, got, "%s, SKU known: %v", pattern, known)
		}
	}
}

// Temporal is away: what it must be told is not said to be done, and what the gate
// alone knows is answered as ever. Back again, the same calls do what they say.
func TestWithoutTemporalNothingIsSaidToBeDone(t *testing.T) {
	h := newHouse(t, 1)
	hold := h.hold()
	ids := map[string]string{"sku": h.sku, "hold_id": hold.HoldID}
	told := []string{
		"POST /v1/holds/{hold_id}/checkout", "POST /v1/holds/{hold_id}/confirm", "POST /v1/holds/{hold_id}/release",
		"POST /v1/holds/{hold_id}/payment-failed", "POST /h/{hold_id}/release",
		"PUT /v1/stock/{sku}", "PUT /v1/stock/{sku}/policy", "POST /v1/stock/{sku}/pause", "POST /v1/stock/{sku}/resume",
		"POST /v1/webhooks/inventory", "POST /v1/stock/{sku}/reconcile",
	}
	h.wf.set(func() { h.wf.down = true })
	h.untouched(func() {
		for _, pattern := range told {
			a := h.askRoute(pattern, ids)
			require.Equal(t, http.StatusServiceUnavailable, a.status, "%s: %s", pattern, a.body)
			require.NotEmpty(t, a.header.Get("Retry-After"), pattern)
		}
	})
	require.Equal(t, contract.HoldHeld, h.record(hold.HoldID).State)
	for _, pattern := range []string{"GET /v1/stock/{sku}", "GET /v1/stock/{sku}/public", "GET /v1/holds/{hold_id}", "GET /h/{hold_id}", "GET /join/{sku}"} {
		require.Equal(t, http.StatusOK, h.askRoute(pattern, ids).status, pattern)
	}
	h.wf.set(func() { h.wf.down = false })
	for _, pattern := range told[:2] {
		a := h.askRoute(pattern, ids)
		require.Equal(t, http.StatusOK, a.status, "%s: %s", pattern, a.body)
	}
	require.Equal(t, contract.HoldSold, h.record(hold.HoldID).State)
}

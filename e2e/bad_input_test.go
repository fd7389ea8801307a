package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// bad is one request that must change nothing.
type bad struct {
	name, method, path string
	body               any // []byte: as it is
	header             []string
	status             int
	code               string
	pointer            string // of the member that is wrong, when one is
}

type object = map[string]any

// but is a copy of an object with one member changed, or without it when v is
// nil.
func (o bad) but(name string, v any) object {
	out := maps.Clone(o.body.(object))
	if out[name] = v; v == nil {
		delete(out, name)
	}
	return out
}

// B53: what cannot be is refused, names the member that is wrong, and leaves no trace.
func TestBadInputMovesNothing(t *testing.T) {
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	h.opened(t, "sound", 3)
	first, err := h.shop.AskHold(ctx, "sound", "customer-1", "used-key")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, first.Status, first)
	workflows := h.everyWorkflow(t, "before")
	lines, counters := h.allLedgers(t), h.counters(t)

	for _, c := range badRequests(h.shop.Secret) {
		t.Run(c.name, func(t *testing.T) {
			a, err := h.shop.Call(ctx, c.method, c.path, c.body, c.header...)
			require.NoError(t, err)
			require.Equal(t, c.status, a.Status, a)
			problem := a.Problem()
			require.Equal(t, c.code, problem.Code, a)
			require.Equal(t, "urn:holdfast:problem:"+c.code, problem.Type, a)
			require.Equal(t, c.status, problem.Status, a)
			require.NotEmpty(t, problem.Title, a)
			require.NotEmpty(t, problem.Detail, a)
			var pointers []string
			for _, e := range problem.Errors {
				pointers = append(pointers, e.Pointer)
			}
			if c.pointer != "" {
				require.Equal(t, []string{c.pointer}, pointers, a)
			}
			require.Equal(t, lines, h.allLedgers(t), "ledger lines")
			require.Equal(t, counters, h.counters(t))
		})
	}
	workflows = append(workflows, "stock.after")
	slices.Sort(workflows)
	require.Equal(t, workflows, h.everyWorkflow(t, "after"))
	h.judge(t, "sound")
}

func badRequests(secret string) []bad {
	hold := bad{method: http.MethodPost, path: "/v1/holds", body: object{"sku": "sound", "quantity": 1, "customer": "c"}}
	join := bad{method: http.MethodPost, path: "/v1/waitlist", body: object{"sku": "sound", "phone": phone(0), "consent": true}}
	event := bad{method: http.MethodPost, path: "/v1/webhooks/inventory", body: object{"event_id": "e", "sku": "sound", "kind": "restock", "units": 1}}
	put := bad{method: http.MethodPut, path: "/v1/stock/fresh", body: object{"title": "T", "checkout_url": "https://shop.example/{hold_id}"}}

	var out []bad
	add := func(name string, of bad, body any, status int, code, pointer string, header ...string) {
		of.name, of.body, of.status, of.code, of.pointer, of.header = name, body, status, code, pointer, header
		switch raw, asIs := body.([]byte); {
		case of.path == hold.path && len(header) == 0:
			of.header = []string{"Idempotency-Key", shop.Token()}
		case of.path == event.path && len(header) == 0:
			if !asIs {
				raw = encode(body)
			}
			of.body, of.header = raw, shop.Sign(secret, shop.Token(), time.Now(), raw)
		}
		out = append(out, of)
	}
	const (
		notFound, invalid, unauthorized = http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusUnauthorized
		unknown, failed                 = "unknown-sku", "validation-failed"
	)

	add("unknown sku, read", bad{method: http.MethodGet, path: "/v1/stock/nothing"}, nil, notFound, unknown, "")
	add("unknown sku, public", bad{method: http.MethodGet, path: "/v1/stock/nothing/public"}, nil, notFound, unknown, "", "Authorization", "")
	add("unknown sku, ledger", bad{method: http.MethodGet, path: "/v1/stock/nothing/ledger"}, nil, notFound, unknown, "")
	add("unknown sku, pause", bad{method: http.MethodPost, path: "/v1/stock/nothing/pause"}, object{}, notFound, unknown, "")
	for _, wrong := range []struct {
		of    bad
		units string
	}{{hold, "quantity"}, {join, "quantity"}, {event, "units"}} {
		name := strings.TrimPrefix(wrong.of.path, "/v1/")
		add(name+": unknown sku", wrong.of, wrong.of.but("sku", "nothing"), notFound, unknown, "")
		add(name+": sku missing", wrong.of, wrong.of.but("sku", nil), invalid, failed, "/sku")
		for _, units := range []any{0, -1, 1.5, 1_000_000_000_000, "2"} {
			add(fmt.Sprintf("%s: %s %#v", name, wrong.units, units), wrong.of, wrong.of.but(wrong.units, units), invalid, failed, "/"+wrong.units)
		}
		add(name+": broken JSON", wrong.of, []byte(`{"sku":"sound",`), http.StatusBadRequest, "malformed-body", "")
		add(name+": no object", wrong.of, []byte(`[]`), invalid, failed, "")
		add(name+": over 64 KiB", wrong.of, wrong.of.but("customer", strings.Repeat("x", 64<<10)), http.StatusRequestEntityTooLarge, "body-too-large", "")
	}
	for _, of := range []bad{hold, join, put} {
		add("unknown member, "+of.path, of, of.but("colour", "red"), invalid, failed, "/colour")
	}
	add("restock without units", event, event.but("units", nil), invalid, failed, "/units")
	add("event of an unknown kind", event, event.but("kind", "gift"), invalid, failed, "/kind")
	add("event without id", event, event.but("event_id", nil), invalid, failed, "/event_id")
	add("no phone", join, join.but("phone", nil), invalid, failed, "/phone")
	add("not a phone", join, join.but("phone", "hello"), invalid, failed, "/phone")
	add("too short for a phone", join, join.but("phone", "+1202"), invalid, failed, "/phone")
	add("no consent", join, join.but("consent", nil), invalid, failed, "/consent")
	add("no title", put, put.but("title", nil), invalid, failed, "/title")

	for _, of := range []bad{hold, put, {method: http.MethodGet, path: "/v1/stock/sound"}, {method: http.MethodGet, path: "/v1/holds?sku=sound"}} {
		add("no bearer key, "+of.method+" "+of.path, of, of.body, unauthorized, "unauthorized", "", "Authorization", "", "Idempotency-Key", "a")
		add("wrong bearer key, "+of.method+" "+of.path, of, of.body, unauthorized, "unauthorized", "", "Authorization", "Bearer guess", "Idempotency-Key", "a")
	}
	add("no Idempotency-Key", hold, hold.body, http.StatusBadRequest, "idempotency-key-missing", "", "Idempotency-Key", "")
	add("same key, other body", hold, hold.but("quantity", 2), invalid, "idempotency-key-reused", "", "Idempotency-Key", "used-key")

	raw := encode(event.body)
	stale := shop.Sign(secret, "e", time.Now().Add(-10*time.Minute), raw)
	early := shop.Sign(secret, "e", time.Now().Add(10*time.Minute), raw)
	other := shop.Sign("whsec_b3RoZXI=", "e", time.Now(), raw)
	add("signature of another secret", event, raw, unauthorized, "signature-invalid", "", other...)
	add("stale signature", event, raw, unauthorized, "signature-invalid", "", stale...)
	add("signature from the future", event, raw, unauthorized, "signature-invalid", "", early...)
	add("signature of another body", event, encode(event.but("units", 2)), unauthorized, "signature-invalid", "", shop.Sign(secret, "e", time.Now(), raw)...)
	add("no signature", event, raw, unauthorized, "signature-invalid", "", "webhook-id", "e")
	return out
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a table of this file is wrong
	}
	return raw
}

// allLedgers is the number of ledger lines of each SKU in Redis.
func (h *house) allLedgers(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	keys, err := h.redis.Keys(t.Context(), "hf:*:ledger").Result()
	require.NoError(t, err)
	for _, key := range keys {
		out[key], err = h.redis.XLen(t.Context(), key).Result()
		require.NoError(t, err)
	}
	require.NotEmpty(t, out)
	return out
}

func (h *house) counters(t *testing.T) check.Counters {
	t.Helper()
	f, err := h.check.Gate(t.Context(), "sound")
	require.NoError(t, err)
	return f.Counters
}

// everyWorkflow lists all workflows of the house. A SKU that is opened last
// tells when the list is up to date.
func (h *house) everyWorkflow(t *testing.T, marker string) []string {
	t.Helper()
	h.opened(t, marker, 0)
	var ids []string
	require.NoError(t, until(t.Context(), "the marker is listed", func() (err error) {
		ids, err = check.List(t.Context(), h.temporal, "ExecutionTime > '2000-01-01T00:00:00Z'")
		if err == nil && !slices.Contains(ids, "stock."+marker) {
			err = fmt.Errorf("listed are %v", ids)
		}
		return err
	}))
	slices.Sort(ids)
	return ids
}

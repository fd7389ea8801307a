package starter

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/limits"
	"holdfast/redis"
)

func limitedTo(perPhone, perAddress int, proxies ...string) setting {
	return func(cfg *config.Config, _ *redis.Options) {
		cfg.Join.PerPhone, cfg.Join.PerAddress, cfg.HTTP.TrustedProxies = perPhone, perAddress, proxies
	}
}

// from joins as a request from an address does, with a bearer when key is set.
func (h *house) from(address, forwarded, phone string, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/waitlist", strings.NewReader(`{"sku":"`+h.sku+`","phone":"`+phone+`","consent":true}`))
	r.RemoteAddr = address
	r.Header.Set("Content-Type", "application/json")
	if forwarded != "" {
		r.Header.Set("X-Forwarded-For", forwarded)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	h.door.all().ServeHTTP(w, r)
	return w
}

// ownLimits counts for one test.
type ownLimits struct {
	prefix string
	limits *limits.Limits
}

func (o ownLimits) Allow(ctx context.Context, key string, most int, per time.Duration) (time.Duration, error) {
	return o.limits.Allow(ctx, o.prefix+key, most, per)
}

func otherPhone(i int) string { return "+1202555" + []string{"0111", "0112", "0113", "0114"}[i] }

func TestANumberJoinsOnlySoOften(t *testing.T) {
	h := newHouse(t, 0, limitedTo(2, 0))
	for range 2 {
		require.Equal(t, http.StatusAccepted, h.from("203.0.113.1:1", "", otherPhone(0), "").Code)
	}
	w := h.from("203.0.113.1:1", "", "001 202-555-0111", "")
	require.Equal(t, http.StatusTooManyRequests, w.Code, "in any spelling")
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "this number or this address")
	require.Equal(t, http.StatusTooManyRequests, h.from("203.0.113.1:1", "", otherPhone(0), "key-of-the-shop").Code, "also for the shop's servers")
	require.Equal(t, http.StatusAccepted, h.from("203.0.113.1:1", "", otherPhone(1), "").Code)
	a := h.browse("POST", "/join/"+h.sku, url.Values{"phone": {otherPhone(0)}, "consent": {"yes"}, "quantity": {"1"}})
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.Contains(t, a.body, "joined too often")
	require.NotContains(t, h.log.String(), "2025550111")
}

func TestAnAddressJoinsOnlySoOften(t *testing.T) {
	const proxy, cdn = "10.0.0.7:443", "192.0.2.0/24"
	for name, c := range map[string]struct {
		proxies   []string
		first     [2]string // address, X-Forwarded-For
		same      [2]string
		another   [2]string
		unlimited bool
	}{
		"an address":           {nil, [2]string{"203.0.113.2:1"}, [2]string{"203.0.113.2:2"}, [2]string{"203.0.113.3:1"}, false},
		"a forged header":      {nil, [2]string{"203.0.113.2:1", "198.51.100.1"}, [2]string{"203.0.113.2:2", "198.51.100.2"}, [2]string{"203.0.113.3:1", "198.51.100.1"}, false},
		"an IPv6 network":      {nil, [2]string{"[2001:db8:1:1::1]:1"}, [2]string{"[2001:db8:1:1:ffff::2]:1"}, [2]string{"[2001:db8:1:2::1]:1"}, false},
		"behind a proxy":       {[]string{"10.0.0.0/8"}, [2]string{proxy, "203.0.113.2"}, [2]string{proxy, "evil, 203.0.113.2"}, [2]string{proxy, "203.0.113.2, 203.0.113.3"}, false},
		"behind two":           {[]string{"10.0.0.7", cdn}, [2]string{proxy, "203.0.113.2, 192.0.2.1"}, [2]string{proxy, "203.0.113.2,192.0.2.9"}, [2]string{proxy, "203.0.113.3, 192.0.2.1"}, false},
		"with its port":        {[]string{"10.0.0.7"}, [2]string{proxy, "203.0.113.2:4711"}, [2]string{proxy, "203.0.113.2:4712"}, [2]string{proxy, "203.0.113.3:4711"}, false},
		"IPv6 with its port":   {[]string{"10.0.0.7"}, [2]string{proxy, "[2001:db8:1:1::1]:1"}, [2]string{proxy, "[2001:db8:1:1::2]"}, [2]string{proxy, "[2001:db8:1:2::1]:1"}, false},
		"around the proxy":     {[]string{"10.0.0.7"}, [2]string{"203.0.113.2:1", "198.51.100.1"}, [2]string{"203.0.113.2:1", "198.51.100.2"}, [2]string{proxy, "198.51.100.1"}, false},
		"a proxy unknown":      {nil, [2]string{proxy, "203.0.113.2"}, [2]string{proxy, "203.0.113.2"}, [2]string{proxy, ""}, true},
		"a proxy that is mute": {[]string{"10.0.0.7"}, [2]string{proxy, ""}, [2]string{proxy, ""}, [2]string{proxy, "unknown"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, 0, limitedTo(0, 1, c.proxies...))
			join := func(from [2]string, i int) int { return h.from(from[0], from[1], otherPhone(i), "").Code }
			require.Equal(t, http.StatusAccepted, join(c.first, 0))
			if c.unlimited {
				require.Equal(t, http.StatusAccepted, join(c.same, 1))
				require.Equal(t, http.StatusAccepted, join(c.another, 2))
				return
			}
			require.Equal(t, http.StatusTooManyRequests, join(c.same, 1))
			require.Equal(t, http.StatusAccepted, join(c.another, 2))
			require.Equal(t, http.StatusCreated, h.from(c.first[0], c.first[1], otherPhone(3), "key-of-the-shop").Code, "a key answers for itself")
			require.Equal(t, 3, h.waiting(), "whoever is refused stands nowhere")
		})
	}
}

func (h *house) waiting() int {
	h.t.Helper()
	c, _, err := h.gate.Snapshot(h.t.Context(), h.sku)
	require.NoError(h.t, err)
	return int(c.Waiting)
}

func TestOnlyCountriesThatAreServed(t *testing.T) {
	for _, c := range []struct {
		regions []string
		phone   string
		ok      bool
	}{
		{nil, "+447911123456", false}, // Guernsey, not GB
		{nil, "07400 123456", true},
		{nil, "+447700900001", true}, // of no region, kept for fiction: of its country
		{nil, "+12025550101", false},
		{[]string{"US"}, "+12025550101", true},
		{[]string{"US"}, "+18764560123", false}, // Jamaica, also +1
		{[]string{"US"}, "07400 123456", false},
		{[]string{"US", "JM"}, "+18764560123", true},
	} {
		h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.SMS.AllowedRegions = c.regions })
		a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": c.phone, "consent": true})
		if c.ok {
			require.Equal(t, http.StatusCreated, a.status, a.body)
			continue
		}
		require.Equal(t, http.StatusUnprocessableEntity, a.status, "%v %s", c.regions, c.phone)
		require.Contains(t, a.body, "is of a country that we do not text")
	}
	// A hold needs no text.
	h := newHouse(t, 1, func(cfg *config.Config, _ *redis.Options) { cfg.SMS.AllowedRegions = []string{"US"} })
	a := h.call("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "ada", "customer_phone": "07400 123456"}, "Idempotency-Key", "k")
	require.Equal(t, http.StatusCreated, a.status, a.body)
}

// A number of a service is nobody's, and its owner may earn by each text. What is not
// known to be one may join: internet phones, and numbers that no table has.
func TestNoTextsToServiceNumbers(t *testing.T) {
	regions := func(cfg *config.Config, _ *redis.Options) { cfg.SMS.AllowedRegions = []string{"US", "GB", "DE", "IE"} }
	h := newHouse(t, 1, regions)
	for phone, ok := range map[string]bool{
		"+1 900 555 0101":  false, // premium rate
		"+44 909 879 0000": false,
		"+49 900 1 234567": false,
		"+49 180 512 3456": false, // shared cost
		"+44 55 1234 5678": false, // of a company
		"+353 818 123 456": false,
		"+1 202 555 0101":  true, // of a mobile or not, for fiction
		"+44 7400 123456":  true, // a mobile
		"+49 170 1234567":  true,
		"+44 56 1234 5678": true, // an internet phone
		"+1 700 555 0101":  true, // unknown
	} {
		a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": phone, "consent": true})
		if ok {
			require.Equal(t, http.StatusCreated, a.status, "%s: %s", phone, a.body)
			continue
		}
		require.Equal(t, http.StatusUnprocessableEntity, a.status, phone)
		require.Contains(t, a.body, "is a service number; texts go to a mobile number")
	}
	for lang, want := range map[string]string{"en": "This is the number of a service.", "de": "Das ist eine Servicenummer."} {
		a := h.send(h.request("POST", "/join/"+h.sku, url.Values{"phone": {"+1 900 555 0101"}, "consent": {"yes"}}.Encode(),
			"Content-Type", formMedia, "Accept-Language", lang))
		require.Equal(t, http.StatusUnprocessableEntity, a.status)
		require.Contains(t, a.body, want)
	}
	// A hold needs no text.
	a := h.call("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "ada", "customer_phone": "+1 900 555 0101"}, "Idempotency-Key", "k")
	require.NotEqual(t, http.StatusUnprocessableEntity, a.status, a.body) // 409: it is for the line
}

type brokenLimits struct{}

func (brokenLimits) Allow(context.Context, string, int, time.Duration) (time.Duration, error) {
	return 0, errors.New("away")
}

func TestLimitsThatAreAwayAreNoRefusal(t *testing.T) {
	h := newHouse(t, 0, limitedTo(2, 2))
	h.door.limits = brokenLimits{}
	require.Equal(t, http.StatusServiceUnavailable, h.from("203.0.113.1:1", "", otherPhone(0), "").Code)
	require.Zero(t, h.waiting())
}

var _ Limiter = (*limits.Limits)(nil)

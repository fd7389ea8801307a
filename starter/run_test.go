package starter

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func TestChores(t *testing.T) {
	c := newChores(slog.New(slog.DiscardHandler))
	var runs, fails atomic.Int64
	hold := make(chan struct{})
	c.do("slow", func(context.Context) error { runs.Add(1); <-hold; return nil })
	require.Eventually(t, func() bool { return runs.Load() == 1 }, time.Second, time.Millisecond)
	for range 100 { // asked for while it runs: once more, not a hundred times
		c.do("slow", nil)
	}
	close(hold)
	require.Eventually(t, func() bool { return runs.Load() == 2 }, time.Second, time.Millisecond)
	c.do("failing", func(context.Context) error {
		if fails.Add(1) < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	require.Eventually(t, func() bool { return fails.Load() == 3 }, 5*time.Second, time.Millisecond, "tried until it succeeds")
	stuck := make(chan struct{})
	c.do("stuck", func(ctx context.Context) error { close(stuck); <-ctx.Done(); return ctx.Err() })
	<-stuck
	c.stop()
	require.EqualValues(t, 2, runs.Load())
	c.do("late", func(context.Context) error { t.Error("a chore after the stop"); return nil })
}

// An unknown number is "not known yet" until the map has been read whole.
func TestMapOfSKUs(t *testing.T) {
	h := newHouse(t, 1)
	lost := "T-LOST" + h.sku
	require.NoError(t, shared.HDel(t.Context(), "hf:skus", wholeField(t)).Err())
	h.dir.gate = make(chan struct{})
	h.dir.skus = []string{lost, h.sku}
	exact(t, h.call("GET", "/v1/stock/"+lost, nil), 503, unavailable)
	exact(t, h.call("GET", "/v1/holds/"+contract.HoldID(lost, []byte("eleven bytes")), nil), 503, unavailable)
	require.Equal(t, http.StatusCreated, h.askHold("k").status, "a SKU that is known is served meanwhile")
	close(h.dir.gate)
	h.eventually("the map is filled and each SKU woken", func() bool { return h.wf.woken(lost) > 0 && h.wf.woken(h.sku) > 0 })
	exact(t, h.call("GET", "/v1/stock/T-NEVER"+h.sku, nil), 404, unknownSKU)
	require.Equal(t, http.StatusOK, h.call("GET", "/v1/stock/"+lost, nil).status)
}

// wholeField is the field that marks the map as whole: the one that is no number.
func wholeField(t *testing.T) string {
	t.Helper()
	all, err := shared.HGetAll(t.Context(), "hf:skus").Result()
	require.NoError(t, err)
	for field := range all {
		if len(field) != 8 {
			return field
		}
	}
	t.Fatal("the map is not whole")
	return ""
}

func TestReadiness(t *testing.T) {
	h := newHouse(t, 1)
	ready := func() (int, readiness) {
		h.door.health.at = time.Time{}
		a := h.call("GET", "/readyz", nil, "Authorization", "")
		var v readiness
		a.into(t, &v)
		return a.status, v
	}
	require.NoError(t, shared.HDel(t.Context(), "hf:skus", "*").Err())
	h.dir.payments, h.dir.skus = 3, []string{h.sku}
	status, v := ready()
	require.Equal(t, []any{503, "starting", "starting"}, []any{status, v.Status, v.Gate})
	h.eventually("the map is filled", func() bool { return h.wf.woken(h.sku) > 0 })
	status, v = ready()
	require.Equal(t, []any{200, "ready", "open", int64(3)}, []any{status, v.Status, v.Temporal, *v.OpenRefunds})
	require.Contains(t, []string{gateOpen, gateClosed}, v.Gate) // other tests close SKUs of theirs

	h.dir.err = errTemporalDown
	status, v = ready()
	require.Equal(t, []any{200, "unavailable"}, []any{status, v.Temporal}, "joins and pages go on")
	require.Nil(t, v.OpenRefunds)
	h.door.draining.Store(true)
	status, v = ready()
	require.Equal(t, []any{503, "draining"}, []any{status, v.Status})
	require.Equal(t, 200, h.call("GET", "/healthz", nil, "Authorization", "").status)
}

// A Temporal that gives no answer costs the gate none of its time: the door stays green.
func TestReadinessWhileTemporalIsSilent(t *testing.T) {
	h := newHouse(t, 1)
	require.NoError(t, h.gate.MarkMapWhole(t.Context()))
	h.door.skus.gate = &fewSKUs{Gate: h.gate, skus: []string{h.sku}}
	h.dir.silent = true
	a := h.call("GET", "/readyz", nil, "Authorization", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	var v readiness
	a.into(t, &v)
	require.Equal(t, []any{"ready", gateOpen, 1, "unavailable"}, []any{v.Status, v.Gate, v.SKUsOpen, v.Temporal})
	require.Nil(t, v.OpenRefunds)
}

// fewSKUs are a gate that has no others, or that does not answer which it has.
type fewSKUs struct {
	Gate
	skus []string
	err  error
}

func (g *fewSKUs) SKUs(context.Context) ([]string, error) { return g.skus, g.err }

// A door is red while the gate of every SKU is closed, or does not answer, and green
// as long as one SKU is served.
func TestReadinessOfAClosedGate(t *testing.T) {
	h := newHouse(t, 1)
	other := "other-" + h.sku
	h.put(other)
	require.NoError(t, h.gate.MarkMapWhole(t.Context()))
	few := &fewSKUs{Gate: h.gate, skus: []string{h.sku, other}}
	h.door.skus.gate = few
	fence := func(sku string) string { return "hf:{" + sku + "}:stock" }
	own := shared.HGet(t.Context(), fence(h.sku), "fence").Val()
	require.NotEmpty(t, own)
	ready := func(status int, want readiness) {
		t.Helper()
		h.door.health.at = time.Time{}
		a := h.call("GET", "/readyz", nil, "Authorization", "")
		var v readiness
		a.into(t, &v)
		require.Equal(t, status, a.status, a.body)
		require.Equal(t, want, readiness{Status: v.Status, Gate: v.Gate, SKUsOpen: v.SKUsOpen, SKUsClosed: v.SKUsClosed})
	}
	ready(200, readiness{Status: "ready", Gate: gateOpen, SKUsOpen: 2})
	require.NoError(t, shared.HSet(t.Context(), fence(h.sku), "fence", "another server").Err())
	ready(200, readiness{Status: "ready", Gate: gateClosed, SKUsOpen: 1, SKUsClosed: 1})
	require.NoError(t, shared.HSet(t.Context(), fence(other), "fence", "another server").Err())
	ready(503, readiness{Status: "not-ready", Gate: gateClosed, SKUsClosed: 2})
	require.NoError(t, shared.HSet(t.Context(), fence(h.sku), "fence", own).Err())
	ready(200, readiness{Status: "ready", Gate: gateClosed, SKUsOpen: 1, SKUsClosed: 1})

	few.err = redis.ErrUnavailable
	ready(503, readiness{Status: "not-ready", Gate: gateUnavailable})
}

func TestListeners(t *testing.T) {
	h := newHouse(t, 0)
	for on, paths := range map[int][2][]string{
		public: {{"/join/" + h.sku, "/v1/stock/" + h.sku + "/public"}, {"/v1/stock/" + h.sku, "/healthz", "/v1/holds"}},
		api:    {{"/v1/stock/" + h.sku, "/v1/stock/" + h.sku + "/public"}, {"/join/" + h.sku, "/healthz", "/r/x"}},
		ops:    {{"/healthz"}, {"/v1/stock", "/join/" + h.sku}},
	} {
		handler := h.door.handler(on)
		get := func(path string) int {
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, h.request("GET", path, nil))
			return rec.Code
		}
		for _, path := range paths[0] {
			require.Equal(t, 200, get(path), path)
		}
		for _, path := range paths[1] {
			require.Equal(t, 404, get(path), path)
		}
	}
}

// A stopping door answers what is under way.
func TestServeDrains(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	h := newHouse(t, 1)
	h.cfg.HTTP.PublicAddr, h.cfg.HTTP.APIAddr, h.cfg.HTTP.OpsAddr = addr, addr, addr
	require.ErrorContains(t, h.door.Serve(t.Context()), addr, "a taken port is named")
	require.NoError(t, l.Close())

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.door.Serve(ctx) }()
	h.eventually("it listens", func() bool {
		res, err := http.Get("http://" + addr + "/healthz")
		if err != nil {
			return false
		}
		return res.Body.Close() == nil
	})
	under, release := make(chan struct{}), make(chan struct{})
	h.wf.onHold = func(contract.HoldInput) { close(under); <-release }
	answered := make(chan int, 1)
	go func() {
		r := h.request("POST", "http://"+addr+"/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"}, "Idempotency-Key", "k")
		r.RequestURI = ""
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	<-under
	stop()
	h.eventually("it drains", h.door.draining.Load)
	close(release)
	require.Equal(t, http.StatusCreated, <-answered)
	require.NoError(t, <-done)
}

func TestPanicIsAnswered(t *testing.T) {
	h := newHouse(t, 1)
	h.wf.onHold = func(contract.HoldInput) { panic("a bug") }
	exact(t, h.askHold("k"), 503, unavailable)
	require.Contains(t, h.log.String(), "a bug")
	require.NotContains(t, h.log.String(), h.sku+"/", "routes, not paths")
}

func TestWrongWebhookSecret(t *testing.T) {
	_, err := New(Deps{Config: &config.Config{Secrets: config.Secrets{Inventory: []string{"whsec_!"}}}, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "secrets.inventory: item 1")
	require.NotContains(t, err.Error(), "whsec_!")
}

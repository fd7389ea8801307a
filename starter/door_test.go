package starter

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/connect"
	"holdfast/contract"
	"holdfast/internal/redistest"
	"holdfast/keys"
	"holdfast/limits"
	"holdfast/payment"
	"holdfast/redis"
)

var shared *goredis.Client

func TestMain(m *testing.M) {
	server, err := redistest.Start("--appendonly", "no")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = server.Client()
	code := m.Run()
	server.Close()
	os.Exit(code)
}

const (
	webhookSecret = "whsec_c3RhcnRlci10ZXN0LXdlYmhvb2s="
	checkout      = "https://shop.example/pay?hold={hold_id}&entry={entry_id}&until={expires_at}&sig={sig}"
)

func testConfig() *config.Config {
	cfg := &config.Config{Mode: config.ModeDev}
	cfg.Shop.Name = "Oak & Sons"
	cfg.HTTP.PublicURL = "https://door.example"
	cfg.Gate.Lease, cfg.Gate.RecordRetention = 10*time.Second, time.Hour
	cfg.Hold.TTL, cfg.Hold.Extension, cfg.Hold.Grace = 10*time.Minute, time.Minute, time.Minute
	cfg.Offer.Window, cfg.Offer.MaxAge = 15*time.Minute, 48*time.Hour
	cfg.Waitlist.TTL = 180 * 24 * time.Hour
	cfg.Join.MaxBacklog, cfg.Join.Workers = 5000, 8
	cfg.Phone.DefaultRegion, cfg.SMS.AllowedRegions = "GB", []string{"GB", "US"}
	// A caller of its own for each test: Idempotency-Keys are the caller's.
	cfg.Secrets.APIKeys = []string{"shop-" + rand.Text() + ":key-of-the-shop", "till-" + rand.Text() + ":key-of-the-till"}
	cfg.Secrets.Inventory = []string{"whsec_b3RoZXItc2VjcmV0LW9mLXRlc3Rz", webhookSecret}
	return cfg
}

// house is a door over the real gate, with a SKU of its own.
type house struct {
	t    *testing.T
	cfg  *config.Config
	ring *keys.Ring
	gate *faulty
	wf   *workflows
	dir  *directory
	door *Door
	sku  string
	log  *logBuffer
}

// logBuffer is a log that a test may read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

type setting func(cfg *config.Config, opts *redis.Options)

func newHouse(t *testing.T, units int64, settings ...setting) *house {
	t.Helper()
	cfg := testConfig()
	opts := redis.Options{
		Lease: 10 * time.Second, RecordRetention: time.Hour, SaleRetention: time.Hour, OfferMaxAge: 48 * time.Hour,
		Log: slog.New(slog.DiscardHandler),
	}
	for _, s := range settings {
		s(cfg, &opts)
	}
	gate := redis.New(shared, opts)
	ring, err := keys.New([]byte("a person secret of tests"), []byte("a main secret of tests"),
		[]keys.LinkKey{{ID: 1, Secret: []byte("a link secret of tests")}})
	require.NoError(t, err)
	h := &house{t: t, cfg: cfg, ring: ring, gate: &faulty{Gate: gate}, wf: newWorkflows(gate), dir: &directory{}, log: &logBuffer{}}
	if cfg.Payment.Provider == "" {
		cfg.Payment.Provider = payment.ProviderNone
	}
	port, err := connect.Payment(cfg)
	require.NoError(t, err)
	h.door, err = New(Deps{
		Config: cfg, Keys: ring, Gate: h.gate, Launcher: h.wf, Directory: h.dir, Payments: port, Limits: ownLimits{rand.Text(), limits.New(shared)},
		Log: slog.New(slog.NewTextHandler(h.log, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(h.door.Close)
	require.NoError(t, gate.MarkMapWhole(t.Context()))
	h.sku = "T-" + rand.Text()
	h.put(h.sku)
	if units > 0 {
		h.restock(units)
	}
	return h
}

func (h *house) put(sku string) {
	h.t.Helper()
	a := h.call("PUT", "/v1/stock/"+sku, map[string]any{"title": "Oak Chair", "checkout_url": checkout, "image_url": "https://img.example/chair.png"})
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
}

func (h *house) restock(units int64) {
	h.t.Helper()
	out, err := h.gate.Stock(h.t.Context(), h.sku, contract.StockEvent{EventID: rand.Text(), Kind: contract.StockRestock, Units: units})
	require.NoError(h.t, err)
	require.True(h.t, out.Applied)
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) into(t *testing.T, out any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), out), a.body)
}

func (a answer) problem(t *testing.T) Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p Problem
	a.into(t, &p)
	return p
}

func (a answer) hold(t *testing.T) holdView {
	t.Helper()
	var v holdView
	a.into(t, &v)
	return v
}

// all answers every route, as one address for all listeners does.
func (d *Door) all() http.Handler { return d.handler(public | api | ops) }

// send sends a request as it is.
func (h *house) send(r *http.Request) answer {
	h.t.Helper()
	rec := httptest.NewRecorder()
	h.door.all().ServeHTTP(rec, r)
	return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
}

// request is a call of the shop's server with a JSON body; text goes as it is.
// Header pairs come last; an empty value takes one away.
func (h *house) request(method, path string, body any, header ...string) *http.Request {
	h.t.Helper()
	raw, isText := body.(string)
	if body != nil && !isText {
		enc, err := json.Marshal(body)
		require.NoError(h.t, err)
		raw = string(enc)
	}
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(raw))
	r.Header.Set("Authorization", "Bearer key-of-the-shop")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	return r
}

func (h *house) call(method, path string, body any, header ...string) answer {
	h.t.Helper()
	return h.send(h.request(method, path, body, header...))
}

// browse is a shopper's browser without JavaScript: GET, or the post of a form.
func (h *house) browse(method, path string, form url.Values) answer {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", formMedia)
	}
	return h.send(r)
}

func (h *house) askHold(key string, extra ...any) answer {
	h.t.Helper()
	body := map[string]any{"sku": h.sku, "quantity": 1, "customer": "customer-1"}
	for i := 0; i+1 < len(extra); i += 2 {
		body[extra[i].(string)] = extra[i+1]
	}
	return h.call("POST", "/v1/holds", body, "Idempotency-Key", key)
}

// hold takes one unit.
func (h *house) hold() holdView {
	h.t.Helper()
	a := h.askHold(rand.Text())
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
	return a.hold(h.t)
}

func (h *house) record(holdID string) redis.Hold {
	h.t.Helper()
	out, ok, err := h.gate.ReadHold(h.t.Context(), h.sku, holdID)
	require.NoError(h.t, err)
	require.True(h.t, ok, "no record of %s", holdID)
	return out.Hold
}

func (h *house) counters() redis.Counters {
	h.t.Helper()
	c, _, err := h.gate.Snapshot(h.t.Context(), h.sku)
	require.NoError(h.t, err)
	return c
}

// parts are on_hand, held, offered, sold.
func (h *house) parts() [4]int64 {
	c := h.counters()
	return [4]int64{c.OnHand, c.Held, c.Offered, c.Sold}
}

func (h *house) ledger() []redis.LedgerLine {
	h.t.Helper()
	lines, err := h.gate.LedgerLines(h.t.Context(), h.sku, redis.LedgerQuery{Limit: 1000})
	require.NoError(h.t, err)
	return lines
}

// untouched does something that must move nothing and start nothing.
func (h *house) untouched(do func()) {
	h.t.Helper()
	h.door.starts.wg.Wait() // of joins before
	lines, starts := h.ledger(), h.wf.started()
	do()
	h.door.starts.wg.Wait()
	require.Equal(h.t, lines, h.ledger(), "the ledger moved")
	require.Equal(h.t, starts, h.wf.started(), "a workflow was started")
}

func (h *house) join(phone string) entryView {
	h.t.Helper()
	a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": phone, "consent": true})
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
	var v entryView
	a.into(h.t, &v)
	return v
}

// offer joins one person, frees a unit for them and answers entry, hold and the
// path of the reserve link.
func (h *house) offer() (entryID, holdID, path string) {
	h.t.Helper()
	entryID = h.join("+12025550101").EntryID
	_, err := h.gate.AdoptEntry(h.t.Context(), h.sku, entryID)
	require.NoError(h.t, err)
	h.restock(1)
	e, ok, err := h.gate.ReadEntry(h.t.Context(), h.sku, entryID)
	require.NoError(h.t, err)
	require.True(h.t, ok)
	require.Equal(h.t, contract.EntryOffered, e.State)
	return entryID, e.HoldID, "/r/" + h.token(e.HoldID, time.Now().Add(time.Hour))
}

func (h *house) token(holdID string, expires time.Time) string {
	h.t.Helper()
	token, err := h.ring.Token(holdID, expires)
	require.NoError(h.t, err)
	return token
}

func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	require.Eventually(h.t, ok, 5*time.Second, 5*time.Millisecond, what)
}

var _ Gate = (*redis.Gate)(nil)

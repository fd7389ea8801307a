package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/dev/stack"
)

func TestSettings(t *testing.T) {
	s, err := readSettings(nil)
	require.NoError(t, err)
	o := s.options("x")
	require.Equal(t, []string{"127.0.0.1:8080", "127.0.0.1:7233", "127.0.0.1:8233", "127.0.0.1:6380"},
		[]string{o.DoorAddr, o.TemporalAddr, o.UIAddr, o.RedisAddr})
	require.NotContains(t, o.Env, "HOLDFAST_HOLD_TTL")

	s, err = readSettings([]string{
		"HOLD_SECONDS=20", "OFFER_SECONDS=30", "DOOR_PORT=9000", "RESET=1", "REDIS_ADDRESS=10.0.0.1:6379",
		"TEMPORAL_ADDRESS=10.0.0.2:7233", "TEMPORAL_NAMESPACE=shop", "HOLDFAST_HOLD_GRACE=0s", "HOLDFAST_GATE_LEASE=30s", "PATH=/bin",
	})
	require.NoError(t, err)
	o = s.options("x")
	require.True(t, s.reset)
	require.Equal(t, "127.0.0.1:9000", o.DoorAddr)
	require.Equal(t, stack.External{Redis: "10.0.0.1:6379", Temporal: "10.0.0.2:7233"}, o.External)
	require.Equal(t, map[string]string{
		"HOLDFAST_HOLD_AFTER": "page", "HOLDFAST_SECRETS_PAYLOAD_KEYS": config.DevPayloadKey, "HOLDFAST_GATE_LEASE": "30s", "HOLDFAST_HOLD_TTL": "20s", "HOLDFAST_OFFER_WINDOW": "30s", "HOLDFAST_HOLD_GRACE": "0s",
		"TEMPORAL_ADDRESS": "10.0.0.2:7233", "TEMPORAL_NAMESPACE": "shop", "HOLDFAST_TEMPORAL_NAMESPACE": "shop",
	}, o.Env)
}

func TestTheEmbeddedTemporalIsNotSteeredByTheShell(t *testing.T) {
	s, err := readSettings([]string{"TEMPORAL_NAMESPACE=shop", "TEMPORAL_TLS=true"})
	require.NoError(t, err)
	for name := range s.env {
		require.NotContains(t, name, "TEMPORAL")
	}
}

func TestWrongSettingsAreListedTogether(t *testing.T) {
	_, err := readSettings([]string{"HOLD_SECONDS=4", "UI_PORT=http", "REDIS_ADDRESS=localhost", "RESET=yes"})
	require.EqualError(t, err, strings.Join([]string{
		`HOLD_SECONDS is "4", it must be a whole number from 5 to 7200`,
		`UI_PORT is "http", it must be a whole number from 1 to 65535`,
		`REDIS_ADDRESS is "localhost", it must be host:port`,
		`RESET is "yes", it must be a whole number from 0 to 1`,
	}, "\n"))
}

func TestResetLeavesOnlyTheLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(dir)
	require.NoError(t, err)
	_, err = lock(dir)
	require.ErrorContains(t, err, "runs here already")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "redis", "deep"), 0o700))
	require.NoError(t, wipe(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	unlock()
	again, err := lock(dir)
	require.NoError(t, err)
	again()
}

func TestOnlyNewWholeTextsAreShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "texts")
	write := func(s string) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = io.WriteString(f, s)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(`{"to":"+1","body":"old"}` + "\n")
	tail, err := tailFrom(path)
	require.NoError(t, err)
	var shown []text
	show := func(one text) { shown = append(shown, one) }

	write(`{"to":"+2","bo`)
	tail.read(show)
	require.Empty(t, shown)
	write(`dy":"new"}` + "\nnot JSON\n")
	tail.read(show)
	tail.read(show)
	require.Equal(t, []text{{To: "+2", Body: "new"}, {Body: "not JSON"}}, shown)
}

// shop answers as a door that is closed at first.
type shop struct {
	mu     sync.Mutex
	closed int // so many calls are refused first
	calls  []string
	verify *standardwebhooks.Webhook
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if s.closed > 0 {
		s.closed--
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	signedRight := s.verify.Verify(body, r.Header) == nil
	if r.Method == http.MethodPost && !signedRight || r.Method == http.MethodPut && r.Header.Get("Authorization") != "Bearer dev" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	s.calls = append(s.calls, r.Method+" "+r.URL.Path+" "+r.Header.Get(standardwebhooks.HeaderWebhookID))
}

func TestGoodsAreOpenedOnceTheDoorIsAvailable(t *testing.T) {
	verify, err := standardwebhooks.NewWebhook(stack.InventorySecret)
	require.NoError(t, err)
	s := &shop{closed: 2, verify: verify}
	srv := httptest.NewServer(s)
	defer srv.Close()

	require.NoError(t, openGoods(t.Context(), srv.URL))

	require.Equal(t, []string{
		"PUT /v1/stock/CHAIR ", "PUT /v1/stock/TEE ", "POST /v1/webhooks/inventory dev-first-100-tees",
	}, s.calls)
}

func TestAGateThatIsClosedAtFirstIsWaitedFor(t *testing.T) {
	calls, slow := 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls < 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"gate":"closed"}`)
			return
		}
		_, _ = io.WriteString(w, `{"gate":"open"}`)
	}))
	defer srv.Close()
	require.NoError(t, awaitGate(t.Context(), srv.URL, func() { slow++ }))
	require.Equal(t, 5, calls)
	require.Equal(t, 1, slow)
}

func TestARefusalOfTheDoorIsNotRepeated(t *testing.T) {
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "title is missing", http.StatusUnprocessableEntity)
	}))
	defer srv.Close()
	require.EqualError(t, openGoods(t.Context(), srv.URL),
		"open CHAIR: the door answers 422 Unprocessable Entity: title is missing\n")
	require.Equal(t, 1, calls)
}

func TestABuildThatFailsShowsWhy(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("package main\n\nfunc main() { wrong() }\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := build(ctx, &console{out: io.Discard}, "x", "", "-C", dir, "-o", "x", ".")
	require.ErrorContains(t, err, "build x: exit status 1")
	require.ErrorContains(t, err, "undefined: wrong")
}

func TestABuildWithANoticeSaysWhenItIsDone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	require.NoError(t, build(ctx, &console{out: &out}, "x", "this takes a while", "-C", dir, "-o", "x", "."))
	require.Regexp(t, `^dev: this takes a while\n(dev: building x: .*\n)*dev: built x in \d+s\n$`, out.String())
}

func TestAChildThatEndsIsNamedWithItsLog(t *testing.T) {
	for said, want := range map[string]string{
		"worker died (exit status 1); it starts again in 250ms": "dev: worker died (exit status 1); it starts again in 250ms. Its log is .dev/logs/worker.log\n",
		"door died (exit status 0); it starts again in 1s":      "dev: door ended (exit status 0); it starts again in 1s. Its log is .dev/logs/door.log\n",
		"door is back": "dev: door is back\n",
	} {
		var out strings.Builder
		c := &console{out: &out}
		c.child(stack.Supervisor, said)
		c.child(stack.Door, "a line of its log")
		require.Equal(t, want, out.String())
	}
}

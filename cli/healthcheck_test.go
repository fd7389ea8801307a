package cli

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
)

func TestHealthcheck(t *testing.T) {
	plain(t)
	ready := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"starting"}`))
			return
		}
		_, _ = w.Write([]byte(`{"status":"ready"}`))
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	port := addr[strings.LastIndex(addr, ":"):]
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	ask := func(service, key, listens string) result {
		return run(t, Services{}, append([]string{"healthcheck", service, "--set", key + "=" + listens}, devFlags...)...)
	}
	for service, key := range map[string]string{"worker": "worker.ops_addr", "starter": "http.ops_addr"} {
		for _, listens := range []string{addr, port, "0.0.0.0" + port, "[::]" + port} {
			require.Equal(t, result{0, "{\"status\":\"ready\"}\n", ""}, ask(service, key, listens), listens)
		}
		ready = false
		got := ask(service, key, addr)
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, got.err, `not ready (503): {"status":"starting"}`)
		ready = true
	}
	server.Close()
	got := ask("worker", "worker.ops_addr", addr)
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "connection refused")
	require.Equal(t, exitUsage, run(t, Services{}, "healthcheck", "redis").code)
	require.Equal(t, exitUsage, run(t, Services{}, "healthcheck").code)
}

func TestSetUpCommand(t *testing.T) {
	plain(t)
	var asked []time.Duration
	services := Services{SetUp: func(_ context.Context, cfg *config.Config, retention time.Duration, _ *slog.Logger) error {
		require.Equal(t, "Test", cfg.Shop.Name)
		asked = append(asked, retention)
		return nil
	}}
	require.Zero(t, run(t, services, append([]string{"setup"}, devFlags...)...).code)
	require.Zero(t, run(t, services, append([]string{"setup", "--retention-days", "7"}, devFlags...)...).code)
	require.Equal(t, []time.Duration{30 * 24 * time.Hour, 7 * 24 * time.Hour}, asked)
	got := run(t, services, append([]string{"setup", "--retention-days", "0"}, devFlags...)...)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "--retention-days is 0, it must be 1 to 3650")
	require.Len(t, asked, 2)
}

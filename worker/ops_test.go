package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadinessOfTheWorker(t *testing.T) {
	yes := func(context.Context) error { return nil }
	no := func(context.Context) error { return errors.New("connection refused") }
	for name, c := range map[string]struct {
		peers    *peers
		stopping bool
		status   int
		want     readiness
	}{
		"before it polls":  {nil, false, 503, readiness{Status: "starting"}},
		"all answer":       {&peers{yes, yes}, false, 200, readiness{Status: "ready", Redis: "open", Temporal: "open"}},
		"Redis is away":    {&peers{no, yes}, false, 503, readiness{Status: "not-ready", Redis: "unavailable", Temporal: "open"}},
		"Temporal is away": {&peers{yes, no}, false, 503, readiness{Status: "not-ready", Redis: "open", Temporal: "unavailable"}},
		"it ends":          {&peers{yes, yes}, true, 503, readiness{Status: "stopping", Redis: "open", Temporal: "open"}},
	} {
		t.Run(name, func(t *testing.T) {
			desk := &ops{log: slog.New(slog.DiscardHandler), metrics: http.NotFoundHandler()}
			desk.peers.Store(c.peers)
			desk.stopping.Store(c.stopping)
			got := httptest.NewRecorder()
			desk.handler().ServeHTTP(got, httptest.NewRequest("GET", "/readyz", nil))
			require.Equal(t, c.status, got.Code)
			var look readiness
			require.NoError(t, json.Unmarshal(got.Body.Bytes(), &look))
			require.NotEmpty(t, look.Now)
			look.Now = ""
			require.Equal(t, c.want, look)

			got = httptest.NewRecorder()
			desk.handler().ServeHTTP(got, httptest.NewRequest("GET", "/healthz", nil))
			require.Equal(t, 200, got.Code, "alive, ready or not")
		})
	}
}

// Texts that stand still are named, and turn nothing red.
func TestReadinessNamesWhatHoldsTextsUp(t *testing.T) {
	yes := func(context.Context) error { return nil }
	var why string
	spent, budget, away := int64(0), int64(0), error(nil)
	desk := &ops{log: slog.New(slog.DiscardHandler), metrics: http.NotFoundHandler()}
	desk.peers.Store(&peers{yes, yes})
	state := textsState{stopped: func() (string, time.Time) { return why, time.Unix(0, 0).UTC() }}
	desk.texts.Store(&state)
	says := func() string {
		look := desk.look(t.Context())
		require.Equal(t, "ready", look.Status)
		return look.Texts
	}
	require.Empty(t, says())
	why = "wrong token"
	require.Equal(t, "stopped: wrong token (since 1970-01-01T00:00:00Z)", says())
	why = ""
	state.today = func(context.Context) (int64, int64, error) { return spent, budget, away }
	require.Empty(t, says())
	spent, budget = 800, 1000
	require.Equal(t, "most of today's segments are spent: 800 of 1000", says())
	away = errors.New("connection refused")
	require.Empty(t, says())
}

func TestTheListenerOfTheWorker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	desk := &ops{log: slog.New(slog.DiscardHandler), metrics: http.NotFoundHandler()}
	fatal := make(chan error, 1)
	_, err = desk.serve(addr, fatal)
	require.ErrorContains(t, err, "worker.ops_addr: cannot listen on "+addr)

	require.NoError(t, l.Close())
	stop, err := desk.serve(addr, fatal)
	require.NoError(t, err)
	res, err := http.Get("http://" + addr + "/healthz")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	stop()
	_, err = http.Get("http://" + addr + "/healthz")
	require.Error(t, err)
	require.Empty(t, fatal)
}

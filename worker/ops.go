package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/sms"
)

const (
	lookTimeout  = 2 * time.Second // for one look at Redis and Temporal
	closeTimeout = time.Second     // for operators' requests under way
)

// Words of readiness.
const (
	statusStarting = "starting"
	statusReady    = "ready"
	statusNot      = "not-ready"
	statusStopping = "stopping"

	partOpen        = "open"
	partUnavailable = "unavailable"
)

type readiness struct {
	Status   string `json:"status"`
	Redis    string `json:"redis,omitempty"` // open or unavailable
	Temporal string `json:"temporal,omitempty"`
	Texts    string `json:"texts,omitempty"` // empty: nothing holds them up
	Now      string `json:"now"`
}

// peers are what a worker cannot work without.
type peers struct{ redis, temporal func(context.Context) error }

// textsState tells how the texts stand. today is nil without a provider that costs
// money.
type textsState struct {
	stopped func() (why string, since time.Time)
	today   func(ctx context.Context) (spent, budget int64, err error)
}

// say says what holds texts up, or soon will; "" when nothing does.
func (t textsState) say(ctx context.Context) string {
	if why, since := t.stopped(); why != "" {
		return fmt.Sprintf("stopped: %s (since %s)", why, since.Format(time.RFC3339))
	}
	if t.today == nil {
		return ""
	}
	spent, budget, err := t.today(ctx)
	if err == nil && sms.NearlySpent(spent, budget) {
		return fmt.Sprintf("most of today's segments are spent: %d of %d", spent, budget)
	}
	return "" // that Redis does not answer is said already
}

// ops answers operators. It is safe for concurrent use.
type ops struct {
	log      *slog.Logger
	texts    atomic.Pointer[textsState]
	metrics  http.Handler
	peers    atomic.Pointer[peers] // nil before the workers poll
	stopping atomic.Bool
}

func (o *ops) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		o.write(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		look := o.look(r.Context())
		status := http.StatusOK
		if look.Status != statusReady {
			status = http.StatusServiceUnavailable
		}
		o.write(w, status, look)
	})
	mux.Handle("GET /metrics", o.metrics)
	return mux
}

func (o *ops) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		o.log.Warn("an operator's answer was not taken", "error", err)
	}
}

// look says whether the worker does its work: it polls, and Redis and Temporal
// answer.
func (o *ops) look(ctx context.Context) readiness {
	out := readiness{Status: statusStarting, Now: time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	p := o.peers.Load()
	if p == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	ask := func(name string, part func(context.Context) error) string {
		if err := part(ctx); err != nil {
			o.log.Warn(name+" does not answer", "error", err)
			return partUnavailable
		}
		return partOpen
	}
	temporal := make(chan string, 1) // side by side: one silence must not use up the other's time
	go func() { temporal <- ask("Temporal", p.temporal) }()
	out.Redis = ask("Redis", p.redis)
	out.Temporal = <-temporal
	if texts := o.texts.Load(); texts != nil && out.Redis == partOpen {
		out.Texts = texts.say(ctx) // an alarm, and no reason to take this worker away
	}
	switch {
	case o.stopping.Load():
		out.Status = statusStopping
	case out.Redis == partOpen && out.Temporal == partOpen:
		out.Status = statusReady
	default:
		out.Status = statusNot
	}
	return out
}

// serve listens on addr until stop is called. A failure while it serves goes to
// fatal.
func (o *ops) serve(addr string, fatal chan<- error) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("worker.ops_addr: cannot listen on %s: %w", addr, err)
	}
	o.log.Info("listening", "address", l.Addr().String(), "ops", true)
	server := &http.Server{
		Handler:           o.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      15 * time.Second,
		ErrorLog:          slog.NewLogLogger(o.log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fatal <- fmt.Errorf("worker.ops_addr: %w", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			o.log.Warn("an operator's request did not end", "error", err)
		}
	}, nil
}

package starter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/config"
	"holdfast/connect"
	"holdfast/launch"
	"holdfast/limits"
	"holdfast/metrics"
)

const shutdownTimeout = 15 * time.Second // for requests under way

// Run serves the door until ctx ends, then lets the load balancer notice,
// finishes the requests under way and returns.
func Run(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	ring, err := connect.Keys(cfg)
	if err != nil {
		return err
	}
	port, err := connect.Payment(cfg)
	if err != nil {
		return err
	}
	rdb, err := connect.Redis(cfg)
	if err != nil {
		return err
	}
	defer rdb.Close()
	answered, err := connect.CheckRedis(ctx, cfg, rdb, log)
	if err != nil {
		return err
	}
	counts := metrics.New()
	counts.ForDoor()
	temporal, err := connect.LazyTemporal(cfg, log, connect.Metered(counts.Temporal()))
	if err != nil {
		return err
	}
	defer temporal.Close()
	namespace, err := connect.Namespace(cfg)
	if err != nil {
		return err
	}
	gate, directory := connect.Gate(cfg, rdb, log, connect.Observed(counts)), visibility{temporal, namespace}
	door, err := New(Deps{
		Config: cfg, Keys: ring, Gate: gate, Launcher: launch.New(temporal), Directory: directory,
		Payments: port, Limits: limits.New(rdb), Metrics: counts.Handler(), OnTextState: counts.TextState, Log: log,
	})
	if err != nil {
		return err
	}
	defer door.Close()
	door.keepConsentText()
	door.fill()
	var background sync.WaitGroup
	defer background.Wait()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	background.Go(func() {
		counts.Watch(watching, metrics.Watch{Books: gate, Named: cfg.Metrics.SKUs, Log: log, Events: directory.untoldEvents, OpenRefunds: func(ctx context.Context) (int64, error) {
			return directory.OpenPayments(ctx, "")
		}})
	})
	if answered {
		return door.Serve(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return connect.CheckRedisLater(ctx, rdb, log) })
	group.Go(func() error { return door.Serve(ctx) })
	return group.Wait()
}

// Serve listens on the configured addresses until ctx ends. Listeners with the
// same address are one, with the routes of all.
func (d *Door) Serve(ctx context.Context) error {
	on := map[string]int{}
	on[d.cfg.HTTP.PublicAddr] |= public
	on[d.cfg.HTTP.APIAddr] |= api
	on[d.cfg.HTTP.OpsAddr] |= ops

	var servers []*http.Server
	var listeners []net.Listener
	for addr, routes := range on {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			for _, open := range listeners {
				open.Close()
			}
			return fmt.Errorf("http: cannot listen on %s: %w", addr, err)
		}
		listeners = append(listeners, l)
		servers = append(servers, newServer(d.handler(routes), d.log))
		d.log.Info("listening", "address", l.Addr().String(), "pages", routes&public != 0, "api", routes&api != 0, "ops", routes&ops != 0)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range servers {
		group.Go(func() error {
			if err := s.Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("http: %w", err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return d.drain(servers)
	})
	return group.Wait()
}

// drain turns readiness red, waits for the load balancer to see it, and lets
// the requests under way finish.
func (d *Door) drain(servers []*http.Server) error {
	d.draining.Store(true)
	time.Sleep(time.Duration(d.cfg.HTTP.DrainSeconds) * time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("http: some requests did not end in %s: %w", shutdownTimeout, err))
		}
	}
	return errors.Join(errs...)
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		// A confirm waits for its workflow, then for its signal.
		WriteTimeout:   45 * time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

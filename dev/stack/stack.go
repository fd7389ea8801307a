package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
)

// TextsName is the name of the texts file in Options.Dir.
const TextsName = "texts.jsonl"

const defaultNamespace = "default"

// Stack is a running Holdfast.
type Stack struct {
	opts                                    Options
	redisAddr, temporalAddr, doorAddr, uiAt string
	workerOps                               string

	order    []*Child // as they start
	outputs  []*output
	standIn  *miniredis.Miniredis
	rdb      *goredis.Client
	temporal client.Client

	close     sync.Once
	closed    chan struct{}
	closeErrs error
}

// Start starts all children and returns when each of them is ready. When one
// does not get ready before ctx ends, or within a minute, the rest is stopped
// and the error has the child's last lines. The error is a *PortTakenError
// when an address of opts is in use.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	s := &Stack{opts: opts, closed: make(chan struct{})}
	if err := s.setUp(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.startAll(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// setUp prepares everything that needs no child to run.
func (s *Stack) setUp() error {
	dir, err := filepath.Abs(s.opts.Dir)
	if err != nil {
		return err
	}
	s.opts.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.claimAddresses(); err != nil {
		return err
	}
	s.rdb = goredis.NewClient(&goredis.Options{Addr: s.redisAddr, MaxRetries: -1})
	if s.temporal, err = s.temporalClient(); err != nil {
		return err
	}
	if s.opts.External.Redis == "" && !s.opts.RedisStandIn {
		if err := s.addRedis(); err != nil {
			return err
		}
	}
	if s.opts.External.Temporal == "" {
		if err := s.addTemporal(); err != nil {
			return err
		}
	}
	if !s.opts.NoWorker {
		if err := s.add(Worker, s.opts.Holdfast, []string{"worker"}, s.env(), probeWorker(s.temporal)); err != nil {
			return err
		}
	}
	if !s.opts.NoDoor {
		return s.add(Door, s.opts.Holdfast, []string{"starter"}, s.env(), probeDoor(s.URL()))
	}
	return nil
}

func (s *Stack) claimAddresses() (err error) {
	if s.redisAddr = s.opts.External.Redis; s.redisAddr == "" {
		if s.redisAddr, err = claim(Redis, s.opts.RedisAddr); err != nil {
			return err
		}
	}
	if s.temporalAddr = s.opts.External.Temporal; s.temporalAddr == "" {
		if s.temporalAddr, err = claim(Temporal, s.opts.TemporalAddr); err != nil {
			return err
		}
		if s.opts.UI {
			if s.uiAt, err = claim(UI, s.opts.UIAddr); err != nil {
				return err
			}
		}
	}
	if s.workerOps, err = freeAddr(); err != nil {
		return err
	}
	if !s.opts.NoDoor {
		s.doorAddr, err = claim(Door, s.opts.DoorAddr)
	}
	return err
}

// temporalClient is lazy: nothing needs to run yet. A Temporal that runs
// elsewhere may want what the TEMPORAL_* variables say, such as a certificate.
func (s *Stack) temporalClient() (client.Client, error) {
	o := client.Options{}
	if s.opts.External.Temporal != "" {
		var err error
		if o, err = envconfig.LoadDefaultClientOptions(); err != nil {
			return nil, fmt.Errorf("read TEMPORAL_* variables: %w", err)
		}
	}
	o.HostPort = s.temporalAddr
	o.Namespace = s.Namespace()
	o.Logger = silent{}
	return client.NewLazyClient(o)
}

// silent is a logger of Temporal's client that says nothing: the probes of a
// child that is still starting fail, and that is no news.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func (s *Stack) addRedis() error {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not installed (Debian: apt-get install redis-server): %w", err)
	}
	dir := filepath.Join(s.opts.Dir, Redis)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fsync := s.opts.AppendFsync
	if fsync == "" {
		fsync = "everysec"
	}
	host, port := split(s.redisAddr)
	args := []string{
		"--bind", host, "--port", port, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", fsync, "--save", "",
		"--repl-backlog-ttl", "0",
	}
	return s.add(Redis, bin, args, os.Environ(), probeRedis(s.rdb))
}

func (s *Stack) addTemporal() error {
	host, port := split(s.temporalAddr)
	args := []string{
		"--ip", host, "--port", port, "--namespace", s.Namespace(),
		"--search-attribute", contract.SKUAttribute + "=KeywordList",
		"--search-attribute", contract.StateAttribute + "=Keyword",
	}
	if !s.opts.RedisStandIn {
		args = append(args, "--db", filepath.Join(s.opts.Dir, Temporal))
	}
	if s.opts.UI {
		_, uiPort := split(s.uiAt)
		args = append(args, "--ui-port", uiPort)
		if !s.opts.NoDoor {
			args = append(args, "--ui-codec-endpoint", s.URL()+"/codec")
		}
	}
	return s.add(Temporal, s.opts.TemporalBin, args, os.Environ(), probeTemporal(s.temporal, s.Namespace()))
}

func (s *Stack) add(name, path string, args, env []string, probe func(context.Context, *process) error) error {
	out, err := openOutput(filepath.Join(s.opts.Dir, "logs"), name, s.opts.Output)
	if err != nil {
		return err
	}
	s.outputs = append(s.outputs, out)
	s.order = append(s.order, &Child{
		name: name, path: path, args: args, env: env, probe: probe, out: out,
		report: s.say, supervise: s.opts.Supervise, closed: s.closed,
	})
	return nil
}

func (s *Stack) say(line string) {
	if s.opts.Output != nil {
		s.opts.Output(Supervisor, line)
	}
}

// startAll starts the servers side by side, and then what stands on them.
func (s *Stack) startAll(ctx context.Context) error {
	if s.opts.RedisStandIn && s.opts.External.Redis == "" {
		s.standIn = miniredis.NewMiniRedis()
		if err := s.standIn.StartAddr(s.redisAddr); err != nil {
			return fmt.Errorf("start the stand-in for Redis: %w", err)
		}
	}
	for _, names := range [][]string{{Redis, Temporal}, {Worker, Door}} {
		group, ctx := errgroup.WithContext(ctx)
		for _, name := range names {
			if c := s.Child(name); c != nil {
				group.Go(func() error { return c.Start(ctx) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Child returns the child of that name, and nil when the stack has none.
func (s *Stack) Child(name string) *Child {
	for _, c := range s.order {
		if c.name == name {
			return c
		}
	}
	return nil
}

// URL is the door's base address, without a slash at its end.
func (s *Stack) URL() string { return "http://" + s.doorAddr }

// WorkerOpsURL is where the worker answers operators, on a free port.
func (s *Stack) WorkerOpsURL() string { return "http://" + s.workerOps }

// UIURL is the address of the Temporal UI, "" without one.
func (s *Stack) UIURL() string {
	if s.uiAt == "" {
		return ""
	}
	return "http://" + s.uiAt
}

// RedisAddr is the host:port of Redis.
func (s *Stack) RedisAddr() string { return s.redisAddr }

// TemporalAddr is the host:port of Temporal's frontend. The namespace is
// "default", unless HOLDFAST_TEMPORAL_NAMESPACE in Options.Env names another.
func (s *Stack) TemporalAddr() string { return s.temporalAddr }

// Namespace is the one of Temporal that worker and door work in.
func (s *Stack) Namespace() string {
	if ns := s.opts.Env["HOLDFAST_TEMPORAL_NAMESPACE"]; ns != "" {
		return ns
	}
	return defaultNamespace
}

// TextsFile is the console sender's outbox: one JSON line for each text.
func (s *Stack) TextsFile() string { return filepath.Join(s.opts.Dir, TextsName) }

// KillAll sends SIGKILL to all children at once and waits until they are gone:
// what a power cut does. Start on the same Dir begins again.
func (s *Stack) KillAll() {
	var dying []*process
	for _, c := range s.order {
		if p := c.down(); p != nil {
			p.kill()
			dying = append(dying, p)
		}
	}
	for _, p := range dying {
		<-p.gone
	}
}

// Close stops what runs, door first, and frees everything but Dir. It may be
// called again.
func (s *Stack) Close() error {
	s.close.Do(func() {
		close(s.closed)
		var errs []error
		for i := len(s.order) - 1; i >= 0; i-- {
			errs = append(errs, s.order[i].Stop())
		}
		if s.standIn != nil {
			s.standIn.Close()
		}
		if s.temporal != nil {
			s.temporal.Close()
		}
		if s.rdb != nil {
			errs = append(errs, s.rdb.Close())
		}
		for _, o := range s.outputs {
			errs = append(errs, o.close())
		}
		s.closeErrs = errors.Join(errs...)
	})
	return s.closeErrs
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// house is one running Holdfast, and the eyes that a test has for it.
type house struct {
	*stack.Stack
	dir      string
	shop     *shop.Shop
	outbox   *shop.Outbox
	redis    *goredis.Client
	temporal client.Client
	check    *check.Checker
}

const lease = 10 * time.Second // of the houses that set nothing else

// shared is the house of all stories that break nothing: each has its own SKU.
// Its clocks are long.
var shared struct {
	sync.Mutex
	tried bool
	house *house
}

func TestMain(m *testing.M) {
	code := m.Run()
	if h := shared.house; h != nil {
		h.close()
		os.RemoveAll(h.dir)
	}
	os.Exit(code)
}

// sharedHouse starts the shared house when it is first asked for.
func sharedHouse(t *testing.T) *house {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.tried {
		shared.tried = true
		dir, err := os.MkdirTemp("", "holdfast-e2e-")
		require.NoError(t, err)
		shared.house = openHouse(t, stack.Options{Dir: dir}, lease)
	}
	require.NotNil(t, shared.house, "the shared house did not start; the first story says why")
	h := shared.house
	t.Cleanup(func() { h.complain(t) })
	return h
}

// ownHouse starts a house for a story that kills things.
func ownHouse(t *testing.T, opts stack.Options, lease time.Duration) *house {
	t.Helper()
	opts.Dir = t.TempDir()
	h := openHouse(t, opts, lease)
	t.Cleanup(h.close)
	t.Cleanup(func() { h.complain(t) })
	return h
}

// binary is the path of a built binary.
func binary(t *testing.T, env string) string {
	t.Helper()
	path := os.Getenv(env)
	if path == "" {
		t.Fatalf("%s is not set: the stories run on the built binaries, which `make test` builds and names", env)
	}
	return path
}

func openHouse(t *testing.T, opts stack.Options, lease time.Duration) *house {
	t.Helper()
	opts.Holdfast = binary(t, "HOLDFAST_BIN")
	if opts.TemporalBin == "" {
		opts.TemporalBin = binary(t, "TEMPORAL_BIN")
	}
	opts.Env = with(opts.Env, "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "10000", "HOLDFAST_GATE_LEASE", lease.String())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, opts)
	require.NoError(t, err)
	h := &house{
		Stack:  s,
		dir:    opts.Dir,
		shop:   shop.New(s.URL(), stack.APIKey, stack.InventorySecret),
		outbox: &shop.Outbox{Path: s.TextsFile()},
		// The checker reads all of a SKU in one go, and that may be much.
		redis: goredis.NewClient(&goredis.Options{Addr: s.RedisAddr(), ReadTimeout: time.Minute}),
	}
	h.temporal, err = client.Dial(client.Options{HostPort: s.TemporalAddr(), Logger: quiet{}})
	require.NoError(t, err)
	h.check = &check.Checker{Redis: h.redis, Temporal: h.temporal, Lease: lease, Texts: h.texts}
	return h
}

// door opens a second door of a house, with clocks of its own.
func (h *house) door(t *testing.T, env ...string) *shop.Shop {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), NoWorker: true,
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env:      with(nil, append(env, "HOLDFAST_GATE_LEASE", h.check.Lease.String())...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return h.shop.At(s.URL())
}

func with(env map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	for k, v := range env {
		out[k] = v
	}
	return out
}

func (h *house) close() {
	h.shop.HTTP.CloseIdleConnections()
	h.temporal.Close()
	if err := h.redis.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := h.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// texts are what the checker wants to know of the sender's outbox.
func (h *house) texts() ([]check.Text, error) {
	sent, err := h.outbox.Texts()
	out := make([]check.Text, len(sent))
	for i, s := range sent {
		out[i] = check.Text{To: s.To, Body: s.Body, Entry: s.EntryID, Hold: s.HoldID}
	}
	return out, err
}

// complain shows what the processes complained of when a story failed.
func (h *house) complain(t *testing.T) {
	if !t.Failed() {
		return
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "logs", "*"))
	if err != nil {
		t.Log(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Log(err)
			continue
		}
		var last []string
		for line := range strings.Lines(string(raw)) {
			upper := strings.ToUpper(line)
			if strings.Contains(upper, "WARN") || strings.Contains(upper, "ERROR") || strings.Contains(upper, "PANIC") {
				last = append(last, line)
			}
		}
		t.Logf("%s, last complaints:\n%s", filepath.Base(file), strings.Join(last[max(0, len(last)-20):], ""))
	}
}

// quiet keeps Temporal's client out of the tests' output.
type quiet struct{}

var _ log.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

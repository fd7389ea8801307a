package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// arena is a house whose every part can be struck: worker and door reach Redis and
// Temporal through networks that can be cut and slowed.
type arena struct {
	*house
	app    *stack.Stack
	ownDir string                      // of worker and door
	nets   map[string]*toxiproxy.Proxy // by the child behind it
}

func newArena(t *testing.T, lease time.Duration, env ...string) *arena {
	t.Helper()
	base := ownHouse(t, stack.Options{NoWorker: true, NoDoor: true, AppendFsync: "always"}, lease)
	a := &arena{house: base, nets: map[string]*toxiproxy.Proxy{}}
	for name, addr := range map[string]string{stack.Redis: base.RedisAddr(), stack.Temporal: base.TemporalAddr()} {
		a.nets[name] = networkTo(t, addr)
	}
	dir := t.TempDir()
	a.ownDir = dir
	var err error
	a.app, err = stack.Start(t.Context(), stack.Options{
		Dir: dir, Holdfast: binary(t, "HOLDFAST_BIN"),
		External: stack.External{Redis: a.nets[stack.Redis].Listen, Temporal: a.nets[stack.Temporal].Listen},
		Env:      with(nil, append(env, "HOLDFAST_GATE_LEASE", lease.String(), "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "10000")...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.app.Close()) })
	t.Cleanup(func() { (&house{dir: dir}).complain(t) })
	a.shop = shop.New(a.app.URL(), stack.APIKey, stack.InventorySecret)
	a.outbox = &shop.Outbox{Path: a.app.TextsFile()}
	return a
}

// networkTo is a network to an address, which can be cut and slowed.
func networkTo(t *testing.T, addr string) *toxiproxy.Proxy {
	t.Helper()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), addr, "127.0.0.1:0", addr)
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	return p
}

func (a *arena) child(name string) *stack.Child {
	if name == stack.Worker || name == stack.Door {
		return a.app.Child(name)
	}
	return a.Child(name)
}

// strike is one thing that goes wrong for a while and is put right again.
type strike struct {
	kind string
	do   func(ctx context.Context, lasts time.Duration) error
}

// strikes is one of each kind.
func (a *arena) strikes() (all []strike) {
	for _, name := range []string{stack.Worker, stack.Door, stack.Temporal, stack.Redis} {
		child := a.child(name)
		all = append(all,
			strike{"kill " + name, func(ctx context.Context, lasts time.Duration) error {
				child.Kill()
				return errors.Join(wait(ctx, lasts), child.Start(ctx))
			}},
			strike{"stop " + name, func(ctx context.Context, lasts time.Duration) error {
				return errors.Join(child.Stop(), wait(ctx, lasts), child.Start(ctx))
			}},
			strike{"suspend " + name, func(ctx context.Context, lasts time.Duration) error {
				return errors.Join(child.Suspend(), wait(ctx, lasts), child.Resume())
			}})
	}
	for _, name := range []string{stack.Redis, stack.Temporal} {
		net := a.nets[name]
		all = append(all,
			strike{"cut off " + name, func(ctx context.Context, lasts time.Duration) error {
				net.Stop()
				return errors.Join(wait(ctx, lasts), net.Start())
			}},
			strike{"slow " + name, func(ctx context.Context, lasts time.Duration) error {
				var errs []error
				for _, stream := range []string{"upstream", "downstream"} {
					_, err := net.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
						`{"type": "latency", "stream": %q, "attributes": {"latency": %d, "jitter": %[2]d}}`, stream, 100)))
					errs = append(errs, err)
				}
				errs = append(errs, wait(ctx, lasts))
				net.Toxics.ResetToxics(context.WithoutCancel(ctx))
				return errors.Join(errs...)
			}})
	}
	return all
}

// wait lets a strike last; nothing is waited for.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// storm strikes once with every kind, in an order, for lengths and after pauses that rnd
// decides, and counts the strikes.
func (a *arena) storm(ctx context.Context, t *testing.T, rnd *rand.Rand, struck map[string]int) {
	t.Helper()
	all := a.strikes()
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all {
		lasts := time.Duration(200+rnd.IntN(2300)) * time.Millisecond
		t.Logf("%s %s for %s", time.Now().UTC().Format("15:04:05.000"), s.kind, lasts)
		require.NoError(t, s.do(ctx, lasts), s.kind)
		struck[s.kind]++
		require.NoError(t, wait(ctx, time.Duration(rnd.IntN(2000))*time.Millisecond))
	}
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// arena is a house whose every part can be struck: worker and door each reach Redis and
// Temporal through networks of their own, which can be cut and slowed.
type arena struct {
	*house
	parts map[string]part // worker and door
}

func newArena(t *testing.T, lease time.Duration, env ...string) *arena {
	t.Helper()
	base := ownHouse(t, stack.Options{NoWorker: true, NoDoor: true, AppendFsync: "always"}, lease)
	a := &arena{house: base, parts: map[string]part{}}
	door := base.part(t, stack.Options{NoWorker: true, Env: with(nil, env...)})
	a.parts[stack.Door] = door
	env = append(env, "HOLDFAST_HTTP_PUBLIC_URL", door.URL()) // of the links in texts
	for _, name := range []string{"PUBLIC", "API", "OPS"} {
		env = append(env, "HOLDFAST_HTTP_"+name+"_ADDR", strings.TrimPrefix(door.URL(), "http://"))
	}
	a.parts[stack.Worker] = base.part(t, stack.Options{NoDoor: true, Env: with(nil, env...)})
	a.shop = shop.New(door.URL(), stack.APIKey, stack.InventorySecret)
	a.outbox = &shop.Outbox{Path: a.parts[stack.Worker].TextsFile()}
	return a
}

// networks are those of some parts to one server.
func (a *arena) networks(server string, parts ...string) (nets []*toxiproxy.Proxy) {
	for _, name := range parts {
		nets = append(nets, a.parts[name].nets[server])
	}
	return nets
}

// turns leads door and worker to another Redis, with every connection cut.
func (a *arena) turns(t *testing.T, addr string) {
	t.Helper()
	nets := a.networks(stack.Redis, stack.Worker, stack.Door)
	for _, n := range nets {
		n.Stop()
		n.Upstream = addr
	}
	for _, n := range nets {
		require.NoError(t, n.Start())
	}
}

func (a *arena) child(name string) *stack.Child {
	if p, ours := a.parts[name]; ours {
		return p.Child(name)
	}
	return a.Child(name)
}

// strike is one thing that goes wrong for a while and is put right again.
type strike struct {
	kind string
	do   func(ctx context.Context, lasts time.Duration) error
}

// strikes is one of each kind: those at processes, and those at networks.
func (a *arena) strikes() (processes, networks []strike) {
	for _, name := range []string{stack.Worker, stack.Door, stack.Temporal, stack.Redis} {
		child := a.child(name)
		processes = append(processes,
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
	for _, server := range []string{stack.Redis, stack.Temporal} {
		for _, parts := range [][]string{{stack.Worker}, {stack.Door}, {stack.Worker, stack.Door}} {
			nets, who := a.networks(server, parts...), strings.Join(parts, " and ")
			networks = append(networks,
				strike{"cut " + who + " off " + server, func(ctx context.Context, lasts time.Duration) error { return cut(ctx, nets, lasts) }},
				strike{"slow " + who + " to " + server, func(ctx context.Context, lasts time.Duration) error { return slow(ctx, nets, lasts) }})
		}
	}
	return processes, networks
}

// cut lets nothing through some networks for a while.
func cut(ctx context.Context, nets []*toxiproxy.Proxy, lasts time.Duration) error {
	for _, n := range nets {
		n.Stop()
	}
	errs := []error{wait(ctx, lasts)}
	for _, n := range nets {
		errs = append(errs, n.Start())
	}
	return errors.Join(errs...)
}

// slow delays all that goes through some networks for a while, either way.
func slow(ctx context.Context, nets []*toxiproxy.Proxy, lasts time.Duration) error {
	var errs []error
	for _, n := range nets {
		for _, stream := range []string{"upstream", "downstream"} {
			_, err := n.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
				`{"type": "latency", "stream": %q, "attributes": {"latency": %d, "jitter": %[2]d}}`, stream, 100)))
			errs = append(errs, err)
		}
	}
	errs = append(errs, wait(ctx, lasts))
	for _, n := range nets {
		n.Toxics.ResetToxics(context.WithoutCancel(ctx))
	}
	return errors.Join(errs...)
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
// decides, and counts the strikes. A process and a network are struck at a time: a door
// may die while the worker is cut off.
func (a *arena) storm(ctx context.Context, t *testing.T, rnd *rand.Rand, struck map[string]int) {
	t.Helper()
	processes, networks := a.strikes()
	rnd.Shuffle(len(processes), func(i, j int) { processes[i], processes[j] = processes[j], processes[i] })
	rnd.Shuffle(len(networks), func(i, j int) { networks[i], networks[j] = networks[j], networks[i] })
	for i := range max(len(processes), len(networks)) {
		var both errgroup.Group
		for _, s := range slices.Concat(nth(processes, i), nth(networks, i)) {
			lasts := time.Duration(200+rnd.IntN(2300)) * time.Millisecond
			t.Logf("%s %s for %s", time.Now().UTC().Format("15:04:05.000"), s.kind, lasts)
			both.Go(func() error {
				if err := s.do(ctx, lasts); err != nil {
					return fmt.Errorf("%s: %w", s.kind, err)
				}
				return nil
			})
			struck[s.kind]++
		}
		require.NoError(t, both.Wait())
		require.NoError(t, wait(ctx, time.Duration(rnd.IntN(2000))*time.Millisecond))
	}
}

// nth is the i-th strike, or none.
func nth(all []strike, i int) []strike { return all[min(i, len(all)):min(i+1, len(all))] }

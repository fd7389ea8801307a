package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// lookEvery is how often the balancer looks at the readiness of each door, as the
// usual ones do.
const lookEvery = 250 * time.Millisecond

// balancer hands out doors whose readiness was green when it looked last.
type balancer struct {
	doors  []*balanced
	looked sync.WaitGroup
	mu     sync.Mutex
	seen   *sync.Cond // by a look
	next   int
}

type balanced struct {
	*shop.Shop
	green    bool // under the balancer's lock
	served   atomic.Int64
	draining atomic.Int64 // looks that were answered with "draining"
}

func newBalancer(ctx context.Context, doors ...*shop.Shop) *balancer {
	b := &balancer{}
	b.seen = sync.NewCond(&b.mu)
	for _, at := range doors {
		d := &balanced{Shop: at}
		b.doors = append(b.doors, d)
		b.looked.Go(func() {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			defer b.look(d, false) // who waits for a door hears of the end
			for ; ctx.Err() == nil; <-tick.C {
				a, err := d.Call(ctx, http.MethodGet, "/readyz", nil)
				b.look(d, err == nil && a.Status == http.StatusOK)
				if err == nil && strings.Contains(string(a.Body), `"draining"`) {
					d.draining.Add(1)
				}
			}
		})
	}
	return b
}

// look notes what a look has seen.
func (b *balancer) look(d *balanced, green bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.green = green
	b.seen.Broadcast()
}

// door waits for a green one: a balancer without any would answer for itself.
func (b *balancer) door(ctx context.Context) (*balanced, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx.Err() == nil {
		for range b.doors {
			b.next++
			if d := b.doors[b.next%len(b.doors)]; d.green {
				return d, nil
			}
		}
		b.seen.Wait()
	}
	return nil, ctx.Err()
}

// traffic is a shop with its shoppers, who go through a balancer and write down every
// answer that they would have complained of.
type traffic struct {
	*balancer
	sku, line string
	stop      atomic.Bool
	holds     atomic.Int64
	mu        sync.Mutex
	complains []string
}

func (tr *traffic) complain(what string, d *balanced, said any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.complains = append(tr.complains, fmt.Sprintf("%s %s at %s: %v", time.Now().Format("15:04:05.000"), what, d.URL, said))
}

// ask is one call. Nothing but success, a redirect and a plain refusal is allowed.
func (tr *traffic) ask(ctx context.Context, what, method, path string, body any, header ...string) (a shop.Answer, ok bool) {
	d, err := tr.door(ctx)
	if err != nil {
		return a, false
	}
	a, err = d.Call(ctx, method, path, body, header...)
	switch {
	case err != nil && ctx.Err() != nil:
		return a, false
	case err != nil:
		tr.complain(what, d, err)
		return a, false
	case a.Status/100 != 2 && a.Status != http.StatusSeeOther && a.Status != http.StatusConflict:
		tr.complain(what, d, a)
	}
	d.served.Add(1)
	return a, a.Status/100 == 2
}

// shopper buys and gives back, joins a line and looks at pages until the traffic stops.
func (tr *traffic) shopper(ctx context.Context, who int) {
	for n := 0; !tr.stop.Load() && ctx.Err() == nil; n++ {
		customer := fmt.Sprintf("c-%d-%d", who, n)
		a, ok := tr.ask(ctx, "hold", http.MethodPost, "/v1/holds", map[string]any{"sku": tr.sku, "quantity": 1, "customer": customer}, "Idempotency-Key", customer)
		if ok {
			hold, err := shop.ParseHold(a)
			if err != nil {
				tr.complain("hold", tr.doors[0], err)
				continue
			}
			tr.holds.Add(1)
			if n%2 == 0 {
				tr.ask(ctx, "confirm", http.MethodPost, "/v1/holds/"+hold.HoldID+"/confirm", map[string]any{"payment_ref": "pay_" + hold.HoldID})
			} else {
				tr.ask(ctx, "release", http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", map[string]any{})
			}
			tr.ask(ctx, "read", http.MethodGet, "/v1/holds/"+hold.HoldID, nil)
			tr.ask(ctx, "page", http.MethodGet, "/h/"+hold.HoldID, nil)
		}
		if n%10 == 0 {
			tr.ask(ctx, "join", http.MethodPost, "/v1/waitlist", map[string]any{"sku": tr.line, "phone": phone((who*25 + n/10) % 1000), "consent": true})
		}
	}
}

// Two doors and two workers are restarted one after another under load. A client that
// looks at the readiness of the doors each 250 ms sees no reset, and no answer but
// success, redirect and plain refusal; every hold that was promised is as promised.
func TestARollingRestartIsNotNoticed(t *testing.T) {
	const drain = 2 * time.Second
	env := map[string]string{"HOLDFAST_HTTP_DRAIN_SECONDS": fmt.Sprint(int(drain.Seconds()))}
	h := ownHouse(t, stack.Options{Env: env}, lease)
	second, err := stack.Start(t.Context(), stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), NoWorker: true,
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env:      with(env, "HOLDFAST_GATE_LEASE", lease.String(), "HOLDFAST_HTTP_PUBLIC_URL", h.URL()),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	workers := []*stack.Child{h.Child(stack.Worker), h.worker(t)}
	h.opened(t, "rolled", 100_000)
	h.opened(t, "rolled-line", 0)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b := newBalancer(ctx, h.shop, h.shop.At(second.URL()))
	tr := &traffic{balancer: b, sku: "rolled", line: "rolled-line"}
	var shoppers sync.WaitGroup
	for who := range 4 {
		shoppers.Go(func() { tr.shopper(ctx, who) })
	}
	busy := func() {
		t.Helper()
		for _, d := range b.doors {
			from := d.served.Load()
			require.NoError(t, within(ctx, time.Minute, d.URL+" serves", func() error {
				if n := d.served.Load() - from; n < 40 {
					return fmt.Errorf("it has served %d", n)
				}
				return nil
			}))
		}
	}
	busy()
	for i, door := range []*stack.Child{h.Child(stack.Door), second.Child(stack.Door)} {
		d := b.doors[i]
		open := openFor(ctx, strings.TrimPrefix(d.URL, "http://"))
		require.NoError(t, door.Stop())
		require.GreaterOrEqual(t, <-open, drain, "how long %s took connections after it was told to stop", d.URL)
		require.Positive(t, d.draining.Load(), "its readiness turned red before it went")
		require.NoError(t, door.Start(ctx))
		require.NoError(t, door.Ready(ctx))
		busy()
	}
	for _, worker := range workers {
		require.NoError(t, worker.Stop())
		busy()
		require.NoError(t, worker.Start(ctx))
		require.NoError(t, worker.Ready(ctx))
		busy()
	}
	tr.stop.Store(true)
	shoppers.Wait()
	require.NoError(t, ctx.Err())
	cancel()
	b.looked.Wait()
	require.Empty(t, tr.complains)
	figure(t, "rolling_restart_holds", float64(tr.holds.Load()), "holds")
	h.judge(t, "rolled", "rolled-line")
}

// openFor says for how long from now on an address takes connections.
func openFor(ctx context.Context, addr string) <-chan time.Duration {
	began, out := time.Now(), make(chan time.Duration, 1)
	go func() {
		var dialer net.Dialer
		for {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				if errors.Is(err, context.Canceled) {
					began = time.Now() // it says nothing
				}
				out <- time.Since(began)
				return
			}
			_ = conn.Close()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return out
}

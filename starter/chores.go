package starter

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	choreTimeout  = 10 * time.Second // of one try
	choreMinPause = 100 * time.Millisecond
	choreMaxPause = 5 * time.Second
)

// chores do in the background what a request must not wait for: waking a SKU's
// Stock, starting a check, filling the map. A chore that is asked for while it
// runs is run once more, however often it was asked for; one that fails is
// tried again, ever more slowly, until it succeeds.
type chores struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    *slog.Logger
	wg     sync.WaitGroup

	mu      sync.Mutex
	running map[string]bool // true: asked for again meanwhile
}

func newChores(log *slog.Logger) *chores {
	ctx, cancel := context.WithCancel(context.Background())
	return &chores{ctx: ctx, cancel: cancel, log: log, running: map[string]bool{}}
}

// do asks for the chore called name and never blocks. It answers false when the
// chore runs already.
func (c *chores) do(name string, chore func(ctx context.Context) error) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	if _, busy := c.running[name]; busy {
		c.running[name] = true
		return false
	}
	c.running[name] = false
	c.wg.Go(func() { c.loop(name, chore) })
	return true
}

func (c *chores) loop(name string, chore func(ctx context.Context) error) {
	pause := choreMinPause
	for {
		ctx, cancel := context.WithTimeout(c.ctx, choreTimeout)
		err := chore(ctx)
		cancel()
		if err == nil {
			if c.finished(name) {
				return
			}
			pause = choreMinPause
			continue
		}
		if c.ctx.Err() != nil {
			return
		}
		c.log.Warn("background step failed, will be tried again", "step", name, "error", err)
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, choreMaxPause)
	}
}

// finished ends a chore unless it was asked for again.
func (c *chores) finished(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[name] {
		c.running[name] = false
		return false
	}
	delete(c.running, name)
	return true
}

// stop ends all chores and waits for them. What they left undone is in the
// outbox and the workflows, and is found by the next wake.
func (c *chores) stop() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
}

// pool runs a bounded number of functions at once and refuses more.
type pool struct {
	slots chan struct{}
	wg    sync.WaitGroup
}

func newPool(size int) *pool { return &pool{slots: make(chan struct{}, size)} }

// try runs f in the background, or answers false when the pool is full.
func (p *pool) try(f func()) bool {
	select {
	case p.slots <- struct{}{}:
	default:
		return false
	}
	p.wg.Go(func() {
		defer func() { <-p.slots }()
		f()
	})
	return true
}

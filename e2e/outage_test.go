package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// B92, B103: Redis is killed while customers ask, stays away, and is started again, without
// a script. Door and worker run on, and are not ready meanwhile; until the gate has an
// answer everybody hears "unavailable", nobody "sold-out".
func TestRedisIsAwayForAWhile(t *testing.T) {
	length, lease, wait := 5*time.Second, 3*time.Second, 4*time.Second
	if long() {
		length, lease, wait = time.Minute, 10*time.Second, 20*time.Second
	}
	for fence, bound := range map[string]time.Duration{"off": 5 * time.Second, "on": wait + 10*time.Second} {
		t.Run("fence "+fence, func(t *testing.T) {
			h := ownHouse(t, stack.Options{AppendFsync: "always", Env: map[string]string{
				"HOLDFAST_GATE_FENCE": fence, "HOLDFAST_GATE_REOPEN_WAIT": wait.String(),
			}}, lease)
			h.outage(t, fence, length, bound)
		})
	}
}

func (h *house) outage(t *testing.T, fence string, length, bound time.Duration) {
	ctx := t.Context()
	sku, empty := "away-"+fence, "away-line-"+fence
	h.opened(t, sku, 100_000)
	h.opened(t, empty, 0)
	before, err := h.shop.Hold(ctx, sku, "before")
	require.NoError(t, err)
	waits, err := h.inLine(ctx, h.shop, empty, phone(0))
	require.NoError(t, err)
	pids := []int{h.Child(stack.Door).PID(), h.Child(stack.Worker).PID()}

	c := &customers{h: h, sku: sku}
	stop := c.ask(ctx, 8)
	defer stop()
	c.until(t, "customers are served", func() bool { return len(c.won) >= 20 })
	require.Equal(t, [2]int{http.StatusOK, http.StatusOK}, h.readiness(t))
	h.Child(stack.Redis).Kill()
	away := time.Now()
	red := [2]int{http.StatusServiceUnavailable, http.StatusServiceUnavailable}
	require.NoError(t, until(ctx, "door and worker say that they are not ready", func() error {
		if now := h.readiness(t); now != red {
			return fmt.Errorf("they answer %v", now)
		}
		return nil
	}))
	figure(t, "redis_away_to_red_fence_"+fence, time.Since(away).Seconds(), "s")
	for time.Since(away) < length { // as long as the story says
		require.Equal(t, red, h.readiness(t))
		require.NoError(t, wait(ctx, 100*time.Millisecond))
	}
	c.mu.Lock()
	refused := c.refused
	c.start = time.Now()
	c.mu.Unlock()
	require.Positive(t, refused, "nobody asked while Redis was away")
	require.NoError(t, h.Child(stack.Redis).Start(ctx))
	c.until(t, "customers are served again", func() bool { return !c.first.IsZero() })
	require.NoError(t, until(ctx, "door and worker are ready again", func() error {
		if now := h.readiness(t); now != [2]int{http.StatusOK, http.StatusOK} {
			return fmt.Errorf("they answer %v", now)
		}
		return nil
	}))
	first := c.goOn(t, stop)
	figure(t, "redis_back_to_first_hold_fence_"+fence, first.Seconds(), "s")
	figure(t, "slowest_answer_fence_"+fence, c.slowest.Seconds(), "s")
	t.Logf("%d holds, %d times unavailable", len(c.won), c.refused)
	require.LessOrEqual(t, first, bound)
	require.Equal(t, pids, []int{h.Child(stack.Door).PID(), h.Child(stack.Worker).PID()}, "nothing of ours was started again")

	// What was promised stands, and who waited is told.
	confirmed(t, h, before.HoldID, "pay_before")
	require.NoError(t, each(ctx, len(c.won), 16, c.stands))
	require.NoError(t, h.shop.Restock(ctx, empty, 1))
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	h.judge(t, sku, empty)
}

// readiness is how door and worker answer whoever balances or watches them.
func (h *house) readiness(t *testing.T) (status [2]int) {
	t.Helper()
	for i, at := range []string{h.URL(), h.WorkerOpsURL()} {
		res, err := http.Get(at + "/readyz")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		status[i] = res.StatusCode
	}
	return status
}

// customers ask for units one after the other and write down what they hear.
type customers struct {
	h   *house
	sku string

	mu      sync.Mutex
	won     []string // holds of complete 201s
	refused int      // as unavailable
	faults  []error  // answers that must never come
	start   time.Time
	first   time.Time // success after start
	slowest time.Duration
}

// ask lets so many customers ask until stop is called.
func (c *customers) ask(ctx context.Context, people int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for person := range people {
		wg.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; {
				if c.once(fmt.Sprintf("%s-%d-%d", c.sku, person, n)) {
					n++
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// once asks for one unit and says whether the answer is final; if not, the
// request is repeated as it was.
func (c *customers) once(key string) (final bool) {
	began := time.Now()
	// Not the crowd's context: an answer that comes after the end counts as well.
	a, err := c.h.shop.AskHold(context.Background(), c.sku, key, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, time.Since(began))
	hold, parse := shop.ParseHold(a)
	switch {
	case err != nil:
		c.faults = append(c.faults, err) // the door is alive and must answer
	case a.Status == http.StatusServiceUnavailable && a.Code() == "unavailable" && a.Header.Get("Retry-After") != "":
		c.refused++
		return false
	case (a.Status == http.StatusCreated || a.Status == http.StatusOK) && parse == nil && hold.State == "held":
		c.won = append(c.won, hold.HoldID)
		if !c.start.IsZero() && c.first.IsZero() {
			c.first = time.Now()
		}
	default:
		c.faults = append(c.faults, fmt.Errorf("request %s was answered %s", key, a))
	}
	return true
}

// stands wants the i-th hold that was promised to be held.
func (c *customers) stands(ctx context.Context, i int) error {
	hold, err := c.h.shop.ReadHold(ctx, c.won[i])
	if err == nil && hold.State != "held" {
		err = fmt.Errorf("hold %s was promised and is %s", hold.HoldID, hold.State)
	}
	return err
}

// goOn lets customers have some more, sends them home and answers how long after start the
// first one was served.
func (c *customers) goOn(t *testing.T, stop func()) time.Duration {
	t.Helper()
	c.mu.Lock()
	won := len(c.won)
	c.mu.Unlock()
	c.until(t, "all goes on", func() bool { return len(c.won) >= won+20 })
	stop()
	require.NoError(t, errors.Join(c.faults...))
	return c.first.Sub(c.start)
}

func (c *customers) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.NoError(t, until(t.Context(), what, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if ok() {
			return nil
		}
		return fmt.Errorf("%d holds, %d times unavailable, faults %v", len(c.won), c.refused, c.faults)
	}))
}

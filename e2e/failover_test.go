package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/internal/redistest"
)

// B97: the master dies under steady requests, behind one address that is turned to its
// replica. At first that is still a replica: it decides nothing, and nobody hears
// "sold-out" of it. Promoted, it serves within the reopening and ten seconds, to the same
// door and worker, and every hold that was promised stands.
func TestTheAddressTurnsToAPromotedReplica(t *testing.T) {
	const sku, empty, reopen = "turned", "turned-empty", 4 * time.Second
	ctx := t.Context()
	a := newArena(t, 3*time.Second, "HOLDFAST_GATE_REOPEN_WAIT", reopen.String())
	host, port, err := net.SplitHostPort(a.RedisAddr())
	require.NoError(t, err)
	server, err := redistest.Start("--appendonly", "yes", "--repl-backlog-ttl", "0", "--replicaof", host, port)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	replica := server.Client()
	t.Cleanup(func() { replica.Close() })
	require.NoError(t, follows(ctx, replica))
	a.opened(t, sku, 100_000)
	a.opened(t, empty, 0)
	pids := []int{a.child(stack.Door).PID(), a.child(stack.Worker).PID()}

	c := &customers{h: a.house, sku: sku}
	stop := c.ask(ctx, 5) // each twenty times a second, as long as it is answered as fast
	defer stop()
	c.until(t, "customers are served", func() bool { return len(c.won) >= 20 })

	a.Child(stack.Redis).Kill()
	a.turns(t, server.Addr)
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	require.NoError(t, until(ctx, "the replica is asked", func() error {
		stats, err := replica.Info(ctx, "errorstats").Result()
		if err == nil && !strings.Contains(stats, "errorstat_READONLY") {
			err = errNotYet
		}
		return err
	}))
	for i := range 10 {
		ans, err := a.shop.AskHold(ctx, empty, "walk-in", fmt.Sprint("at-a-replica-", i))
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, ans.Status, "a replica has answered: %s", ans)
		ans, err = a.shop.Call(ctx, http.MethodGet, "/v1/stock/"+empty+"/public", nil, "Authorization", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, ans.Status, "what a replica knows may be long past: %s", ans)
	}
	c.until(t, "customers have asked it", func() bool { return c.refused >= refused+100 })

	c.mu.Lock()
	c.start = time.Now()
	c.mu.Unlock()
	require.NoError(t, replica.Do(ctx, "replicaof", "no", "one").Err())
	c.until(t, "customers are served again", func() bool { return !c.first.IsZero() })
	first := c.goOn(t, stop)
	figure(t, "promotion_to_first_hold", first.Seconds(), "s")
	t.Logf("%d holds, %d times unavailable", len(c.won), c.refused)
	require.LessOrEqual(t, first, reopen+10*time.Second)
	require.Equal(t, pids, []int{a.child(stack.Door).PID(), a.child(stack.Worker).PID()}, "nothing of ours was started again")

	master := a.house.redis
	a.house.redis, a.check.Redis = replica, replica
	t.Cleanup(func() { a.house.redis = master }) // which the house closes
	require.NoError(t, each(ctx, len(c.won), 16, c.stands))
	a.reopens(t, empty)
	a.judge(t, sku, empty)
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/internal/redistest"
)

// A replica is promoted that has not got the last writes, and later the first server
// again, which by then is the replica that has not got them. Each time whoever was given
// a hold meanwhile keeps it. Then Temporal has forgotten who sold, too.
// B98.
func TestAPromotedReplicaWithoutTheLastWrites(t *testing.T) {
	env := []string{}
	for name, value := range lossEnv {
		env = append(env, name, value)
	}
	a := newArena(t, 2*time.Second, env...)
	ctx := t.Context()
	host, port, err := net.SplitHostPort(a.RedisAddr())
	require.NoError(t, err)
	server, err := redistest.Start("--appendonly", "yes", "--repl-backlog-ttl", "0", "--replicaof", host, port)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	first, second := a.redis, server.Client()
	t.Cleanup(func() { second.Close() })
	require.NoError(t, follows(ctx, second))

	r := newRush(t, a.house, "promoted", 2000)
	few := []*scarce{r.scarce(t, "promoted-few"), r.scarce(t, "failed-back-few")}
	r.joins(t, 2)
	r.more(t, 10)
	for _, s := range few {
		s.expires(t)
	}
	// promotes makes the replica the server that door and worker ask.
	promotes := func(to *goredis.Client, addr string) {
		a.turns(t, addr)
		a.house.redis, a.check.Redis = to, to
	}
	// attaches makes one the replica of the other, and waits until it has everything.
	attaches := func(to *goredis.Client, addr string) {
		host, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		require.NoError(t, to.Do(ctx, "replicaof", host, port).Err())
		require.NoError(t, follows(ctx, to))
	}
	detaches := func(from *goredis.Client) { require.NoError(t, from.Do(ctx, "replicaof", "no", "one").Err()) }

	for i, change := range []struct {
		from, to *goredis.Client
		addr     string
	}{{first, second, server.Addr}, {second, first, a.RedisAddr()}} {
		detaches(change.to)
		r.joins(t, 2)
		r.more(t, 10) // which the promoted one has not got
		few[i].promises(t)
		promotes(change.to, change.addr)
		r.opensRebuilt(t)
		for _, s := range few[:i+1] {
			s.stands(t)
		}
		r.more(t, 10)
		if change.to == second { // the first comes back as a replica
			attaches(change.from, change.addr)
			r.opensAsItIs(t)
		}
	}
	for _, s := range few {
		s.ends(t)
	}
	r.ends(t)
	forgotten(t, a.house, r.flash, func() {
		attaches(second, a.RedisAddr())
		a.house.reopens(t, r.flash)
		detaches(second)
	}, func() { promotes(second, server.Addr) })
	a.house.redis = first // which the house closes
}

// follows waits until a replica has what its master had.
func follows(ctx context.Context, replica *goredis.Client) error {
	return until(ctx, "the replica follows", func() error {
		info, err := replica.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("it does not yet")
		}
		return err
	})
}

// A node of a Redis Cluster is replaced by one that has nothing. What it held is written
// anew; the SKUs of the other nodes lose nothing.
// B91.
func TestAClusterNodeIsReplaced(t *testing.T) {
	nodes, err := redistest.StartCluster(3)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	env := maps.Clone(lossEnv)
	env["HOLDFAST_REDIS_ADDRS"] = strings.Join(nodes.Addrs(), ",")
	h := ownHouse(t, stack.Options{External: stack.External{Redis: nodes.Nodes[0].Addr}, Env: env}, 2*time.Second)
	rdb := nodes.Client()
	t.Cleanup(func() { rdb.Close() })
	h.check.Redis = rdb

	replaced := newRush(t, h, "replaced", 2000)
	owner, err := rdb.MasterForKey(t.Context(), "hf:{"+replaced.flash+"}:stock")
	require.NoError(t, err)
	// named is a SKU that this node has, or another one.
	named := func(prefix string, here bool) string {
		for i := 0; ; i++ {
			sku := fmt.Sprint(prefix, i)
			at, err := rdb.MasterForKey(t.Context(), "hf:{"+sku+"}:stock")
			require.NoError(t, err)
			if (at.Options().Addr == owner.Options().Addr) == here {
				return sku
			}
		}
	}
	few, other := replaced.scarce(t, named("replaced-few-", true)), named("elsewhere-", false)
	h.opened(t, other, 5)
	held, err := h.shop.Hold(t.Context(), other, "ada")
	require.NoError(t, err)
	cart, err := h.shop.Cart(t.Context(), []string{replaced.flash, other}, "bea") // of two nodes
	require.NoError(t, err)
	replaced.mu.Lock()
	replaced.kept = append(replaced.kept, replaced.promised(cart.HoldID))
	replaced.mu.Unlock()
	replaced.joins(t, 2)
	replaced.more(t, 10)
	few.expires(t)
	few.promises(t)
	for _, node := range nodes.Nodes {
		if node.Addr == owner.Options().Addr {
			node.Kill() // it has no file but that of the Cluster
			require.NoError(t, node.Run())
		}
	}
	replaced.opensRebuilt(t)
	few.stands(t)
	replaced.joins(t, 1)
	replaced.more(t, 10)
	few.ends(t)
	replaced.ends(t)
	confirmed(t, h, held.HoldID, "pay_ada")
	h.judge(t, other)
}

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
// a hold meanwhile keeps it.
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
	r.joins(t, 2)
	r.more(t, 10)
	for _, change := range []struct {
		from, to *goredis.Client
		addr     string
	}{{first, second, server.Addr}, {second, first, a.RedisAddr()}} {
		require.NoError(t, change.to.Do(ctx, "replicaof", "no", "one").Err())
		r.joins(t, 2)
		r.more(t, 10) // which the promoted one has not got
		nets := a.networks(stack.Redis, stack.Worker, stack.Door)
		for _, n := range nets {
			n.Stop()
			n.Upstream = change.addr
		}
		for _, n := range nets {
			require.NoError(t, n.Start())
		}
		r.opens(t)
		a.house.redis, a.check.Redis = change.to, change.to
		r.more(t, 10)
		if change.to == second { // the first comes back as a replica
			host, port, err := net.SplitHostPort(change.addr)
			require.NoError(t, err)
			require.NoError(t, change.from.Do(ctx, "replicaof", host, port).Err())
			require.NoError(t, follows(ctx, change.from))
			r.opens(t)
		}
	}
	r.ends(t)
	r.differed(t)
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
	var other string
	for i := 0; other == ""; i++ {
		sku := fmt.Sprint("elsewhere-", i)
		at, err := rdb.MasterForKey(t.Context(), "hf:{"+sku+"}:stock")
		require.NoError(t, err)
		if at.Options().Addr != owner.Options().Addr {
			other = sku
		}
	}
	h.opened(t, other, 5)
	held, err := h.shop.Hold(t.Context(), other, "ada")
	require.NoError(t, err)
	replaced.joins(t, 2)
	replaced.more(t, 10)
	for _, node := range nodes.Nodes {
		if node.Addr == owner.Options().Addr {
			node.Kill() // it has no file but that of the Cluster
			require.NoError(t, node.Run())
		}
	}
	replaced.opens(t)
	replaced.joins(t, 1)
	replaced.more(t, 10)
	replaced.ends(t)
	replaced.differed(t)
	confirmed(t, h, held.HoldID, "pay_ada")
	h.judge(t, other)
}

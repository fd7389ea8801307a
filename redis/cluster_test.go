package redis

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

// TestCluster shares one Cluster: its nodes accept no write for their first two
// seconds.
func TestCluster(t *testing.T) {
	nodes, err := redistest.StartCluster(3)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	rdb := nodes.Client()
	t.Cleanup(func() { rdb.Close() })
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Cluster, *goredis.ClusterClient)
	}{
		{"SKUs spread over it and carts span", skusSpreadAndCartsSpan},
		{"a closed SKU is opened by the id of its own node", openedByItsOwnNode},
		{"a gate over one node is no outcome", gateOverOneNode},
		{"every node is checked", everyNodeIsChecked},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, nodes, rdb) })
	}
}

// onEachNode opens SKUs with so many units until every node holds one.
func onEachNode(t *testing.T, nodes *redistest.Cluster, rdb *goredis.ClusterClient, units int64) map[string]*fixture {
	t.Helper()
	byNode := map[string]*fixture{}
	for n := 0; len(byNode) < len(nodes.Nodes); n++ {
		require.Less(t, n, 100, "the SKUs hash to %d nodes only", len(byNode))
		f := newFixture(t, rdb, units)
		master, err := rdb.MasterForKey(t.Context(), key(f.sku, "stock"))
		require.NoError(t, err)
		byNode[master.Options().Addr] = f
	}
	return byNode
}

// All keys of a SKU are on one node, the SKUs on all of them; a cart takes its
// lines one by one and gives back what it has when one is refused.
func skusSpreadAndCartsSpan(t *testing.T, nodes *redistest.Cluster, rdb *goredis.ClusterClient) {
	var lines []*fixture
	for addr, f := range onEachNode(t, nodes, rdb, 1) {
		f.joinAs("ada", 1)
		one := goredis.NewClient(&goredis.Options{Addr: addr})
		found, err := one.Exists(t.Context(), key(f.sku, "stock"), key(f.sku, "entries"), key(f.sku, "outbox"), key(f.sku, "ledger")).Result()
		require.NoError(t, err)
		require.NoError(t, one.Close())
		require.Equal(t, int64(4), found, "one node holds all of a SKU")
		lines = append(lines, newFixture(t, rdb, 1))
	}

	full, empty := lines[:len(lines)-1], lines[len(lines)-1]
	empty.held()
	taken := map[*fixture]string{}
	for _, f := range full {
		taken[f] = f.id(contract.HoldID)
		require.Equal(t, OK, f.reserve(taken[f], 1).Verdict)
	}
	require.Equal(t, SoldOut, empty.reserve(empty.id(contract.HoldID), 1).Verdict)
	for f, id := range taken {
		require.Equal(t, OK, f.release(id, contract.ReasonCompensation).Verdict)
		require.Equal(t, int64(1), f.counters().OpenToAll)
	}
}

// Each node has a replication id of its own, and a closed SKU is opened by that
// of the node which holds it.
func openedByItsOwnNode(t *testing.T, nodes *redistest.Cluster, rdb *goredis.ClusterClient) {
	ids := map[string]bool{}
	for _, f := range onEachNode(t, nodes, rdb, 2) {
		f.held()
		fence, err := rdb.HGet(t.Context(), key(f.sku, "stock"), "fence").Result()
		require.NoError(t, err)
		ids[fence] = true
		for range 3 { // a question to any node would find the right one by luck
			require.NoError(t, rdb.HDel(t.Context(), key(f.sku, "stock"), "fence").Err())
			_, _, err = f.g.Snapshot(t.Context(), f.sku)
			require.Equal(t, fence, closedBy(t, err).ReplID)
			in, err := f.g.Inspect(t.Context(), f.sku)
			require.NoError(t, err)
			require.Equal(t, fence, in.ReplID)
			reopens(t, f.g, f.sku)
		}
		f.held()
		require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
	}
	require.Len(t, ids, len(nodes.Nodes))
}

func everyNodeIsChecked(t *testing.T, nodes *redistest.Cluster, rdb *goredis.ClusterClient) {
	var warnings bytes.Buffer
	require.NoError(t, CheckServer(t.Context(), rdb, slog.New(slog.NewTextHandler(&warnings, nil))))
	require.Equal(t, len(nodes.Nodes), strings.Count(warnings.String(), "no append-only file"), warnings.String())
	last := clientOf(t, nodes.Nodes[2])
	require.NoError(t, last.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	require.ErrorContains(t, CheckServer(t.Context(), rdb, slog.New(slog.DiscardHandler)), "allkeys-lru")
}

// One address is one server to the client library. Over a Cluster it must not
// decide anything for the SKUs of the other nodes.
func gateOverOneNode(t *testing.T, nodes *redistest.Cluster, _ *goredis.ClusterClient) {
	g := New(clientOf(t, nodes.Nodes[0]), testOptions())
	outcomes := map[bool]int{}
	for n := range 30 {
		_, err := g.Open(t.Context(), OpenRequest{SKU: fmt.Sprint("S", n), New: true})
		if err != nil {
			require.ErrorIs(t, err, ErrUnavailable)
			require.ErrorContains(t, err, "MOVED")
		}
		outcomes[err == nil]++
	}
	require.Positive(t, outcomes[true])
	require.Positive(t, outcomes[false])
}

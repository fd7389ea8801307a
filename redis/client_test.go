package redis

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// B97: no option may send the gate to a replica.
func TestAClientThatMayAskReplicasIsRefused(t *testing.T) {
	nobody := []string{"127.0.0.1:1"}
	for option, opts := range map[string]*goredis.ClusterOptions{
		"ReadOnly":       {Addrs: nobody, ReadOnly: true},
		"RouteByLatency": {Addrs: nobody, RouteByLatency: true},
		"RouteRandomly":  {Addrs: nobody, RouteRandomly: true},
	} {
		rdb := goredis.NewClusterClient(opts)
		require.ErrorContains(t, CheckClient(rdb), option)
		require.NoError(t, rdb.Close())
	}
	failover := goredis.NewFailoverClusterClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: nobody, RouteRandomly: true})
	defer failover.Close()
	require.ErrorContains(t, CheckClient(failover), "RouteRandomly")
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": nobody[0]}})
	defer ring.Close()
	require.ErrorContains(t, CheckClient(ring), "Ring")

	for _, opts := range []*goredis.UniversalOptions{
		{Addrs: nobody},
		{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}},
		{Addrs: nobody, MasterName: "m"},
	} {
		rdb := goredis.NewUniversalClient(opts)
		require.NoError(t, CheckClient(rdb))
		require.NoError(t, rdb.Close())
	}
}

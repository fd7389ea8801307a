package redis

import (
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// CheckClient refuses a client that could send a script, or a plain read of the
// gate, to a replica: what a replica says may be long past, and no unit may be
// promised or refused by it. It looks at options only and dials nothing; that an
// address is no replica is for CheckServer.
func CheckClient(rdb goredis.UniversalClient) error {
	switch c := rdb.(type) {
	case *goredis.Client:
		return nil
	case *goredis.ClusterClient:
		var wrong []string
		opts := c.Options()
		// The library sets ReadOnly itself when one of the other two is set.
		if opts.ReadOnly {
			wrong = append(wrong, "ReadOnly")
		}
		if opts.RouteByLatency {
			wrong = append(wrong, "RouteByLatency")
		}
		if opts.RouteRandomly {
			wrong = append(wrong, "RouteRandomly")
		}
		if len(wrong) > 0 {
			return fmt.Errorf("redis client: %s may send the gate's scripts to a replica; leave it unset", strings.Join(wrong, ", "))
		}
		return nil
	}
	return fmt.Errorf("redis client: the gate runs over one server, a fail-over group or a Cluster, not over %T", rdb)
}

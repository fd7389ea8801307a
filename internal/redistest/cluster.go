package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const slots = 16384

// Cluster is a Redis Cluster of masters on the loopback address, each with an
// equal share of the slots.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts so many masters and waits until each serves all slots.
func StartCluster(masters int) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(masters); err != nil {
		c.Close()
		return nil, fmt.Errorf("redis cluster of %d: %w", masters, err)
	}
	return c, nil
}

func (c *Cluster) start(masters int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var buses []string
	for range masters {
		// The bus would be 10,000 above a free port, which may be no port.
		bus, err := freePort()
		if err != nil {
			return err
		}
		node, err := Start("--cluster-enabled", "yes", "--cluster-port", bus, "--appendonly", "no")
		if err != nil {
			return err
		}
		c.Nodes, buses = append(c.Nodes, node), append(buses, bus)
	}
	for i, node := range c.Nodes {
		rdb := node.Client()
		defer rdb.Close()
		err := errors.Join(
			rdb.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
			rdb.ClusterAddSlotsRange(ctx, slots*i/masters, slots*(i+1)/masters-1).Err(),
		)
		for j, other := range c.Nodes[:i] {
			host, port, _ := net.SplitHostPort(other.Addr)
			err = errors.Join(err, rdb.Do(ctx, "cluster", "meet", host, port, buses[j]).Err())
		}
		if err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		if err := c.settled(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until the node knows all others and an owner for each slot.
func (c *Cluster) settled(ctx context.Context, node *Server) error {
	rdb := node.Client()
	defer rdb.Close()
	want := []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(c.Nodes)), fmt.Sprintf("cluster_slots_ok:%d\r", slots)}
	for {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		missing := ""
		for _, line := range want {
			if !strings.Contains(info, line) {
				missing = line
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not come to %q: %s", node.Addr, missing, info)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs
}

// Client returns a new client of the cluster.
func (c *Cluster) Client() *goredis.ClusterClient {
	return goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: true})
}

// Close ends all nodes and removes their folders.
func (c *Cluster) Close() {
	for _, node := range c.Nodes {
		node.Close()
	}
}

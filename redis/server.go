package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

const (
	leastMajor = 7 // #!lua, and scripts whose clock stands still
	mostLag    = 5 // seconds that a replica may be behind while writes are accepted
)

// CheckServer asks every master whether it can keep the gate's promise. It
// refuses a version below 7.0, a policy that evicts keys, and a replica; it
// warns of a server without an append-only file, and of one with replicas that
// acknowledges writes which no replica has. An error that wraps ErrUnavailable
// means that the question could not be asked.
func CheckServer(ctx context.Context, rdb goredis.UniversalClient, log *slog.Logger) error {
	if cluster, ok := rdb.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
			return checkNode(ctx, node, log)
		})
	}
	return checkNode(ctx, rdb, log)
}

// node is what CheckServer asks.
type node interface {
	Info(ctx context.Context, sections ...string) *goredis.StringCmd
	ConfigGet(ctx context.Context, parameter string) *goredis.MapStringStringCmd
}

func checkNode(ctx context.Context, rdb node, log *slog.Logger) error {
	text, err := rdb.Info(ctx).Result()
	if err != nil {
		return fmt.Errorf("%w: INFO: %w", ErrUnavailable, err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	where := "redis on port " + info["tcp_port"]
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(where+" "+format, args...))
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastMajor {
		refuse("is version %q: the gate needs %d.0 or newer", info["redis_version"], leastMajor)
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		refuse("has maxmemory-policy %q and would drop holds when memory is short: set it to noeviction", policy)
	}
	if role := info["role"]; role != "master" {
		refuse("is a %s: point redis.addrs at the master", role)
	}
	if info["aof_enabled"] != "1" {
		log.Warn(where + " has no append-only file: a restart loses every hold since the last snapshot. Set appendonly yes")
	}
	if replicas := info["connected_slaves"]; replicas != "" && replicas != "0" {
		checkReplicas(ctx, rdb, where, replicas, log)
	}
	return errors.Join(problems...)
}

// checkReplicas warns when a promoted replica could lack acknowledged writes.
func checkReplicas(ctx context.Context, rdb node, where, replicas string, log *slog.Logger) {
	number := func(name string) (int, bool) {
		values, err := rdb.ConfigGet(ctx, name).Result()
		if err != nil {
			return 0, false // CONFIG is not allowed everywhere
		}
		n, err := strconv.Atoi(values[name])
		return n, err == nil
	}
	writes, known := number("min-replicas-to-write")
	lag, lagKnown := number("min-replicas-max-lag")
	switch {
	case !known || !lagKnown:
		log.Warn(where+" does not say what it asks of its replicas: see to it that min-replicas-to-write is 1 or more and min-replicas-max-lag 1 to 5", "replicas", replicas)
	case writes < 1 || lag < 1 || lag > mostLag:
		log.Warn(where+" acknowledges writes that no replica has: a promoted replica then lacks them. Set min-replicas-to-write to 1 or more and min-replicas-max-lag to 1 to 5",
			"replicas", replicas, "min_replicas_to_write", writes, "min_replicas_max_lag", lag)
	}
}

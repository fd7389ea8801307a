// Package connect builds from the configuration what the worker and the door
// share: the key ring, the Redis client, the gate and the Temporal client.
package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"holdfast/config"
	"holdfast/keys"
	"holdfast/redis"
)

// Keys makes the key ring. cfg comes from config.Load, which has checked every
// secret; what is wrong with one all the same is an error that does not show it.
func Keys(cfg *config.Config) (*keys.Ring, error) {
	links := make([]keys.LinkKey, len(cfg.Secrets.Links))
	for i, item := range cfg.Secrets.Links {
		id, secret, _ := strings.Cut(item, ":")
		n, err := strconv.ParseUint(id, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("secrets.links: item %d does not begin with a key id of 0 to 255 and a colon", i+1)
		}
		links[i] = keys.LinkKey{ID: byte(n), Secret: []byte(secret)}
	}
	ring, err := keys.New([]byte(cfg.Secrets.Person), []byte(cfg.Secrets.Main), links)
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	return ring, nil
}

const (
	// Every verb is idempotent, so a lost answer may be asked for again. More
	// than two repeats only hide an outage from the caller.
	redisRetries = 2
	// Short, because a failed verb is repeated by its caller anyway.
	redisMaxBackoff = 100 * time.Millisecond
)

// Redis makes the client that the gate runs over: Cluster when several
// addresses are named. It does not dial yet, so a process starts while Redis is
// down. Scripts go to masters only.
func Redis(cfg *config.Config) (goredis.UniversalClient, error) {
	c := cfg.Redis
	if len(c.Addrs) == 0 {
		return nil, fmt.Errorf("redis.addrs: no address")
	}
	opts := &goredis.UniversalOptions{
		Addrs:      c.Addrs,
		ClientName: "holdfast",
		Username:   c.Username,
		Password:   c.Password,
		DB:         c.DB,

		MaxRetries:      redisRetries,
		MaxRetryBackoff: redisMaxBackoff,
		DialerRetries:   1,
		DialTimeout:     c.Timeout,
		ReadTimeout:     c.Timeout,
		WriteTimeout:    c.Timeout,
		PoolTimeout:     c.Timeout,
		// Without this a caller's deadline would not bound a running command.
		ContextTimeoutEnabled: true,

		PoolSize:       c.PoolSize,
		MaxActiveConns: c.PoolSize,
		// A managed service's hand-over notices; the gate relies on its own fence.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if c.TLS {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	rdb := goredis.NewUniversalClient(opts)
	if err := redis.CheckClient(rdb); err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return rdb, nil
}

// LogRedis sends what the Redis client library has to say to log. It is global
// to the process: the library knows one logger.
func LogRedis(log *slog.Logger) { goredis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, fmt.Sprintf(format, v...))
}

// CheckRedis asks the gate's server whether it can keep the gate's promise, and
// refuses one that cannot. One that does not answer holds up no start: the gate
// answers "unavailable" until it does, and CheckRedisLater then asks it. A
// stand-in is not asked.
func CheckRedis(ctx context.Context, cfg *config.Config, rdb goredis.UniversalClient, log *slog.Logger) (answered bool, err error) {
	if cfg.Gate.Fence == config.FenceOff {
		return true, nil
	}
	err = redis.CheckServer(ctx, rdb, log)
	if errors.Is(err, redis.ErrUnavailable) {
		log.Warn("Redis does not answer yet", "error", err)
		return false, nil
	}
	return true, err
}

const redisRecheck = time.Second // between two questions to a silent server

// CheckRedisLater asks a server that was silent until it answers, and returns
// its refusal or nil. It returns nil as well when ctx ends.
func CheckRedisLater(ctx context.Context, rdb goredis.UniversalClient, log *slog.Logger) error {
	tick := time.NewTicker(redisRecheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		err := redis.CheckServer(ctx, rdb, log)
		if errors.Is(err, redis.ErrUnavailable) {
			continue
		}
		if err == nil {
			log.Info("Redis answers")
		}
		return err
	}
}

// GateOption changes what the gate is made with.
type GateOption func(*redis.Options)

// Observed tells o what the gate does.
func Observed(o redis.Observer) GateOption {
	return func(opts *redis.Options) { opts.Observer = o }
}

// Gate makes the gate over rdb.
func Gate(cfg *config.Config, rdb goredis.UniversalClient, log *slog.Logger, more ...GateOption) *redis.Gate {
	off := cfg.Gate.Fence == config.FenceOff
	if off {
		log.Warn("gate.fence is off: a Redis that restarts and forgets is not noticed, and units can be sold twice; only for stand-ins")
	}
	opts := redis.Options{
		Lease:           cfg.Gate.Lease,
		RecordRetention: cfg.Gate.RecordRetention,
		SaleRetention:   cfg.Gate.SaleRetention,
		OfferMaxAge:     cfg.Offer.MaxAge,
		MissedKeep:      cfg.Missed.Keep,
		Refs:            keys.NewRefs([]byte(cfg.Secrets.Person)),
		FenceOff:        off,
		Log:             log,
	}
	for _, change := range more {
		change(&opts)
	}
	return redis.New(rdb, opts)
}

package connect

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func devConfig(t *testing.T, overrides ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load("", append([]string{
		"mode=dev", "shop.name=Test", "sms.provider=console", "payment.provider=none", "http.public_url=http://127.0.0.1:8080",
	}, overrides...))
	require.NoError(t, err)
	return cfg
}

func TestKeys(t *testing.T) {
	cfg := devConfig(t, "secrets.links=200:the new link secret,7:the old link: secret")
	ring, err := Keys(cfg)
	require.NoError(t, err)
	now := time.Now()
	holdID := contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	token, err := ring.Token(holdID, now.Add(time.Hour))
	require.NoError(t, err)

	// With the two keys changed about the other signs, and both verify.
	cfg.Secrets.Links[0], cfg.Secrets.Links[1] = cfg.Secrets.Links[1], cfg.Secrets.Links[0]
	turned, err := Keys(cfg)
	require.NoError(t, err)
	got, err := turned.ParseToken(token, now)
	require.NoError(t, err)
	require.Equal(t, holdID, got)
	other, err := turned.Token(holdID, now.Add(time.Hour))
	require.NoError(t, err)
	require.NotEqual(t, token[:4], other[:4], "another key id")
}

func TestKeysNeverShowASecret(t *testing.T) {
	for name, change := range map[string]func(*config.Secrets){
		"no id":         func(s *config.Secrets) { s.Links = []string{"do-not-show-me-ever"} },
		"id too big":    func(s *config.Secrets) { s.Links = []string{"256:do-not-show-me-ever"} },
		"short":         func(s *config.Secrets) { s.Main = "do-not-show-me" },
		"no links":      func(s *config.Secrets) { s.Links = nil },
		"short in list": func(s *config.Secrets) { s.Links = []string{"1:do-not-show-me"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := devConfig(t)
			change(&cfg.Secrets)
			_, err := Keys(cfg)
			require.ErrorContains(t, err, "secrets")
			require.NotContains(t, err.Error(), "do-not-show-me")
		})
	}
}

func TestRedis(t *testing.T) {
	server := miniredis.RunT(t)
	server.RequireUserAuth("gate", "password of the gate")
	rdb, err := Redis(devConfig(t, "redis.addrs="+server.Addr(), "redis.username=gate", "redis.password=password of the gate", "redis.db=3"))
	require.NoError(t, err)
	defer rdb.Close()
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	require.True(t, server.DB(3).Exists("k"))
}

// A hung Redis costs a caller its own deadline, or redis.timeout a try, no more.
func TestRedisThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel and never answers
	require.NoError(t, err)
	defer l.Close()

	rdb, err := Redis(devConfig(t, "redis.addrs="+l.Addr().String(), "redis.timeout=20s"))
	require.NoError(t, err)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.Error(t, rdb.Get(ctx, "k").Err())
	require.Less(t, time.Since(began), 5*time.Second)

	rdb, err = Redis(devConfig(t, "redis.addrs="+l.Addr().String(), "redis.timeout=50ms"))
	require.NoError(t, err)
	defer rdb.Close()
	began = time.Now()
	require.Error(t, rdb.Get(t.Context(), "k").Err())
	require.Less(t, time.Since(began), 5*time.Second)

	require.NoError(t, l.Close()) // and now it refuses: a few tries, no more
	began = time.Now()
	require.Error(t, rdb.Get(t.Context(), "k").Err())
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestADeadlineBoundsARunningCommand(t *testing.T) {
	server := miniredis.RunT(t)
	rdb, err := Redis(devConfig(t, "redis.addrs="+server.Addr(), "redis.timeout=20s"))
	require.NoError(t, err)
	defer rdb.Close()
	require.NoError(t, rdb.Ping(t.Context()).Err()) // the connection stands
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = rdb.BLPop(ctx, 10*time.Second, "nothing comes").Err()
	var late net.Error
	require.ErrorAs(t, err, &late)
	require.True(t, late.Timeout())
	require.Less(t, time.Since(began), time.Second)
}

// However many callers wait, Redis sees no more than redis.pool_size connections;
// who waits for one longer than redis.timeout gets an error.
func TestThePoolIsBounded(t *testing.T) {
	server := miniredis.RunT(t)
	rdb, err := Redis(devConfig(t, "redis.addrs="+server.Addr(), "redis.pool_size=3", "redis.timeout=20s"))
	require.NoError(t, err)
	defer rdb.Close()
	const callers = 30
	answers := make(chan error, callers)
	for range callers {
		go func() { answers <- rdb.BLPop(t.Context(), 0, "list").Err() }()
	}
	for range callers {
		_, err := server.Push("list", "v")
		require.NoError(t, err)
		require.NoError(t, <-answers)
	}
	require.Equal(t, 3, server.TotalConnectionCount())

	hasty, err := Redis(devConfig(t, "redis.addrs="+server.Addr(), "redis.pool_size=1", "redis.timeout=50ms"))
	require.NoError(t, err)
	defer hasty.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go hasty.BLPop(ctx, 0, "nothing comes")
	require.Eventually(t, func() bool { return hasty.PoolStats().TotalConns == 1 && hasty.PoolStats().IdleConns == 0 }, 10*time.Second, time.Millisecond)
	began := time.Now()
	require.ErrorIs(t, hasty.Get(t.Context(), "k").Err(), goredis.ErrPoolTimeout)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestRedisClientLogsThroughOurs(t *testing.T) {
	var out bytes.Buffer
	LogRedis(slog.New(slog.NewJSONHandler(&out, nil)))
	defer LogRedis(slog.Default())
	rdb, err := Redis(devConfig(t, "redis.addrs=127.0.0.1:1"))
	require.NoError(t, err)
	defer rdb.Close()
	require.Error(t, rdb.Ping(t.Context()).Err())
	require.Contains(t, out.String(), `"level":"WARN"`)
	require.Contains(t, out.String(), "127.0.0.1:1")
}

func TestRedisIsBoundedAndNeverReadsReplicas(t *testing.T) {
	rdb, err := Redis(devConfig(t, "redis.addrs=127.0.0.1:1", "redis.pool_size=5"))
	require.NoError(t, err)
	defer rdb.Close()
	single := rdb.(*goredis.Client).Options()
	require.Equal(t, 5, single.PoolSize)
	require.Equal(t, 5, single.MaxActiveConns)
	require.Equal(t, 2*time.Second, single.PoolTimeout, "waiting for a connection is bounded like a command")
	require.Nil(t, single.TLSConfig)

	rdb, err = Redis(devConfig(t, "redis.addrs=127.0.0.1:1,127.0.0.1:2", "redis.tls=true"))
	require.NoError(t, err)
	defer rdb.Close()
	cluster := rdb.(*goredis.ClusterClient).Options()
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"}, cluster.Addrs)
	require.False(t, cluster.ReadOnly || cluster.RouteByLatency || cluster.RouteRandomly)
	require.True(t, cluster.ContextTimeoutEnabled)
	require.NotNil(t, cluster.TLSConfig)
}

// What the gate keeps of a payment is sealed, whatever else is configured.
func TestTheGateSealsPaymentRefs(t *testing.T) {
	server := miniredis.RunT(t)
	cfg := devConfig(t, "redis.addrs="+server.Addr(), "gate.fence=off")
	rdb, err := Redis(cfg)
	require.NoError(t, err)
	defer rdb.Close()
	gate := Gate(cfg, rdb, slog.New(slog.DiscardHandler))
	ctx, id := t.Context(), contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	_, err = gate.Open(ctx, redis.OpenRequest{SKU: "CHAIR", New: true})
	require.NoError(t, err)
	_, err = gate.Stock(ctx, "CHAIR", contract.StockEvent{EventID: "e", Kind: contract.StockRestock, Units: 1})
	require.NoError(t, err)
	_, err = gate.Reserve(ctx, redis.ReserveRequest{SKU: "CHAIR", HoldID: id, Units: 1, Person: "p"})
	require.NoError(t, err)
	out, err := gate.Confirm(ctx, redis.ConfirmRequest{SKU: "CHAIR", HoldID: id, PaymentRef: "pi_42"})
	require.NoError(t, err)
	require.Equal(t, redis.OK, out.Verdict)
	require.Equal(t, "pi_42", out.Hold.PaymentRef)
	record, err := rdb.HGet(ctx, "hf:{CHAIR}:holds", id).Result()
	require.NoError(t, err)
	require.NotContains(t, record, "pi_42")
	require.Contains(t, record, "s1.")
}

func TestTheGateHasItsClocks(t *testing.T) {
	cfg := devConfig(t, "gate.lease=7s", "gate.record_retention=2h", "gate.sale_retention=3h", "offer.max_age=4h", "missed.keep=5")
	rdb, err := Redis(cfg)
	require.NoError(t, err)
	defer rdb.Close()
	var got redis.Options
	Gate(cfg, rdb, slog.New(slog.DiscardHandler), func(o *redis.Options) { got = *o })
	require.Equal(t, []any{7 * time.Second, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 5, false},
		[]any{got.Lease, got.RecordRetention, got.SaleRetention, got.OfferMaxAge, got.MissedKeep, got.FenceOff})
}

func TestGateSaysWhenItHasNoFence(t *testing.T) {
	cfg := devConfig(t, "redis.addrs=127.0.0.1:1")
	rdb, err := Redis(cfg)
	require.NoError(t, err)
	defer rdb.Close()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	require.NotNil(t, Gate(cfg, rdb, log))
	require.Empty(t, out.String())
	cfg.Gate.Fence = config.FenceOff
	require.NotNil(t, Gate(cfg, rdb, log))
	require.Contains(t, out.String(), "gate.fence is off")
}

package connect

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// A process starts while Redis is away; the server is checked when it comes.
func TestASilentRedisIsCheckedWhenItAnswers(t *testing.T) {
	for name, c := range map[string]struct{ policy, refused string }{
		"a good one":        {"noeviction", ""},
		"one that forgets":  {"allkeys-lru", `maxmemory-policy "allkeys-lru"`},
		"one that may drop": {"volatile-ttl", `maxmemory-policy "volatile-ttl"`},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := redistest.Start("--appendonly", "yes", "--maxmemory-policy", c.policy)
			require.NoError(t, err)
			t.Cleanup(server.Close)
			server.Kill()
			cfg := devConfig(t, "redis.addrs="+server.Addr)
			rdb, err := Redis(cfg)
			require.NoError(t, err)
			defer rdb.Close()
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, nil))
			answered, err := CheckRedis(t.Context(), cfg, rdb, log)
			require.NoError(t, err)
			require.False(t, answered)
			require.Contains(t, out.String(), "Redis does not answer yet")

			stopped, stop := context.WithCancel(t.Context())
			stop()
			require.NoError(t, CheckRedisLater(stopped, rdb, log), "a process that stops asks no more")

			later := make(chan error, 1)
			go func() { later <- CheckRedisLater(t.Context(), rdb, log) }()
			require.NoError(t, server.Run())
			err = <-later
			answered, now := CheckRedis(t.Context(), cfg, rdb, log)
			require.True(t, answered)
			if c.refused == "" {
				require.NoError(t, err)
				require.NoError(t, now)
				require.Contains(t, out.String(), "Redis answers")
				return
			}
			require.ErrorContains(t, err, c.refused)
			require.ErrorContains(t, now, c.refused)

			cfg.Gate.Fence = "off"
			answered, err = CheckRedis(t.Context(), cfg, rdb, log)
			require.NoError(t, err, "a stand-in is not asked")
			require.True(t, answered)
		})
	}
}

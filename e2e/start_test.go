package e2e

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/internal/redistest"
)

// Neither door nor worker runs on a Redis that drops keys when memory is short:
// not when it answers at their start, and not when it answers only later.
func TestARedisThatForgetsIsRefused(t *testing.T) {
	// A Temporal of its own: a worker on the wrong Redis would take the tasks of
	// other stories.
	house, err := stack.Start(t.Context(), stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), TemporalBin: binary(t, "TEMPORAL_BIN"), NoDoor: true, NoWorker: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, house.Close()) })
	const refusal = `maxmemory-policy "allkeys-lru"`
	for _, child := range []string{stack.Door, stack.Worker} {
		t.Run(child, func(t *testing.T) {
			server, err := redistest.Start("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru")
			require.NoError(t, err)
			t.Cleanup(server.Close)
			opts := stack.Options{
				Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), NoDoor: child == stack.Worker, NoWorker: child == stack.Door,
				External: stack.External{Redis: server.Addr, Temporal: house.TemporalAddr()},
			}
			if opts.NoDoor { // a worker wants to know where the pages are
				const at = "127.0.0.1:8080"
				opts.Env = map[string]string{
					"HOLDFAST_HTTP_PUBLIC_ADDR": at, "HOLDFAST_HTTP_API_ADDR": at, "HOLDFAST_HTTP_OPS_ADDR": at, "HOLDFAST_HTTP_PUBLIC_URL": "http://" + at,
				}
			}
			_, err = stack.Start(t.Context(), opts)
			require.ErrorContains(t, err, refusal)

			server.Kill()
			opts.Dir = t.TempDir()
			s, err := stack.Start(t.Context(), opts)
			require.NoError(t, err, "it starts while Redis is away")
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			require.NoError(t, server.Run())
			require.NoError(t, until(t.Context(), "it ends", func() error {
				if s.Child(child).PID() != 0 {
					return errors.New("it runs")
				}
				return nil
			}))
			require.ErrorContains(t, s.Child(child).Ready(t.Context()), refusal)
		})
	}
}

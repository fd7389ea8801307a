package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// command runs the built program with a right configuration and more of it.
func command(t *testing.T, args []string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t, "HOLDFAST_BIN"), args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "HOLDFAST_") && !strings.HasPrefix(pair, "TEMPORAL_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "HOLDFAST_MODE=dev", "HOLDFAST_SHOP_NAME=Test", "HOLDFAST_SMS_PROVIDER=console", "HOLDFAST_PAYMENT_PROVIDER=none",
		"HOLDFAST_HTTP_PUBLIC_URL=http://127.0.0.1:8080")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A Temporal that has never heard of Holdfast: one command, and worker and door
// get ready. Both say so to whoever asks on their machine.
// B115.
func TestSetUpMakesTemporalReady(t *testing.T) {
	h := sharedHouse(t)
	const namespace = "made-by-setup"
	here := []string{"HOLDFAST_TEMPORAL_ADDRESS=" + h.TemporalAddr(), "HOLDFAST_TEMPORAL_NAMESPACE=" + namespace}
	for range 2 {
		out, err := command(t, []string{"setup"}, here...)
		require.NoError(t, err, out)
	}
	s, err := stack.Start(t.Context(), stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"),
		External: stack.External{Temporal: h.TemporalAddr()},
		Env:      map[string]string{"HOLDFAST_TEMPORAL_NAMESPACE": namespace},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	listens := []string{
		"HOLDFAST_WORKER_OPS_ADDR=" + strings.TrimPrefix(s.WorkerOpsURL(), "http://"),
		"HOLDFAST_HTTP_OPS_ADDR=" + strings.TrimPrefix(s.URL(), "http://"),
	}
	for _, service := range []string{"worker", "starter"} {
		require.NoError(t, until(t.Context(), service+" is ready", func() error {
			_, err := command(t, []string{"healthcheck", service}, listens...)
			return err
		}))
	}
	s.Child(stack.Redis).Kill()
	out, err := command(t, []string{"healthcheck", "worker"}, listens...)
	require.Error(t, err, "a worker without its gate is not ready")
	require.Contains(t, out, `"redis":"unavailable"`)
}

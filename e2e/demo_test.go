package e2e

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// The demo is run as `make demo` runs it, against a house with the settings of
// `make dev`.
func TestDemo(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_HOLD_AFTER": "page"}}, lease)
	demo := func(args ...string) (string, error) {
		args = append([]string{"run", "holdfast/dev/demo", "-url", h.shop.URL, "-texts", h.TextsFile()}, args...)
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		return string(out), err
	}
	out, err := demo()
	require.NoError(t, err, out)
	require.Contains(t, out, "Both stories went as they should.")

	out, err = demo("-key", "wrong")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, out, `step "the shop opens the SKU without a unit"`)
}

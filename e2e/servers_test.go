package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
)

// onEachServer plays a story on the newest server of Temporal, which is the embedded
// one, and on the oldest that is tried, which Temporal's own CLI carries.
// docs/deploy.md names both.
func onEachServer(t *testing.T, play func(t *testing.T, h *house)) {
	for _, c := range []struct {
		name string
		open func(t *testing.T) *house
	}{
		{"newest", sharedHouse},
		{"oldest", func(t *testing.T) *house { return ownHouse(t, stack.Options{TemporalBin: serverOfTheCLI(t)}, lease) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.open(t)
			info, err := h.temporal.WorkflowService().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{})
			require.NoError(t, err)
			t.Log("server", info.GetServerVersion())
			page, err := os.ReadFile("../docs/deploy.md")
			require.NoError(t, err)
			require.Contains(t, string(page), fmt.Sprintf("%s: %s", c.name, info.GetServerVersion()), "the versions that are tried")
			play(t, h)
		})
	}
}

// serverOfTheCLI is a program that takes the flags of the embedded server and runs the
// one of Temporal's CLI.
func serverOfTheCLI(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	script := fmt.Sprintf(`#!/bin/sh
for arg do
  shift
  case "$arg" in --db) arg=--db-filename ;; esac
  set -- "$@" "$arg"
done
echo 'ready soon'
exec '%s' server start-dev --headless --log-level error --sqlite-pragma journal_mode=WAL --sqlite-pragma synchronous=NORMAL "$@"
`, binary(t, "TEMPORAL_CLI_BIN"))
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

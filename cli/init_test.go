package cli

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
)

var update = flag.Bool("update", false, "write .env.example")

var placeholder = regexp.MustCompile(`\{\{.*?\}\}`)

const examplePath = "../.env.example"

func TestTheExampleIsWhatInitPrintsWithoutTheSecrets(t *testing.T) {
	want := placeholder.ReplaceAllString(initText, "HOLDFAST_INIT")
	if *update {
		require.NoError(t, os.WriteFile(examplePath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	require.Equal(t, want, string(got), ".env.example is behind cli/init.env: go test ./cli -run TestTheExample -update")
}

// settings are the variables of a file as `holdfast init` prints it.
func settings(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		require.True(t, ok, line)
		require.NotContains(t, all, name)
		all[name] = strings.Trim(value, "'")
	}
	return all
}

func TestInitMakesARightConfigurationWithSecretsOfItsOwn(t *testing.T) {
	plain(t)
	first, second := run(t, Services{}, "init"), run(t, Services{}, "init")
	require.Zero(t, first.code, first.err)
	a, b := settings(t, first.out), settings(t, second.out)
	require.Len(t, b, len(a))
	secrets := 0
	for name, value := range a {
		if strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD") {
			secrets++
			require.NotEqual(t, value, b[name], "%s is made anew each time", name)
		}
		if strings.HasPrefix(name, "HOLDFAST_") {
			t.Setenv(name, value)
		}
	}
	require.Equal(t, 8, secrets)
	cfg, err := config.Load("", nil)
	require.NoError(t, err)
	require.Equal(t, config.ModeProduction, cfg.Mode)
	require.NotEmpty(t, cfg.Secrets.PayloadKeys, "Temporal is told nothing in clear")
}

// Half a file of secrets would be worse than none.
func TestInitSaysWhenItCouldNotWrite(t *testing.T) {
	var complaint bytes.Buffer
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	code := Main(t.Context(), []string{"init"}, Streams{Out: full, Err: &complaint}, Services{})
	require.Equal(t, exitFailure, code)
	require.Contains(t, complaint.String(), "no space left")
}

// Whoever copies the example and starts is told, secret by secret.
func TestTheExampleItselfIsRefused(t *testing.T) {
	plain(t)
	raw, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	var secrets []string
	for name, value := range settings(t, string(raw)) {
		if strings.HasPrefix(name, "HOLDFAST_") {
			t.Setenv(name, value)
		}
		if strings.Contains(name, "_SECRETS_") {
			secrets = append(secrets, name)
		}
	}
	_, err = config.Load("", nil)
	require.Len(t, secrets, 6)
	for _, name := range secrets {
		require.ErrorContains(t, err, name)
	}
}

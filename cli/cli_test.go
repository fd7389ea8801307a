package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"holdfast/config"
)

// result is what a run of the program left.
type result struct {
	code     int
	out, err string
}

func run(t *testing.T, services Services, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := Main(t.Context(), args, Streams{Out: &out, Err: &err}, services)
	return result{code, out.String(), err.String()}
}

// plain takes every variable of ours away until the end of the test.
func plain(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "HOLDFAST_") {
			t.Setenv(name, value)
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

var devFlags = []string{
	"--set", "mode=dev", "--set", "shop.name=Test", "--set", "sms.provider=console", "--set", "payment.provider=none", "--set", "http.public_url=http://127.0.0.1:8080",
}

func TestServicesGetTheConfiguration(t *testing.T) {
	plain(t)
	for _, name := range []string{"worker", "starter"} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			service := func(as string) Service {
				return func(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
					require.NoError(t, ctx.Err())
					require.Equal(t, "Test", cfg.Shop.Name)
					ran = append(ran, as)
					return nil
				}
			}
			got := run(t, Services{Worker: service("worker"), Starter: service("starter")}, append([]string{name}, devFlags...)...)
			require.Zero(t, got.code, got.err)
			require.Equal(t, []string{name}, ran)
			require.Empty(t, got.out, "the log goes to standard error")
			for line := range strings.Lines(got.err) {
				require.True(t, json.Valid([]byte(line)), line)
			}
			require.NotContains(t, got.err, config.DevMainSecret)
		})
	}
}

// Outside dev a start says that nothing is encrypted, once.
func TestAServiceSaysThatTemporalIsToldInClear(t *testing.T) {
	plain(t)
	ok := func(context.Context, *config.Config, *slog.Logger) error { return nil }
	production := []string{
		"worker", "--set", "shop.name=Test", "--set", "payment.provider=none", "--set", "sms.provider=console", "--set", "http.public_url=http://127.0.0.1:8080",
		"--set", "secrets.person=person-secret-of-test", "--set", "secrets.main=main-secret-of-test", "--set", "secrets.links=1:link-secret-of-test",
		"--set", "secrets.api_keys=shop:api-key-of-the-test", "--set", "secrets.inventory=whsec_aW52ZW50b3J5LW9mLXRoZS10ZXN0",
	}
	for name, c := range map[string]struct {
		args []string
		says int
	}{
		"no key": {production, 1},
		"a key":  {append(production, "--set", "secrets.payload_keys=a:YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="), 0},
		"dev":    {append([]string{"worker"}, devFlags...), 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, Services{Worker: ok}, c.args...)
			require.Zero(t, got.code, got.err)
			require.Equal(t, c.says, strings.Count(got.err, "in clear"), got.err)
		})
	}
}

func TestExitCodes(t *testing.T) {
	plain(t)
	ok := func(context.Context, *config.Config, *slog.Logger) error { return nil }
	fails := func(context.Context, *config.Config, *slog.Logger) error { return errors.New("the reason") }
	never := func(context.Context, *config.Config, *slog.Logger) error {
		t.Error("it must not run")
		return nil
	}
	with := func(args ...string) []string { return append(args, devFlags...) }
	for name, c := range map[string]struct {
		services Services
		args     []string
		code     int
		says     string
	}{
		"fine":              {Services{Worker: ok}, with("worker"), 0, ""},
		"failed":            {Services{Worker: fails}, with("worker"), 1, "worker: the reason"},
		"bad configuration": {Services{Worker: never}, with("worker", "--set", "hold.ttl=1s"), 2, "hold.ttl = 1s"},
		"no configuration":  {Services{Starter: never}, []string{"starter"}, 2, "secrets.person"},
		"argument too many": {Services{Worker: never}, with("worker", "now"), 2, "now"},
		"unknown flag":      {Services{Worker: never}, with("worker", "--fast"), 2, "--fast"},
		"unknown command":   {Services{}, []string{"wroker"}, 2, "wroker"},
		"group alone":       {Services{}, []string{"stock"}, 2, "stock --help"},
		"unknown in group":  {Services{}, []string{"stock", "burn"}, 2, "burn"},
		"argument missing":  {Services{}, []string{"stock", "get"}, 2, "usage: holdfast stock get SKU"},
		"no such argument":  {Services{}, []string{"healthcheck", "redis"}, 2, "usage: holdfast healthcheck worker|starter"},
		"help":              {Services{}, []string{"--help"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.services, c.args...)
			require.Equal(t, c.code, got.code, got.err)
			require.Contains(t, got.err, c.says)
		})
	}
}

func TestConfigCommand(t *testing.T) {
	plain(t)
	t.Setenv("HOLDFAST_HOLD_TTL", "20s")
	got := run(t, Services{}, append([]string{"config"}, devFlags...)...)
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `(?m)^hold\.ttl +20s +HOLDFAST_HOLD_TTL$`, got.out)
	require.Regexp(t, `(?m)^hold\.grace +1m +default$`, got.out)
	require.Regexp(t, `(?m)^secrets\.main +\(secret\) +default of mode dev$`, got.out)
	require.NotContains(t, got.out, config.DevMainSecret)

	got = run(t, Services{}, append([]string{"config", "--json"}, devFlags...)...)
	require.Zero(t, got.code, got.err)
	var settings []config.Setting
	require.NoError(t, json.Unmarshal([]byte(got.out), &settings))
	require.Contains(t, settings, config.Setting{Key: "hold.ttl", Value: "20s", Source: "HOLDFAST_HOLD_TTL"})

	got = run(t, Services{}, append([]string{"config", "check"}, devFlags...)...)
	require.Equal(t, result{0, "the configuration is right\n", ""}, got)
	got = run(t, Services{}, "config", "check")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "sms.provider")
}

func TestVersion(t *testing.T) {
	got := run(t, Services{}, "version")
	require.Zero(t, got.code)
	require.Regexp(t, `^holdfast .+\ngo1\.`, got.out)
}

func TestLoggerWritesJSONToAFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	defer f.Close()
	logger(f).Info("hello")
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.True(t, json.Valid(text), string(text))
}

// What a person may ask of the door a program may ask as well.
func TestEveryCommandOfTheDoorHasJSON(t *testing.T) {
	others := []string{"worker", "starter", "setup", "init", "version", "healthcheck", "check", "help"}
	a := &app{}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			look(sub)
		}
		asks := cmd.Runnable() && (!cmd.HasSubCommands() || cmd.HasAvailableLocalFlags())
		if cmd.HasParent() && asks && !slices.Contains(others, cmd.Name()) {
			require.True(t, cmd.Flags().Lookup("json") != nil || cmd.InheritedFlags().Lookup("json") != nil, cmd.CommandPath())
		}
	}
	look(a.root())
}

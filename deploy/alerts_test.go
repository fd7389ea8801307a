package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	raw, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// The rules are what Prometheus takes, and ring when they should.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	require.NoError(t, err, "Debian: apt-get install prometheus; or `make needs`")
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"}, {"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// No alert without an entry for whoever it wakes, no entry without its alert, and
// no alert that was never seen to ring and to be quiet.
func TestEachAlertHasItsEntryAndItsTests(t *testing.T) {
	book, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	tests, err := os.ReadFile("alerts_test.yml")
	require.NoError(t, err)
	var names, entries []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
		require.Contains(t, []string{"critical", "warning"}, a.Labels["severity"], a.Alert)
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.Equal(t, "docs/runbook.md#"+strings.ToLower(a.Alert), a.Annotations["runbook"])
		for _, how := range []string{" rings\n", " stays quiet\n"} {
			require.Contains(t, string(tests), "- name: "+a.Alert+how)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(book), -1) {
		entries = append(entries, m[1])
	}
	require.Equal(t, names, entries, "in the same order")
	for _, m := range regexp.MustCompile(`\]\(#(\w+)\)`).FindAllStringSubmatch(string(book), -1) {
		require.True(t, slices.ContainsFunc(names, func(n string) bool { return strings.ToLower(n) == m[1] }), "no entry %s", m[1])
	}
}

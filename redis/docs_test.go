package redis

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/gate.md names tests that exist, describes every verb and every key, and
// gives the bounds that the scripts have.
func TestTheContractIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../docs/gate.md")
	require.NoError(t, err)
	doc := string(text)

	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			tests[m[1]] = true
		}
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(doc, -1)
	require.Greater(t, len(named), 20)
	for _, name := range named {
		require.True(t, tests[name], "docs/gate.md names %s, which is no test of this package", name)
	}

	scripts, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	for _, file := range scripts {
		row := "| `" + file + "` |"
		if slices.Contains([]string{"prelude.lua", "refusal.lua", "records.lua", "walk_in.lua", "endings.lua", "settle.lua", "repairing.lua"}, file) {
			row = "`" + file + "`"
		}
		require.Contains(t, doc, row, "docs/gate.md does not describe %s", file)
	}
	for _, name := range keyNames {
		require.Contains(t, doc, "| `"+name+"` |", "docs/gate.md does not describe the key %s", name)
	}

	records, err := luaFiles.ReadFile("records.lua")
	require.NoError(t, err)
	m := regexp.MustCompile(`SWEEP_BOUND, OFFER_BOUND, PURGE_BOUND = (\d+), (\d+), (\d+)`).FindStringSubmatch(string(records))
	require.NotNil(t, m)
	plain := strings.Join(strings.Fields(doc), " ")
	require.Contains(t, plain, "A call sweeps at most "+m[1]+" ended leases, makes at most "+m[2]+" offers, purges at most "+m[3]+" old records")
}

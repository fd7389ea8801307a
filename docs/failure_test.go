package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What dies at a step of each flow, and of each flow at least these.
var (
	flows = []string{
		"Join", "Restock", "Offer", "Text", "Press", "Hold API", "Checkout", "Confirm", "Expiry", "Release",
		"Refund", "Return", "Rebuild", "Rolling deploy",
	}
	partsOfEach = []string{"the door", "the worker", "Temporal", "Redis"}
)

var namedTest = regexp.MustCompile("`([a-z0-9/]+\\.Test[A-Za-z0-9_]+)`")

// Each row of a table whose last column is headed "test" names tests, and there is each.
// No flow leaves out a part that it stands on.
func TestEachFailureNamesItsTests(t *testing.T) {
	raw, err := os.ReadFile("failure.md")
	require.NoError(t, err)
	there := testsOfTheTree(t)
	dies := map[string][]string{} // section → first cells
	section, proven, rows := "", false, 0
	for line := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if !strings.HasPrefix(line, "|") {
			proven = false
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case last == "test":
			proven = true
			continue
		case !proven || strings.HasPrefix(line, "|---"):
			continue
		}
		rows++
		names := namedTest.FindAllStringSubmatch(last, -1)
		require.NotEmpty(t, names, "no test in: %s", line)
		require.Empty(t, strings.TrimSpace(namedTest.ReplaceAllString(last, "")), "besides tests in the last cell of: %s", line)
		for _, name := range names {
			require.Contains(t, there, name[1], "in: %s", line)
		}
		dies[section] = append(dies[section], strings.TrimSpace(cells[0]))
	}
	require.Greater(t, rows, 100)
	for _, flow := range flows {
		for _, part := range partsOfEach {
			require.True(t, slices.ContainsFunc(dies[flow], func(cell string) bool { return strings.HasPrefix(cell, part) }),
				"%s: what if %s dies?", flow, part)
		}
	}
}

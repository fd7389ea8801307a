package payment

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row of the failure table names a test that there is.
func TestEveryRowOfTheDocsHasItsProof(t *testing.T) {
	var tests strings.Builder
	for _, dir := range []string{".", "webhook", "stripe", "../events", "../config", "../workflows", "../starter"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			tests.Write(raw)
		}
	}
	page, err := os.ReadFile("../docs/payment.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| what | then | proof |\n|---|---|---|\n")
	require.True(t, found)
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	require.Greater(t, len(rows), 20)
	for _, row := range rows {
		proofs := name.FindAllStringSubmatch(row, -1)
		require.NotEmpty(t, proofs, row)
		for _, p := range proofs {
			require.Contains(t, tests.String(), "func "+p[1]+"(t *testing.T)", row)
		}
	}
}

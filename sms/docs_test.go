package sms

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every code has its row, with its class, and no row is about another one.
func TestEveryCodeIsInTheDocs(t *testing.T) {
	raw, err := os.ReadFile("../docs/texts.md")
	require.NoError(t, err)
	got := map[int]Class{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([0-9]{5}) \| ([a-z-]+) \| .+ \|$`).FindAllStringSubmatch(string(raw), -1) {
		code, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		require.NotContains(t, got, code, "two rows")
		got[code] = Class(row[2])
	}
	require.Equal(t, codes, got)
}

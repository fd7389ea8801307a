package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTTLAdvice(t *testing.T) {
	var rows []string
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	line := func(id, verb, kind string, seconds int) {
		rows = append(rows, fmt.Sprintf(`{"at":%q,"n":%d,"verb":%q,"kind":%q,"units":1,"ref_id":%q,"moves":{}}`,
			noon.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339Nano), len(rows)+1, verb, kind, id))
	}
	for i := range 100 {
		line(fmt.Sprint(i), "adopt", "held", 0)
		line(fmt.Sprint(i), "confirm", "sold", 100)
	}
	line("gone", "adopt", "held", 0)
	line("gone", "release", "expired", 3600)
	newOnCallDoor(t, map[string]string{"GET /v1/stock/CHAIR/ledger": rowsOf(rows...), "GET /v1/stock/NEW/ledger": noRows})
	plot := filepath.Join(t.TempDir(), "plot.svg")
	got := run(t, Services{}, "ttl-advice", "CHAIR", "--plot", plot)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "holds paid 100, abandoned 1, still open 0")
	require.Contains(t, got.out, "Suggested: 2 min")
	table := strings.Join(strings.Fields(got.out), " ")
	require.Contains(t, table, "1 min 100 100.0 % 0.0 2 min 0 0.0 % 0.0")
	require.Contains(t, table, "120 min 0 0.0 % 2.0")
	svg, err := os.ReadFile(plot)
	require.NoError(t, err)
	require.Contains(t, string(svg), "Paying buyers of CHAIR")

	var out adviceAnswer
	require.NoError(t, json.Unmarshal([]byte(run(t, Services{}, "ttl-advice", "CHAIR", "--json", "--cut", "0").out), &out))
	require.Equal(t, int64(120), out.SuggestedSeconds)

	require.Contains(t, run(t, Services{}, "ttl-advice", "NEW").out, "No suggestion: 0 paying buyers were seen, 100 are needed")
	require.Equal(t, 2, run(t, Services{}, "ttl-advice", "CHAIR", "--cut", "100").code)
	require.Equal(t, 2, run(t, Services{}, "ttl-advice", "CHAIR", "--since", "yesterday").code)
	got = run(t, Services{}, "ttl-advice", "CHAIR", "--plot", filepath.Join(plot, "no folder"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "the plot was not written")
}

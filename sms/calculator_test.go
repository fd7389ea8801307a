package sms

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const comparisons = 2000

// pieces are what texts are made of: each alone a character or two, together
// everything that a segment's border can fall into.
var pieces = append(append(strings.Split(gsmBasic, ""), strings.Split(gsmExtended, "")...),
	"ç", "ж", "椅", "—", "’", "\u00a0", "á", "e\u0301", "g\u0308\u0323", "한", "각", "नि", "ก็", "🪑", "👍🏽", "🇩🇪", "👩‍👩‍👧‍👦", "\r\n", "❤️", "\u200b", "\x00")

// generated is a text whose length lies around a border of some encoding.
func generated(random *rand.Rand) string {
	foreign := random.IntN(3) > 0
	mostly := pieces[random.IntN(len(pieces))]
	want := []int{1, 35, 67, 70, 76, 80, 134, 153, 160, 201, 306, 320, 459}[random.IntN(13)] + random.IntN(9) - 4
	var b strings.Builder
	for range max(1, want) {
		piece := mostly
		if random.IntN(4) == 0 {
			piece = pieces[random.IntN(len(pieces))]
		}
		if !foreign && gsmWidths(piece) == nil {
			piece = "€"
		}
		b.WriteString(piece)
	}
	return b.String()
}

// Twilio publishes the calculator that its console uses. The long form counts
// thousands of texts with it.
func TestSegmentsAreTwilios(t *testing.T) {
	if os.Getenv("HOLDFAST_LONG") == "" {
		t.Log("Twilio's calculator is asked with HOLDFAST_LONG=1")
		return
	}
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "count.js"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "calculator", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), raw, 0o600))
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, comparisons)
	encodings := map[string]int{}
	for i := range texts {
		texts[i] = generated(random)
	}
	for _, c := range vectors {
		// An empty text it counts as one segment; more accents than a segment
		// holds it puts into one all the same.
		if c.want > 0 && !strings.Contains(c.body, times("\u0301", 70)) {
			texts = append(texts, c.body)
		}
	}
	raw, err := json.Marshal(texts)
	require.NoError(t, err)
	run := func(stdin []byte, name string, args ...string) []byte {
		var out, complaints bytes.Buffer
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, bytes.NewReader(stdin), &out, &complaints
		require.NoError(t, cmd.Run(), "%s (Debian: apt-get install nodejs npm): %s", name, &complaints)
		return out.Bytes()
	}
	run(nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	var counts [][2]any
	require.NoError(t, json.Unmarshal(run(raw, "node", "count.js"), &counts))
	require.Len(t, counts, len(texts))
	for i, text := range texts {
		encoding, n := counts[i][0].(string), int(counts[i][1].(float64))
		require.Equal(t, n, Segments(text), "%q", text)
		require.Equal(t, encoding == "GSM-7", gsmWidths(text) != nil, "%q", text)
		encodings[encoding]++
	}
	require.Greater(t, encodings["GSM-7"], comparisons/10)
	require.Greater(t, encodings["UCS-2"], comparisons/10)
	t.Logf("%d texts, %v", len(texts), encodings)
}

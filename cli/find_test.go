package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	story := `{"things":[{"kind":"hold","id":"` + aHold + `","sku":"CHAIR","state":"held","next":"paid, or given back at noon","ui":"https://temporal.example/x"}],
		"story":[{"at":"2026-01-31T12:00:00.000Z","sku":"CHAIR","id":"` + aHold + `","what":"units taken: 1","by":"shop","reason":"because"}],"whole":true,"more":false}`
	d := newOnCallDoor(t, map[string]string{"POST /v1/find": story})
	got := run(t, Services{}, "find", " +44 7700 900001 ")
	require.Zero(t, got.code, got.err)
	require.JSONEq(t, `{"term":"+44 7700 900001"}`, d.bodies[0])
	require.Equal(t, "2026-01-31T12:00:00.000Z CHAIR units taken: 1 by shop (because) "+aHold+
		" hold "+aHold+": held next: paid, or given back at noon https://temporal.example/x", strings.Join(strings.Fields(got.out), " "))
	require.JSONEq(t, story, run(t, Services{}, "find", "x", "--json").out)

	d.answers["POST /v1/find"] = strings.NewReplacer(`"whole":true`, `"whole":false,"missing":["Temporal does not answer"]`, `"more":false`, `"more":true`).Replace(story)
	got = run(t, Services{}, "find", "x")
	require.Contains(t, got.out, "Older lines were not read")
	require.Contains(t, got.out, "There is more")
	require.True(t, strings.HasPrefix(got.out, "! Temporal does not answer\n"), got.out)
}

// That nothing is known must not look like a success, nor like knowing it for sure.
func TestFindNothing(t *testing.T) {
	d := newOnCallDoor(t, map[string]string{"POST /v1/find": `{"things":[],"story":[],"whole":true,"more":false}`})
	got := run(t, Services{}, "find", "x")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, `nothing is known of "x"`)
	require.NotContains(t, got.err, "newest lines")
	d.answers["POST /v1/find"] = `{"things":[],"story":[],"whole":false,"more":false}`
	require.Contains(t, run(t, Services{}, "find", "x").err, "only the newest lines")
	d.answers["POST /v1/find"] = `{}`
	require.Contains(t, run(t, Services{}, "find", "x").err, "tells no story")
	require.Equal(t, 2, run(t, Services{}, "find", " ").code)
}

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

var (
	aHold     = contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	heldHold  = `{"hold_id":"` + aHold + `","state":"held","lines":[{"sku":"CHAIR","quantity":2},{"sku":"TEE","quantity":1}],"customer":"c-1","order_ref":"o-1","created_at":"2026-01-31T12:00:00.000Z","expires_at":"2026-01-31T12:10:00.000Z","extended":true,"links":{"page":"http://127.0.0.1/h/x"},"now":"2026-01-31T12:01:00.000Z"}`
	endedHold = `{"hold_id":"` + aHold + `","state":"released","lines":[{"sku":"CHAIR","quantity":2}],"created_at":"2026-01-31T12:00:00.000Z","expires_at":"2026-01-31T12:10:00.000Z","ended_at":"2026-01-31T12:02:00.000Z","end_reason":"shop","refund":{"payment_id":"payment_1","payment_ref":"p","state":"refund-pending"},"now":"2026-01-31T12:02:00.000Z"}`
)

func TestHoldGet(t *testing.T) {
	newOnCallDoor(t, map[string]string{"GET /v1/holds/" + aHold: heldHold})
	got := run(t, Services{}, "hold", "get", aHold)
	require.Zero(t, got.code, got.err)
	for _, said := range []string{"2 × CHAIR, 1 × TEE", "2026-01-31T12:10:00.000Z, extended", "c-1", "o-1", "http://127.0.0.1/h/x"} {
		require.Contains(t, got.out, said)
	}
	require.NotContains(t, got.out, "\nended", "what is not known is no row")
	got = run(t, Services{}, "hold", "get", aHold, "--json")
	require.JSONEq(t, heldHold, got.out)
}

// A hold is given back only when somebody said so.
func TestHoldRelease(t *testing.T) {
	path := "POST /v1/holds/" + aHold + "/release"
	for name, c := range map[string]struct {
		args     []string
		typed    string
		terminal bool
		exit     int
		body     string // "" when nothing may be sent
		says     string
	}{
		"told not to ask":         {[]string{"--yes"}, "", false, 0, "{}", "payment_1 is refund-pending"},
		"with a reason":           {[]string{"--yes", "--reason", "broken"}, "", false, 0, `{"reason":"broken"}`, "released"},
		"a person says yes":       {nil, "yes\n", true, 0, "{}", "released"},
		"a person says y":         {nil, "y\n", true, 1, "", "nothing was changed"},
		"a person says nothing":   {nil, "", true, 1, "", "nothing was changed"},
		"nobody can be asked":     {nil, "yes\n", false, 2, "", "add --yes"},
		"a reason that is a tale": {[]string{"--yes", "--reason", strings.Repeat("x", 65)}, "", false, 2, "", "at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newOnCallDoor(t, map[string]string{path: endedHold})
			var out, err bytes.Buffer
			std := Streams{Out: &out, Err: &err, In: strings.NewReader(c.typed), Terminal: c.terminal}
			code := Main(t.Context(), append([]string{"hold", "release", aHold}, c.args...), std, Services{})
			require.Equal(t, c.exit, code, err.String())
			require.Contains(t, out.String()+err.String(), c.says)
			if c.body == "" {
				require.Empty(t, d.asked)
				return
			}
			require.Equal(t, []string{path}, d.asked)
			require.JSONEq(t, c.body, d.bodies[0])
		})
	}
	newOnCallDoor(t, nil)
	require.Equal(t, 2, run(t, Services{}, "hold", "release", "hold_x", "--yes").code)
}

func TestPauseAndResume(t *testing.T) {
	d := newOnCallDoor(t, map[string]string{"POST /v1/stock/BENCH/pause": pauseSKU, "POST /v1/stock/BENCH/resume": goodSKU})
	require.Contains(t, run(t, Services{}, "pause", "BENCH").out, "paused")
	require.JSONEq(t, goodSKU, run(t, Services{}, "resume", "BENCH", "--json").out)
	require.Equal(t, []string{"POST /v1/stock/BENCH/pause", "POST /v1/stock/BENCH/resume"}, d.asked)
	require.Equal(t, 2, run(t, Services{}, "pause", "no sku").code)
}

// A shell completes the names of the SKUs that the door has.
func TestCompletion(t *testing.T) {
	newOnCallDoor(t, map[string]string{"GET /v1/stock": rowsOf(goodSKU, pauseSKU)})
	for _, command := range []string{"pause", "resume", "reconcile", "statement", "ledger", "texts", "why", "ttl-advice", "stock get", "stock restock", "stock policy"} {
		got := run(t, Services{}, append(append([]string{"__complete"}, strings.Fields(command)...), "")...)
		require.Zero(t, got.code, got.err)
		require.Equal(t, []string{"CHAIR", "BENCH"}, strings.Fields(got.out)[:2], command)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, run(t, Services{}, "completion", shell).out, "holdfast")
	}
}

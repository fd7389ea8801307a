package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A bell that nobody hears has not rung, and is no failure either.
func TestADrillSaysWhatIsOff(t *testing.T) {
	ring := `[{"wire":"shortfall","says":"more is promised"}]`
	door := newOnCallDoor(t, map[string]string{
		"GET /v1/stock/" + drillSKU + "/tripwire": `{"rings":` + ring + `,"alarm":{"rings":` + ring + `},"event":null}`,
		"GET /readyz":  `{"tripwire_rings":1,"tripwire":{"` + drillSKU + `":["shortfall"]}}`,
		"GET /metrics": "holdfast_tripwire 1\n",
		"POST /v1/stock/" + drillSKU + "/reconcile": `{"run_id":"run","done":true,"alarms":["shortfall: more is promised"]}`,
	})
	d, err := newDoor()
	require.NoError(t, err)
	var out bytes.Buffer
	r := &drillRun{app: &app{std: Streams{Out: &out}}, door: d, ops: d.base, wait: time.Minute}
	require.NoError(t, r.listen(t.Context()))
	require.Regexp(t, `(?m)^off     event stock.shortfall +the shop has no endpoint \(events.url\): nobody is told$`, out.String())
	require.Len(t, r.report.Bells, 6)
	var states []string
	for _, b := range r.report.Bells {
		states = append(states, b.State)
	}
	require.Equal(t, []string{bellRang, bellRang, bellOff, bellRang, bellRang, bellRang}, states)

	out.Reset()
	door.answers["GET /metrics"] = "holdfast_tripwire 0\n"
	r = &drillRun{app: &app{std: Streams{Out: &out}}, door: d, ops: d.base, wait: time.Millisecond, quiet: true}
	require.ErrorContains(t, r.listen(t.Context()), "did not ring: metric holdfast_tripwire")
	require.Equal(t, bellSilent, r.report.Bells[4].State)
	require.Empty(t, out.String())
}

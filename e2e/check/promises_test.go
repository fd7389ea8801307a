package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPromisesAreHeldAgainstTheRecords(t *testing.T) {
	promise := Promise{HoldID: "hold_p", Until: at(10), Paid: true}
	asked, silent := promise, promise
	asked.Released, silent.Paid = true, false
	for name, c := range map[string]struct {
		record          Hold
		promise         Promise
		expected, found string // "" is kept
	}{
		"held":                       {Hold{State: "held"}, promise, "", ""},
		"sold":                       {Hold{State: "sold"}, promise, "", ""},
		"given back":                 {Hold{State: "released", Ended: at(5)}, asked, "", ""},
		"expired at its deadline":    {Hold{State: "expired", Ended: at(10)}, promise, "", ""},
		"expired though given back":  {Hold{State: "expired", Ended: at(12)}, asked, "", ""},
		"sold, and nobody paid":      {Hold{State: "sold", Ended: at(5)}, silent, "no sale without a payment that its client told of", "sold at 08:00:05.000"},
		"released, and nobody asked": {Hold{State: "released", Ended: at(5)}, promise, "no release that its client did not ask for", "released at 08:00:05.000"},
		"expired early":              {Hold{State: "expired", Ended: at(9.999)}, promise, "the hold until 08:00:10.000", "expired at 08:00:09.999"},
		"refused after all":          {Hold{State: "refused", Ended: at(5)}, promise, "a hold, or what becomes of one", `record "refused"`},
		"swept":                      {Hold{State: "swept", Ended: at(5)}, promise, "a hold, or what becomes of one", `record "swept"`},
		"forgotten":                  {Hold{}, promise, "a hold, or what becomes of one", `record ""`},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{SKU: "CHAIR", Holds: map[string]Hold{"hold_p": c.record}}
			var want []Violation
			if c.expected != "" {
				want = []Violation{{Rule: "promise", SKU: "CHAIR", ID: "hold_p", Expected: c.expected, Found: c.found}}
			}
			require.Equal(t, want, JudgePromises(f, []Promise{c.promise}))
		})
	}
}

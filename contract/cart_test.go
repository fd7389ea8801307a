package contract

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreMergedInTheOrderOfTheirSKUs(t *testing.T) {
	got, err := MergeLines([]Line{{"table", 1}, {"CHAIR", 2}, {"table", 3}, {"a", 1}})
	require.NoError(t, err)
	require.Equal(t, []Line{{"CHAIR", 2}, {"a", 1}, {"table", 4}}, got)
	again, err := MergeLines(got)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

func TestLinesThatAreNone(t *testing.T) {
	var many []Line
	for i := range MaxLines + 1 {
		many = append(many, Line{fmt.Sprint("sku-", i), 1})
	}
	_, err := MergeLines(many[1:])
	require.NoError(t, err)
	for name, c := range map[string]struct {
		lines []Line
		index int
		text  string
	}{
		"none":        {nil, -1, "are missing"},
		"too many":    {many, -1, "name 21 SKUs"},
		"no SKU":      {[]Line{{"a", 1}, {"b c", 1}}, 1, `"b c"`},
		"no units":    {[]Line{{"a", 0}}, 0, "0 units"},
		"below none":  {[]Line{{"a", 1}, {"a", -1}}, 1, "-1 units"},
		"too large":   {[]Line{{"a", MaxUnits + 1}}, 0, "1000000001 units"},
		"the sum":     {[]Line{{"a", MaxUnits}, {"b", 1}, {"a", 1}}, 2, "1000000001 units of SKU a together"},
		"an overflow": {[]Line{{"a", 1<<63 - 1}, {"a", 1}}, 0, "units"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := MergeLines(c.lines)
			var le *LineError
			require.ErrorAs(t, err, &le)
			require.Equal(t, c.index, le.Index)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestStateOfACart(t *testing.T) {
	for want, lines := range map[HoldState][][]HoldState{
		HoldSold:        {{HoldSold}, {HoldSold, HoldSold}},
		HoldHeld:        {{HoldHeld}, {HoldSold, HoldHeld}, {HoldHeld, HoldRefused}, {HoldSold, HoldExpired}, {HoldExpired, HoldSold}, {HoldHeld, HoldExpired}, {HoldSold, HoldSwept}, {HoldSold, HoldProvisional}},
		HoldProvisional: {{HoldProvisional, HoldSwept}, {HoldProvisional, HoldProvisional}, {HoldHeld, HoldProvisional}, {HoldHeld, HoldSwept}, {HoldRefused, HoldProvisional}},
		HoldRefused:     {{HoldReleased, HoldRefused}, {HoldRefused, HoldReleased, HoldExpired}},
		HoldExpired:     {{HoldExpired, HoldExpired}, {HoldExpired, HoldReleased}, {HoldExpired, HoldSwept}},
		HoldReleased:    {{HoldReleased, HoldExpired}},
		HoldSwept:       {{HoldSwept, HoldSwept}, {HoldSwept, HoldReleased}},
	} {
		for _, states := range lines {
			require.Equal(t, want, CartState(states...), "%s", states)
		}
	}
	// Whatever the states: sold and ended say something about every line.
	all := []HoldState{HoldProvisional, HoldHeld, HoldSold, HoldLapsed, HoldReleased, HoldExpired, HoldRefused}
	for range 2000 {
		states := make([]HoldState, 1+rand.IntN(4))
		for i := range states {
			states[i] = all[rand.IntN(len(all))]
		}
		got := CartState(states...)
		for _, s := range states {
			if got == HoldSold {
				require.Equal(t, HoldSold, s, "%s", states)
			} else if got.Ended() {
				require.True(t, s.Ended() && s != HoldSold, "%s of %s", got, states)
			}
		}
	}
}

// A sold line of which nothing is left follows those that were given back, and only
// those: what was sold whole stays sold, whatever came back.
func TestStateOfACartWithAReturnedLine(t *testing.T) {
	for want, c := range map[HoldState]struct {
		lines []HoldState
		back  []bool
	}{
		HoldSold:     {[]HoldState{HoldSold, HoldSold}, []bool{true, true}},
		HoldHeld:     {[]HoldState{HoldSold, HoldHeld}, []bool{true, false}},
		HoldReleased: {[]HoldState{HoldSold, HoldExpired}, []bool{true, false}},
		HoldExpired:  {[]HoldState{HoldExpired, HoldSold}, []bool{false, true}},
		HoldRefused:  {[]HoldState{HoldSold, HoldRefused}, []bool{true, false}},
	} {
		require.Equal(t, want, CartStateOf(c.lines, c.back), "%s", c.lines)
	}
	require.Equal(t, HoldHeld, CartStateOf([]HoldState{HoldSold, HoldExpired}, []bool{false, true}))
	lines := []HoldState{HoldSold, HoldExpired}
	CartStateOf(lines, []bool{true, true})
	require.Equal(t, []HoldState{HoldSold, HoldExpired}, lines, "left as they were")
}

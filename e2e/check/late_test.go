package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// forgotten is a SKU of one unit whose Redis has lost Ann's hold, and whose check did
// not see her workflow. Walt walked in and took the unit before her record came back.
func forgotten() Facts {
	f := Facts{
		SKU: "CHAIR", Now: at(90), Counters: Counters{OnHand: 1, Held: 2, Received: 1, Ledger: 7},
		Holds: map[string]Hold{
			"hold_ann":  {State: "held", Units: 1, Person: "ann", Entry: "entry_ann"},
			"hold_walt": {State: "held", Units: 1, Person: "walt"},
		},
		Entries: map[string]Entry{
			"entry_ann":  {State: "holding", Person: "ann", Arrival: at(2).UnixMicro(), Acknowledged: true, Hold: "hold_ann"},
			"entry_cleo": {State: "waiting", Person: "cleo", Arrival: at(60).UnixMicro(), Acknowledged: true},
		},
		People: map[string]string{"ann": "entry_ann", "cleo": "entry_cleo"},
		Line:   map[string]int64{"entry_cleo": at(60).UnixMicro()},
		Workflows: map[string]Workflow{
			"hold_ann":   {Type: "Hold", Status: "Running", Started: at(3), Knew: at(3.1), Person: "ann", Lines: []Part{{SKU: "CHAIR", Units: 1}}},
			"hold_walt":  {Type: "Hold", Status: "Running", Started: at(20), Knew: at(20.1), Person: "walt", Lines: []Part{{SKU: "CHAIR", Units: 1}}},
			"entry_ann":  {Type: "WaitlistEntry", Status: "Running", Started: at(2), Knew: at(2.1)},
			"entry_cleo": {Type: "WaitlistEntry", Status: "Running", Started: at(60), Knew: at(60.1)},
		},
	}
	for i, l := range []Line{
		{At: at(0), Verb: "open", Kind: "new"},
		{At: at(1), Verb: "stock", Kind: "restock", Units: 1, Ref: "event_1", OnHand: 1},
		{At: at(10), Verb: "open", Kind: "checked", OnHand: 1},
		{At: at(20), Verb: "reserve", Kind: "walk-in", Units: 1, Ref: "hold_walt", Person: "walt", OnHand: 1, Held: 1},
		{At: at(20), Verb: "adopt", Kind: "held", Units: 1, Ref: "hold_walt", Person: "walt", OnHand: 1, Held: 1},
		{At: at(80), Verb: "repair", Kind: "restored", Units: 1, Ref: "hold_ann", Person: "ann", Other: "entry_ann", OnHand: 1, Held: 1},
		{At: at(80), Verb: "repair", Kind: "counted", Units: 1, Other: "held", OnHand: 1, Held: 2},
	} {
		l.ID, l.N, l.State = l.Verb+" "+l.Kind, int64(i+1), holdLines[l.Verb+" "+l.Kind].to
		f.Ledger = append(f.Ledger, l)
	}
	return f
}

// The record of a hold that a forgetful Redis lost comes back when its Hold is listed:
// it passes nobody over, and a walk-in that has its unit makes a shortfall.
func TestAHoldThatIsListedLateIsNotBlamed(t *testing.T) {
	require.Empty(t, JudgeGate(forgotten()))
	require.Empty(t, JudgeOwners(forgotten()))
}

// No other hold comes from nowhere.
func TestOnlyAPromisedHoldIsListedLate(t *testing.T) {
	never := Violation{
		Rule: "I8", SKU: "CHAIR", ID: "hold_ann", Expected: `one of ["held" "provisional"] before repair restored`,
		Found: `"" in ledger line repair restored`,
	}
	for name, c := range map[string]struct {
		breakIt func(*Facts)
		want    Violation
	}{
		"unknown to Temporal": {func(f *Facts) { delete(f.Workflows, "hold_ann") }, never},
		"a workflow that the gate never answered": {
			func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Knew = time.Time{} }) }, never,
		},
		"a workflow of after the opening": {
			func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Knew = at(15) }) }, never,
		},
		"another person's": {func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Person = "bob" }) }, never},
		"of other units":   {func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Lines[0].Units = 2 }) }, never},
		"of another SKU":   {func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Lines[0].SKU = "LAMP" }) }, never},
		"of no Hold":       {func(f *Facts) { edit(f.Workflows, "hold_ann", func(w *Workflow) { w.Type = "WaitlistEntry" }) }, never},
		"a Redis that has lost nothing": {
			func(f *Facts) { f.Ledger[2].Verb, f.Ledger[2].Kind = "settings", "policy" }, never,
		},
		"its units counted twice": {
			func(f *Facts) { f.Counters.Held, f.Ledger[6].Held, f.Ledger[6].Units = 3, 3, 2 },
			Violation{
				Rule: "I2", SKU: "CHAIR", ID: "ledger line repair counted (repair counted )", Expected: "units that are there",
				Found: "available 0 before and -2 after",
			},
		},
		"its units never counted": {
			func(f *Facts) { f.Counters.Held, f.Counters.Ledger, f.Ledger = 1, 6, f.Ledger[:6] },
			Violation{Rule: "I1", SKU: "CHAIR", ID: "counter held", Expected: "2, the sum of the holds", Found: "1"},
		},
		"a walk-in that oversells beside it": {
			func(f *Facts) {
				f.Holds["hold_x"] = Hold{State: "provisional", Units: 1, Person: "xen"}
				f.Counters.Held, f.Counters.Ledger = 3, 8
				f.Ledger = append(f.Ledger, Line{
					ID: "over", At: at(85), N: 8, Verb: "reserve", Kind: "walk-in", State: "provisional", Units: 1, Ref: "hold_x", Person: "xen", OnHand: 1, Held: 3,
				})
			},
			Violation{
				Rule: "I2", SKU: "CHAIR", ID: "ledger line over (reserve walk-in hold_x)", Expected: "units that are there",
				Found: "available -1 before and -2 after",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := forgotten()
			c.breakIt(&f)
			require.Contains(t, JudgeGate(f), c.want, "found %v", JudgeGate(f))
		})
	}
}

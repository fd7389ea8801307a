package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// spare is sound with one unit more than anybody has.
func spare() Facts {
	f := sound()
	f.Counters.OnHand++
	f.Counters.Received++
	return f
}

// A unit that is free beside somebody who may have it is a fault; one that the shop
// keeps back, or that waits for the turn of somebody earlier, is none.
func TestFreeUnitsBesideALine(t *testing.T) {
	starved := Violation{
		Rule: "I5", SKU: "CHAIR", ID: "entry_cleo", Expected: "an offer of the free units to the first eligible", Found: "1 free while it waits",
	}
	for name, c := range map[string]struct {
		also func(*Facts)
		want bool
	}{
		"free, and Cleo waits":  {func(*Facts) {}, true},
		"nothing is free":       {func(f *Facts) { f.Counters.OnHand-- }, false},
		"Cleo was passed over":  {func(f *Facts) { f.Parked, f.Line = f.Line, nil }, false},
		"paused":                {func(f *Facts) { f.Paused = true }, false},
		"the sale has ended":    {func(f *Facts) { f.Ends = at(20) }, false},
		"the sale has not":      {func(f *Facts) { f.Ends = at(20.001) }, true},
		"Dora is acknowledged":  {func(f *Facts) { f.Fresh, f.Line["entry_dora"] = nil, at(19).UnixMicro() }, true},
		"Dora joined earlier":   {func(f *Facts) { joins(f, "entry_dora", 5.5) }, true},
		"her lease has not run": {func(f *Facts) { joins(f, "entry_dora", 5.5); f.Now = at(15) }, false},
		"nobody later is known for a lease": {func(f *Facts) {
			joins(f, "entry_dora", 5.5)
			edit(f.Workflows, "entry_cleo", func(w *Workflow) { w.Knew = at(10.1) })
		}, false},
		"nor in five minutes": {func(f *Facts) {
			joins(f, "entry_dora", 5.5)
			f.Now = at(305.5)
			edit(f.Workflows, "entry_cleo", func(w *Workflow) { w.Knew = at(305) })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := spare()
			c.also(&f)
			if found := JudgeOwners(f); c.want {
				require.Contains(t, found, starved)
			} else {
				require.NotContains(t, found, starved)
			}
		})
	}
}

// joins changes when an entry that nobody has acknowledged joined.
func joins(f *Facts, id string, second float64) {
	edit(f.Entries, id, func(e *Entry) { e.Arrival = at(second).UnixMicro() })
	f.Fresh[id] = at(second).UnixMicro()
}

func TestWhatReconcileEndedHadNoOwner(t *testing.T) {
	f := sound()
	require.Empty(t, Mended(f))
	f.Ledger = append(f.Ledger,
		Line{ID: "a", Verb: "release", Kind: "released", Ref: "hold_a", Reason: "shop"},
		Line{ID: "b", Verb: "release", Kind: "released", Ref: "hold_b", Reason: "reconcile"},
		Line{ID: "c", Verb: "withdraw", Kind: "released", Ref: "hold_c", Reason: "reconcile"},
		Line{ID: "d", Verb: "leave", Kind: "removed", Ref: "entry_d", Reason: "reconcile"},
		Line{ID: "e", Verb: "leave", Kind: "left", Ref: "entry_e"})
	var ids []string
	for _, v := range Mended(f) {
		require.Equal(t, "I6", v.Rule)
		ids = append(ids, v.ID)
	}
	require.Equal(t, []string{"hold_b", "hold_c", "entry_d"}, ids)
}

func TestOwnedHoldsAreCounted(t *testing.T) {
	f := sound()
	require.Equal(t, 2, f.Owned(), "Ada's hold and Ben's offer; Walt's is sold")
	edit(f.Workflows, "entry_ben", func(w *Workflow) { w.Status = "Terminated" })
	delete(f.Workflows, "hold_ada")
	require.Zero(t, f.Owned())
}

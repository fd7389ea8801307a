package check

import (
	"slices"
	"time"
)

// listedLate says that a line gives back the record of a Hold that the gate has
// forgotten and that the check or rebuild before its last opening did not see, because
// Temporal listed it later than that. It was promised: its workflow had the gate's
// answer before the gate was opened again. One that learned of its hold only after that
// has the line of it in the ledger.
func (f Facts) listedLate(l Line, opened time.Time) bool {
	w := f.Workflows[l.Ref]
	return l.Verb == "repair" && l.Kind == "restored" && !opened.IsZero() && w.Type == "Hold" && w.Person == l.Person &&
		slices.Contains(w.Lines, Part{SKU: f.SKU, Units: l.Units}) && !w.Knew.IsZero() && w.Knew.Before(opened)
}

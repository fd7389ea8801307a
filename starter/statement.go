package starter

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"holdfast/redis"
)

// statementView is what a SKU's books say of it. Alarms are sentences for a
// person; without any the books add up.
type statementView struct {
	SKU         string        `json:"sku"`
	Received    int64         `json:"received"`
	Corrected   int64         `json:"corrected"`
	Sold        int64         `json:"sold"`
	Returned    int64         `json:"returned"`
	OnHand      int64         `json:"on_hand"`
	Held        int64         `json:"held"`
	Offered     int64         `json:"offered"`
	Available   int64         `json:"available"`
	Shortfall   int64         `json:"shortfall"`
	OpenRefunds *int64        `json:"open_refunds"` // null while Temporal does not answer
	Alarms      []string      `json:"alarms"`
	Drift       []driftView   `json:"drift"`
	Ledger      ledgerSummary `json:"ledger"`
	// Pass is the report of the last pass, which has held the owners of the units against
	// the gate; null when none has ended for an hour or Temporal does not answer.
	Pass *passView `json:"pass"`
	AsOf string    `json:"as_of"`
}

// driftView is a counter of the stock hash and what the records, the ledger or
// other counters make of it.
type driftView struct {
	Part    string `json:"part"`
	Counter int64  `json:"counter"`
	Against string `json:"against"`
	Adds    int64  `json:"adds_up_to"`
}

// ledgerSummary says which lines were checked; whole is true for all that there
// are.
type ledgerSummary struct {
	Lines int64   `json:"lines"`
	Whole bool    `json:"whole"`
	From  *string `json:"from"`
}

// getStatement shows a SKU's books and whether they add up, also while its gate
// is closed.
func (d *Door) getStatement(w http.ResponseWriter, r *http.Request) error {
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	st, ok, err := d.gate.ReadStatement(r.Context(), sku)
	if err != nil {
		return err
	}
	if !ok {
		return tryLater(retrySoon, "Redis has no stock of SKU %s; it is being checked or rebuilt", sku)
	}
	view := statementOf(st)
	var closed *redis.ClosedError
	if _, _, err := d.gate.Snapshot(r.Context(), sku); errors.As(err, &closed) {
		d.metClosed(closed)
		view.Alarms = append(view.Alarms, "the gate of this SKU is closed: nothing is sold until it was checked")
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if n, err := d.directory.OpenPayments(ctx, sku); err != nil {
		d.log.Warn("open payments not counted", "sku", sku, "error", err)
		view.Alarms = append(view.Alarms, "Temporal does not answer: the open refunds are not known")
	} else {
		view.OpenRefunds = &n
		d.addPass(ctx, &view)
	}
	return writeJSON(w, http.StatusOK, view)
}

// addPass adds what the last pass knows and no look at Redis shows.
func (d *Door) addPass(ctx context.Context, view *statementView) {
	run, report, ok, err := d.lastReport(ctx, view.SKU)
	if err != nil {
		d.log.Warn("the last pass is not known", "sku", view.SKU, "error", err)
	}
	if !ok {
		return
	}
	pass := viewPass(run.RunID, report)
	view.Pass = &pass
	for _, look := range lookAtReport(run, report) {
		view.Alarms = append(view.Alarms, look.Says)
	}
}

func statementOf(st redis.Statement) statementView {
	c := st.Counters
	view := statementView{
		SKU: st.SKU, Received: c.Received, Corrected: c.Corrected, Sold: c.Sold, Returned: c.Returned, OnHand: c.OnHand,
		Held: c.Held, Offered: c.Offered, Available: c.Available, Shortfall: c.Shortfall,
		Alarms: []string{}, Drift: []driftView{}, Ledger: ledgerSummary{Lines: st.Lines, Whole: st.Whole}, AsOf: stamp(st.AsOf),
	}
	if st.Lines > 0 {
		from := stamp(st.From)
		view.Ledger.From = &from
	}
	alarm := func(format string, args ...any) { view.Alarms = append(view.Alarms, fmt.Sprintf(format, args...)) }
	for _, part := range []struct {
		name  string
		units int64
	}{{"on_hand", c.OnHand}, {"held", c.Held}, {"offered", c.Offered}, {"sold", c.Sold}} {
		if part.units < 0 {
			alarm("%s is %d: a counter must never be negative", part.name, part.units)
		}
	}
	if c.Shortfall > 0 {
		alarm("shortfall: %d units are promised that are not there; the next freed units make it good", c.Shortfall)
	}
	for _, d := range st.Drift {
		alarm("%s is %d, but by %s it should be %d", d.Part, d.Counter, d.Against, d.Adds)
		view.Drift = append(view.Drift, driftView{d.Part, d.Counter, d.Against, d.Adds})
	}
	for _, fault := range st.Faults {
		alarm("the books do not add up: %s", fault)
	}
	return view
}

package starter

import (
	"context"
	"errors"
	"net/http"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// tripwireView is how the tripwire of a SKU stands: Rings by the gate this instant,
// Alarm by the book, which owns it.
type tripwireView struct {
	SKU    string          `json:"sku"`
	Closed bool            `json:"closed"` // the gate: it has no wires to show
	Rings  []contract.Ring `json:"rings"`
	Paused bool            `json:"paused"`
	Alarm  *alarmView      `json:"alarm"` // null while nothing rings
	// Event is what the shop was told last, that an alarm began or that it is over;
	// null without an endpoint.
	Event *tellingView `json:"event"`
	AsOf  string       `json:"as_of"`
}

type alarmView struct {
	Rings []contract.Ring `json:"rings"`
	Since string          `json:"since"`
}

// getTripwire says which wires of a SKU ring, and what its book makes of it.
func (d *Door) getTripwire(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	sku, err := d.skus.bySKU(ctx, r.PathValue("sku"))
	if err != nil {
		return err
	}
	c, rings, err := d.gate.Tripwire(ctx, sku)
	v := tripwireView{SKU: sku, Rings: append([]contract.Ring{}, rings...), AsOf: stampIf(c.AsOf)}
	var closed *redis.ClosedError
	if errors.As(err, &closed) {
		d.metClosed(closed)
		v.Closed, err = true, nil
	}
	if err != nil {
		return err
	}
	var book contract.StockBook
	if err := d.launcher.Status(ctx, contract.StockWorkflowID(sku), &book); err != nil && !errors.Is(err, launch.ErrNoOwner) {
		return err
	}
	v.Paused = book.Paused
	if a := book.Alarm; a != nil {
		v.Alarm = &alarmView{Rings: a.Rings, Since: stamp(a.Since)}
	}
	if book.AlarmEvent != "" {
		event := tellingView{EventID: book.AlarmEvent}
		if s, err := d.eventStatus(ctx, book.AlarmEvent); err == nil {
			event = viewTelling(s)
		}
		v.Event = &event
	}
	return writeJSON(w, http.StatusOK, v)
}

package starter

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/redis"
)

// waiterView is one place in a line. It tells nothing of the person.
type waiterView struct {
	EntryID  string      `json:"entry_id"`
	Quantity int64       `json:"quantity"`
	Place    redis.Place `json:"place"`
	Missed   int64       `json:"missed_turns"`
	JoinedAt string      `json:"joined_at"`
}

// getLine lists who waits, in the order of arrival; the cursor is the arrival of the
// last one, in microseconds.
func (d *Door) getLine(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 100)
	if err != nil {
		return err
	}
	var after time.Time
	if q.cursor != "" {
		us, err := strconv.ParseInt(q.cursor, 10, 64)
		if err != nil || us < 1 {
			return badQuery("cursor", "is not one of ours")
		}
		after = time.UnixMicro(us)
	}
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	// The line of a closed gate may be that of before.
	if _, _, err := d.gate.Snapshot(r.Context(), sku); err != nil {
		return err
	}
	waiting, next, err := d.gate.ReadWaiting(r.Context(), sku, after, q.limit)
	if err != nil {
		return err
	}
	list := page{Data: []any{}}
	for _, e := range waiting {
		list.Data = append(list.Data, waiterView{EntryID: e.ID, Quantity: e.Units, Place: e.In, Missed: e.Missed, JoinedAt: stamp(e.JoinedAt)})
	}
	if !next.IsZero() {
		cursor := strconv.FormatInt(next.UnixMicro(), 10)
		list.NextCursor = &cursor
	}
	return writeJSON(w, http.StatusOK, list)
}

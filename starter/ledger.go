package starter

import (
	"net/http"
	"regexp"

	"holdfast/redis"
)

type ledgerView struct {
	ID         string `json:"id"`
	At         string `json:"at"`
	Epoch      int64  `json:"epoch"`
	N          int64  `json:"n"`
	Verb       string `json:"verb"`
	Kind       string `json:"kind,omitempty"`
	Units      int64  `json:"units"`
	RefID      string `json:"ref_id,omitempty"`
	OtherID    string `json:"other_id,omitempty"`
	Person     string `json:"person,omitempty"`
	Actor      string `json:"actor,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	PaymentRef string `json:"payment_ref,omitempty"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	OnHand     int64  `json:"on_hand"`
	Held       int64  `json:"held"`
	Offered    int64  `json:"offered"`
	Sold       int64  `json:"sold"`
	Moves      moves  `json:"moves"`
}

// moves is what a line moves the counters by; the sums of all lines are the
// counters.
type moves struct {
	OnHand    int64 `json:"on_hand"`
	Held      int64 `json:"held"`
	Offered   int64 `json:"offered"`
	Sold      int64 `json:"sold"`
	Received  int64 `json:"received"`
	Corrected int64 `json:"corrected"`
	Returned  int64 `json:"returned"`
}

func ledgerOf(l redis.LedgerLine) ledgerView {
	v := ledgerView{
		ID: l.ID, At: stamp(l.At), Epoch: l.Epoch, N: l.N, Verb: l.Verb, Kind: l.Kind, Units: l.Units,
		RefID: l.RefID, OtherID: l.OtherID, Person: l.Person, Actor: l.Actor, Reason: l.Reason, Generation: l.Generation,
		PaymentRef: l.PaymentRef, Currency: l.Currency, OnHand: l.OnHand, Held: l.Held, Offered: l.Offered, Sold: l.Sold,
		Moves: moves(l.Moves()),
	}
	if l.Currency != "" {
		v.Amount = &l.Amount
	}
	return v
}

var streamID = regexp.MustCompile(`^[0-9]{1,18}-[0-9]{1,18}$`)

// getLedger lists a SKU's movements, oldest first: those from since (inclusive)
// until until (exclusive).
func (d *Door) getLedger(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 100)
	if err != nil {
		return err
	}
	if q.cursor != "" && !streamID.MatchString(q.cursor) {
		return badQuery("cursor", "is not one of ours")
	}
	query := redis.LedgerQuery{After: q.cursor, Limit: int64(q.limit) + 1}
	if query.Since, err = queryInstant(r, "since"); err != nil {
		return err
	}
	if query.Until, err = queryInstant(r, "until"); err != nil {
		return err
	}
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	lines, err := d.gate.LedgerLines(r.Context(), sku, query)
	if err != nil {
		return err
	}
	list := page{Data: []any{}}
	for i, l := range lines {
		if i == q.limit {
			list.NextCursor = &lines[i-1].ID
			break
		}
		list.Data = append(list.Data, ledgerOf(l))
	}
	return writeJSON(w, http.StatusOK, list)
}

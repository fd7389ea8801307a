package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Records are JSON arrays; docs/architecture.md lists their members.

func decodeHold(raw string) (Hold, error) {
	r, err := newRecord(raw, 23, 23)
	if err != nil {
		return Hold{}, fmt.Errorf("hold: %w", err)
	}
	h := Hold{
		State: r.text(0), Units: r.number(1), Person: r.text(2), Entry: r.text(3), Deadline: r.instant(6), Ended: r.instant(16), PaymentRef: r.text(18),
		Returned: r.number(20), Retaken: r.number(21) == 1,
	}
	if text := r.text(22); text != "" {
		for part := range strings.SplitSeq(text, ",") {
			sku, units, _ := strings.Cut(part, ":")
			n, err := strconv.ParseInt(units, 10, 64)
			r.err = errors.Join(r.err, err)
			h.Cart = append(h.Cart, Part{SKU: sku, Units: n})
		}
	}
	if marks := r.members[19]; string(marks) != "0" {
		r.read(19, &h.Refunded)
	}
	return h, r.err
}

func decodeEntry(raw string) (Entry, error) {
	r, err := newRecord(raw, 12, 13)
	if err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	e := Entry{
		State: r.text(0), Person: r.text(2), Arrival: r.number(3), Acknowledged: r.number(4) == 1,
		Hold: r.text(5), Ended: r.instant(9),
	}
	return e, r.err
}

// record reads the members of a JSON array and keeps the first error.
type record struct {
	members []json.RawMessage
	err     error
}

func newRecord(raw string, least, most int) (*record, error) {
	r := &record{}
	if err := json.Unmarshal([]byte(raw), &r.members); err != nil {
		return nil, fmt.Errorf("%w in %q", err, raw)
	}
	if n := len(r.members); n < least || n > most {
		return nil, fmt.Errorf("%d members in place of %d to %d in %q", n, least, most, raw)
	}
	return r, nil
}

func (r *record) read(i int, out any) {
	if err := json.Unmarshal(r.members[i], out); err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("member %d: %w", i+1, err))
	}
}

func (r *record) text(i int) (s string) { r.read(i, &s); return s }

// number is an integer, or its digits as a text: an arrival has too many for
// the scripts' JSON.
func (r *record) number(i int) int64 {
	digits := string(r.members[i])
	if digits[0] == '"' {
		digits = r.text(i)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("member %d: %w", i+1, err))
	}
	return n
}

func (r *record) instant(i int) time.Time {
	if ms := r.number(i); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func decodeCounters(hash map[string]string) (Counters, error) {
	n := numbers{from: hash}
	c := Counters{
		OnHand: n.of("on_hand"), Held: n.of("held"), Offered: n.of("offered"), Sold: n.of("sold"),
		Received: n.of("received"), Corrected: n.of("corrected"), Returned: n.of("returned"), Ledger: n.of("n"),
	}
	return c, n.err
}

// decodeSale reads whether a SKU is paused, and when its sale ends.
func decodeSale(hash map[string]string) (paused bool, ends time.Time, err error) {
	n := numbers{from: hash}
	paused = n.of("paused") == 1
	if ms := n.of("ends"); ms != 0 {
		ends = time.UnixMilli(ms)
	}
	return paused, ends, n.err
}

// decodeOpening reads the balance that stands for trimmed lines.
func decodeOpening(raw string) (*Counters, error) {
	if raw == "" {
		return nil, nil
	}
	var o struct {
		N         int64 `json:"n"`
		OnHand    int64 `json:"on_hand"`
		Held      int64 `json:"held"`
		Offered   int64 `json:"offered"`
		Sold      int64 `json:"sold"`
		Received  int64 `json:"received"`
		Corrected int64 `json:"corrected"`
		Returned  int64 `json:"returned"`
	}
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return nil, fmt.Errorf("opening balance: %w in %q", err, raw)
	}
	return &Counters{
		OnHand: o.OnHand, Held: o.Held, Offered: o.Offered, Sold: o.Sold,
		Received: o.Received, Corrected: o.Corrected, Returned: o.Returned, Ledger: o.N,
	}, nil
}

func decodeLine(id string, values map[string]any) (Line, error) {
	v := map[string]string{}
	for name, value := range values {
		v[name] = fmt.Sprint(value)
	}
	n := numbers{from: v}
	l := Line{
		ID: id, At: time.UnixMilli(n.of("t")), Epoch: n.of("e"), N: n.of("n"), Verb: v["v"], Kind: v["k"], Units: n.of("u"),
		Ref: v["i"], Other: v["x"], Person: v["p"], Actor: v["a"], Reason: v["r"], Payment: v["f"],
		OnHand: n.of("oh"), Held: n.of("h"), Offered: n.of("o"), SoldTo: n.of("s"),
	}
	l.State = holdLines[l.Verb+" "+l.Kind].to
	return l, n.err
}

// numbers reads integers of a hash. A missing one is 0, as for the gate.
type numbers struct {
	from map[string]string
	err  error
}

func (n *numbers) of(name string) int64 {
	text, ok := n.from[name]
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("field %s: %w", name, err))
	}
	return v
}

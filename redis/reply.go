package redis

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"holdfast/contract"
)

// reply is a script's answer. The scripts and this package are built together:
// a place that is missing or of another type is a programming error and reads
// as zero.
type reply []any

func (r reply) str(i int) string {
	if i >= len(r) {
		return ""
	}
	switch v := r[i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (r reply) int(i int) int64 {
	if i >= len(r) {
		return 0
	}
	switch v := r[i].(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

func (r reply) base() Base { return Base{Verdict: Verdict(r.str(0)), Wake: r.int(1) == 1} }

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// at is an instant of a record; 0 is none.
func at(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// record is a JSON array as the scripts write it; its places count from 1, as
// in Lua.
type record []any

func parseRecord(id, raw string, places int) (record, error) {
	var r record
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		return nil, fmt.Errorf("record of %s does not parse: %w", id, err)
	}
	if len(r) < places {
		return nil, fmt.Errorf("record of %s has %d of %d places", id, len(r), places)
	}
	return r, nil
}

func (r record) str(i int) string {
	s, _ := r[i-1].(string)
	return s
}

func (r record) int(i int) int64 {
	switch v := r[i-1].(type) {
	case float64:
		return int64(v)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

func (r record) strs(i int) []string {
	list, _ := r[i-1].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// parseHold reads a hold's record; the places are those of prelude.lua.
func (g *Gate) parseHold(sku, id, raw string) (Hold, error) {
	r, err := parseRecord(id, raw, 23)
	if err != nil {
		return Hold{}, err
	}
	h := Hold{
		ID: id, SKU: sku,
		State: contract.HoldState(r.str(1)), Units: r.int(2), Person: r.str(3), EntryID: r.str(4), Generation: r.int(5),
		CreatedAt: at(r.int(6)), Deadline: at(r.int(7)), Version: r.int(8), OfferedAt: at(r.int(9)), ToldAt: at(r.int(10)),
		SentAt: at(r.int(11)), Extended: r.int(14) == 1, EndedAt: at(r.int(17)), Reason: r.str(18), PaymentRef: g.opts.Refs.Open(r.str(19)),
		Refunded: r.strs(20), Returned: r.int(21), Retaken: r.int(22) == 1,
	}
	for i, ref := range h.Refunded {
		h.Refunded[i] = g.opts.Refs.Open(ref)
	}
	if r.str(16) != "" {
		h.Amount = &contract.Money{Amount: r.int(15), Currency: r.str(16)}
	}
	h.Cart, err = parseCart(id, r.str(23))
	return h, err
}

// parseEntry reads an entry's record; the places are those of prelude.lua.
func parseEntry(sku, id, raw string, position int64) (Entry, error) {
	r, err := parseRecord(id, raw, 12)
	if err != nil {
		return Entry{}, err
	}
	language := ""
	if len(r) > 12 {
		language = r.str(13)
	}
	return Entry{
		ID: id, SKU: sku, Language: language,
		State: contract.EntryState(r.str(1)), Units: r.int(2), Person: r.str(3), JoinedAt: time.UnixMicro(r.int(4)).UTC(),
		Acknowledged: r.int(5) == 1, HoldID: r.str(6), Generation: r.int(7), Missed: r.int(8), Leaving: r.int(9) == 1, EndedAt: at(r.int(10)),
		Version: r.int(11), Position: position,
	}, nil
}

// parseCounters reads what counters() of prelude.lua answers, from place i on.
func parseCounters(sku string, r reply, i int) Counters {
	c := Counters{
		SKU: sku, AsOf: at(r.int(i)), OnHand: r.int(i + 1), Held: r.int(i + 2), Offered: r.int(i + 3), OpenToAll: r.int(i + 4),
		Sold: r.int(i + 5), Returned: r.int(i + 6), Received: r.int(i + 7), Corrected: r.int(i + 8), Waiting: r.int(i + 9),
		Shortfall: r.int(i + 10), Generation: r.int(i + 11), Epoch: r.int(i + 12), Paused: r.int(i+13) == 1, Ended: r.int(i+14) == 1,
		PolicyVersion: r.int(i + 15), Limit: r.int(i + 16), LevelVersion: r.int(i + 18),
	}
	c.Available = c.OnHand - c.Held - c.Offered
	switch {
	case c.Ended:
		c.State = contract.SKUEnded
	case c.Paused:
		c.State = contract.SKUPaused
	case c.OpenToAll > 0:
		c.State = contract.SKUAvailable
	case r.int(i+17) == 1: // somebody eligible waits, or was offered
		c.State = contract.SKULine
	default:
		c.State = contract.SKUSoldOut
	}
	return c
}

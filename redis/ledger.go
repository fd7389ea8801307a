package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// LedgerVerbOpening is the verb of the line that stands for all lines that were
// trimmed: their last id, time and number, and the counters after it.
const LedgerVerbOpening = "opening"

// counted says that l is a correction of counters, which no other line has moved:
// the counters after it are what Reconcile has made them.
func (l LedgerLine) counted() bool {
	return l.Verb == "repair" && (l.Kind == "counted" || l.Kind == "rebuilt")
}

// LedgerQuery asks for lines of a ledger, oldest first. Since and Until are by
// the clock of the stream, which may be a millisecond past a line's own time; a
// line lies in exactly one of [a, b) and [b, c).
type LedgerQuery struct {
	After string    // the stream id of the last line read; "" from the beginning
	Since time.Time // inclusive; zero for no bound
	Until time.Time // exclusive; zero for no bound
	Limit int64     // above 0
}

// LedgerLines reads the lines that q asks for. The opening balance comes first
// when lines that q asks for were trimmed. It reads while the gate is closed, too.
func (g *Gate) LedgerLines(ctx context.Context, sku string, q LedgerQuery) ([]LedgerLine, error) {
	from, to := "-", "+"
	if !q.Since.IsZero() {
		from = streamID{q.Since.UnixMilli(), 0}.String()
	}
	if after, ok := parseStreamID(q.After); ok && (q.Since.IsZero() || after.ms >= q.Since.UnixMilli()) {
		from = "(" + q.After
	}
	if !q.Until.IsZero() {
		to = "(" + streamID{q.Until.UnixMilli(), 0}.String()
	}
	var kept *goredis.StringCmd
	var messages *goredis.XMessageSliceCmd
	// At once, or a trimming in between would leave a gap.
	_, err := g.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		kept = p.HGet(ctx, key(sku, "stock"), "opening")
		messages = p.XRangeN(ctx, key(sku, "ledger"), from, to, q.Limit)
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, fmt.Errorf("%w: ledger of %s: %w", ErrUnavailable, sku, err)
	}
	opening, has, err := parseOpening(sku, kept.Val())
	if err != nil {
		return nil, err
	}
	var lines []LedgerLine
	if has && q.reaches(opening) {
		lines = append(lines, opening)
	}
	for _, m := range messages.Val() {
		lines = append(lines, g.parseLine(m))
	}
	return lines[:min(int64(len(lines)), q.Limit)], nil
}

// reaches says whether q asks for lines that opening stands for.
func (q LedgerQuery) reaches(opening LedgerLine) bool {
	last, _ := parseStreamID(opening.ID)
	after, _ := parseStreamID(q.After)
	return after.before(last) && q.Since.UnixMilli() <= last.ms && (q.Until.IsZero() || last.ms < q.Until.UnixMilli())
}

// TrimLedger drops the oldest lines, at most 100 in one call, below an opening
// balance that is written first. A line that is younger than the longest retention
// of records stays, and so does the newest line. more says that another call may
// drop more.
func (g *Gate) TrimLedger(ctx context.Context, sku string) (dropped int64, more bool, err error) {
	r, err := g.run(ctx, verbTrim, sku, trimBound)
	if err != nil {
		return 0, false, err
	}
	return r.int(2), r.int(3) == 1, nil
}

// trimBound is how many lines one script drops: about half a millisecond.
const trimBound = 100

// Movement is what one line of a ledger moves the counters by.
type Movement struct {
	OnHand, Held, Offered, Sold, Received, Corrected, Returned int64
}

// Moves answers what l moves, from its verb, kind and units alone: the counters
// after it are the other witness. An opening balance moves everything from 0.
func (l LedgerLine) Moves() Movement {
	u := l.Units
	switch l.Verb + " " + l.Kind {
	case "stock restock":
		return Movement{OnHand: u, Received: u}
	case "stock correction", "stock level":
		return Movement{OnHand: u, Corrected: u}
	case "stock return":
		return Movement{OnHand: u, Sold: -u, Returned: u}
	case "offer offered":
		return Movement{Offered: u}
	case "reserve walk-in", "reserve afresh":
		return Movement{Held: u}
	case "reserve press":
		return Movement{Offered: -u, Held: u}
	case "sweep swept", "release released", "release expired":
		return Movement{Held: -u}
	case "sweep offered":
		return Movement{Held: -u, Offered: u}
	case "confirm sold":
		return Movement{Held: -u, OnHand: -u, Sold: u}
	case "confirm retaken":
		return Movement{OnHand: -u, Sold: u}
	case "unconfirm held":
		return Movement{OnHand: u, Sold: -u, Held: u}
	case "unconfirm expired":
		return Movement{OnHand: u, Sold: -u}
	case "withdraw released", "withdraw expired", "lapse lapsed":
		return Movement{Offered: -u}
	case LedgerVerbOpening + " balance":
		return l.Balance
	}
	return Movement{}
}

// Plus adds two movements.
func (m Movement) Plus(o Movement) Movement {
	return Movement{
		OnHand: m.OnHand + o.OnHand, Held: m.Held + o.Held, Offered: m.Offered + o.Offered, Sold: m.Sold + o.Sold,
		Received: m.Received + o.Received, Corrected: m.Corrected + o.Corrected, Returned: m.Returned + o.Returned,
	}
}

// after is the four counters that a line carries.
func (l LedgerLine) after() Movement {
	return Movement{OnHand: l.OnHand, Held: l.Held, Offered: l.Offered, Sold: l.Sold}
}

func (g *Gate) parseLine(m goredis.XMessage) LedgerLine {
	str := func(name string) string {
		s, _ := m.Values[name].(string)
		return s
	}
	num := func(name string) int64 {
		n, err := strconv.ParseInt(str(name), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return LedgerLine{
		ID: m.ID, At: time.UnixMilli(num("t")).UTC(), Epoch: num("e"), N: num("n"), Verb: str("v"), Kind: str("k"), Units: num("u"),
		RefID: str("i"), OtherID: str("x"), Person: str("p"), Actor: str("a"), Reason: str("r"), Generation: num("g"), PaymentRef: g.opts.Refs.Open(str("f")),
		Amount: num("m"), Currency: str("c"), OnHand: num("oh"), Held: num("h"), Offered: num("o"), Sold: num("s"),
	}
}

func parseOpening(sku, raw string) (l LedgerLine, has bool, err error) {
	if raw == "" {
		return LedgerLine{}, false, nil
	}
	var o struct {
		ID                            string
		At, Epoch, N, Generation      int64
		Received, Corrected, Returned int64
		OnHand                        int64 `json:"on_hand"`
		Held, Offered, Sold           int64
	}
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return LedgerLine{}, false, fmt.Errorf("opening balance of %s does not parse: %w", sku, err)
	}
	return LedgerLine{
		ID: o.ID, At: time.UnixMilli(o.At).UTC(), Epoch: o.Epoch, N: o.N, Verb: LedgerVerbOpening, Kind: "balance", Actor: "trim",
		Generation: o.Generation, OnHand: o.OnHand, Held: o.Held, Offered: o.Offered, Sold: o.Sold,
		Balance: Movement{
			OnHand: o.OnHand, Held: o.Held, Offered: o.Offered, Sold: o.Sold,
			Received: o.Received, Corrected: o.Corrected, Returned: o.Returned,
		},
	}, true, nil
}

// streamID is the id of a stream's entry, ordered.
type streamID struct{ ms, seq int64 }

func (a streamID) String() string { return fmt.Sprintf("%d-%d", a.ms, a.seq) }

func (a streamID) before(b streamID) bool {
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.seq, b.seq)) < 0
}

func parseStreamID(s string) (streamID, bool) {
	left, right, ok := strings.Cut(s, "-")
	ms, err1 := strconv.ParseInt(left, 10, 64)
	seq, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return streamID{}, false
	}
	return streamID{ms, seq}, true
}

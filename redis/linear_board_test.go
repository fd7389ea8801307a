package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"holdfast/contract"
)

// board is what all clients know of one SKU.
type board struct {
	*fixture
	mu             sync.Mutex
	holds, entries []string // all that were seen
	live, waiting  []string // those that were live when last seen
	events         []contract.StockEvent
	expired        []string
	sales, undone  []sale // known and not yet touched; unconfirmed
	counted        map[any]bool
	// tokens and the units on hand are never more than freeUnits together: what
	// can bring a unit spends one first, what took a unit away gives one.
	tokens, version, sold int64
}

type sale struct {
	hold, ref string
	units     int64
}

// recent takes a live one more often than not, else one of the last seen, now
// and then any, or one that nobody made.
func (b *board) recent(rng *rand.Rand, live, seen []string, build func(string, []byte) string) string {
	switch n := rng.IntN(40); {
	case n == 0 || len(seen) == 0:
		return b.id(build)
	case n < 28 && len(live) > 0:
		return live[rng.IntN(len(live))]
	case n < 36:
		return seen[len(seen)-1-rng.IntN(min(len(seen), 5))]
	}
	return seen[rng.IntN(len(seen))]
}

// weights say how often each verb is drawn.
var weights = []struct {
	verb  string
	share int
}{
	{callReserve, 20},
	{callAdopt, 10},
	{callExtend, 5},
	{callConfirm, 10},
	{callRelease, 9},
	{callPress, 9},
	{callLapse, 5},
	{callTold, 5},
	{callUnconfirm, 3},
	{callRefund, 2},
	{callJoin, 4},
	{callAck, 4},
	{callLeave, 3},
	{callStock, 9},
	{callPause, 1},
	{callLimit, 1},
	{callKnown, 1},
	{callDrain, 1},
	{callSnapshot, 6},
	{callReadHold, 2},
	{callReadEntry, 5},
}

func drawVerb(rng *rand.Rand) string {
	total := 0
	for _, w := range weights {
		total += w.share
	}
	n := rng.IntN(total)
	for _, w := range weights {
		if n -= w.share; n < 0 {
			return w.verb
		}
	}
	panic("the shares do not add up")
}

// draw makes up a call.
func (b *board) draw(rng *rand.Rand) call {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := call{
		verb: drawVerb(rng), person: fmt.Sprint("p", rng.IntN(8)), ref: fmt.Sprint("pi", rng.IntN(2)), units: 1, flag: rng.IntN(2) == 0,
	}
	if rng.IntN(10) == 0 {
		c.units = 2
	}
	switch c.verb {
	case callReserve:
		c.id = b.id(contract.HoldID)
		if rng.IntN(4) == 0 {
			c.id = b.recent(rng, b.live, b.holds, contract.HoldID)
		} else if rng.IntN(4) == 0 {
			b.live = append(b.live, c.id) // others name it before it is answered
		}
	case callJoin:
		c.id = b.id(contract.EntryID)
	case callAck, callReadEntry:
		c.id = b.recent(rng, b.waiting, b.entries, contract.EntryID)
	case callLeave:
		c.id = b.recent(rng, b.waiting, b.entries, contract.EntryID)
		c.end = []contract.EntryState{contract.EntryLeft, contract.EntryExpired, contract.EntryRemoved}[rng.IntN(3)]
	case callRelease:
		c.id = b.recent(rng, b.live, b.holds, contract.HoldID)
		c.reason = []string{contract.ReasonExpired, contract.ReasonShopper, contract.ReasonPaymentFailed}[rng.IntN(3)]
	case callUnconfirm:
		c.id, c.ref = b.recent(rng, b.live, b.holds, contract.HoldID), "never paid"
		if s, ok := b.takeSale(rng, 2); ok {
			b.undone = append(b.undone, s)
			c.id, c.ref = s.hold, s.ref
		} else if len(b.undone) > 0 {
			s := b.undone[rng.IntN(len(b.undone))]
			c.id, c.ref = s.hold, s.ref
		}
	case callLapse:
		c.id, c.flag = b.recent(rng, b.live, b.holds, contract.HoldID), rng.IntN(8) == 0
	case callStock:
		c.event = b.drawEvent(rng)
	case callPause:
		c.flag = rng.IntN(8) == 0
	case callLimit:
		c.units = max(0, rng.Int64N(5)-2) // as a rule none
	case callDrain, callSnapshot:
	case callExtend, callConfirm:
		c.id = b.recent(rng, b.live, b.holds, contract.HoldID)
		if n := len(b.expired); c.verb == callConfirm && n > 0 && rng.IntN(3) == 0 {
			c.id, c.flag = b.expired[n-1-rng.IntN(min(n, 3))], true
		}
		c.amount = []int64{0, 100, 100, 200}[rng.IntN(4)]
	default:
		c.id = b.recent(rng, b.live, b.holds, contract.HoldID)
	}
	return c
}

func (b *board) spend(tokens int64) bool {
	if b.tokens < tokens {
		return false
	}
	b.tokens -= tokens
	return true
}

// takeSale takes a known sale that one call may bring back, and spends what that
// brings, at most so many units.
func (b *board) takeSale(rng *rand.Rand, most int64) (sale, bool) {
	if len(b.sales) == 0 {
		return sale{}, false
	}
	i := rng.IntN(len(b.sales))
	s := b.sales[i]
	if !b.spend(min(s.units, most)) {
		return sale{}, false
	}
	b.sales = slices.Delete(b.sales, i, i+1)
	return s, true
}

func (b *board) drawEvent(rng *rand.Rand) contract.StockEvent {
	ev := contract.StockEvent{EventID: b.id(contract.HoldID), Kind: contract.StockCorrection, Delta: -1, AllowShortfall: rng.IntN(2) == 0}
	switch rng.IntN(8) {
	case 0:
		if len(b.events) > 0 {
			return b.events[rng.IntN(len(b.events))]
		}
	case 1:
		if s, ok := b.takeSale(rng, 1); ok {
			ev = contract.StockEvent{EventID: ev.EventID, Kind: contract.StockReturn, ReturnID: ev.EventID, HoldID: s.hold, Units: 1, Resell: true}
		}
	case 2:
		if b.spend(1) {
			b.version++
			ev.Kind, ev.Delta, ev.Units = contract.StockLevel, 0, 1
			ev.Version, ev.CountsSold = b.version-int64(rng.IntN(4)/3), max(0, b.sold-int64(rng.IntN(2)))
		}
	default:
		if b.spend(1) {
			ev.Kind, ev.Delta, ev.Units = contract.StockRestock, 0, 1
		}
	}
	if ev.Kind == contract.StockCorrection && rng.IntN(4) > 0 {
		ev.Delta = -3 // more than there is, as a rule: refused
	}
	b.events = append(b.events, ev)
	return ev
}

// seen notes an id and whether it lives.
func seen(all, live []string, id string, lives bool) (allNow, liveNow []string) {
	if !slices.Contains(all, id) {
		all = append(all, id)
	}
	if known := slices.Index(live, id); lives && known < 0 {
		live = append(live, id)
	} else if !lives && known >= 0 {
		live = slices.Delete(live, known, known+1)
	}
	return all, live
}

// learn puts on the board what an answer tells.
func (b *board) learn(c call, got answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := got.hold; h.id != "" {
		b.holds, b.live = seen(b.holds, b.live, h.id, h.state.Live())
	} else if c.verb == callReserve {
		b.holds, b.live = seen(b.holds, b.live, c.id, false)
	}
	if e := got.entry; e.id != "" {
		b.entries, b.waiting = seen(b.entries, b.waiting, e.id, e.state.Live())
		if e.hold != "" && !slices.Contains(b.holds, e.hold) {
			b.holds, b.live = seen(b.holds, b.live, e.hold, true)
		}
	}
	if c.verb == callStock || c.verb == callSnapshot {
		b.sold = got.counters.sold
	}
	first := func(thing any) bool {
		was := b.counted[thing]
		b.counted[thing] = true
		return !was
	}
	switch {
	case c.verb == callRelease && got.verdict == OK && got.hold.state == contract.HoldExpired:
		b.expired = append(b.expired, c.id)
	case c.verb == callConfirm && got.verdict == OK:
		s := sale{c.id, c.ref, got.hold.units}
		if first(s) {
			b.tokens += s.units
			b.sales = append(b.sales, s)
		}
	case c.verb == callStock && first(c.event.EventID):
		switch {
		case c.event.Kind == contract.StockCorrection || c.event.Kind == contract.StockLevel:
			b.tokens += c.event.Units - got.delta
		case !got.applied:
			b.tokens += c.event.Units
		}
	}
}

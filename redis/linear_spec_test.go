package redis

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"holdfast/contract"
)

// The sequential specification: the model of model_test.go, one SKU of it.

// specification is what porcupine searches an order for, SKU by SKU, each of
// which begins as begin.
func specification(begin *model) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			skus := map[string][]porcupine.Operation{}
			for _, op := range history {
				sku := op.Input.(call).sku
				skus[sku] = append(skus[sku], op)
			}
			return slices.Collect(maps.Values(skus))
		},
		Init: func() any { return begin },
		Step: func(state, input, output any) (bool, any) {
			c := input.(call)
			next := state.(*model).forked(c)
			want := next.take(c)
			// Of a call without an answer only the effect is known.
			return output == nil || output.(answer) == want, next
		},
		Equal:             func(a, b any) bool { return a.(*model).equal(b.(*model)) },
		Hash:              func(state any) uint64 { return state.(*model).hash() },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v -> %+v", input, output) },
	}
}

// forked copies what the call may change: the live records and those that it
// names. Records that have ended are shared between states.
func (m *model) forked(c call) *model {
	n := *m
	n.tally, n.holds, n.entries = maps.Clone(m.tally), maps.Clone(m.holds), maps.Clone(m.entries)
	n.line, n.outbox, n.handed, n.fresh, n.twice = slices.Clone(m.line), map[string]int64{}, map[string]int64{}, nil, nil
	if c.verb == callStock {
		n.events = maps.Clone(m.events)
	}
	for id, h := range n.holds {
		if h.state.Live() || id == c.id || id == c.event.HoldID {
			own := *h
			own.refunded = slices.Clip(own.refunded)
			n.holds[id] = &own
		}
	}
	for id, e := range n.entries {
		if e.state.Live() {
			own := *e
			n.entries[id] = &own
		}
	}
	return &n
}

func (m *model) equal(o *model) bool {
	return m.stamp == o.stamp && m.counters() == o.counters() && m.level == o.level && m.limit == o.limit &&
		m.ripe == o.ripe && m.green == o.green && m.greenAt == o.greenAt && slices.Equal(m.line, o.line) &&
		maps.Equal(m.tally, o.tally) && maps.Equal(m.events, o.events) &&
		maps.EqualFunc(m.holds, o.holds, func(a, b *modelHold) bool { return a == b || reflect.DeepEqual(a, b) }) &&
		maps.EqualFunc(m.entries, o.entries, func(a, b *modelEntry) bool { return a == b || *a == *b })
}

func (m *model) hash() uint64 {
	var h uint64
	for _, part := range []int64{m.stamp, m.onHand, m.held, m.offered, m.sold, m.gen, int64(len(m.holds)), int64(len(m.line))} {
		h = h*1_000_003 + uint64(part)
	}
	return h
}

// take is one step: what the gate has to answer, and the state after it.
func (m *model) take(c call) answer {
	m.now = c.now
	switch c.verb {
	case callSnapshot:
		if m.sweep() {
			m.settles()
		}
		return answer{verdict: OK, counters: m.counters()}
	case callReadEntry:
		return answer{verdict: known(m.entries[c.id]), entry: m.entryView(c.id)}
	case callReadHold:
		seen := m.seen()
		return answer{verdict: known(m.holds[c.id]), hold: seen.holdView(c.id)}
	}
	m.sweep()
	if c.verb == callReserve || c.verb == callAdopt || c.verb == callExtend || c.verb == callConfirm && m.retakes(c.id, c.flag) {
		m.settles() // before units are taken that are open to all
	}
	a := m.verb(c)
	m.settles()
	switch c.verb {
	case callJoin:
		if a.entry.id != "" {
			a.entry = m.entryView(a.entry.id)
		}
	case callAck, callLeave:
		a.entry = m.entryView(c.id)
	case callStock:
		a.counters = m.counters()
	}
	return a
}

func (m *model) settles() {
	m.settle()
	for _, offer := range m.fresh {
		m.named(offer.entry, offerName(offer.entry, m.gen), offer.units)
	}
	m.fresh = nil
}

func known[R any](record *R) Verdict {
	if record == nil {
		return Unknown
	}
	return OK
}

// offerName stands for the id that the gate drew: nobody is offered twice in
// one generation.
func offerName(entry string, gen int64) string {
	return fmt.Sprint("offer ", gen, " ", entry)
}

// verb answers what is known before the line is settled.
func (m *model) verb(c call) answer {
	hold := func(v Verdict, shown bool) answer {
		a := answer{verdict: v}
		if shown {
			a.hold = m.holdView(c.id)
		}
		return a
	}
	found := func(v Verdict) answer { return hold(v, v != Unknown) }
	switch c.verb {
	case callReserve, callPress:
		v := m.reserve(c.id, c.person, c.units, c.verb == callPress)
		a := hold(v, v == OK || v == Existing)
		if v == ReservedForLine || v == SoldOut {
			a.waiting = int64(len(m.line))
		}
		return a
	case callAdopt:
		v := m.adopt(c.id, c.person, c.flag, 0)
		return hold(v, v != Gone)
	case callExtend:
		v := m.adopt(c.id, c.person, c.flag, extension)
		if v == OK && c.amount != 0 {
			m.holds[c.id].amount = c.amount
		}
		return hold(v, v != Gone)
	case callTold:
		return found(m.told(c.id, c.flag))
	case callConfirm:
		return found(m.confirmAmount(c))
	case callUnconfirm:
		return found(m.unconfirm(c.id, c.ref))
	case callRefund:
		return found(m.refund(c.id, c.ref))
	case callRelease:
		return found(m.release(c.id, c.reason))
	case callLapse:
		return found(m.lapse(c.id, c.flag))
	case callKnown:
		return found(known(m.holds[c.id]))
	case callJoin:
		id, created := m.join(c.id, c.person, c.units)
		backlog := 0
		for _, waiting := range m.line {
			if !m.entries[waiting].acked {
				backlog++
			}
		}
		return answer{verdict: OK, created: created, backlog: int64(backlog), entry: entryView{id: id}}
	case callAck:
		return answer{verdict: m.ack(c.id)}
	case callLeave:
		return answer{verdict: m.leave(c.id, c.end, c.flag)}
	case callStock:
		out := m.stock(c.event)
		return answer{verdict: OK, applied: out.applied, delta: out.delta, reason: out.reason}
	case callPause:
		m.paused = c.flag
		return answer{verdict: OK}
	case callLimit:
		m.setLimit(c.units)
		return answer{verdict: OK}
	case callDrain:
		return answer{verdict: OK}
	}
	panic("no such verb: " + c.verb)
}

// confirmAmount refuses an amount other than the announced one, of a hold that
// the payment would otherwise have sold or met a shortfall.
func (m *model) confirmAmount(c call) Verdict {
	h := m.holds[c.id]
	if h != nil && h.state != contract.HoldSold && h.amount != 0 && c.amount != 0 && h.amount != c.amount {
		if v := m.forked(c).confirm(c.id, c.ref, c.flag); v == OK || v == Shortfall {
			return AmountMismatch
		}
	}
	return m.confirm(c.id, c.ref, c.flag)
}

// seen is the state as a read shows it: a lease that has ended counts as swept,
// though nothing has swept it yet.
func (m *model) seen() *model {
	n := *m
	n.holds = maps.Clone(m.holds)
	for id, h := range n.holds {
		if h.state != contract.HoldProvisional || h.deadline > m.ms() {
			continue
		}
		own := *h
		own.state = contract.HoldSwept
		n.held -= h.units
		if h.entry != "" {
			own.state, own.deadline = contract.HoldOffered, h.until
			if !h.back {
				own.deadline = max(h.until, m.ms()+120_000)
			}
			n.offered += h.units
		}
		n.holds[id] = &own
	}
	return &n
}

func (m *model) holdView(id string) holdView {
	h := m.holds[id]
	if h == nil {
		return holdView{}
	}
	v := holdView{
		id: id, state: h.state, units: h.units, offered: h.offeredAt, person: h.person, entry: h.entry, ref: h.ref,
		refunded: strings.Join(h.refunded, " "), sent: h.sentAt, returned: h.returned, amount: h.amount, extended: h.extended, retaken: h.retaken,
	}
	if h.state.Live() {
		v.deadline = h.deadline
	}
	return v
}

func (m *model) entryView(id string) entryView {
	e := m.entries[id]
	if e == nil {
		return entryView{}
	}
	v := entryView{
		id: id, state: e.state, units: e.units, arrival: e.arrival, gen: e.gen, person: e.person, hold: e.hold, acked: e.acked, leaving: e.leaving,
	}
	if e.state == contract.EntryWaiting {
		v.position = int64(slices.Index(m.line, id) + 1)
	}
	return v
}

func (m *model) counters() countersView {
	c := countersView{
		onHand: m.onHand, held: m.held, offered: m.offered, open: m.open(), sold: m.sold, returned: m.returned, received: m.received,
		corrected: m.correction, waiting: int64(len(m.line)), shortfall: max(0, -m.free()), gen: m.gen, paused: m.paused,
	}
	switch {
	case m.paused:
		c.state = contract.SKUPaused
	case c.open > 0:
		c.state = contract.SKUAvailable
	case m.someoneEligible() || m.offered > 0:
		c.state = contract.SKULine
	default:
		c.state = contract.SKUSoldOut
	}
	return c
}

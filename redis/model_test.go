package redis

import (
	"slices"
	"sort"
	"time"

	"holdfast/contract"
)

// model is the gate once more, in plain Go, without a server, without scripts
// and without their bounds: what DESIGN says, as directly as it can be written.
type model struct {
	now, stamp                                        int64 // microseconds
	onHand, held, offered, sold, received, correction int64
	gen                                               int64
	paused                                            bool
	holds                                             map[string]*modelHold
	entries                                           map[string]*modelEntry
	line                                              []string // waiting entries by arrival
	outbox                                            map[string]int64
	events                                            map[string]modelEvent
	fresh                                             []string // entries offered in this step, whose hold's id the gate draws
}

type modelHold struct {
	state                                          contract.HoldState
	units, deadline, offeredAt, until, sentAt, gen int64 // milliseconds
	person, entry, reason, ref                     string
	back, extended                                 bool
	refunded                                       []string
}

type modelEntry struct {
	state          contract.EntryState
	units, arrival int64
	person, hold   string
	acked, leaving bool
}

type modelEvent struct {
	applied bool
	delta   int64
}

func newModel(now int64) *model {
	return &model{
		now: now, holds: map[string]*modelHold{}, entries: map[string]*modelEntry{}, outbox: map[string]int64{}, events: map[string]modelEvent{},
	}
}

func (m *model) ms() int64 { return m.now / 1000 }

func (m *model) tick() int64 {
	m.stamp = max(m.stamp+1, m.now)
	return m.stamp
}

func (m *model) free() int64 { return m.onHand - m.held - m.offered }

func (m *model) withinLease(e *modelEntry) bool {
	return e.arrival > m.now-testLease.Microseconds()
}

func (m *model) open() int64 {
	if m.paused || m.free() <= 0 {
		return 0
	}
	for _, id := range m.line {
		if e := m.entries[id]; e.acked || m.withinLease(e) {
			return 0
		}
	}
	return m.free()
}

func (m *model) sweep() {
	var due []string
	for id, h := range m.holds {
		if h.state == contract.HoldProvisional && h.deadline <= m.ms() {
			due = append(due, id)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		a, b := m.holds[due[i]], m.holds[due[j]]
		if a.deadline != b.deadline {
			return a.deadline < b.deadline
		}
		return due[i] < due[j]
	})
	for _, id := range due {
		h := m.holds[id]
		m.held -= h.units
		if h.entry == "" {
			h.state = contract.HoldSwept
			continue
		}
		m.offered += h.units
		h.state, h.deadline = contract.HoldOffered, h.until
		if !h.back {
			h.back, h.deadline = true, max(h.until, m.ms()+120_000)
		}
		e := m.entries[h.entry]
		e.state = contract.EntryOffered
		if e.leaving {
			m.giveBack(id, contract.HoldReleased)
			m.endEntry(h.entry, contract.EntryLeft, true)
		}
	}
}

func (m *model) settle() {
	if m.paused {
		return
	}
	for _, id := range slices.Clone(m.line) {
		e := m.entries[id]
		if m.free() <= 0 || (!e.acked && m.withinLease(e)) {
			return
		}
		if !e.acked {
			continue
		}
		m.offered += min(e.units, m.free())
		e.state = contract.EntryOffered
		m.line = slices.DeleteFunc(m.line, func(other string) bool { return other == id })
		m.outbox["?"+id] = m.tick()
		m.fresh = append(m.fresh, id)
	}
}

// named replaces an offer's place-holder by the id that the gate drew.
func (m *model) named(entry, hold string, units int64) {
	e := m.entries[entry]
	e.hold = hold
	m.holds[hold] = &modelHold{
		state: contract.HoldOffered, units: units, person: e.person, entry: entry, gen: m.gen,
		offeredAt: m.ms(), deadline: m.ms() + testOptions().OfferMaxAge.Milliseconds(),
	}
	m.outbox["o:"+hold] = m.outbox["?"+entry]
	delete(m.outbox, "?"+entry)
}

func (m *model) giveBack(id string, state contract.HoldState) {
	h := m.holds[id]
	if h.state == contract.HoldOffered {
		m.offered -= h.units
	} else {
		m.held -= h.units
	}
	h.state = state
	delete(m.outbox, "o:"+id)
}

func (m *model) endEntry(id string, state contract.EntryState, tell bool) {
	e := m.entries[id]
	if e == nil || !e.state.Live() {
		return
	}
	e.state = state
	m.line = slices.DeleteFunc(m.line, func(other string) bool { return other == id })
	delete(m.outbox, "s:"+id)
	if tell && e.acked {
		m.outbox["e:"+id] = m.tick()
	}
}

func (m *model) stock(event, kind string, units int64, shortfall bool) modelEvent {
	if kept, ok := m.events[event]; ok {
		return kept
	}
	out := modelEvent{applied: true, delta: units}
	after := m.onHand + units
	if kind == contract.StockCorrection && (after < 0 || (units < 0 && after < m.held+m.offered && !shortfall)) {
		out = modelEvent{}
	}
	m.events[event] = out
	if !out.applied {
		return out
	}
	m.onHand += units
	if kind == contract.StockRestock {
		m.received += units
	} else {
		m.correction += units
	}
	if units > 0 {
		m.gen++
	}
	return out
}

func (m *model) join(id, person string, units int64) (string, bool) {
	for other, e := range m.entries {
		if e.person == person && e.state.Live() {
			return other, false
		}
	}
	arrival := m.tick()
	m.entries[id] = &modelEntry{state: contract.EntryWaiting, units: units, person: person, arrival: arrival}
	m.line = append(m.line, id)
	m.outbox["s:"+id] = arrival + startDelay.Microseconds()
	return id, true
}

func (m *model) ack(id string) Verdict {
	e := m.entries[id]
	if e == nil {
		return Unknown
	}
	delete(m.outbox, "s:"+id)
	if e.state.Live() {
		e.acked = true
	} else {
		delete(m.outbox, "e:"+id)
	}
	return OK
}

func (m *model) leave(id string, state contract.EntryState, owner bool) Verdict {
	e := m.entries[id]
	switch {
	case e == nil:
		return Unknown
	case e.state == contract.EntryWaiting:
		m.endEntry(id, state, !owner)
	case e.state == contract.EntryOffered && state != contract.EntryExpired:
		m.giveBack(e.hold, contract.HoldReleased)
		m.holds[e.hold].reason = contract.ReasonLeft
		m.endEntry(id, state, !owner)
	case e.state == contract.EntryHolding && state != contract.EntryExpired:
		e.leaving = true
	}
	return OK
}

func (m *model) reserve(id string, units int64, press bool) Verdict {
	h := m.holds[id]
	switch {
	case h != nil && h.state == contract.HoldProvisional:
		h.deadline = m.ms() + testLease.Milliseconds()
		return OK
	case press && h == nil:
		return Unknown
	case press && h.state == contract.HoldOffered:
		m.offered -= h.units
		m.held += h.units
		h.state, h.until, h.deadline = contract.HoldProvisional, h.deadline, m.ms()+testLease.Milliseconds()
		m.entries[h.entry].state = contract.EntryHolding
		return OK
	case h != nil && (press || h.state != contract.HoldSwept):
		return Existing
	case m.paused:
		return Paused
	case m.open() < units && (len(m.line) > 0 || m.offered > 0):
		return ReservedForLine
	case m.open() < units:
		return SoldOut
	}
	m.held += units
	m.holds[id] = &modelHold{state: contract.HoldProvisional, units: units, person: "p-" + id, gen: m.gen, deadline: m.ms() + testLease.Milliseconds()}
	return OK
}

func (m *model) adopt(id string, byWorkflow bool, extend time.Duration) Verdict {
	h := m.holds[id]
	if h == nil || h.state == contract.HoldSwept || h.state == contract.HoldOffered {
		if !byWorkflow {
			return Gone
		}
		if h != nil && h.state == contract.HoldOffered {
			m.offered -= h.units
			m.entries[h.entry].state = contract.EntryHolding
		} else {
			taken := m.open() >= 1
			h = &modelHold{state: contract.HoldRefused, units: 1, person: "p-" + id, gen: m.gen}
			m.holds[id] = h
			if !taken {
				return SoldOut
			}
		}
		m.held += h.units
		h.state = contract.HoldProvisional
	}
	switch h.state {
	case contract.HoldProvisional:
		h.state, h.deadline = contract.HoldHeld, m.ms()+600_000
	case contract.HoldHeld:
	default:
		return Existing
	}
	if extend > 0 && !h.extended {
		h.extended = true
		h.deadline += extend.Milliseconds()
	}
	return OK
}

func (m *model) told(id string, sent bool) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case h.state != contract.HoldOffered:
		return Gone
	case !sent && m.paused:
		m.outbox["o:"+id] = m.tick()
		return Paused
	case h.sentAt != 0:
		return OK
	}
	wait := (15 * time.Minute).Milliseconds()
	if sent {
		h.sentAt = m.ms()
	} else {
		wait += time.Minute.Milliseconds()
	}
	deadline := min(m.ms()+wait, h.offeredAt+(48*time.Hour).Milliseconds())
	if h.back {
		deadline = max(deadline, h.deadline)
	}
	h.deadline = deadline
	return OK
}

func (m *model) confirm(id, ref string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case h.state == contract.HoldSold && h.ref == ref:
		return OK
	case h.state == contract.HoldSold:
		return Conflict
	case slices.Contains(h.refunded, ref):
		return Refunded
	case h.state != contract.HoldHeld && h.state != contract.HoldProvisional:
		return HoldEnded
	case m.onHand < h.units:
		return Shortfall
	}
	m.held -= h.units
	m.onHand -= h.units
	m.sold += h.units
	h.state, h.ref = contract.HoldSold, ref
	m.endEntry(h.entry, contract.EntryBought, true)
	return OK
}

func (m *model) release(id, reason string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case !h.state.Live():
		return Existing
	case reason == contract.ReasonExpired && h.deadline > m.ms():
		return Early
	}
	if reason == contract.ReasonExpired {
		m.giveBack(id, contract.HoldExpired)
	} else {
		m.giveBack(id, contract.HoldReleased)
	}
	h.reason = reason
	if e := m.entries[h.entry]; e != nil {
		end := contract.EntryLapsed
		if reason == contract.ReasonShopper || e.leaving {
			end = contract.EntryLeft
		}
		m.endEntry(h.entry, end, true)
	}
	return OK
}

func (m *model) lapse(id string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case h.state == contract.HoldProvisional || h.state == contract.HoldHeld:
		return Claimed
	case h.state != contract.HoldOffered:
		return Existing
	case h.deadline > m.ms():
		return Early
	}
	m.giveBack(id, contract.HoldLapsed)
	m.endEntry(h.entry, contract.EntryLapsed, false)
	return OK
}

func (m *model) refund(id, ref string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case h.state == contract.HoldSold && h.ref == ref:
		return MadeSale
	case !slices.Contains(h.refunded, ref):
		h.refunded = append(h.refunded, ref)
	}
	return OK
}

// drain answers the members that are due, in order, and moves them on.
func (m *model) drain() []string {
	limit := max(m.now, m.stamp)
	var due []string
	for member, at := range m.outbox {
		if at <= limit && !(m.paused && member[0] == 'o') {
			due = append(due, member)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		if a, b := m.outbox[due[i]], m.outbox[due[j]]; a != b {
			return a < b
		}
		return due[i] < due[j] // as Redis orders members of one score
	})
	for i, member := range due {
		m.outbox[member] = limit + 30_000_000 + int64(i)
	}
	return due
}

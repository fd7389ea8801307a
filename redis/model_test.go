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
	gen, limit, ends, level, returned                 int64
	paused                                            bool
	ripe, green, greenAt                              int64
	tally                                             map[string]int64
	holds                                             map[string]*modelHold
	entries                                           map[string]*modelEntry
	line                                              []string // waiting entries by arrival
	outbox                                            map[string]int64
	handed                                            map[string]int64
	events                                            map[string]modelEvent
	fresh                                             []modelOffer // of this step; the gate draws the holds' ids
	twice                                             []string     // entries that were offered twice in one generation
}

type modelOffer struct {
	entry string
	units int64
}

type modelHold struct {
	state                                     contract.HoldState
	units, deadline, offeredAt, until, sentAt int64 // milliseconds
	amount                                    int64 // named by payment-started
	person, entry, ref                        string
	back, extended, retaken                   bool
	refunded                                  []string
	returned                                  int64
}

// marks are the payments marked for refund, which a hold taken afresh keeps.
func (h *modelHold) marks() []string {
	if h == nil {
		return nil
	}
	return h.refunded
}

type modelEntry struct {
	state                       contract.EntryState
	units, arrival, gen, missed int64
	person, hold                string
	acked, leaving, parked      bool
}

type modelEvent struct {
	applied  bool
	delta    int64
	reason   string
	movement string
}

func newModel(now int64) *model {
	return &model{
		now: now, tally: map[string]int64{}, holds: map[string]*modelHold{}, entries: map[string]*modelEntry{}, outbox: map[string]int64{}, handed: map[string]int64{}, events: map[string]modelEvent{},
	}
}

func (m *model) ms() int64 { return m.now / 1000 }

func (m *model) tick() int64 {
	m.stamp = max(m.stamp+1, m.now)
	return m.stamp
}

func (m *model) drop(member string) {
	delete(m.outbox, member)
	delete(m.handed, member)
}

func (m *model) free() int64 { return m.onHand - m.held - m.offered }

// waitedFor says whether the line stands still for an entry that has not
// acknowledged: for a lease, and during an outage of the workers longer.
func (m *model) waitedFor(e *modelEntry) bool {
	return e.arrival > min(m.now-testLease.Microseconds(), max(m.ripe, m.now-(5*time.Minute).Microseconds()))
}

func (m *model) ripen() {
	if m.green > 0 && m.ms() >= m.greenAt+testLease.Milliseconds() {
		m.ripe, m.green = max(m.ripe, m.green), 0
	}
}

func (m *model) ended() bool { return m.ends > 0 && m.ms() >= m.ends }

func (m *model) someoneEligible() bool {
	return slices.ContainsFunc(m.line, func(id string) bool {
		e := m.entries[id]
		return !e.parked && (e.acked && m.room(e.person) > 0 || !e.acked && m.waitedFor(e))
	})
}

func (m *model) open() int64 {
	if m.paused || m.ended() || m.someoneEligible() {
		return 0
	}
	return max(0, m.free())
}

func (m *model) room(person string) int64 {
	if m.limit == 0 {
		return 1 << 40
	}
	return m.limit - m.tally[person]
}

// turned: who missed a turn of this generation gets no second one in it.
func (m *model) turned(e *modelEntry) bool { return e.hold != "" && e.gen == m.gen }

func (m *model) count(person string, delta int64) {
	m.tally[person] += delta
	if delta > 0 {
		return
	}
	for _, e := range m.entries {
		if e.person == person && e.state.Live() && e.parked && !m.turned(e) {
			e.parked = false
		}
	}
}

// setLimit looks again at who was parked at the old limit.
func (m *model) setLimit(limit int64) {
	if limit == m.limit {
		return
	}
	m.limit = limit
	for _, e := range m.entries {
		e.parked = e.parked && m.turned(e)
	}
}

func (m *model) raiseGeneration() {
	m.gen++
	for _, e := range m.entries {
		e.parked = false
	}
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
		m.endLease(id)
	}
}

func (m *model) endLease(id string) {
	h := m.holds[id]
	m.held -= h.units
	if h.entry == "" {
		h.state = contract.HoldSwept
		m.count(h.person, -h.units)
		return
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

func (m *model) settle() {
	m.ripen()
	if m.paused || m.ended() {
		return
	}
	for _, id := range slices.Clone(m.line) {
		e := m.entries[id]
		if e.parked {
			continue
		}
		if m.free() <= 0 || (!e.acked && m.waitedFor(e)) {
			return
		}
		if !e.acked {
			continue
		}
		units := min(e.units, m.free(), m.room(e.person))
		if units <= 0 {
			e.parked = true
			continue
		}
		if m.turned(e) {
			m.twice = append(m.twice, id)
		}
		m.offered += units
		m.count(e.person, units)
		e.state, e.gen = contract.EntryOffered, m.gen
		m.outOfLine(id)
		m.outbox["?"+id] = m.tick()
		m.fresh = append(m.fresh, modelOffer{id, units})
	}
}

func (m *model) outOfLine(id string) {
	m.line = slices.DeleteFunc(m.line, func(other string) bool { return other == id })
}

// named replaces an offer's place-holder by the id that the gate drew.
func (m *model) named(entry, hold string, units int64) {
	e := m.entries[entry]
	e.hold = hold
	m.holds[hold] = &modelHold{
		state: contract.HoldOffered, units: units, person: e.person, entry: entry,
		offeredAt: m.ms(), deadline: m.ms() + testOptions().OfferMaxAge.Milliseconds(),
	}
	m.outbox["o:"+hold] = m.outbox["?"+entry]
	m.drop("?" + entry)
}

func (m *model) giveBack(id string, state contract.HoldState) {
	h := m.holds[id]
	if h.state == contract.HoldOffered {
		m.offered -= h.units
	} else {
		m.held -= h.units
	}
	h.state = state
	m.count(h.person, -h.units)
	m.drop("o:" + id)
}

// missTurn parks an entry at its place, or ends it when it missed too many.
func (m *model) missTurn(id string, tell bool) {
	e := m.entries[id]
	switch {
	case e == nil || !e.state.Live():
	case e.leaving:
		m.endEntry(id, contract.EntryLeft, tell)
	case e.missed >= int64(testOptions().MissedKeep):
		m.endEntry(id, contract.EntryLapsed, tell)
	default:
		e.missed++
		e.state, e.parked = contract.EntryWaiting, true
		m.line = append(m.line, id)
		sort.Slice(m.line, func(i, j int) bool { return m.entries[m.line[i]].arrival < m.entries[m.line[j]].arrival })
		if tell {
			m.outbox["e:"+id] = m.tick()
		}
	}
}

func (m *model) endEntry(id string, state contract.EntryState, tell bool) {
	e := m.entries[id]
	if e == nil || !e.state.Live() {
		return
	}
	e.state = state
	m.outOfLine(id)
	m.drop("s:" + id)
	if tell && e.acked {
		m.outbox["e:"+id] = m.tick()
	}
}

// stock answers the outcome that is kept, and its reason when refused.
func (m *model) stock(ev contract.StockEvent) modelEvent {
	made := "return\n" + ev.ReturnID
	if kept, ok := m.events[ev.EventID]; ok {
		return kept
	}
	before, again := m.events[made]
	again = again && ev.Kind == contract.StockReturn
	if again && before.movement == ev.Movement() {
		m.events[ev.EventID] = before
		return before
	}
	delta, reason := int64(0), "return-id-reused"
	if !again {
		delta, reason = m.moves(ev)
	}
	after := m.onHand + delta
	if reason == "" && delta < 0 && (after < 0 || (after < m.held+m.offered && !ev.AllowShortfall)) {
		reason = string(WouldOversell)
	}
	out := modelEvent{applied: reason == "", delta: delta, reason: reason, movement: ev.Movement()}
	if reason != "" {
		out.delta = 0
	}
	m.events[ev.EventID] = out
	if !out.applied {
		return out
	}
	if ev.Kind == contract.StockReturn {
		m.events[made] = out
	}
	m.onHand += delta
	switch ev.Kind {
	case contract.StockRestock:
		m.received += delta
	case contract.StockReturn:
		h := m.holds[ev.HoldID]
		h.returned += ev.Units
		m.sold -= delta
		m.returned += delta
		m.count(h.person, -ev.Units)
	case contract.StockLevel:
		m.correction += delta
		m.level = ev.Version
	default:
		m.correction += delta
	}
	if delta > 0 {
		m.raiseGeneration()
	}
	return out
}

// moves is what an event would move on_hand by, or why it may not.
func (m *model) moves(ev contract.StockEvent) (delta int64, refused string) {
	switch ev.Kind {
	case contract.StockRestock:
		return ev.Units, ""
	case contract.StockCorrection:
		return ev.Delta, ""
	case contract.StockLevel:
		switch {
		case ev.Version <= m.level:
			return 0, "level-outdated"
		case ev.CountsSold > m.sold+m.returned:
			return 0, "counts-unknown-sales"
		}
		return ev.Units - (m.sold - ev.CountsSold) - m.onHand, ""
	}
	h := m.holds[ev.HoldID]
	switch {
	case h == nil:
		return 0, "unknown-hold"
	case h.state != contract.HoldSold:
		return 0, "not-sold"
	case h.returned+ev.Units > h.units:
		return 0, "more-than-sold"
	case ev.Resell:
		return ev.Units, ""
	}
	return 0, ""
}

// join answers the person's entry, and "" when the sale has ended.
func (m *model) join(id, person string, units int64) (string, bool) {
	for other, e := range m.entries {
		if e.person == person && e.state.Live() {
			return other, false
		}
	}
	if m.entries[id] != nil {
		return id, false // a repeat whose entry has ended meanwhile
	}
	if m.ended() {
		return "", false
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
	m.drop("s:" + id)
	m.drop("e:" + id)
	if !e.state.Live() {
		m.drop("o:" + e.hold)
	}
	if e.state.Live() && !e.acked {
		e.acked = true
		m.ripen()
		if m.green == 0 {
			m.greenAt = m.ms()
		}
		m.green = max(m.green, e.arrival)
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
		m.endEntry(id, state, !owner)
	case e.state == contract.EntryHolding && state != contract.EntryExpired:
		e.leaving = true
	}
	return OK
}

func (m *model) reserve(id, person string, units int64, press bool) Verdict {
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
	case m.ended():
		return Ended
	case m.room(person) < units:
		return LimitReached
	case m.open() < units && (m.someoneEligible() || m.offered > 0):
		return ReservedForLine
	case m.open() < units:
		return SoldOut
	}
	m.held += units
	m.count(person, units)
	m.holds[id] = &modelHold{
		state: contract.HoldProvisional, units: units, person: person, deadline: m.ms() + testLease.Milliseconds(), refunded: h.marks(),
	}
	return OK
}

func (m *model) adopt(id, person string, byWorkflow bool, extend time.Duration) Verdict {
	h := m.holds[id]
	if h == nil || h.state == contract.HoldSwept || h.state == contract.HoldOffered {
		if !byWorkflow {
			return Gone
		}
		if h != nil && h.state == contract.HoldOffered {
			m.offered -= h.units
			m.entries[h.entry].state = contract.EntryHolding
		} else {
			taken := m.open() >= 1 && m.room(person) >= 1
			h = &modelHold{state: contract.HoldRefused, units: 1, person: person, refunded: h.marks()}
			m.holds[id] = h
			if !taken {
				return SoldOut
			}
			m.count(person, 1)
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
	case !sent && m.ended():
		return Ended
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

// retakes says whether a confirm asks for units that are open to all.
func (m *model) retakes(id string, retake bool) bool {
	h := m.holds[id]
	return retake && h != nil && h.state == contract.HoldExpired
}

func (m *model) confirm(id, ref string, retake bool) Verdict {
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
	}
	claimed := h.state == contract.HoldHeld || h.state == contract.HoldProvisional
	retake = m.retakes(id, retake) && m.open() >= h.units && m.room(h.person) >= h.units
	e := m.entries[h.entry]
	if e != nil && e.hold != id && e.state == contract.EntryHolding {
		retake = false // another offer of the entry has been pressed
	}
	switch {
	case !claimed && !retake:
		return HoldEnded
	case m.onHand < h.units:
		return Shortfall
	case claimed:
		m.held -= h.units
	default:
		if e != nil && e.hold != id && e.state == contract.EntryOffered {
			m.giveBack(e.hold, contract.HoldReleased)
		}
		m.count(h.person, h.units)
		h.retaken = true
	}
	m.onHand -= h.units
	m.sold += h.units
	h.state, h.ref = contract.HoldSold, ref
	m.endEntry(h.entry, contract.EntryBought, true)
	return OK
}

func (m *model) unconfirm(id, ref string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case slices.Contains(h.refunded, ref):
		return OK
	case h.state != contract.HoldSold || h.ref != ref:
		return Existing
	case h.returned > 0:
		return Returned
	}
	m.onHand += h.units
	m.sold -= h.units
	if h.retaken {
		h.state, h.retaken = contract.HoldExpired, false
		m.count(h.person, -h.units)
	} else {
		h.state = contract.HoldHeld
		m.held += h.units
	}
	h.ref, h.refunded = "", append(h.refunded, ref)
	return OK
}

// takeBack is a release of a lease only.
func (m *model) takeBack(id string) Verdict {
	switch h := m.holds[id]; {
	case h == nil:
		return Unknown
	case h.state != contract.HoldProvisional:
		return Existing
	}
	m.endLease(id)
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
	if reason == contract.ReasonShopper {
		m.endEntry(h.entry, contract.EntryLeft, true)
	} else {
		m.missTurn(h.entry, true)
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
	m.missTurn(h.entry, false)
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
		wait := int64(30_000_000)
		if m.handed[member]++; m.handed[member] > 20 {
			wait = 600_000_000
		}
		m.outbox[member] = limit + wait + int64(i)
	}
	return due
}

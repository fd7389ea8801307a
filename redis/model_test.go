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
	maxAge, missedKeep                                int64 // of the SKU's policy, or the options
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
	units, deadline, offeredAt, until, sentAt int64  // milliseconds
	created                                   int64  // milliseconds
	amount                                    int64  // named by payment-started
	person, entry, ref, reason                string // the reason of a lapse only
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
	acked, leaving              bool
	parked                      bool // missed a turn of this generation
	limited                     bool // was met at the limit
}

type modelEvent struct {
	applied  bool
	delta    int64
	reason   string
	movement string
}

func newModel(now int64) *model {
	return &model{
		maxAge: testOptions().OfferMaxAge.Milliseconds(), missedKeep: int64(testOptions().MissedKeep),
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
		return !e.parked && !e.limited && (e.acked && m.room(e.person) > 0 || !e.acked && m.waitedFor(e))
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
		if e.person == person {
			e.limited = false
		}
	}
}

// setLimit looks again at who was at the old limit.
func (m *model) setLimit(limit int64) {
	if limit == m.limit {
		return
	}
	m.limit = limit
	for _, e := range m.entries {
		e.limited = false
	}
}

func (m *model) raiseGeneration() {
	m.gen++
	for _, e := range m.entries {
		e.parked = false
	}
}

// sweep answers whether a lease had ended.
func (m *model) sweep() bool {
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
	return len(due) > 0
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
		if e.parked || e.limited {
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
			e.limited = true
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
		created: m.ms(), offeredAt: m.ms(), deadline: m.ms() + m.maxAge,
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
	case e.missed >= m.missedKeep:
		m.endEntry(id, contract.EntryLapsed, tell)
	default:
		e.missed++
		e.state, e.parked = contract.EntryWaiting, true
		m.intoLine(id)
		if tell {
			m.outbox["e:"+id] = m.tick()
		}
	}
}

// keepTurn gives an entry that was not told its place back. It waits for a
// generation in which it was not offered anything yet.
func (m *model) keepTurn(id string) {
	e := m.entries[id]
	e.state, e.parked = contract.EntryWaiting, m.turned(e)
	m.intoLine(id)
}

func (m *model) intoLine(id string) {
	m.line = append(m.line, id)
	sort.Slice(m.line, func(i, j int) bool { return m.entries[m.line[i]].arrival < m.entries[m.line[j]].arrival })
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

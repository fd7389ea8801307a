package redis

import (
	"sort"
	"time"

	"holdfast/contract"
)

// The model's verbs on entries, offers and the outbox.

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

func (m *model) lapse(id string, notTold bool) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case h.state == contract.HoldProvisional || h.state == contract.HoldHeld:
		return Claimed
	case h.state != contract.HoldOffered:
		return Existing
	case h.deadline > m.ms() && (!notTold || h.sentAt != 0):
		return Early
	}
	m.giveBack(id, contract.HoldLapsed)
	if notTold {
		h.reason = "not-told"
		m.keepTurn(h.entry)
	} else {
		h.reason = "lapsed"
		m.missTurn(h.entry, false)
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

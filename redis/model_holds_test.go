package redis

import (
	"slices"
	"time"

	"holdfast/contract"
)

// The model's verbs on holds and stock.

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
		state: contract.HoldProvisional, units: units, person: person, deadline: m.ms() + testLease.Milliseconds(), refunded: h.marks(), created: m.ms(),
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
			h = &modelHold{state: contract.HoldRefused, units: 1, person: person, refunded: h.marks(), created: m.ms()}
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

// wouldRelease is what a release answers.
func (m *model) wouldRelease(id, reason string) Verdict {
	h := m.holds[id]
	switch {
	case h == nil:
		return Unknown
	case !h.state.Live():
		return Existing
	case reason == contract.ReasonExpired && h.deadline > m.ms():
		return Early
	}
	return OK
}

func (m *model) release(id, reason string) Verdict {
	h := m.holds[id]
	if v := m.wouldRelease(id, reason); v != OK {
		return v
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

// gone ends what needs an owner and has none. A lease that a lookup met and that
// ends in this very call has moved.
func (m *model) gone(id string, moved bool) Verdict {
	born := m.ms() - testLease.Milliseconds() - 60_000
	h, e := m.holds[id], m.entries[id]
	switch {
	case h == nil && e == nil:
		return Unknown
	case h != nil && (moved || h.state != contract.HoldHeld),
		e != nil && (moved || !e.state.Live() || e.leaving || !e.acked):
		return Changed
	case h != nil && h.created > born, e != nil && e.arrival > born*1000:
		return Young
	case h != nil:
		m.giveBack(id, contract.HoldReleased)
		m.missTurn(h.entry, true)
	case e.state == contract.EntryHolding:
		e.leaving = true
	default:
		if e.state == contract.EntryOffered {
			m.giveBack(e.hold, contract.HoldReleased)
		}
		m.endEntry(id, contract.EntryRemoved, false)
	}
	return OK
}

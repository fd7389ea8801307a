package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// The half of the gate that knows the line: one entry, whose offer is w.hold.

func (w *world) entryVerb(name string, do func() redis.Verdict) (redis.EntryOutcome, error) {
	var out redis.EntryOutcome
	var err error
	out.Base, err = w.verb(name, func() redis.Verdict {
		if w.entry == nil {
			return redis.Unknown
		}
		v := do()
		out.Entry = *w.entry
		return v
	})
	return out, err
}

func (w *world) AdoptEntry(context.Context, string, string) (redis.EntryOutcome, error) {
	return w.entryVerb("adopt entry", func() redis.Verdict {
		w.entry.Acknowledged = true
		return redis.OK
	})
}

func (w *world) Leave(_ context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error) {
	return w.entryVerb("leave "+string(req.State), func() redis.Verdict {
		switch w.entry.State {
		case contract.EntryWaiting:
			w.entry.State = req.State
		case contract.EntryOffered:
			if req.State != contract.EntryExpired {
				w.endHold(contract.HoldReleased, contract.ReasonLeft)
				w.entry.State = req.State
			}
		case contract.EntryHolding:
			w.entry.Leaving = true
		}
		return redis.OK
	})
}

func (w *world) AdoptOffer(context.Context, string, string) (redis.HoldOutcome, error) {
	return w.holdVerb("adopt offer", chair, func(*shelf) redis.Verdict {
		if w.hold == nil {
			return redis.Unknown
		}
		return redis.OK
	})
}

func (w *world) Told(_ context.Context, req redis.ToldRequest) (redis.HoldOutcome, error) {
	name := "told"
	if req.Sent {
		name = "sent"
	}
	return w.holdVerb(name, chair, func(*shelf) redis.Verdict {
		switch {
		case w.hold.State != contract.HoldOffered:
			return redis.Gone
		case w.paused && !req.Sent:
			return redis.Paused
		case w.saleEnds && !req.Sent:
			return redis.Ended
		}
		if !w.hold.SentAt.IsZero() {
			return redis.OK
		}
		wait := req.Window
		if req.Sent {
			w.hold.SentAt = w.Now()
		} else {
			wait += req.SentGrace
		}
		if w.hold.ToldAt.IsZero() {
			w.hold.ToldAt = w.Now()
		}
		w.hold.Deadline = w.Now().Add(wait)
		if oldest := w.hold.OfferedAt.Add(req.MaxAge); w.hold.Deadline.After(oldest) {
			w.hold.Deadline = oldest
		}
		return redis.OK
	})
}

func (w *world) Lapse(_ context.Context, req redis.LapseRequest) (redis.HoldOutcome, error) {
	name := "lapse"
	if req.NotTold {
		name = "lapse not told"
	}
	return w.holdVerb(name, chair, func(*shelf) redis.Verdict {
		switch {
		case w.hold.State == contract.HoldProvisional, w.hold.State == contract.HoldHeld:
			return redis.Claimed
		case w.hold.State != contract.HoldOffered:
			return redis.Existing
		case w.Now().Before(w.hold.Deadline) && !(req.NotTold && w.hold.SentAt.IsZero()):
			return redis.Early
		}
		if req.NotTold {
			w.endHold(contract.HoldLapsed, contract.ReasonNotTold)
			w.entry.State = contract.EntryWaiting
			return redis.OK
		}
		if req.NotDelivered {
			w.undelivered++
		}
		w.endHold(contract.HoldLapsed, "lapsed")
		w.missTurn()
		return redis.OK
	})
}

// missTurn keeps the place as often as missedKeep allows.
func (w *world) missTurn() {
	switch {
	case w.entry.Leaving:
		w.entry.State = contract.EntryLeft
	case w.entry.Missed >= w.missedKeep:
		w.entry.State = contract.EntryLapsed
	default:
		w.entry.Missed++
		w.entry.State = contract.EntryWaiting
	}
}

// Signal notes what an entry is told by a hold.
func (w *world) Signal(_ context.Context, id, signal string, arg any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signals = append(w.signals, fmt.Sprintf("%s %s %+v", id, signal, arg))
	return w.noEntry
}

func (w *world) ReadEntry(context.Context, string, string) (redis.Entry, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.entry == nil {
		return redis.Entry{}, false, nil
	}
	return *w.entry, true, nil
}

func (w *world) Snapshot(context.Context, string) (redis.Counters, contract.About, error) {
	return redis.Counters{}, contract.About{Title: "Windsor chair"}, nil
}

func (w *world) Token(holdID string, expires time.Time) (string, error) {
	if w.noLinks {
		return "", errors.New("no key to sign with")
	}
	return holdID + "." + expires.UTC().Format("20060102T150405"), nil
}

// Send notes a text that was accepted.
// Find knows no text: the sender of these tests never loses an answer.
func (w *world) Find(_ context.Context, _ sms.Text, since time.Time) (sms.Receipt, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, since.UTC())
	return sms.Receipt{}, false, nil
}

func (w *world) Send(_ context.Context, t sms.Text) (sms.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	receipt := sms.Receipt{ID: "SM1", Sent: true}
	if w.send != nil {
		var err error
		if receipt, err = w.send(t); err != nil {
			return receipt, err
		}
	}
	w.texts = append(w.texts, t)
	w.textedAt = append(w.textedAt, w.Now())
	return receipt, nil
}

// offer keeps a unit for the entry, as settle does, and answers the message
// that the outbox then brings.
func (w *world) offer(id string) contract.Offered {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = &redis.Hold{
		ID: id, State: contract.HoldOffered, Units: 1, EntryID: w.entry.ID, Generation: 1,
		OfferedAt: w.Now(), CreatedAt: w.Now(), Deadline: w.Now().Add(48 * time.Hour),
	}
	w.entry.State, w.entry.HoldID, w.entry.Generation = contract.EntryOffered, id, 1
	return contract.Offered{HoldID: id, Units: 1, Generation: 1, OfferedAt: w.hold.OfferedAt}
}

// press makes the offer a hold, for ten minutes.
func (w *world) press() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold.State, w.hold.Deadline = contract.HoldHeld, w.Now().Add(10*time.Minute)
	w.entry.State = contract.EntryHolding
}

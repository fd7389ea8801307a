package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

var eventActivities *activities.EventStarts

// emitter gives what its workflow has to tell to the owners of the events, beside
// what the workflow does: neither a buyer nor a unit waits for a message. Who ends
// waits until it is idle. Without an endpoint of the shop it does nothing at all.
type emitter struct {
	ctx   workflow.Context // is not cancelled
	on    bool             // the shop has an endpoint, by the last answer
	last  int64            // sequence
	queue []contract.EventInput
	works bool
}

// occasion is what an event is about.
type occasion struct {
	subject string    // id of the hold, entry or payment, or the SKU
	nth     string    // tells apart what may happen to the subject more than once
	at      time.Time // zero: now
	skus    []string
}

// emit tells that kind has happened. The same kind, subject and nth are the same
// event, whoever tells of it and however often.
func (e *emitter) emit(kind string, o occasion, data any) {
	if !e.on {
		return
	}
	if o.at.IsZero() {
		o.at = workflow.Now(e.ctx)
	}
	raw, err := json.Marshal(data) //workflowcheck:ignore plain structs of ours: the same bytes each time
	if err != nil {
		workflow.GetLogger(e.ctx).Error("event cannot be written", "type", kind, "subject", o.subject, "error", err)
		return
	}
	e.queue = append(e.queue, contract.EventInput{
		EventID: contract.EventID(o.subject, kind, o.nth), Type: kind, Subject: o.subject, SKUs: o.skus,
		At: o.at.UTC(), Sequence: e.next(o.at), Data: raw,
	})
	if !e.works {
		e.works = true
		workflow.GoNamed(e.ctx, "events", e.start)
	}
}

// next is a sequence that grows with the time, and strictly in one workflow.
func (e *emitter) next(at time.Time) int64 {
	e.last = max(e.last+1, at.UnixMicro())
	return e.last
}

// start gives the events their owners, those that came together in one step. An
// error is one that can never succeed: gateStep repeats all others.
func (e *emitter) start(ctx workflow.Context) {
	for len(e.queue) > 0 {
		batch := e.queue
		e.queue = nil
		summary := "tell: " + batch[0].Type
		if n := len(batch); n > 1 {
			summary += " and more"
		}
		if _, err := gateStep[activities.EventsStarted](ctx, summary, eventActivities.StartEvents, activities.StartEventsInput{Events: batch}); err != nil {
			workflow.GetLogger(ctx).Error("event lost", "event", batch[0].EventID, "error", err)
		}
	}
	e.works = false
}

// idle says that every event has its owner.
func (e *emitter) idle() bool { return !e.works }

// holdTold is what a hold has told.
type holdTold struct {
	emitter
	created, extended bool
}

// emit tells of something that happened to the hold once.
func (h *hold) emit(kind string, at time.Time) {
	h.told.emit(kind, occasion{subject: h.in.HoldID, at: at, skus: skusOf(h.lines)}, holdEvent(h.status))
}

// tellHeld follows an adoption that has set h.ends: the hold is held, or longer.
func (h *hold) tellHeld() {
	// It was held when the door promised it, which the deadline tells.
	h.tellCreated(h.status.ExpiresAt.Add(-seconds(h.in.Settings.HoldSeconds)))
	if h.status.Extended && !h.told.extended {
		h.told.extended = true
		// Now, by the gate's clock, in whose time everything else happens.
		h.emit(contract.EventHoldExtended, h.status.ExpiresAt.Add(workflow.Now(h.ctx).Sub(h.ends)))
	}
}

// tellCreated: a hold that was pressed is also news of its entry, whose workflow may
// learn of the press later.
func (h *hold) tellCreated(at time.Time) {
	if h.told.created {
		return
	}
	h.told.created = true
	if h.in.EntryID != "" {
		line := h.in.Lines[0]
		h.told.emit(contract.EventWaitlistClaimed,
			occasion{subject: h.in.EntryID, nth: h.in.HoldID, at: at, skus: []string{line.SKU}},
			contract.EntryEvent{
				EntryID: h.in.EntryID, SKU: line.SKU, State: contract.EntryHolding, Quantity: line.Quantity,
				HoldID: h.in.HoldID, Generation: h.in.Generation,
			})
	}
	h.emit(contract.EventHoldCreated, at)
}

// tellEnded follows the end of the hold. One that ended before its workflow first
// looked was created all the same; one that was refused was never promised.
func (h *hold) tellEnded() {
	kind := map[contract.HoldState]string{
		contract.HoldSold: contract.EventHoldConfirmed, contract.HoldReleased: contract.EventHoldReleased, contract.HoldExpired: contract.EventHoldExpired,
	}[h.status.State]
	if kind == "" {
		return
	}
	h.tellCreated(h.status.CreatedAt)
	var at time.Time
	if h.status.EndedAt != nil {
		at = *h.status.EndedAt
	}
	h.emit(kind, at)
}

// tellUnresolved: a payment was begun, and whoever takes it could not say what
// became of it.
func (h *hold) tellUnresolved(ref string, money *contract.Money, reason string) {
	amount, currency := amountOf(money)
	h.told.emit(contract.EventPaymentUnresolved, occasion{subject: h.in.HoldID, nth: ref, skus: skusOf(h.lines)},
		contract.PaymentEvent{HoldID: h.in.HoldID, PaymentRef: ref, Amount: amount, Currency: currency, Reason: reason})
}

func skusOf(lines []contract.Line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.SKU
	}
	return out
}

func holdEvent(s contract.HoldStatus) contract.HoldEvent {
	out := contract.HoldEvent{
		HoldID: s.HoldID, State: s.State, Lines: s.Lines, Customer: s.Customer, OrderRef: s.OrderRef, Price: s.Price,
		EntryID: s.EntryID, Generation: s.Generation, PaymentRef: s.PaymentRef, Extended: s.Extended, EndReason: s.EndReason,
		CreatedAt: stampIf(s.CreatedAt), ExpiresAt: stampIf(s.ExpiresAt),
	}
	if s.EndedAt != nil {
		out.EndedAt = stampIf(*s.EndedAt)
	}
	return out
}

// stampIf is an instant as the API shows it, or nothing for none.
func stampIf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return contract.Instant(t)
}

// tell tells what the entry has become at an instant. Of a press the Hold tells,
// of a purchase its sale. Who waits again has lost an offer or a hold and kept the
// place.
func (e *entry) tell(was contract.EntryState, at time.Time) {
	kind, nth := "", ""
	switch e.status.State {
	case contract.EntryWaiting:
		kind, nth = contract.EventWaitlistLapsed, e.status.HoldID
	case contract.EntryOffered:
		if was == contract.EntryHolding { // a press that died
			return
		}
		kind, nth = contract.EventWaitlistOffered, e.status.HoldID
	case contract.EntryLapsed:
		kind = contract.EventWaitlistLapsed
	case contract.EntryExpired:
		kind = contract.EventWaitlistExpired
	case contract.EntryLeft, contract.EntryRemoved, contract.EntryUnreachable, contract.EntryOptedOut:
		kind = contract.EventWaitlistLeft
	}
	if kind != "" {
		e.emit(kind, nth, at)
	}
}

func (e *entry) emit(kind, nth string, at time.Time) {
	s := e.status
	e.events.emit(kind, occasion{subject: s.EntryID, nth: nth, at: at, skus: []string{s.SKU}}, contract.EntryEvent{
		EntryID: s.EntryID, SKU: s.SKU, State: s.State, Quantity: s.Quantity, HoldID: s.HoldID, Generation: s.Generation,
		JoinedAt: stampIf(s.JoinedAt), ExpiresAt: stampIf(s.ExpiresAt),
	})
}

// tell tells what the gate decided on a stock event. A repeat of an event that the
// book had forgotten decided nothing.
func (s *stock) tell(ev contract.StockEvent, out activities.ApplyStockResult) {
	s.events.on = out.Stock != nil
	if !s.events.on || out.Applied && out.N <= s.book.DecidedN {
		return
	}
	data := contract.StockDecision{
		SKU: s.sku, EventID: ev.EventID, Kind: ev.Kind, Applied: out.Applied, Delta: out.Delta, Reason: out.Reason, Stock: out.Stock.StockCounts,
	}
	about := occasion{subject: s.sku, nth: ev.EventID, at: out.Stock.At, skus: []string{s.sku}}
	if !out.Applied {
		s.events.emit(contract.EventStockRejected, about, data)
	} else {
		s.events.emit(contract.EventStockChanged, about, data)
	}
	s.book.Told = s.events.last
}

// emit tells what became of the money.
func (p *moneyOwner) emit(kind string) {
	s := p.status
	p.events.emit(kind, occasion{subject: p.in.PaymentID, skus: p.skus()}, contract.PaymentEvent{
		PaymentID: s.PaymentID, HoldID: s.HoldID, PaymentRef: s.PaymentRef, Amount: s.Amount, Currency: s.Currency,
		Cause: s.Cause, Reference: s.Reference,
	})
}

func (p *moneyOwner) skus() []string {
	if p.in.SKU == "" {
		return nil
	}
	return []string{p.in.SKU}
}

// tellSale tells of a sale that this money made. A Hold that lives tells of it as
// well, as the same event.
func (p *moneyOwner) tellSale(out activities.HoldOutcome) {
	skus := p.skus()
	if len(out.Cart) > 0 {
		skus = skusOf(out.Cart)
	}
	p.events.emit(contract.EventHoldConfirmed, occasion{subject: p.in.HoldID, at: out.EndedAt, skus: skus}, contract.HoldEvent{
		HoldID: p.in.HoldID, State: contract.HoldSold, Lines: out.Cart, Generation: out.Generation, PaymentRef: p.in.PaymentRef, Extended: out.Extended,
		CreatedAt: stampIf(out.CreatedAt), ExpiresAt: stampIf(out.Deadline), EndedAt: stampIf(out.EndedAt),
	})
}

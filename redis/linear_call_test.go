package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/contract"
)

// call is one verb with all that it is asked, and answer all that it answers
// that the model knows as well. Both are plain values: the same call is put to
// the gate and to the model, and the two answers are compared with ==.
type call struct {
	sku, verb string
	// now is the clock of this call in microseconds, as ARGV 7 of the scripts:
	// time is an input, and the model needs no clock of its own.
	now         int64
	id          string // of a hold or an entry
	person, ref string
	reason      string // of a release
	end         contract.EntryState
	units       int64 // limit: the most units of a person
	amount      int64 // extend: what payment-started names; confirm: insists on it; 0 for none
	flag        bool  // adopt: by the workflow; confirm: retake; leave: by its workflow; told: sent; lapse: not told; pause: paused
	event       contract.StockEvent
}

// The verbs of a history.
const (
	callReserve   = "reserve"
	callPress     = "press"
	callAdopt     = "adopt"
	callExtend    = "extend"
	callTold      = "told"
	callConfirm   = "confirm"
	callUnconfirm = "unconfirm"
	callRefund    = "refund"
	callRelease   = "release"
	callLapse     = "lapse"
	callJoin      = "join"
	callAck       = "ack"
	callLeave     = "leave"
	callStock     = "stock"
	callPause     = "pause"
	callLimit     = "limit"
	callDrain     = "drain"
	callKnown     = "adopt offer"
	callSnapshot  = "snapshot"
	callReadHold  = "read hold"
	callReadEntry = "read entry"
)

// reads says whether a call changes nothing but what has ended by itself.
func (c call) reads() bool {
	return c.verb == callSnapshot || c.verb == callReadHold || c.verb == callReadEntry
}

func (c call) String() string {
	return fmt.Sprintf("%s %s%s %s%s %s %d %d %v +%dms", c.verb, c.id, c.event.EventID, c.person, c.ref, c.reason, c.units, c.amount, c.flag, c.now/1000%100_000_000)
}

type answer struct {
	verdict          Verdict
	hold             holdView
	entry            entryView
	waiting, backlog int64
	created, applied bool
	delta            int64
	reason           string
	counters         countersView
}

// holdView is a hold's record without what no other call can see; a deadline
// counts while the hold lives.
type holdView struct {
	id                           string
	state                        contract.HoldState
	units, deadline, offered     int64
	person, entry, ref, refunded string
	sent, returned, amount       int64
	extended, retaken            bool
}

type entryView struct {
	id                            string
	state                         contract.EntryState
	units, arrival, gen, position int64
	person, hold                  string
	acked, leaving                bool
}

type countersView struct {
	onHand, held, offered, open, sold, returned, received, corrected, waiting, shortfall, gen int64
	paused                                                                                    bool
	state                                                                                     contract.SKUState
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func viewHold(h Hold) holdView {
	if h.ID == "" {
		return holdView{}
	}
	v := holdView{
		id: h.ID, state: h.State, units: h.Units, offered: millis(h.OfferedAt), person: h.Person, entry: h.EntryID, ref: h.PaymentRef,
		refunded: strings.Join(h.Refunded, " "), sent: millis(h.SentAt), returned: h.Returned, extended: h.Extended, retaken: h.Retaken,
	}
	if h.State.Live() {
		v.deadline = millis(h.Deadline)
	}
	if h.Amount != nil {
		v.amount = h.Amount.Amount
	}
	return v
}

func viewEntry(e Entry) entryView {
	if e.ID == "" {
		return entryView{}
	}
	return entryView{
		id: e.ID, state: e.State, units: e.Units, arrival: e.JoinedAt.UnixMicro(), gen: e.Generation, position: e.Position,
		person: e.Person, hold: e.HoldID, acked: e.Acknowledged, leaving: e.Leaving,
	}
}

func viewCounters(c Counters) countersView {
	return countersView{
		onHand: c.OnHand, held: c.Held, offered: c.Offered, open: c.OpenToAll, sold: c.Sold, returned: c.Returned, received: c.Received,
		corrected: c.Corrected, waiting: c.Waiting, shortfall: c.Shortfall, gen: c.Generation, paused: c.Paused, state: c.State,
	}
}

const extension = 5 * time.Minute

func (c call) money() *contract.Money {
	if c.amount == 0 {
		return nil
	}
	return &contract.Money{Amount: c.amount, Currency: "EUR"}
}

// ask puts the call to the gate.
func (c call) ask(ctx context.Context, shared *Gate) (answer, error) {
	g := *shared
	// Calls overtake each other when the clock moves; each is decided at its own time.
	g.testClock = -c.now
	hold := func(out HoldOutcome, err error) (answer, error) {
		return answer{verdict: out.Verdict, hold: viewHold(out.Hold), waiting: out.Waiting}, err
	}
	switch c.verb {
	case callReserve, callPress:
		return hold(g.Reserve(ctx, ReserveRequest{SKU: c.sku, HoldID: c.id, Units: c.units, Person: c.person, Press: c.verb == callPress, Actor: "test"}))
	case callAdopt, callExtend:
		req := AdoptHoldRequest{SKU: c.sku, HoldID: c.id, HoldFor: 10 * time.Minute, ByWorkflow: c.flag, Units: 1, Person: c.person}
		if c.verb == callExtend {
			req.Extend = &Extension{By: extension, Amount: c.money()}
		}
		return hold(g.AdoptHold(ctx, req))
	case callTold:
		return hold(g.Told(ctx, ToldRequest{SKU: c.sku, HoldID: c.id, Window: 15 * time.Minute, SentGrace: time.Minute, MaxAge: 48 * time.Hour, Sent: c.flag}))
	case callConfirm:
		return hold(g.Confirm(ctx, ConfirmRequest{SKU: c.sku, HoldID: c.id, PaymentRef: c.ref, Amount: c.money(), Retake: c.flag, SameAmount: true}))
	case callUnconfirm:
		return hold(g.Unconfirm(ctx, c.sku, c.id, c.ref, "test"))
	case callRefund:
		return hold(g.Refund(ctx, c.sku, c.id, c.ref, "test"))
	case callRelease:
		return hold(g.Release(ctx, ReleaseRequest{SKU: c.sku, HoldID: c.id, Reason: c.reason, Actor: "test"}))
	case callLapse:
		return hold(g.Lapse(ctx, LapseRequest{SKU: c.sku, HoldID: c.id, NotTold: c.flag}))
	case callKnown:
		return hold(g.AdoptOffer(ctx, c.sku, c.id))
	case callReadHold:
		out, _, err := g.ReadHold(ctx, c.sku, c.id)
		return hold(out, err)
	case callJoin:
		out, err := g.Join(ctx, JoinRequest{SKU: c.sku, EntryID: c.id, Person: c.person, Units: c.units, Sealed: []byte("sealed")})
		return answer{verdict: out.Verdict, entry: viewEntry(out.Entry), created: out.Created, backlog: out.Backlog}, err
	case callAck:
		out, err := g.AdoptEntry(ctx, c.sku, c.id)
		return answer{verdict: out.Verdict, entry: viewEntry(out.Entry)}, err
	case callLeave:
		out, err := g.Leave(ctx, LeaveRequest{SKU: c.sku, EntryID: c.id, State: c.end, Owner: c.flag})
		return answer{verdict: out.Verdict, entry: viewEntry(out.Entry)}, err
	case callReadEntry:
		e, ok, err := g.ReadEntry(ctx, c.sku, c.id)
		if !ok {
			return answer{verdict: Unknown}, err
		}
		return answer{verdict: OK, entry: viewEntry(e)}, err
	case callStock:
		out, err := g.Stock(ctx, c.sku, c.event)
		return answer{verdict: out.Verdict, applied: out.Applied, delta: out.Delta, reason: out.Reason, counters: viewCounters(out.Counters)}, err
	case callPause:
		out, err := g.Settings(ctx, SettingsRequest{SKU: c.sku, Paused: &c.flag})
		return answer{verdict: out.Verdict}, err
	case callLimit:
		out, err := g.Settings(ctx, SettingsRequest{SKU: c.sku, Limit: &c.units})
		return answer{verdict: out.Verdict}, err
	case callDrain:
		out, err := g.Drain(ctx, c.sku, 100)
		return answer{verdict: out.Verdict}, err
	case callSnapshot:
		out, _, err := g.Snapshot(ctx, c.sku)
		return answer{verdict: OK, counters: viewCounters(out)}, err
	}
	panic("no such verb: " + c.verb)
}

package starter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// findView is what a term stands for, and what happened, in the order of time. Missing
// says who could not be asked. Whole is false when older lines of a ledger were not
// read, More when only the first things are shown.
type findView struct {
	Things  []thingView `json:"things"`
	Story   []storyView `json:"story"`
	Missing []string    `json:"missing"`
	Whole   bool        `json:"whole"`
	More    bool        `json:"more"`
	Now     string      `json:"now"`
}

// thingView is a hold, an entry, a payment or an event as it is now. Next says what
// happens next, or what a person should do.
type thingView struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	SKU   string `json:"sku,omitempty"`
	State string `json:"state"`
	Next  string `json:"next"`
	UI    string `json:"ui,omitempty"` // its workflow in Temporal's UI; an offer has none
}

// unowned takes the link from the holds that never were more than an offer: those have
// no workflow, their entries' workflows own them.
func (f *finding) unowned() {
	for i, thing := range f.things {
		offer := thing.State == string(contract.HoldOffered) || thing.State == string(contract.HoldLapsed) || slices.Contains(f.withdrawn, thing.ID)
		if thing.Kind == "hold" && offer {
			f.things[i].UI = ""
		}
	}
}

// storyView is one thing that happened.
type storyView struct {
	At     string `json:"at"`
	SKU    string `json:"sku,omitempty"`
	ID     string `json:"id"`
	What   string `json:"what"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (f *finding) thing(kind, id, sku, state, next string) {
	f.things = append(f.things, thingView{Kind: kind, ID: id, SKU: sku, State: state, Next: next, UI: f.d.uiURL(id)})
}

func (f *finding) at(when time.Time, sku, id, what string) {
	if !when.IsZero() {
		f.marks = append(f.marks, storyView{At: stamp(when), SKU: sku, ID: id, What: what})
	}
}

// uiURL is a workflow in Temporal's UI; empty when nobody said where that is.
func (d *Door) uiURL(workflowID string) string {
	if len(d.cfg.Temporal.UIOrigins) == 0 {
		return ""
	}
	return d.cfg.Temporal.UIOrigins[0] + "/namespaces/" + url.PathEscape(d.cfg.Temporal.Namespace) + "/workflows/" + url.PathEscape(workflowID)
}

func (f *finding) tellHold(ctx context.Context, id string, spans map[string]time.Time) error {
	out, err := f.d.readHold(ctx, id)
	if isProblem(err, unknownHold) || f.onlyLedger(err, spans) {
		return nil
	}
	if err != nil {
		return err
	}
	h := out.Hold
	f.entry(h.EntryID)
	for _, ref := range append([]string{h.PaymentRef}, h.Refunded...) {
		if ref != "" {
			f.paymentIfKnown(ctx, contract.PaymentID(h.ID, ref))
		}
	}
	for _, line := range linesOf(h) {
		begin(spans, line.SKU, h.CreatedAt)
	}
	f.at(h.ToldAt, h.SKU, h.ID, "its offer may be told: the text goes out")
	f.at(h.SentAt, h.SKU, h.ID, "the provider has sent the text")
	f.thing("hold", h.ID, h.SKU, string(h.State), f.nextOfHold(ctx, h))
	return nil
}

// paymentIfKnown notes a payment that has a workflow: most never needed one.
func (f *finding) paymentIfKnown(ctx context.Context, id string) {
	known := false
	f.asks(ctx, silentTemporal, func(ctx context.Context) (err error) {
		_, known, err = f.d.directory.Payment(ctx, id)
		return err
	})
	if known {
		f.payment(id)
	}
}

func (f *finding) nextOfHold(ctx context.Context, h redis.Hold) string {
	switch h.State {
	case contract.HoldOffered:
		return "a press by " + stamp(f.d.offerUntil(h)) + ", or the offer lapses"
	case contract.HoldProvisional:
		return "its workflow takes it by " + stamp(h.Deadline) + ", or it is free again"
	case contract.HoldHeld:
		return f.nextOfHeld(ctx, h)
	case contract.HoldSold:
		return "nothing: sold; a sold unit comes back as a return"
	}
	return "nothing: " + string(h.State) + reasonOf(h.Reason)
}

// nextOfHeld asks the workflow: it alone knows of money that is not right, and whether
// the grace of a payment that has begun comes after the deadline.
func (f *finding) nextOfHeld(ctx context.Context, h redis.Hold) (next string) {
	f.asks(ctx, silentWorker, func(ctx context.Context) (err error) {
		next, err = f.d.launcher.Next(ctx, h.ID)
		if errors.Is(err, launch.ErrNoOwner) {
			next, err = "nobody owns it, so nothing ends it; holdfast reconcile "+h.SKU+" looks after it", nil
		}
		return err
	})
	if next == "" {
		return "paid, or given back at " + stamp(h.Deadline) + "; when a payment has begun, after a grace"
	}
	return next + "; its deadline is " + stamp(h.Deadline)
}

func reasonOf(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func (f *finding) tellEntry(ctx context.Context, id string, spans map[string]time.Time) error {
	sku, err := f.d.skus.byEntry(ctx, id)
	if isProblem(err, unknownEntry) {
		return nil
	}
	if err != nil {
		return err
	}
	e, known, err := f.d.gate.ReadEntry(ctx, sku, id)
	if f.onlyLedger(err, spans) {
		return nil
	}
	if err != nil || !known {
		return err
	}
	f.hold(e.HoldID)
	begin(spans, sku, e.JoinedAt)
	if e.State == contract.EntryBought || e.State == contract.EntryLapsed { // other ends have a line
		f.at(e.EndedAt, sku, id, "the place in line ended: "+string(e.State))
	}
	f.thing("entry", id, sku, string(e.State), nextOfEntry(e))
	return nil
}

func nextOfEntry(e redis.Entry) string {
	switch {
	case e.State == contract.EntryWaiting && !e.Acknowledged:
		return "its workflow starts and tells the gate"
	case e.State == contract.EntryWaiting:
		return fmt.Sprintf("no. %d in line; holdfast why %s says what it waits for", e.Position, e.ID)
	case e.State == contract.EntryOffered:
		return "the text, then a press, or the offer lapses; holdfast why " + e.ID + " says how its text stands"
	case e.State == contract.EntryHolding:
		return "the end of " + e.HoldID
	}
	return "nothing: " + string(e.State)
}

func (f *finding) tellPayment(ctx context.Context, id string) {
	var run PaymentRun
	known := false
	f.asks(ctx, silentTemporal, func(ctx context.Context) (err error) {
		run, known, err = f.d.directory.Payment(ctx, id)
		return err
	})
	if !known {
		return
	}
	v := viewRefund(run, contract.PaymentStatus{State: run.State})
	f.asks(ctx, silentWorker, func(ctx context.Context) error {
		full, err := f.d.readRefund(ctx, id)
		if err == nil {
			v = full
		}
		return err
	})
	f.hold(v.HoldID)
	f.marks = append(f.marks, storyView{At: v.CreatedAt, SKU: v.SKU, ID: id, What: "money that met no live hold got an owner", Reason: v.Cause})
	if v.ClosedAt != "" {
		f.marks = append(f.marks, storyView{At: v.ClosedAt, SKU: v.SKU, ID: id, What: "the payment is " + v.State, Reason: v.Reference})
	}
	f.thing("payment", id, v.SKU, v.State, nextOfPayment(v))
}

func nextOfPayment(v refundView) string {
	switch {
	case settled(v.State):
		return "nothing: " + v.State
	case v.ClosedAt != "":
		return "a person: it was ended by hand with the money still owed; confirm its payment again"
	case v.ByHand != "":
		return "a person pays it back, then holdfast refunds settle: " + v.ByHand
	case v.State == contract.PaymentParked:
		return "a person finds out whose money it is, then holdfast refunds settle"
	}
	return "the payment provider pays it back; it is asked until it does"
}

func (f *finding) tellEvent(ctx context.Context, id string) {
	var e tellingView
	known := false
	f.asks(ctx, silentWorker, func(ctx context.Context) (err error) {
		e, err = f.d.readEvent(ctx, id)
		known = err == nil
		if isProblem(err, unknownEvent) {
			err = nil
		}
		return err
	})
	if !known {
		return
	}
	next := "nothing: " + e.State
	switch e.State {
	case contract.EventSending:
		next = "it is sent until the shop's endpoint takes it"
	case contract.EventParked:
		next = "a person mends the endpoint, then holdfast events retry " + id
	}
	f.thing("event", id, "", e.State, next)
	if e.HappenedAt != "" {
		f.marks = append(f.marks, storyView{At: e.HappenedAt, ID: e.Subject, What: "the shop is told: " + e.Type, Reason: e.Reason})
	}
}

// happened adds a line of a ledger.
func (f *finding) happened(sku string, l redis.LedgerLine) {
	if l.Verb == "withdraw" {
		f.withdrawn = append(f.withdrawn, l.RefID)
	}
	f.story = append(f.story, storyView{At: stamp(l.At), SKU: sku, ID: l.RefID, What: sentence(l), By: l.Actor, Reason: l.Reason})
}

// sentences are what the kinds of lines say to a person.
var sentences = map[string]string{
	"stock restock":     "units came in",
	"stock correction":  "the count was corrected",
	"stock level":       "the count was set",
	"stock return":      "sold units came back",
	"stock discarded":   "sold units came back and cannot be sold again",
	"join waiting":      "joined the line",
	"leave left":        "left the line",
	"leave expired":     "the place in line expired",
	"leave opted_out":   "texted STOP: the place in line ended",
	"leave unreachable": "no text reaches the number: the place in line ended",
	"leave removed":     "taken out of the line",
	"offer offered":     "units are kept for the next in line",
	"reserve walk-in":   "units taken",
	"reserve afresh":    "units taken again",
	"reserve press":     "the link was pressed: units taken",
	"sweep swept":       "never promised: its lease ended and the units are free",
	"sweep offered":     "the press died: the offer stands again",
	"adopt held":        "its workflow holds it",
	"adopt extended":    "held longer: the shopper pays",
	"adopt refused":     "no unit was left: refused",
	"confirm sold":      "sold",
	"confirm retaken":   "paid late, and still sold",
	"unconfirm held":    "the sale undone: a cart is sold whole or not",
	"unconfirm expired": "the sale undone: a cart is sold whole or not",
	"refund marked":     "its payment goes back",
	"release released":  "given back",
	"release expired":   "not paid in time: given back",
	"withdraw released": "the offer was withdrawn",
	"withdraw expired":  "the offer was withdrawn",
	"lapse lapsed":      "nobody pressed in time: the offer lapsed",
}

func sentence(l redis.LedgerLine) string {
	said, ok := sentences[strings.TrimSpace(l.Verb+" "+l.Kind)]
	if !ok {
		said = strings.TrimSpace(l.Verb + " " + l.Kind)
	}
	if l.Units == 0 {
		return said
	}
	return fmt.Sprintf("%s: %d", said, l.Units)
}

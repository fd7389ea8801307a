package redis

import (
	"context"
	"fmt"

	"holdfast/contract"
)

// Reserve takes units under a lease, or presses an offer. OK: provisional under
// a live lease. Existing: the record is held, sold or ended. Again, SoldOut,
// ReservedForLine, Paused, Ended; a press also Unknown.
func (g *Gate) Reserve(ctx context.Context, req ReserveRequest) (HoldOutcome, error) {
	if err := badReserve(req); err != nil {
		return HoldOutcome{}, err
	}
	r, err := g.run(ctx, verbReserve, req.SKU, req.HoldID, req.Units, req.Person, bit(req.Press), req.Actor, cartText(req.Cart))
	out, err := g.holdOutcome(req.SKU, req.HoldID, r, err)
	if err == nil && out.Verdict == OK && r.str(5) == "" {
		out.Hold = asked(req, out, r.int(6))
	}
	return out, err
}

// asked is the record that walk_in.lua has just written. It does not send it back:
// to read it would cost the caller a tenth of the whole call.
func asked(req ReserveRequest, out HoldOutcome, generation int64) Hold {
	h := Hold{
		ID: req.HoldID, SKU: req.SKU, State: contract.HoldProvisional, Units: req.Units, Person: req.Person, Generation: generation,
		CreatedAt: out.Now, Deadline: out.Now.Add(out.Left), Version: 1,
	}
	if cartText(req.Cart) != "" {
		h.Cart = req.Cart
	}
	return h
}

// AdoptHold makes a provisional hold held. OK: held, Left until its deadline.
// Existing: sold or ended. By the workflow on a swept or unknown record: tried
// afresh, and SoldOut with the record refused when there is no unit. By the
// door: Gone for a swept or unknown record.
func (g *Gate) AdoptHold(ctx context.Context, req AdoptHoldRequest) (HoldOutcome, error) {
	if err := badAdopt(req); err != nil {
		return HoldOutcome{}, err
	}
	var by int64
	amount, currency := "", ""
	if req.Extend != nil {
		by = req.Extend.By.Milliseconds()
		amount, currency = money(req.Extend.Amount)
	}
	r, err := g.decide(ctx, verbAdoptHold, req.SKU, req.HoldID, req.HoldFor.Milliseconds(), bit(req.ByWorkflow), req.Units, req.Person,
		by, amount, currency, cartText(req.Cart))
	return g.holdOutcome(req.SKU, req.HoldID, r, err)
}

func money(m *contract.Money) (amount, currency string) {
	if m == nil {
		return "", ""
	}
	return fmt.Sprint(m.Amount), m.Currency
}

// Told sets an offer's deadline right before an attempt to send its text, and
// finally once it was sent. OK with Left; Paused (the offer is back in the
// outbox and comes again when the SKU resumes), Ended, Gone (with the hold as
// it is), Unknown.
func (g *Gate) Told(ctx context.Context, req ToldRequest) (HoldOutcome, error) {
	r, err := g.run(ctx, verbTold, req.SKU, req.HoldID, req.Window.Milliseconds(), req.SentGrace.Milliseconds(),
		req.MaxAge.Milliseconds(), bit(req.Sent))
	return g.holdOutcome(req.SKU, req.HoldID, r, err)
}

// Confirm makes a live hold a sale by PaymentRef. OK also for a repeat with the
// same reference. HoldEnded, Conflict, Refunded, Shortfall, Unknown.
func (g *Gate) Confirm(ctx context.Context, req ConfirmRequest) (HoldOutcome, error) {
	if err := invalid("confirm", named("hold id", req.HoldID), named("payment ref", req.PaymentRef)); err != nil {
		return HoldOutcome{}, err
	}
	amount, currency := money(req.Amount)
	r, err := g.decide(ctx, verbConfirm, req.SKU, req.HoldID, g.opts.Refs.Seal(req.PaymentRef), amount, currency, req.Actor, bit(req.Retake), bit(req.SameAmount))
	out, err := g.holdOutcome(req.SKU, req.HoldID, r, err)
	g.paid(out, err)
	return out, err
}

// Unconfirm undoes the sale of a cart's line whose later line was refused: held
// again, or expired when it had been retaken, and the payment is marked for
// refund. OK also for a repeat; Existing when that payment made no sale;
// Returned; Unknown.
func (g *Gate) Unconfirm(ctx context.Context, sku, holdID, paymentRef, actor string) (HoldOutcome, error) {
	if err := invalid("unconfirm", named("hold id", holdID), named("payment ref", paymentRef)); err != nil {
		return HoldOutcome{}, err
	}
	r, err := g.run(ctx, verbUnconfirm, sku, holdID, g.opts.Refs.Seal(paymentRef), actor)
	return g.holdOutcome(sku, holdID, r, err)
}

// Release ends a live hold and frees its units. OK when it ended now; Existing
// when it had ended, or is held where only a lease was to be taken back; Early
// with Left; Unknown.
func (g *Gate) Release(ctx context.Context, req ReleaseRequest) (HoldOutcome, error) {
	var deadline int64
	if !req.Deadline.IsZero() {
		deadline = req.Deadline.UnixMilli()
	}
	r, err := g.run(ctx, verbRelease, req.SKU, req.HoldID, req.Reason, req.Actor, deadline, bit(req.Lease), bit(req.AskOnly))
	return g.holdOutcome(req.SKU, req.HoldID, r, err)
}

// Lapse ends an offer whose deadline has passed, or one that its person was not
// told of. OK; Existing (ended before); Early with Left; Claimed with Left when it
// was pressed; Unknown.
func (g *Gate) Lapse(ctx context.Context, req LapseRequest) (HoldOutcome, error) {
	r, err := g.run(ctx, verbLapse, req.SKU, req.HoldID, bit(req.NotTold), bit(req.NotDelivered))
	return g.holdOutcome(req.SKU, req.HoldID, r, err)
}

// Refund marks a payment reference on a hold's record before a refund is asked
// for. OK; MadeSale when that payment made the sale; Unknown.
func (g *Gate) Refund(ctx context.Context, sku, holdID, paymentRef, actor string) (HoldOutcome, error) {
	if err := invalid("refund", named("hold id", holdID), named("payment ref", paymentRef)); err != nil {
		return HoldOutcome{}, err
	}
	r, err := g.run(ctx, verbRefund, sku, holdID, g.opts.Refs.Seal(paymentRef), actor)
	return g.holdOutcome(sku, holdID, r, err)
}

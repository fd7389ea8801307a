package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// settle asks the gate what this money is. Money of the wrong amount is never
// offered to the hold, which may still live: it is only marked. The first line's
// record decides: a payment marked there never sells, one that sold it is never
// refunded.
func (p *moneyOwner) settle() (state, outcome string, err error) {
	outcome = outcomeOf(p.in.Cause)
	if p.in.Cause == contract.CauseUndecodable || !askable(p.in) || p.misnamed() || p.misstated() {
		p.listen()
		return p.park(), outcome, nil
	}
	if p.in.Reopened {
		if err := p.note(true); err != nil {
			return "", "", err
		}
	}
	if p.in.Cause != contract.CauseMismatched {
		out, err := p.sell()
		switch {
		case err != nil:
			return "", "", err
		case out.Verdict == redis.OK:
			p.tellSale(out)
			return contract.PaymentSold, contract.ConfirmSold, nil
		case out.Verdict == redis.Unknown, out.Verdict == redis.Returned:
			return p.park(), outcome, nil
		case out.Verdict == redis.OtherHold:
			return p.parkOther(out.Reason), contract.ConfirmConflict, nil
		case out.Verdict == redis.Settled:
			return p.wentBack(out.Reason), outcome, nil
		case out.Verdict == wordCame: // it must never sell
		case out.Verdict == redis.Conflict:
			outcome, p.saleRef = contract.ConfirmConflict, out.PaymentRef
		case out.Verdict == redis.AmountMismatch:
			outcome = contract.ConfirmAmountMismatch
		}
	}
	out, err := gateStep[activities.HoldOutcome](p.ctx, "mark for refund", holdActivities.MarkRefund, activities.MarkRefundInput{
		SKU: p.in.SKU, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Actor: "payment",
	})
	p.events.on = out.Tell
	switch {
	case err != nil:
		return "", "", err
	case out.Verdict == redis.MadeSale:
		return contract.PaymentSold, contract.ConfirmSold, nil
	case out.Verdict == redis.Unknown:
		return p.park(), outcome, nil
	case out.Verdict == redis.OtherHold:
		return p.parkOther(out.Reason), contract.ConfirmConflict, nil
	case out.Verdict == redis.Settled:
		return p.wentBack(out.Reason), outcome, nil
	case p.hearSettled():
		return contract.PaymentRefundSettled, outcome, nil
	}
	return contract.PaymentRefundPending, outcome, nil
}

// wordCame is the answer of nobody: a person says that the money went back, before
// the gate has said anything.
const wordCame redis.Verdict = "word-came"

// misnamed says that the Payment has not the id of its money. Another one may own
// that, and under two names it would be paid back twice.
func (p *moneyOwner) misnamed() bool {
	id := contract.PaymentID(p.in.HoldID, p.in.PaymentRef)
	if p.in.PaymentID == id {
		return false
	}
	p.status.ByHand = fmt.Sprintf("payment %q of %s is owned by %s, not by %q: confirm it at the door, or start that one, and settle this one with its id as the reference",
		p.in.PaymentRef, p.in.HoldID, id, p.in.PaymentID)
	return true
}

// misstated says that a person must look, because the money is not of the hold that it
// names. Of a cart's other line it would sell that line alone, and an amount that is
// none cannot be compared.
func (p *moneyOwner) misstated() bool {
	_, amount := newMoney(p.in.Amount, p.in.Currency)
	number, err := contract.HoldNumber(p.in.HoldID)
	switch {
	case err != nil || number != contract.SKUNumber(p.in.SKU):
		p.status.ByHand = fmt.Sprintf("%s is not the first SKU of %.60q: confirm payment %q at the door, which finds that, and settle this one", p.in.SKU, p.in.HoldID, p.in.PaymentRef)
	case amount != nil:
		p.status.ByHand = amount.Error()
	default:
		return false
	}
	return true
}

// listen finds out whether the shop is to be told, when no gate is asked, whose answer
// would say so, and whoever started this Payment did not.
func (p *moneyOwner) listen() {
	if p.events.on {
		return
	}
	out, err := gateStep[activities.Listens](p.ctx, "does the shop listen", refundActivities.ShopListens, struct{}{})
	if err != nil {
		workflow.GetLogger(p.ctx).Error("nobody could say whether the shop listens: it is not told", "payment", p.in.PaymentID, "error", err)
	}
	p.events.on = out.Tell
}

// parkOther leaves to a person a payment that was told for another hold before. It
// may have made that one's sale, or be on its way back for it.
func (p *moneyOwner) parkOther(holdID string) string {
	p.status.ByHand = "this payment belongs to " + holdID + ": see what became of it there before any money moves"
	return p.park()
}

// wentBack: a repeat, told again when the Payment that settled it is forgotten.
func (p *moneyOwner) wentBack(reference string) string {
	p.status.Reference, p.noted = reference, true
	return contract.PaymentRefundSettled
}

// note keeps at the gate that the money went back, where it outlives this run, or
// that it did not after all.
func (p *moneyOwner) note(reopen bool) error {
	summary := "note that the money went back"
	if reopen {
		summary = "the refund failed: open again"
	}
	_, err := gateStep[activities.HoldOutcome](p.ctx, summary, holdActivities.SettlePayment, activities.SettlePaymentInput{
		SKU: p.in.SKU, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Reference: p.status.Reference, Reopen: reopen,
	})
	return err
}

// sell confirms the hold, expired or live, all its lines or none, and answers as
// the gate did: for the first line what it says, for a later one hold-ended once
// the lines before it are as they were. Unknown and Returned leave lines sold that
// no machine may undo.
func (p *moneyOwner) sell() (activities.HoldOutcome, error) {
	out, err := p.confirm(p.in.SKU, "confirm", true)
	if err != nil || out.Verdict != redis.OK || len(out.Cart) == 0 {
		if err == nil && out.Verdict == redis.OK {
			p.status.Sale = p.bought(out)
		}
		return out, err
	}
	cart, sale := out.Cart, out
	told := p.bought(out)
	for i := 1; i < len(cart); i++ {
		out, err := p.confirm(cart[i].SKU, "confirm: "+cart[i].SKU, false)
		switch {
		case err != nil || out.Verdict == redis.Unknown:
			// Also a repeat for a sale of long ago comes here, whose later lines are no
			// longer on record. Undoing would take the goods of somebody who paid.
			return out, err
		case out.Verdict == redis.OK:
			sale = joined(sale, out)
			told.Lines, told.SoldAt = append(told.Lines, cart[i]), append(told.SoldAt, out.EndedAt)
			continue
		}
		undone, err := p.unsell(cart[:i])
		if err != nil {
			return out, err
		}
		sale.Verdict, sale.PaymentRef = redis.HoldEnded, ""
		if !undone {
			sale.Verdict = redis.Returned
		}
		return sale, nil
	}
	// Each line's SKU finds the sale by it, whatever its gate loses.
	p.status.Sale = told
	if err := workflow.UpsertTypedSearchAttributes(p.ctx, launch.SKU.ValueSet(skusOf(cart))); err != nil {
		workflow.GetLogger(p.ctx).Error("search attribute not written", "skus", skusOf(cart), "error", err)
	}
	return sale, nil
}

// bought is the sale of a hold of one line, and of a cart's first.
func (p *moneyOwner) bought(out activities.HoldOutcome) *contract.PaymentSale {
	return &contract.PaymentSale{
		Person: out.Person, EntryID: out.EntryID, Generation: out.Generation, CreatedAt: out.CreatedAt, Retaken: out.Retaken,
		Lines: []contract.Line{{SKU: p.in.SKU, Quantity: out.Units}}, SoldAt: []time.Time{out.EndedAt},
	}
}

// joined adds a later line to what a cart is: held until the earliest deadline, sold
// when its last line was, extended when each is.
func joined(cart, line activities.HoldOutcome) activities.HoldOutcome {
	if line.Deadline.Before(cart.Deadline) {
		cart.Deadline = line.Deadline
	}
	if line.EndedAt.After(cart.EndedAt) {
		cart.EndedAt = line.EndedAt
	}
	cart.Extended = cart.Extended && line.Extended
	return cart
}

func (p *moneyOwner) confirm(sku, summary string, first bool) (activities.HoldOutcome, error) {
	in := activities.ConfirmHoldInput{SKU: sku, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Actor: "payment", Retake: true}
	if first {
		in.Amount, _ = newMoney(p.in.Amount, p.in.Currency)
		in.SameAmount = true
		if p.settled.Len() > 0 {
			return activities.HoldOutcome{Verdict: wordCame}, nil
		}
	}
	ctx, stop := workflow.WithCancel(p.ctx)
	out, later, err := gateAsk[activities.HoldOutcome](ctx, summary, holdActivities.ConfirmHold, in)
	if later != nil {
		// A first line that is asked no more may be sold all the same: the mark that
		// follows is refused then. A later line has none, and must answer.
		if err := workflow.Await(p.ctx, func() bool { return later.IsReady() || first && p.settled.Len() > 0 }); err != nil {
			return out, err
		}
		if !later.IsReady() {
			stop()
			return activities.HoldOutcome{Verdict: wordCame}, nil
		}
		err = later.Get(ctx, &out)
	}
	p.events.on = out.Tell
	return out, err
}

// unsell takes lines back in reverse, so that the first one is sold for as long as
// any is: nobody else can sell the hold meanwhile. It answers whether all of them
// are undone.
func (p *moneyOwner) unsell(lines []contract.Line) (bool, error) {
	undone := true
	for i := len(lines) - 1; i >= 0; i-- {
		out, err := gateStep[activities.HoldOutcome](p.ctx, "undo the sale: "+lines[i].SKU, holdActivities.UnconfirmHold, activities.UnconfirmHoldInput{
			SKU: lines[i].SKU, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Actor: "payment",
		})
		if err != nil {
			return false, err
		}
		if out.Verdict != redis.OK {
			workflow.GetLogger(p.ctx).Error("a line of a refused cart stays sold", "payment", p.in.PaymentID, "sku", lines[i].SKU, "verdict", out.Verdict)
			undone = false
		}
	}
	return undone, nil
}

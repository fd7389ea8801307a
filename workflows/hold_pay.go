package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// pay tries to make the sale. A repeat of a reference gets the answer it had.
func (h *hold) pay(p payment) (contract.ConfirmResult, error) {
	if answer, ok := h.answers[p.ref]; ok {
		answer.Status = h.status
		return answer, nil
	}
	switch {
	case h.soldBy(p):
		return h.answer(p, contract.ConfirmSold, nil), nil
	case h.status.State == contract.HoldSold:
		return h.hand(p, contract.CauseSecond)
	case h.over():
		return h.hand(p, contract.CauseLate)
	case h.otherAmount(p):
		h.keep(p)
		return contract.ConfirmResult{Outcome: contract.ConfirmAmountMismatch, Status: h.status}, nil
	}
	h.mismatched = slices.DeleteFunc(h.mismatched, func(m payment) bool { return m.ref == p.ref })
	if err := h.clearTheWay(); err != nil {
		return contract.ConfirmResult{}, err
	}
	if h.over() { // a line was not to be had
		return h.hand(p, contract.CauseLate)
	}
	verdict, err := h.sell(p)
	switch {
	case err != nil:
		return contract.ConfirmResult{}, err
	case verdict == redis.OK:
		return h.answer(p, contract.ConfirmSold, nil), nil
	}
	cause := contract.CauseLate // or the reference is marked for refund
	switch verdict {
	case redis.Conflict:
		cause = contract.CauseSecond
	case redis.OtherHold:
		cause = contract.CauseOtherHold
	}
	answer, err := h.hand(p, cause)
	switch {
	case err != nil:
	case verdict == redis.Shortfall:
		err = h.giveBack(contract.ReasonShop, "shortfall")
	default:
		err = h.rejoin()
	}
	if h.soldBy(p) { // its Payment was faster, as when stock came
		return h.answer(p, contract.ConfirmSold, nil), err
	}
	answer.Status = h.status
	return answer, err
}

// over says that the hold itself sells nothing any more.
func (h *hold) over() bool { return h.status.State.Ended() || h.apart() }

func (h *hold) soldBy(p payment) bool {
	return h.status.State == contract.HoldSold && h.status.PaymentRef == p.ref
}

// sell confirms the lines in order and answers the first refusal, when the lines
// before it are as they were: held, and the payment marked, so that it never sells
// again.
func (h *hold) sell(p payment) (redis.Verdict, error) {
	for i, line := range h.lines {
		in := activities.ConfirmHoldInput{
			SKU: line.SKU, HoldID: h.in.HoldID, PaymentRef: p.ref, Actor: "checkout", MustExist: true,
		}
		if i == 0 { // the money is the whole cart's, and counts once
			in.Amount = p.money
		}
		out, err := gateStep[activities.HoldOutcome](h.ctx, h.label("confirm", i), holdActivities.ConfirmHold, in)
		if err != nil {
			return "", err
		}
		h.take(i, out)
		switch {
		case out.Verdict == redis.OK && out.Retaken && len(h.lines) > 1:
			// The hold had expired, and a Payment of this reference sells it again. Its
			// lines are that Payment's to sell and to undo.
			return redis.HoldEnded, nil
		case out.Verdict == redis.OK:
			continue
		case out.Verdict == redis.Shortfall:
			workflow.GetLogger(h.ctx).Error("shortfall: a paid hold has no unit to sell, the money goes back", "hold", h.in.HoldID, "sku", line.SKU, "payment", contract.PaymentID(h.in.HoldID, p.ref))
		case out.Verdict == redis.Conflict && i > 0:
			out.Verdict = redis.HoldEnded // the cart's sale is its first line's
		}
		return out.Verdict, h.unsell(p, i, out.Verdict)
	}
	return redis.OK, nil
}

// unsell undoes the first n lines of a sale, the last one first: the first line is
// the last that anybody can meet as sold. A cart that ran short has its payment
// marked in any case: its lines are given back one by one, and its Payment must not
// sell them meanwhile.
func (h *hold) unsell(p payment, n int, verdict redis.Verdict) error {
	for i := n - 1; i >= 0; i-- {
		out, err := gateStep[activities.HoldOutcome](h.ctx, h.label("undo the sale", i), holdActivities.UnconfirmHold, activities.UnconfirmHoldInput{
			SKU: h.lines[i].SKU, HoldID: h.in.HoldID, PaymentRef: p.ref, Actor: "checkout",
		})
		if err != nil {
			return err
		}
		if out.Verdict != redis.OK {
			workflow.GetLogger(h.ctx).Error("a line of a refused cart stays sold: a person must look", "hold", h.in.HoldID, "sku", h.lines[i].SKU, "verdict", out.Verdict)
		}
		h.take(i, out)
	}
	if n > 0 || verdict != redis.Shortfall || len(h.lines) == 1 {
		return nil
	}
	_, err := gateStep[activities.HoldOutcome](h.ctx, "mark for refund", holdActivities.MarkRefund, activities.MarkRefundInput{
		SKU: h.lines[0].SKU, HoldID: h.in.HoldID, PaymentRef: p.ref, Actor: "checkout",
	})
	return err
}

// otherAmount: not what payment-started named for this reference, or, for one
// that never started, for the last that did.
func (h *hold) otherAmount(p payment) bool {
	named := h.namedBy[p.ref]
	if named == nil {
		named = h.named
	}
	return named != nil && p.money != nil && *p.money != *named
}

// keep remembers money of another amount: it may still be put right, and if not
// it goes back when the hold ends.
func (h *hold) keep(p payment) {
	workflow.GetLogger(h.ctx).Error("payment of another amount than payment-started named: the hold is kept", "hold", h.in.HoldID, "payment", contract.PaymentID(h.in.HoldID, p.ref))
	for i, m := range h.mismatched {
		if m.ref == p.ref {
			h.mismatched[i] = p
			return
		}
	}
	h.mismatched = append(h.mismatched, p)
	h.show()
}

// putRight sells by money that was kept and is what was announced after all: the word
// that it has come may be faster than the one that it was begun.
func (h *hold) putRight() error {
	i := slices.IndexFunc(h.mismatched, func(p payment) bool { return !h.otherAmount(p) })
	if i < 0 || h.over() {
		return nil // the end of the hold sees to it
	}
	_, err := h.pay(h.mismatched[i])
	return err
}

// hand gives money to its Payment, which owns it from then on.
func (h *hold) hand(p payment, cause string) (contract.ConfirmResult, error) {
	in := paymentInput(h.in.HoldID, h.lines[0].SKU, p, cause)
	if err := h.startPayment(in); err != nil {
		return contract.ConfirmResult{}, err
	}
	return h.answer(p, outcomeOf(cause), &contract.RefundInfo{
		PaymentID: in.PaymentID, PaymentRef: p.ref, State: contract.PaymentDeciding,
	}), nil
}

func (h *hold) answer(p payment, outcome string, refund *contract.RefundInfo) contract.ConfirmResult {
	result := contract.ConfirmResult{Outcome: outcome, Status: h.status, Refund: refund}
	h.answers[p.ref] = result
	return result
}

func (h *hold) handMismatched() error {
	for len(h.mismatched) > 0 {
		p := h.mismatched[0]
		h.mismatched = h.mismatched[1:]
		if _, err := h.hand(p, contract.CauseMismatched); err != nil {
			return err
		}
	}
	return nil
}

// park gives a payload that cannot be read to a Payment, which waits for a
// person. The hold goes on.
func (h *hold) park(signal string, raw converter.RawValue, cause error) error {
	workflow.GetLogger(h.ctx).Error("payment signal cannot be read: parked for a person", "hold", h.in.HoldID, "signal", signal, "error", cause)
	return h.startPayment(undecodable(h.in.HoldID, h.lines[0].SKU, raw.Payload().GetData()))
}

// startPayment is retried without limit: money never stays without an owner.
func (h *hold) startPayment(in contract.PaymentInput) error {
	ctx := workflow.WithActivityOptions(h.ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
		Summary:             "give a " + in.Cause + " payment its owner",
	})
	return workflow.ExecuteActivity(ctx, holdActivities.StartPayment, in).Get(ctx, nil)
}

package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// adopt tells the gate that the hold has its owner, and once a payment has
// started asks for the one extension. It sets the timer by what the gate
// answers.
func (h *hold) adopt() error {
	in := activities.AdoptHoldInput{
		SKU: h.line.SKU, HoldID: h.in.HoldID, Units: h.line.Quantity, Person: h.in.Person,
		HoldSeconds: h.in.Settings.HoldSeconds,
	}
	summary := "adopt"
	if h.paying {
		in.ExtendSeconds, in.Amount = h.in.Settings.ExtensionSeconds, h.named
		summary = "extend while the shopper pays"
	}
	out, err := gateStep[activities.HoldOutcome](h.ctx, summary, holdActivities.AdoptHold, in)
	if err != nil {
		return err
	}
	h.take(out)
	if out.Verdict == redis.OK {
		h.ends = workflow.Now(h.ctx).Add(out.Left())
		h.deadline.set(h.ctx, "hold deadline", out.Left()+h.grace())
		h.show()
	}
	return nil
}

// grace is how long the units are kept past the deadline.
func (h *hold) grace() time.Duration {
	if h.paying {
		return seconds(h.in.Settings.GraceSeconds)
	}
	return 0
}

// pay tries to make the sale. A repeat of a reference gets the answer it had.
func (h *hold) pay(p payment) (contract.ConfirmResult, error) {
	if answer, ok := h.answers[p.ref]; ok {
		answer.Status = h.status
		return answer, nil
	}
	switch {
	case h.status.State == contract.HoldSold && h.status.PaymentRef == p.ref:
		return h.answer(p, contract.ConfirmSold, nil), nil
	case h.status.State == contract.HoldSold:
		return h.hand(p, contract.CauseSecond)
	case h.status.State.Ended():
		return h.hand(p, contract.CauseLate)
	case h.otherAmount(p):
		h.keep(p)
		return contract.ConfirmResult{Outcome: contract.ConfirmAmountMismatch, Status: h.status}, nil
	}
	out, err := gateStep[activities.HoldOutcome](h.ctx, "confirm", holdActivities.ConfirmHold, activities.ConfirmHoldInput{
		SKU: h.line.SKU, HoldID: h.in.HoldID, PaymentRef: p.ref, Amount: p.money, Actor: "checkout", MustExist: true,
	})
	if err != nil {
		return contract.ConfirmResult{}, err
	}
	switch out.Verdict {
	case redis.OK:
		h.take(out)
		h.mismatched = slices.DeleteFunc(h.mismatched, func(m payment) bool { return m.ref == p.ref })
		return h.answer(p, contract.ConfirmSold, nil), nil
	case redis.Conflict:
		h.take(out)
		return h.hand(p, contract.CauseSecond)
	case redis.Shortfall:
		workflow.GetLogger(h.ctx).Error("shortfall: a paid hold has no unit to sell, the money goes back", "hold", h.in.HoldID, "sku", h.line.SKU, "payment", contract.PaymentID(h.in.HoldID, p.ref))
		answer, err := h.hand(p, contract.CauseLate)
		if err == nil {
			err = h.giveBack(contract.ReasonShop, "shortfall")
		}
		if h.status.State == contract.HoldSold && h.status.PaymentRef == p.ref {
			return h.answer(p, contract.ConfirmSold, nil), err // stock came, and its Payment was faster
		}
		answer.Status = h.status
		return answer, err
	default: // the hold had ended, or the reference is marked for refund
		h.take(out)
		return h.hand(p, contract.CauseLate)
	}
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

// hand gives money to its Payment, which owns it from then on.
func (h *hold) hand(p payment, cause string) (contract.ConfirmResult, error) {
	in := paymentInput(h.in.HoldID, h.line.SKU, p, cause)
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
	return h.startPayment(undecodable(h.in.HoldID, h.line.SKU, raw.Payload().GetData()))
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

// giveBack ends the hold. Money that it keeps gets its owner first, so that no
// unit is free while its payment is nobody's. The gate may refuse an expiry as
// early, or answer that the hold was sold meanwhile.
func (h *hold) giveBack(reason, actor string) error {
	if err := h.handMismatched(); err != nil {
		return err
	}
	out, err := gateStep[activities.HoldOutcome](h.ctx, "give back: "+reason, holdActivities.ReleaseHold, activities.ReleaseHoldInput{
		SKU: h.line.SKU, HoldID: h.in.HoldID, Reason: reason, Actor: actor, Deadline: h.status.ExpiresAt.Add(h.grace()),
	})
	if err != nil {
		return err
	}
	switch out.Verdict {
	case redis.Early:
		h.deadline.set(h.ctx, "hold deadline", out.Left())
		h.show()
	case redis.Unknown:
		workflow.GetLogger(h.ctx).Error("the gate has no record of this hold: nothing to give back", "hold", h.in.HoldID)
		out.State, out.Reason, out.EndedAt = contract.HoldReleased, reason, workflow.Now(h.ctx)
		if reason == contract.ReasonExpired {
			out.State = contract.HoldExpired
		}
		h.take(out)
	default:
		h.take(out)
	}
	return nil
}

// take makes the gate's record the status.
func (h *hold) take(out activities.HoldOutcome) {
	if out.State != "" && out.State != contract.HoldSwept {
		h.status.State = out.State
	}
	if !out.CreatedAt.IsZero() {
		h.status.CreatedAt = out.CreatedAt
	}
	if !out.Deadline.IsZero() {
		h.status.ExpiresAt = out.Deadline
	}
	h.status.Extended = h.status.Extended || out.Extended
	h.status.PaymentRef = out.PaymentRef
	h.status.EndReason = out.Reason
	if out.State.Ended() && !out.EndedAt.IsZero() {
		h.status.EndedAt = &out.EndedAt
	}
	h.show()
}

func (h *hold) show() {
	next := "closes"
	switch {
	case h.status.State.Ended():
	case len(h.mismatched) > 0:
		next = fmt.Sprintf("**a person should look**: %d payment(s) of another amount, refunded when the hold ends unless put right", len(h.mismatched))
	case h.paying:
		next = "the shopper pays; given back when the deadline and the grace have passed"
	default:
		next = "given back at the deadline unless paid"
	}
	details(h.ctx,
		"State", string(h.status.State),
		"Lines", fmt.Sprintf("%d × %s", h.line.Quantity, verbatim(h.line.SKU)),
		"Customer", verbatim(h.in.Customer),
		"Held until", instant(h.status.ExpiresAt),
		"Payment", verbatim(h.status.PaymentRef),
		"Order", verbatim(h.in.OrderRef),
		"Next", next,
	)
}

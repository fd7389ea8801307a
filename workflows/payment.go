package workflows

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// Payment owns money that met no live hold until it is a sale after all, has
// gone back, or was settled by a person. Cancelling it changes nothing: money
// keeps its owner.
func Payment(ctx workflow.Context, in contract.PaymentInput) (contract.PaymentStatus, error) {
	p := newMoneyOwner(ctx, in)
	if err := p.setup(); err != nil {
		return contract.PaymentStatus{}, err
	}
	return p.run()
}

type moneyOwner struct {
	ctx      workflow.Context
	in       contract.PaymentInput
	status   contract.PaymentStatus
	decision contract.PaymentDecision
	settled  workflow.ReceiveChannel
}

func newMoneyOwner(ctx workflow.Context, in contract.PaymentInput) *moneyOwner {
	steps, _ := workflow.NewDisconnectedContext(ctx)
	return &moneyOwner{
		ctx: steps,
		in:  in,
		status: contract.PaymentStatus{
			PaymentID: in.PaymentID, HoldID: in.HoldID, PaymentRef: in.PaymentRef, Amount: in.Amount, Currency: in.Currency,
			Cause: in.Cause, State: contract.PaymentDeciding, Raw: in.Raw,
		},
		settled: workflow.GetSignalChannel(ctx, contract.SignalRefundSettled),
	}
}

func (p *moneyOwner) setup() error {
	return errors.Join(
		workflow.SetQueryHandler(p.ctx, contract.QueryStatus, func() (contract.PaymentStatus, error) { return p.status, nil }),
		workflow.SetUpdateHandlerWithOptions(p.ctx, contract.UpdateDecide, p.decide, workflow.UpdateHandlerOptions{
			Validator: func(in contract.PaymentInput) error {
				if in.PaymentRef != p.in.PaymentRef || in.HoldID != p.in.HoldID {
					return fmt.Errorf("%s owns payment %q of %s, not %q of %s", p.in.PaymentID, p.in.PaymentRef, p.in.HoldID, in.PaymentRef, in.HoldID)
				}
				return nil
			},
			Description: "Answers what became of the payment.",
		}),
	)
}

func (p *moneyOwner) decide(ctx workflow.Context, _ contract.PaymentInput) (contract.PaymentDecision, error) {
	waits, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.Await(waits, func() bool { return p.status.State != contract.PaymentDeciding })
	return p.decision, err
}

func (p *moneyOwner) run() (contract.PaymentStatus, error) {
	state, outcome, err := p.settle()
	if err != nil {
		return contract.PaymentStatus{}, err
	}
	p.decision = contract.PaymentDecision{State: state, Outcome: outcome}
	p.become(state)
	for p.status.State != contract.PaymentSold && p.status.State != contract.PaymentRefundSettled {
		if err := workflow.Await(p.ctx, func() bool { return p.settled.Len() > 0 }); err != nil {
			return contract.PaymentStatus{}, err
		}
		var m contract.RefundSettled
		if p.settled.ReceiveAsync(&m) {
			p.status.Reference = m.Reference
			workflow.GetLogger(p.ctx).Info("payment settled", "payment", p.in.PaymentID, "actor", m.Actor)
			p.become(contract.PaymentRefundSettled)
		}
	}
	err = workflow.Await(p.ctx, func() bool { return workflow.AllHandlersFinished(p.ctx) })
	return p.status, err
}

// settle asks the gate what this money is. Money of the wrong amount is never
// offered to the hold, which may still live: it is only marked.
func (p *moneyOwner) settle() (state, outcome string, err error) {
	outcome = outcomeOf(p.in.Cause)
	if p.in.SKU == "" || p.in.Cause == contract.CauseUndecodable {
		return p.park(), outcome, nil
	}
	if p.in.Cause != contract.CauseMismatched {
		money, merr := newMoney(p.in.Amount, p.in.Currency)
		if merr != nil {
			workflow.GetLogger(p.ctx).Warn("amount of a payment ignored", "payment", p.in.PaymentID, "error", merr)
		}
		out, err := gateStep[activities.HoldOutcome](p.ctx, "confirm", holdActivities.ConfirmHold, activities.ConfirmHoldInput{
			SKU: p.in.SKU, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Amount: money, Actor: "payment", SameAmount: true,
		})
		switch {
		case err != nil:
			return "", "", err
		case out.Verdict == redis.OK:
			return contract.PaymentSold, contract.ConfirmSold, nil
		case out.Verdict == redis.Unknown:
			return p.park(), outcome, nil
		case out.Verdict == redis.Conflict:
			outcome = contract.ConfirmConflict
		case out.Verdict == redis.AmountMismatch:
			outcome = contract.ConfirmAmountMismatch
		}
	}
	out, err := gateStep[activities.HoldOutcome](p.ctx, "mark for refund", holdActivities.MarkRefund, activities.MarkRefundInput{
		SKU: p.in.SKU, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, Actor: "payment",
	})
	switch {
	case err != nil:
		return "", "", err
	case out.Verdict == redis.MadeSale:
		return contract.PaymentSold, contract.ConfirmSold, nil
	case out.Verdict == redis.Unknown:
		return p.park(), outcome, nil
	}
	return contract.PaymentRefundPending, outcome, nil
}

// park leaves the money to a person.
func (p *moneyOwner) park() string {
	workflow.GetLogger(p.ctx).Error("payment parked: a person must decide", "payment", p.in.PaymentID, "hold", p.in.HoldID, "cause", p.in.Cause)
	return contract.PaymentParked
}

// sendSettled is what an operator sends when it is done, ready to paste.
const sendSettled = "send the signal `" + contract.SignalRefundSettled + "` with " +
	"`{\"reference\":\"re_123\",\"actor\":\"you\"}`: the provider's reference and your name"

func (p *moneyOwner) become(state string) {
	p.status.State = state
	setState(p.ctx, state)
	next := "closes"
	switch state {
	case contract.PaymentRefundPending:
		next = "**a person must pay this money back**, then " + sendSettled
	case contract.PaymentParked:
		next = "**a person must find out what this money is**, pay it back or book it, then " + sendSettled
	}
	amount := ""
	if p.in.Amount != nil {
		amount = fmt.Sprintf(", %d %s (minor units)", *p.in.Amount, p.in.Currency)
	}
	details(p.ctx,
		"State", state,
		"Payment", verbatim(p.in.PaymentRef)+amount,
		"Hold", verbatim(p.in.HoldID),
		"Cause", p.in.Cause,
		"Said", said(p.in.Raw),
		"Next", next,
	)
}

// said is the beginning of a payload that nobody could read, for a person to
// read; the query status has it whole.
func said(raw []byte) string {
	if !utf8.Valid(raw) {
		return fmt.Sprintf("%d bytes that are no text, in base64 as `raw` of the query `%s`", len(raw), contract.QueryStatus)
	}
	text := []rune(string(raw))
	return verbatim(string(text[:min(len(text), maxSaid)]))
}

const maxSaid = 500 // characters

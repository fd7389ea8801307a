package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
)

// mayRetry refuses what nobody can be asked to pay back.
func (p *moneyOwner) mayRetry() error {
	switch p.status.State {
	case contract.PaymentRefundPending, contract.PaymentRefundReported:
		return nil
	case contract.PaymentDeciding:
		return fmt.Errorf("%s is not decided yet: there is no refund to ask for", p.in.PaymentID)
	case contract.PaymentParked:
		return fmt.Errorf("%s is parked: a person must find out what this money is before anybody can be asked to pay it back", p.in.PaymentID)
	}
	return fmt.Errorf("%s is %s: there is no refund to ask for", p.in.PaymentID, p.status.State)
}

// retry asks the provider once more, now, in the words of the first request, and
// answers what the Payment is when the provider has answered.
func (p *moneyOwner) retry(ctx workflow.Context, in contract.RefundRetry) (contract.PaymentStatus, error) {
	if err := p.mayRetry(); err != nil {
		return p.status, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrBadRequest, nil)
	}
	workflow.GetLogger(p.ctx).Info("the refund is asked for again", "payment", p.in.PaymentID, "actor", in.Actor)
	if p.request != nil {
		p.stop() // it may be in a pause of ten minutes
	}
	p.requestRefund()
	waits, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.Await(waits, func() bool { return p.request == nil || p.over() })
	return p.status, err
}

// over says that nobody is owed the money any more.
func (p *moneyOwner) over() bool {
	return p.status.State == contract.PaymentSold || p.status.State == contract.PaymentRefundSettled
}

// refundFailed leaves to a person what the provider had taken and could not do.
func (p *moneyOwner) refundFailed(m contract.RefundFailed) {
	if p.status.State != contract.PaymentRefundReported && p.status.State != contract.PaymentRefundPending {
		return
	}
	workflow.GetLogger(p.ctx).Error("a refund failed: a person must pay the money back", "payment", p.in.PaymentID, "reason", brief(m.Reason))
	p.status.Reference = brief(m.Reference)
	if p.request != nil { // whose answer may be of before
		p.broken = p.status.Reference
	}
	p.status.ByHand = "the provider took the refund and could not make it: " + brief(m.Reason)
	p.become(contract.PaymentRefundPending)
}

// settledFailed hears that a refund failed after it was settled, before this run has
// closed. That counts for the refund by which it was settled: money that went back in
// another way did.
func (p *moneyOwner) settledFailed() error {
	var m contract.RefundFailed
	if !p.failed.ReceiveAsync(&m) || p.status.State != contract.PaymentRefundSettled || brief(m.Reference) != p.status.Reference {
		return nil
	}
	p.status.State = contract.PaymentRefundReported
	p.refundFailed(m)
	p.told = false
	if !p.noted {
		return nil
	}
	p.noted = false
	return p.note(true)
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/redis"
)

// leftPayments gives the money of Payments that did not end by themselves an owner
// again: a Payment begun anew asks the gate, and goes on where the other was.
func (p *pass) leftPayments(ctx context.Context) error {
	return p.leftBehind(ctx, contract.PaymentWorkflow, p.reviveLast(ctx))
}

// leftWithoutSKU does so for Payments of a hold that nobody knows: no SKU's pass meets
// them.
func (a *Passes) leftWithoutSKU(ctx context.Context, since time.Time) (contract.ReconcileReport, error) {
	p := newPass(ctx, a, contract.ReconcileInput{Since: since})
	query := fmt.Sprintf("WorkflowType = '%s' AND %s IS NULL AND %s", contract.PaymentWorkflow, contract.SKUAttribute, p.notByItself())
	err := p.visitLeft(ctx, query, nil, p.reviveLast(ctx), func([]byte) error { return nil })
	return p.report, err
}

func (p *pass) reviveLast(ctx context.Context) func(w listed, run string) error {
	return func(w listed, run string) error {
		if run != w.run {
			return nil // somebody has begun it anew
		}
		return p.revive(ctx, w.id, run)
	}
}

func (p *pass) revive(ctx context.Context, id, run string) error {
	in, settled, err := p.closedPayment(ctx, id, run)
	var key *codec.UnknownKeyError
	switch {
	case errors.As(err, &key):
		p.alarm("%s did not end by itself, and what it was told cannot be read: %s", id, key)
		return nil
	case err != nil:
		return err
	case settled:
		p.alarm("%s was ended by hand with the word that its money went back: if that is so, confirm payment of %s at the door and settle it again", id, in.HoldID)
		return nil
	case in.PaymentID != id: // a stranger's, which says of itself what it is not
		p.alarm("%s was ended by hand, and what it was begun with names %q", id, in.PaymentID)
		return nil
	}
	return p.mend(ctx, id+" was ended with its money owed", func(ctx context.Context) (redis.Base, error) {
		if _, err := p.Payments.Decide(ctx, in); err != nil {
			// One that fails each time must not keep the pass from everything else.
			p.alarm("%s was ended with its money owed, and could not be begun anew: %s", id, err)
		}
		return redis.Base{Verdict: redis.OK}, nil
	})
}

// closedPayment is what a run of a Payment was begun with, and whether it was told that
// the money went back.
func (p *pass) closedPayment(ctx context.Context, id, run string) (in contract.PaymentInput, settled bool, err error) {
	r := closedHold{payloads: p.Payloads}
	events := p.Owners.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return in, false, fmt.Errorf("history of %s: %w", id, err)
		}
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			if _, err := r.decode(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in); err != nil {
				return in, false, fmt.Errorf("history of %s: %w", id, err)
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			settled = settled || e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == contract.SignalRefundSettled
		}
	}
	return in, settled, nil
}

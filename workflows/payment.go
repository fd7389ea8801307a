package workflows

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/launch"
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

var refundActivities *activities.Refunds

type moneyOwner struct {
	ctx      workflow.Context
	in       contract.PaymentInput
	status   contract.PaymentStatus
	decision contract.PaymentDecision
	settled  workflow.ReceiveChannel
	failed   workflow.ReceiveChannel
	saleRef  string              // the payment that made the hold's sale, when another did
	request  workflow.Future     // of the refund, until it was answered
	stop     workflow.CancelFunc // of the request
	asked    time.Time           // when it was first made
	sequence int64               // of the request: its repeats carry the same
	broken   string              // reference of a refund that failed before its request was answered
	told     bool                // that the money went back
	noted    bool                // the gate knows it
	events   emitter
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
		events:  emitter{ctx: steps, on: in.Tell},
		settled: workflow.GetSignalChannel(ctx, contract.SignalRefundSettled),
		failed:  workflow.GetSignalChannel(ctx, contract.SignalRefundFailed),
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
		workflow.SetUpdateHandlerWithOptions(p.ctx, contract.UpdateRetryRefund, p.retry, workflow.UpdateHandlerOptions{
			Validator:   func(contract.RefundRetry) error { return p.mayRetry() },
			Description: "Asks the payment provider for the refund once more and answers what the payment is then.",
		}),
	)
}

func (p *moneyOwner) decide(ctx workflow.Context, _ contract.PaymentInput) (contract.PaymentDecision, error) {
	waits, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.Await(waits, func() bool { return p.status.State != contract.PaymentDeciding })
	return p.decision, err
}

func (p *moneyOwner) run() (contract.PaymentStatus, error) {
	p.nameSKU()
	state, outcome, err := p.settle()
	if err != nil {
		return contract.PaymentStatus{}, err
	}
	p.decision = contract.PaymentDecision{State: state, Outcome: outcome}
	p.become(state)
	if state == contract.PaymentRefundPending {
		p.requestRefund()
	}
	for {
		if err := p.untilOver(); err != nil {
			return contract.PaymentStatus{}, err
		}
		if err := p.keepSettled(); err != nil {
			return contract.PaymentStatus{}, err
		}
		done := func() bool { return workflow.AllHandlersFinished(p.ctx) && p.events.idle() }
		if err := workflow.Await(p.ctx, func() bool { return done() || p.failed.Len() > 0 }); err != nil {
			return contract.PaymentStatus{}, err
		}
		if p.failed.Len() > 0 {
			if err := p.settledFailed(); err != nil {
				return contract.PaymentStatus{}, err
			}
			continue
		}
		if p.settled.Len() > 0 && p.status.State == contract.PaymentSold {
			workflow.GetLogger(p.ctx).Error("a person says that this money went back, and it made the sale: a person must look", "payment", p.in.PaymentID, "hold", p.in.HoldID)
		}
		return p.status, nil
	}
}

// untilOver listens until nobody is owed the money any more.
func (p *moneyOwner) untilOver() error {
	for !p.over() {
		err := workflow.Await(p.ctx, func() bool { return p.settled.Len() > 0 || p.failed.Len() > 0 || ready(p.request) })
		if err != nil {
			return err
		}
		switch {
		case p.hearSettled():
			p.become(contract.PaymentRefundSettled)
		case ready(p.request):
			p.requested()
		default:
			var f contract.RefundFailed
			if p.failed.ReceiveAsync(&f) {
				p.refundFailed(f)
			}
		}
	}
	return nil
}

// hearSettled takes the word that the money went back, if it has come.
func (p *moneyOwner) hearSettled() bool {
	var m contract.RefundSettled
	if !p.settled.ReceiveAsync(&m) {
		return false
	}
	p.status.Reference = brief(m.Reference)
	workflow.GetLogger(p.ctx).Info("payment settled", "payment", p.in.PaymentID, "actor", brief(m.Actor))
	return true
}

// keepSettled tells that the money went back, and has the gate keep it.
func (p *moneyOwner) keepSettled() error {
	if p.status.State != contract.PaymentRefundSettled {
		return nil
	}
	if !p.told {
		p.told = true
		p.emit(contract.EventRefundSettled)
	}
	if !askable(p.in) || p.noted {
		return nil
	}
	p.noted = true
	return p.note(false)
}

// requestRefund asks for the money to go back until somebody outside owns the
// request. A person may settle the Payment meanwhile.
func (p *moneyOwner) requestRefund() {
	if p.asked.IsZero() {
		p.asked = workflow.Now(p.ctx)
		p.sequence = p.events.next(p.asked)
	}
	money, _ := newMoney(p.in.Amount, p.in.Currency) // one that is none was parked
	ctx, stop := workflow.WithCancel(p.ctx)
	p.stop, p.broken = stop, ""
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Minute},
		Summary:             "ask for the refund",
	})
	p.request = workflow.ExecuteActivity(ctx, refundActivities.RequestRefund, activities.RequestRefundInput{
		PaymentID: p.in.PaymentID, HoldID: p.in.HoldID, PaymentRef: p.in.PaymentRef, SaleRef: p.saleRef, Amount: money, Cause: p.in.Cause,
		RequestedAt: p.asked, Sequence: p.sequence,
	})
}

// requested takes the answer to the request. A request that failed for good
// leaves the money to a person.
func (p *moneyOwner) requested() {
	var out activities.RefundRequested
	if err := p.request.Get(p.ctx, &out); err != nil {
		out = activities.RefundRequested{ByHand: err.Error(), Tell: p.events.on}
	}
	p.request = nil
	p.events.on = out.Tell
	if out.ByHand == "" && out.Reference != "" && out.Reference == p.broken {
		return // its failure was told before this answer
	}
	p.status.ByHand = out.ByHand
	switch {
	case out.ByHand != "":
		workflow.GetLogger(p.ctx).Error("no machine can make this refund: a person must", "payment", p.in.PaymentID, "reason", out.ByHand)
		p.become(contract.PaymentRefundPending)
	case out.Settled:
		p.status.Reference = out.Reference
		p.become(contract.PaymentRefundSettled)
	default:
		p.status.Reference = out.Reference
		p.become(contract.PaymentRefundReported)
	}
}

// park leaves the money to a person.
func (p *moneyOwner) park() string {
	workflow.GetLogger(p.ctx).Error("payment parked: a person must decide", "payment", p.in.PaymentID, "hold", p.in.HoldID, "cause", p.in.Cause)
	p.emit(contract.EventPaymentUnmatched)
	return contract.PaymentParked
}

// sendSettled is what an operator sends when it is done, ready to paste.
const sendSettled = "send the signal `" + contract.SignalRefundSettled + "` with " +
	"`{\"reference\":\"re_123\",\"actor\":\"you\"}`: the provider's reference and your name"

func (p *moneyOwner) become(state string) {
	if p.status.State != state {
		setState(p.ctx, state)
	}
	p.status.State = state
	next := "closes"
	switch {
	case state == contract.PaymentRefundPending && p.status.ByHand != "":
		next = "**a person must pay this money back**, then " + sendSettled + "; why: " + verbatim(p.status.ByHand)
	case state == contract.PaymentRefundPending:
		next = "the provider is asked for the refund until it takes the request"
	case state == contract.PaymentRefundReported:
		next = "the provider pays the money back; settled by its word, or " + sendSettled
	case state == contract.PaymentParked && p.status.ByHand != "":
		next = "**a person must decide**: " + verbatim(p.status.ByHand) + "; then " + sendSettled
	case state == contract.PaymentParked:
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

// nameSKU writes the SKU, where whoever started the Payment has named none: no list of
// the SKU's money and no pass of Reconcile would find it.
func (p *moneyOwner) nameSKU() {
	if _, named := workflow.GetTypedSearchAttributes(p.ctx).GetKeywordList(launch.SKU); named || !contract.ValidSKU(p.in.SKU) {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(p.ctx, launch.SKU.ValueSet([]string{p.in.SKU})); err != nil {
		workflow.GetLogger(p.ctx).Error("search attribute not written", "sku", p.in.SKU, "error", err)
	}
}

// said is the beginning of a payload that nobody could read, for a person to
// read; the query status has it whole.
func said(raw []byte) string {
	if !utf8.Valid(raw) {
		return fmt.Sprintf("%d bytes that are no text, in base64 as `raw` of the query `%s`", len(raw), contract.QueryStatus)
	}
	return verbatim(brief(string(raw)))
}

const maxSaid = 500 // characters

// brief cuts what somebody wrote, so that a text of a megabyte neither stops the
// Payment nor fills its history.
func brief(s string) string {
	if utf8.RuneCountInString(s) <= maxSaid {
		return s
	}
	return string([]rune(s)[:maxSaid])
}

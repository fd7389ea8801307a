package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// Hold owns one hold of 1 to 20 lines from the moment its units were taken until
// they are sold or given back, all of them: reserve → checkout → confirm. The gate
// decides every step; the workflow knows the clocks and keeps the money that came
// with it.
func Hold(ctx workflow.Context, in contract.HoldInput) (contract.HoldResult, error) {
	h, err := newHold(ctx, in)
	if err != nil {
		return contract.HoldResult{}, err
	}
	if err := h.setup(); err != nil {
		return contract.HoldResult{}, err
	}
	return h.run()
}

var holdActivities *activities.Holds

type hold struct {
	root   workflow.Context // is cancelled
	ctx    workflow.Context // is not: a step at the gate is never cut short
	in     contract.HoldInput
	lines  []contract.Line          // merged, in the order in which they are taken
	gate   []activities.HoldOutcome // of each line, what the gate said last
	steps  []lineStep               // of each line, what it was asked and has not answered
	status contract.HoldStatus

	deadline timer
	ends     time.Time                  // the latest deadline of a line, by the workflow's clock
	paying   bool                       // a payment has started and not failed
	tries    map[string]bool            // such payments; never ranged over
	named    *contract.Money            // by the last payment-started
	namedBy  map[string]*contract.Money // and by each payment reference; never ranged over
	cancels  bool                       // given back because the workflow was cancelled
	why      ending                     // of the last giving back, which may have to look again
	looks    int                        // how often it has

	asks       []*ask                            // confirms that wait for their answer
	answers    map[string]contract.ConfirmResult // by payment reference; never ranged over
	mismatched []payment                         // money of another amount, kept until the end
	attempts   []*attempt                        // payments that were begun, in their order
	begunLast  string                            // payment reference, also when it is one too many
	unresolved []string                          // of those, what nobody knew at the expiry
	told       holdTold

	started, succeeded, failed, release workflow.ReceiveChannel
}

// ask is one confirm update.
type ask struct {
	payment payment
	done    bool
	result  contract.ConfirmResult
}

func newHold(ctx workflow.Context, in contract.HoldInput) (*hold, error) {
	lines, err := holdLines(in)
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("hold %s: %s", in.HoldID, err), contract.ErrBadRequest, nil)
	}
	steps, _ := workflow.NewDisconnectedContext(ctx)
	h := &hold{
		root:  ctx,
		ctx:   steps,
		in:    in,
		lines: lines,
		gate:  make([]activities.HoldOutcome, len(lines)),
		steps: make([]lineStep, len(lines)),
		why:   ending{contract.ReasonExpired, redis.ActorHoldTimer},
		status: contract.HoldStatus{
			HoldID: in.HoldID, State: contract.HoldProvisional, Lines: lines, Customer: in.Customer, Person: in.Person, EntryID: in.EntryID,
			Generation: in.Generation, OrderRef: in.OrderRef, Price: in.Price, CreatedAt: workflow.Now(ctx),
		},
		answers:   map[string]contract.ConfirmResult{},
		namedBy:   map[string]*contract.Money{},
		tries:     map[string]bool{},
		told:      holdTold{emitter: emitter{ctx: steps}},
		started:   workflow.GetSignalChannel(ctx, contract.SignalPaymentStarted),
		succeeded: workflow.GetSignalChannel(ctx, contract.SignalPaymentSucceeded),
		failed:    workflow.GetSignalChannel(ctx, contract.SignalPaymentFailed),
		release:   workflow.GetSignalChannel(ctx, contract.SignalRelease),
	}
	for i := range h.gate {
		h.gate[i].State = contract.HoldProvisional
	}
	return h, nil
}

func (h *hold) setup() error {
	return errors.Join(
		workflow.SetQueryHandler(h.root, contract.QueryStatus, func() (contract.HoldStatus, error) { return h.status, nil }),
		workflow.SetUpdateHandlerWithOptions(h.root, contract.UpdateConfirm, h.confirm, workflow.UpdateHandlerOptions{
			Validator: func(req contract.ConfirmRequest) error {
				_, err := newPayment(req.PaymentRef, req.Amount, req.Currency)
				return err
			},
			Description: "Turns the hold into a sale and answers with the outcome.",
		}),
	)
}

// confirm leaves the payment to the one loop that also sees signals and the
// timer, and waits for its answer.
func (h *hold) confirm(ctx workflow.Context, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
	p, err := newPayment(req.PaymentRef, req.Amount, req.Currency)
	if err != nil {
		return contract.ConfirmResult{}, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrBadRequest, nil)
	}
	a := &ask{payment: p}
	h.asks = append(h.asks, a)
	waits, _ := workflow.NewDisconnectedContext(ctx)
	err = workflow.Await(waits, func() bool { return a.done })
	return a.result, err
}

func (h *hold) run() (contract.HoldResult, error) {
	if err := h.adopt(); err != nil {
		return contract.HoldResult{}, err
	}
	h.tellEntry()
	for !h.status.State.Ended() {
		err := workflow.Await(h.ctx, func() bool { return h.lineReady() || h.pending() || h.deadline.due() || h.cancelled() })
		if err == nil {
			err = h.step()
		}
		if err != nil {
			return contract.HoldResult{}, err
		}
	}
	h.recordUnresolved()
	h.tellEnded()
	if err := h.close(); err != nil {
		return contract.HoldResult{}, err
	}
	setState(h.ctx, string(h.status.State))
	if h.cancels && h.status.State == contract.HoldReleased {
		return contract.HoldResult{}, h.root.Err()
	}
	return contract.HoldResult{
		HoldID: h.in.HoldID, State: h.status.State, Reason: h.status.EndReason, PaymentRef: h.status.PaymentRef,
	}, nil
}

// close answers everybody who still waits, gives money that came too late and what
// is to be told their owners, and ends what shoppers still could pay. Nothing yields
// between its last look and the end of the run.
func (h *hold) close() error {
	h.deadline.future = nil // the server drops it with the run; cancelling costs an event
	if h.saleUnasked() {
		h.deadline.set(h.ctx, "wait for a confirm whose answer was lost", lostConfirmWait)
	}
	for {
		for h.pending() {
			if err := h.message(); err != nil {
				return err
			}
		}
		if err := h.handMismatched(); err != nil {
			return err
		}
		over, err := h.endAttempts()
		if err != nil {
			return err
		}
		done := func() bool {
			return over && workflow.AllHandlersFinished(h.ctx) && h.told.idle() && (!h.saleUnasked() || h.deadline.due())
		}
		if done() && !h.pending() {
			return nil
		}
		if err := workflow.Await(h.ctx, func() bool { return h.pending() || h.answered() || done() }); err != nil {
			return err
		}
	}
}

// lostConfirmWait is more than a client takes to ask again.
const lostConfirmWait = 10 * time.Second

// saleUnasked says that the hold was sold and nobody's confirm was answered so. The
// server may drop a task that was to end the run, because something else came in
// meanwhile: the sale stands at the gate, and the confirm is gone from the run. Its
// caller is told to ask again, and must find somebody.
func (h *hold) saleUnasked() bool {
	_, asked := h.answers[h.status.PaymentRef]
	return h.status.State == contract.HoldSold && !asked
}

func (h *hold) pending() bool {
	money := len(h.asks) > 0 || h.succeeded.Len() > 0
	return money && !h.moneyWaits() || h.started.Len() > 0 || h.failed.Len() > 0 || h.release.Len() > 0
}

// step does one thing. Payments come before every ending, so that a payment and
// the timer of one task are decided by the gate in the shopper's favour.
func (h *hold) step() error {
	switch {
	case h.lineReady(): // the gate has decided
		return h.hearLine()
	case h.pending():
		return h.message()
	case h.cancelled():
		h.cancels = true
		return h.giveBack(contract.ReasonCancelled, "cancel")
	default:
		return h.expire()
	}
}

// cancelled is true until the cancellation has been answered.
func (h *hold) cancelled() bool { return h.root.Err() != nil && !h.cancels }

// message handles one signal or confirm.
func (h *hold) message() error {
	var raw converter.RawValue
	hears := !h.moneyWaits()
	switch {
	case h.started.ReceiveAsync(&raw):
		return h.onStarted(raw)
	case hears && h.succeeded.ReceiveAsync(&raw):
		return h.onSucceeded(raw)
	case hears && len(h.asks) > 0:
		a := h.asks[0]
		h.asks = h.asks[1:]
		result, err := h.pay(a.payment)
		if err != nil {
			return err
		}
		a.result, a.done = result, true
		return nil
	case h.failed.ReceiveAsync(&raw):
		return h.onFailed(raw)
	default:
		var r contract.Release
		if !h.release.ReceiveAsync(&r) {
			return nil // one that the SDK could not read: logged there
		}
		return h.onRelease(r)
	}
}

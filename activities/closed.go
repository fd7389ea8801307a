package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/payment"
)

// Histories reads the events of a run; a Temporal client does.
type Histories interface {
	GetWorkflowHistory(ctx context.Context, workflowID, runID string, isLongPoll bool, filter enumspb.HistoryEventFilterType) client.HistoryEventIterator
}

// UnsettledPayments reads the history of a Hold that was terminated, failed or
// timed out, and answers the money that it was told of and left without an owner:
// every payment of a signal, of an accepted update or of the provider's answer, in
// the order of arrival, but the one that made the sale and those that were handed to
// a Payment. Each is ready to start its Payment, which is the same one that the Hold
// would have started. In doubt a payment counts as unsettled: its Payment asks the
// gate, and finds a sale that it made. A run that ended by itself has none.
//
// A payload under a key that is not listed is a *codec.UnknownKeyError; nothing
// is answered then, for the money in it cannot be told.
func UnsettledPayments(ctx context.Context, h Histories, payloads *codec.Codec, holdID, runID string) ([]contract.PaymentInput, error) {
	r := closedHold{
		payloads: payloads, holdID: holdID, lines: 1, place: map[string]int{}, settled: map[string]bool{}, sold: map[string]int{},
		scheduled: map[int64]*historypb.ActivityTaskScheduledEventAttributes{},
	}
	events := h.GetWorkflowHistory(ctx, holdID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err == nil {
			err = r.read(e)
		}
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", holdID, err)
		}
	}
	return r.unsettled(), nil
}

// closedHold is what a history has told so far.
type closedHold struct {
	payloads  *codec.Codec
	holdID    string
	sku       string // of the first line in the order of SKUs
	lines     int
	told      []contract.PaymentInput
	place     map[string]int  // of a payment id in told
	settled   map[string]bool // payment ids
	sold      map[string]int  // by payment reference: lines that the gate called sold by it
	scheduled map[int64]*historypb.ActivityTaskScheduledEventAttributes
}

func (r *closedHold) read(e *historypb.HistoryEvent) error {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return r.started(e.GetWorkflowExecutionStartedEventAttributes().GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return r.signal(a.GetSignalName(), a.GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
		return r.update(e.GetWorkflowExecutionUpdateAdmittedEventAttributes().GetRequest())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		return r.update(e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return r.answer(e.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetSuccess())
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return r.gateSaid(e.GetMarkerRecordedEventAttributes().GetDetails()[localResult])
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.scheduled[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		s := r.scheduled[a.GetScheduledEventId()]
		switch s.GetActivityType().GetName() {
		case startPayment:
			return r.handed(s.GetInput())
		case askAttempt, endAttempt:
			return r.providerSaid(s.GetInput(), a.GetResult())
		}
		return r.gateSaid(a.GetResult())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		var out contract.HoldResult
		if ok, err := r.decode(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &out); err != nil || !ok {
			return err
		}
		r.settled[contract.PaymentID(r.holdID, out.PaymentRef)] = true
	}
	return nil
}

const (
	localResult  = "result"       // where the SDK's marker of a local activity has the result
	startPayment = "StartPayment" // Holds.StartPayment
	askAttempt   = "AskAttempt"   // Attempts.AskAttempt
	endAttempt   = "EndAttempt"   // Attempts.EndAttempt
)

func (r *closedHold) started(input *commonpb.Payloads) error {
	var in contract.HoldInput
	if ok, err := r.decode(input, &in); err != nil || !ok {
		return err
	}
	if lines, err := contract.MergeLines(in.Lines); err == nil { // else the Hold failed before it held anything
		r.sku, r.lines = lines[0].SKU, len(lines)
	}
	return nil
}

// signal notes money, and any message about money that the Hold could not read.
func (r *closedHold) signal(name string, input *commonpb.Payloads) error {
	switch name {
	case contract.SignalPaymentSucceeded:
		var m contract.PaymentSucceeded
		return r.payment(input, &m, func() (string, *int64, string) { return m.PaymentRef, m.Amount, m.Currency })
	case contract.SignalPaymentStarted:
		var m contract.PaymentStarted
		return r.unreadable(input, &m, func() error {
			_, err := contract.NewMoney(m.Amount, m.Currency)
			return err
		})
	case contract.SignalPaymentFailed:
		var m contract.PaymentFailed
		return r.unreadable(input, &m, func() error { return nil })
	}
	return nil
}

// update notes the money of a confirm. One that was admitted first comes twice.
func (r *closedHold) update(req *updatepb.Request) error {
	if req.GetInput().GetName() != contract.UpdateConfirm {
		return nil
	}
	var m contract.ConfirmRequest
	return r.payment(req.GetInput().GetArgs(), &m, func() (string, *int64, string) { return m.PaymentRef, m.Amount, m.Currency })
}

func (r *closedHold) payment(input *commonpb.Payloads, into any, fields func() (string, *int64, string)) error {
	return r.unreadable(input, into, func() error {
		ref, amount, currency := fields()
		if err := contract.CheckPaymentRef(ref); err != nil {
			return err
		}
		if _, err := contract.NewMoney(amount, currency); err != nil {
			return err
		}
		r.note(contract.PaymentInput{
			PaymentID: contract.PaymentID(r.holdID, ref), HoldID: r.holdID, SKU: r.sku, PaymentRef: ref, Amount: amount, Currency: currency,
			Cause: contract.CauseLate,
		})
		return nil
	})
}

// unreadable notes a payload that does not decode, or that right refuses, as the
// Hold would have parked it.
func (r *closedHold) unreadable(input *commonpb.Payloads, into any, right func() error) error {
	p, err := r.open(input)
	if err != nil {
		return err
	}
	readable := len(p.GetData()) > 0 && converter.GetDefaultDataConverter().FromPayload(p, into) == nil && right() == nil
	if !readable {
		r.note(contract.UndecodablePayment(r.holdID, r.sku, p.GetData()))
	}
	return nil
}

// note remembers a payment; what was said of it last counts.
func (r *closedHold) note(in contract.PaymentInput) {
	if i, ok := r.place[in.PaymentID]; ok {
		r.told[i] = in
		return
	}
	r.place[in.PaymentID] = len(r.told)
	r.told = append(r.told, in)
}

// answer reads what a confirm was told.
func (r *closedHold) answer(success *commonpb.Payloads) error {
	var out contract.ConfirmResult
	ok, err := r.decode(success, &out)
	switch {
	case err != nil || !ok:
		return err
	case out.Outcome == contract.ConfirmSold:
		r.settled[contract.PaymentID(r.holdID, out.Status.PaymentRef)] = true
	case out.Refund != nil:
		r.settled[out.Refund.PaymentID] = true
	}
	return nil
}

// gateSaid reads what an activity brought from the gate. A sale is one when
// every line was said to be sold by the same payment, with nothing else between.
func (r *closedHold) gateSaid(result *commonpb.Payloads) error {
	var out HoldOutcome
	ok, err := r.decode(result, &out)
	switch {
	case err != nil || !ok || out.State == "":
	case out.State != contract.HoldSold:
		clear(r.sold)
	default:
		r.sold[out.PaymentRef]++
	}
	return err
}

// providerSaid notes money of which only the provider told. What came by itself as
// well, under either name, is known.
func (r *closedHold) providerSaid(input, result *commonpb.Payloads) error {
	var in AttemptInput
	if ok, err := r.decode(input, &in); err != nil || !ok {
		return err
	}
	var out AttemptAnswer
	if ok, err := r.decode(result, &out); err != nil || !ok || out.State != payment.Paid {
		return err
	}
	if contract.CheckPaymentRef(out.Ref) != nil {
		out.Ref = in.Ref // as the Hold does
	}
	told := contract.PaymentInput{
		PaymentID: contract.PaymentID(r.holdID, out.Ref), HoldID: r.holdID, SKU: r.sku, PaymentRef: out.Ref, Cause: contract.CauseLate,
	}
	if out.Money != nil {
		told.Amount, told.Currency = &out.Money.Amount, out.Money.Currency
	}
	_, known := r.place[told.PaymentID]
	_, begun := r.place[contract.PaymentID(r.holdID, in.Ref)]
	if !known && !begun {
		r.note(told)
	}
	return nil
}

// handed reads which Payment was started. One whose start was not reported
// counts as not started: starting it again is harmless.
func (r *closedHold) handed(input *commonpb.Payloads) error {
	var in contract.PaymentInput
	ok, err := r.decode(input, &in)
	if err == nil && ok {
		r.settled[in.PaymentID] = true
	}
	return err
}

func (r *closedHold) unsettled() []contract.PaymentInput {
	sold := false
	for ref, lines := range r.sold {
		if lines >= r.lines {
			sold = true
			r.settled[contract.PaymentID(r.holdID, ref)] = true
		}
	}
	var left []contract.PaymentInput
	for _, in := range r.told {
		if r.settled[in.PaymentID] {
			continue
		}
		if sold && in.Cause == contract.CauseLate {
			in.Cause = contract.CauseSecond
		}
		left = append(left, in)
	}
	return left
}

// open decrypts the first payload, if there is one. One that was altered comes
// as it is: the Hold has seen it so too.
func (r *closedHold) open(input *commonpb.Payloads) (*commonpb.Payload, error) {
	if len(input.GetPayloads()) == 0 {
		return nil, nil
	}
	p := input.GetPayloads()[0]
	plain, err := r.payloads.Decode([]*commonpb.Payload{p})
	if errors.Is(err, codec.ErrAltered) {
		return &commonpb.Payload{Data: p.GetData()}, nil
	}
	if err != nil {
		return nil, err
	}
	return plain[0], nil
}

// decode reads what our own worker wrote. What is none of it is passed over: it
// settles nothing.
func (r *closedHold) decode(input *commonpb.Payloads, into any) (ok bool, err error) {
	p, err := r.open(input)
	if err != nil || p == nil {
		return false, err
	}
	return json.Unmarshal(p.GetData(), into) == nil, nil
}

package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

var errTemporalDown = errors.New("temporal is down")

type sentSignal struct {
	ID, Name string
	Arg      any
}

// workflows stands for Temporal: it records what is started and said, and does
// at the gate what the workflows would do.
type workflows struct {
	gate *redis.Gate

	mu       sync.Mutex
	down     bool                              // every call fails
	calls    map[string]int                    // method → how often it was called
	fail     map[string]error                  // method → its error
	closed   map[string]bool                   // workflow id → it has closed
	statuses map[string]any                    // workflow id → EntryStatus or PaymentStatus
	results  map[string]contract.PaymentStatus // run id → what it returned
	holds    map[string]contract.HoldInput
	entries  map[string]contract.EntryInput
	starts   int // of Holds and entries
	wakes    map[string]int
	signals  []sentSignal
	decided  []contract.PaymentInput
	payments []contract.PaymentInput // begun without a question
	updates  []string
	checked  []contract.ReconcileInput

	onHold    func(in contract.HoldInput) // before the start is recorded
	onConfirm func(ctx context.Context, req contract.ConfirmRequest) (contract.ConfirmResult, error)
	onSettle  func(id string, told contract.RefundSettled) error // a signal to a Payment
	onRetry   func(ctx context.Context, id string, req contract.RefundRetry) (contract.PaymentStatus, bool, error)
	onAfresh  func(id string) error // a signal to an Event
	onPass    func(in contract.ReconcileInput) (string, error)
	onReport  func(run string, out *contract.ReconcileReport) error
	inert     bool // signals and stock events are recorded only
	decision  contract.PaymentDecision
	slowEntry chan struct{} // entries' starts wait for it

	words    []said          // of people about texts
	optedOut map[string]bool // persons
	slowLook chan struct{}   // looks for opt-outs wait for it
}

func newWorkflows(gate *redis.Gate) *workflows {
	return &workflows{
		gate: gate, optedOut: map[string]bool{}, calls: map[string]int{}, fail: map[string]error{}, closed: map[string]bool{}, statuses: map[string]any{},
		results: map[string]contract.PaymentStatus{},
		holds:   map[string]contract.HoldInput{}, entries: map[string]contract.EntryInput{}, wakes: map[string]int{},
	}
}

// enter records a call and answers the error it should have.
func (w *workflows) enter(method string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[method]++
	if w.down {
		return errTemporalDown
	}
	return w.fail[method]
}

func (w *workflows) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *workflows) started() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts
}

func (w *workflows) sent() []sentSignal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.signals)
}

func (w *workflows) woken(sku string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakes[sku]
}

func (w *workflows) called(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[method]
}

func (w *workflows) entry(id string) (contract.EntryInput, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.entries[id]
	return in, ok
}

func (w *workflows) Hold(_ context.Context, in contract.HoldInput) (launch.Started, error) {
	if err := w.enter("Hold"); err != nil {
		return 0, err
	}
	if w.onHold != nil {
		w.onHold(in)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed[in.HoldID] {
		return launch.StartedClosed, nil
	}
	if _, open := w.holds[in.HoldID]; open {
		return launch.StartedOpen, nil
	}
	w.holds[in.HoldID] = in
	w.starts++
	return launch.StartedNew, nil
}

func (w *workflows) Entry(ctx context.Context, in contract.EntryInput) (launch.Started, error) {
	if err := w.enter("Entry"); err != nil {
		return 0, err
	}
	if w.slowEntry != nil {
		select {
		case <-w.slowEntry:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries[in.EntryID] = in
	w.starts++
	w.statuses[in.EntryID] = contract.EntryStatus{EntryID: in.EntryID, Phone: in.Phone, Name: in.Name}
	return launch.StartedNew, nil
}

func (w *workflows) Wake(_ context.Context, sku string) error {
	if err := w.enter("Wake"); err != nil {
		return err
	}
	w.set(func() { w.wakes[sku]++ })
	return nil
}

func (w *workflows) StockEvent(ctx context.Context, sku string, ev contract.StockEvent) error {
	if err := w.enter("StockEvent"); err != nil || w.inert {
		return err
	}
	_, err := w.gate.Stock(ctx, sku, ev)
	return err
}

func (w *workflows) Policy(ctx context.Context, sku, updateID string, req contract.PolicyRequest) (contract.PolicyResult, error) {
	if err := w.enter("Policy"); err != nil {
		return contract.PolicyResult{}, err
	}
	w.set(func() { w.updates = append(w.updates, updateID) })
	if _, err := w.gate.RegisterSKU(ctx, sku); err != nil {
		return contract.PolicyResult{}, err
	}
	opened, err := w.gate.Open(ctx, redis.OpenRequest{SKU: sku, New: true})
	if err != nil {
		return contract.PolicyResult{}, err
	}
	was, err := w.gate.Policy(ctx, sku)
	switch {
	case err != nil:
		return contract.PolicyResult{}, err
	case len(req.Versions) > 0 && !slices.Contains(req.Versions, was.Version):
		return contract.PolicyResult{Version: was.Version, Outdated: true}, nil
	}
	_, err = w.gate.Settings(ctx, redis.SettingsRequest{SKU: sku, About: req.About, Policy: req.Policy, Version: was.Version + 1, Actor: req.Actor})
	return contract.PolicyResult{Version: was.Version + 1, Created: opened.Verdict == redis.OK}, err
}

func (w *workflows) Pause(ctx context.Context, sku, _ string, req contract.PauseRequest) (contract.PauseResult, error) {
	if err := w.enter("Pause"); err != nil {
		return contract.PauseResult{}, err
	}
	_, err := w.gate.Settings(ctx, redis.SettingsRequest{SKU: sku, Paused: &req.Paused, Actor: req.Actor})
	return contract.PauseResult{Paused: req.Paused}, err
}

func (w *workflows) Decide(_ context.Context, in contract.PaymentInput) (contract.PaymentDecision, error) {
	if err := w.enter("Decide"); err != nil {
		return contract.PaymentDecision{}, err
	}
	w.set(func() { w.decided = append(w.decided, in) })
	return w.decision, nil
}

func (w *workflows) Payment(_ context.Context, in contract.PaymentInput) error {
	if err := w.enter("Payment"); err != nil {
		return err
	}
	w.set(func() { w.payments = append(w.payments, in) })
	return nil
}

func (w *workflows) Confirm(ctx context.Context, holdID, updateID string, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
	if err := w.enter("Confirm"); err != nil {
		return contract.ConfirmResult{}, err
	}
	w.set(func() { w.updates = append(w.updates, updateID) })
	if w.onConfirm != nil {
		return w.onConfirm(ctx, req)
	}
	in, open := w.open(holdID)
	if !open {
		return contract.ConfirmResult{}, launch.ErrNoOwner
	}
	for _, line := range in.Lines {
		out, err := w.gate.Confirm(ctx, redis.ConfirmRequest{SKU: line.SKU, HoldID: holdID, PaymentRef: req.PaymentRef})
		if err != nil || out.Verdict != redis.OK {
			return contract.ConfirmResult{Outcome: contract.ConfirmHoldEnded}, err
		}
	}
	w.set(func() { w.closed[holdID] = true })
	return contract.ConfirmResult{Outcome: contract.ConfirmSold}, nil
}

// RetryRefund answers as onRetry does.
func (w *workflows) RetryRefund(ctx context.Context, id string, req contract.RefundRetry) (contract.PaymentStatus, bool, error) {
	if err := w.enter("RetryRefund"); err != nil {
		return contract.PaymentStatus{}, false, err
	}
	return w.onRetry(ctx, id, req)
}

func (w *workflows) open(holdID string) (contract.HoldInput, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.holds[holdID]
	return in, ok && !w.closed[holdID]
}

func (w *workflows) Signal(ctx context.Context, id, signal string, arg any) error {
	if err := w.enter("Signal"); err != nil {
		return err
	}
	w.set(func() { w.signals = append(w.signals, sentSignal{id, signal, arg}) })
	if told, ok := arg.(contract.RefundSettled); ok && w.onSettle != nil {
		return w.onSettle(id, told)
	}
	if _, ok := arg.(contract.EventMove); ok {
		return w.onAfresh(id)
	}
	in, open := w.open(id)
	if !open {
		return launch.ErrNoOwner
	}
	if w.inert {
		return nil
	}
	switch arg := arg.(type) {
	case contract.Release:
		return w.release(ctx, in, arg.Reason)
	case contract.PaymentFailed:
		if arg.Final {
			return w.release(ctx, in, contract.ReasonPaymentFailed)
		}
	case contract.PaymentStarted:
		for _, line := range in.Lines {
			_, err := w.gate.AdoptHold(ctx, redis.AdoptHoldRequest{SKU: line.SKU, HoldID: id, HoldFor: time.Minute, ByWorkflow: true, Units: line.Quantity, Person: in.Person, Extend: &redis.Extension{By: time.Minute}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *workflows) release(ctx context.Context, in contract.HoldInput, reason string) error {
	defer w.set(func() { w.closed[in.HoldID] = true })
	for _, line := range slices.Backward(in.Lines) {
		if _, err := w.gate.Release(ctx, redis.ReleaseRequest{SKU: line.SKU, HoldID: in.HoldID, Reason: reason, Actor: "hold"}); err != nil {
			return err
		}
	}
	return nil
}

// OpenStatus knows entries: those that were started and have not closed.
func (w *workflows) OpenStatus(_ context.Context, id string, out any) error {
	if err := w.enter("OpenStatus"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.entries[id]
	if !ok || w.closed[id] {
		return launch.ErrNoOwner
	}
	status, ok := w.statuses[id].(contract.EntryStatus)
	if !ok {
		status = contract.EntryStatus{EntryID: id, SKU: in.SKU, State: contract.EntryWaiting}
	}
	*out.(*contract.EntryStatus) = status
	return nil
}

func (w *workflows) Status(_ context.Context, id string, out any) error {
	if err := w.enter("Status"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch out := out.(type) {
	case *contract.HoldStatus:
		in, ok := w.holds[id]
		if !ok {
			return launch.ErrNoOwner
		}
		out.Customer, out.OrderRef, out.Price = in.Customer, in.OrderRef, in.Price
		return nil
	case *contract.EntryStatus:
		s, ok := w.statuses[id].(contract.EntryStatus)
		if !ok {
			return launch.ErrNoOwner
		}
		*out = s
		return nil
	case *contract.StockBook:
		s, ok := w.statuses[id].(contract.StockBook)
		if !ok {
			return launch.ErrNoOwner
		}
		*out = s
		return nil
	case *contract.EventStatus:
		s, ok := w.statuses[id].(contract.EventStatus)
		if !ok {
			return launch.ErrNoOwner
		}
		*out = s
		return nil
	case *contract.PaymentStatus:
		s, ok := w.statuses[id].(contract.PaymentStatus)
		if !ok {
			return launch.ErrNoOwner
		}
		*out = s
		return nil
	}
	return fmt.Errorf("no status of %T here", out)
}

// Next answers what statuses has of a Hold's next step.
func (w *workflows) Next(_ context.Context, id string) (string, error) {
	if err := w.enter("Next"); err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.holds[id]; !ok {
		return "", launch.ErrNoOwner
	}
	next, ok := w.statuses[id].(string)
	if !ok {
		next = "given back at the deadline unless paid"
	}
	return next, nil
}

// Result answers for a run that has its own result, by its id.
func (w *workflows) Result(_ context.Context, _, runID string, out any) error {
	if err := w.enter("Result"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if report, ok := out.(*contract.ReconcileReport); ok {
		return w.onReport(runID, report)
	}
	s, ok := w.results[runID]
	if !ok {
		return launch.ErrNoOwner
	}
	*out.(*contract.PaymentStatus) = s
	return nil
}

func (w *workflows) NewPass(_ context.Context, in contract.ReconcileInput) (string, error) {
	if err := w.enter("NewPass"); err != nil {
		return "", err
	}
	return w.onPass(in)
}

func (w *workflows) Reconcile(_ context.Context, in contract.ReconcileInput) error {
	if err := w.enter("Reconcile"); err != nil {
		return err
	}
	w.set(func() { w.checked = append(w.checked, in) })
	return nil
}

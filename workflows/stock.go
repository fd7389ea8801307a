package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

const (
	keptEvents = 500         // decided stock events that the book remembers
	maxHistory = 1000        // events of one run; below 2,000 also when its end takes some tries
	afterBug   = time.Minute // before a step that cannot succeed is tried again
)

// Stock is the durable book of one SKU. It records stock events even while the
// gate is closed and applies them once, one at a time; side by side with that it
// hands the outbox to the entries' workflows. It runs for ever, continued as new
// with everything it knows.
func Stock(ctx workflow.Context, in contract.StockInput) error {
	s := newStock(ctx, in)
	if err := s.setup(); err != nil {
		return err
	}
	return s.run()
}

var stockActivities *activities.Stock

type stock struct {
	ctx  workflow.Context // is not cancelled: a book ends only when it is terminated
	sku  string
	book contract.StockBook

	asked  int   // changes of the settings that were accepted
	served int   // and those that are done: one at a time, in order
	dirty  bool  // the outbox has something due
	look   bool  // at the tripwire
	next   timer // when it has, by what the last drain said
	loops  int   // that still run
	events emitter

	moves  workflow.ReceiveChannel // stock events
	settle workflow.ReceiveChannel
	epochs workflow.ReceiveChannel
	rung   workflow.ReceiveChannel
	audits workflow.ReceiveChannel
}

func newStock(ctx workflow.Context, in contract.StockInput) *stock {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	s := &stock{
		ctx: ctx, sku: in.SKU, book: in.Book, dirty: true, look: in.Book.Look || in.Book.Alarm != nil || len(in.Book.Rung) > 0,
		events: emitter{ctx: ctx, last: in.Book.Told},
		moves:  workflow.GetSignalChannel(ctx, contract.SignalStockEvent),
		settle: workflow.GetSignalChannel(ctx, contract.SignalSettle),
		epochs: workflow.GetSignalChannel(ctx, contract.SignalEpoch),
		rung:   workflow.GetSignalChannel(ctx, contract.SignalTripwire),
		audits: workflow.GetSignalChannel(ctx, contract.SignalAudit),
	}
	s.book.SKU, s.book.Look = in.SKU, false
	return s
}

func (s *stock) setup() error {
	return errors.Join(
		workflow.SetQueryHandler(s.ctx, contract.QueryStatus, func() (contract.StockBook, error) { return s.book, nil }),
		workflow.SetUpdateHandlerWithOptions(s.ctx, contract.UpdatePolicy, s.policy, workflow.UpdateHandlerOptions{
			Validator:   s.validatePolicy,
			Description: "Opens the SKU, or changes what the shop says of it or its policy.",
		}),
		workflow.SetUpdateHandlerWithOptions(s.ctx, contract.UpdatePause, s.pause, workflow.UpdateHandlerOptions{
			Validator: func(contract.PauseRequest) error {
				if !s.book.Opened {
					return fmt.Errorf("SKU %s has not been opened", s.sku)
				}
				return nil
			},
			Description: "Pauses or resumes the SKU.",
		}),
	)
}

func (s *stock) run() error {
	work, stop := workflow.WithCancel(s.ctx)
	s.loops = 3
	workflow.GoNamed(work, "apply", s.apply)
	workflow.GoNamed(work, "drain", s.drain)
	workflow.GoNamed(work, "tripwire", s.watch)
	s.show()
	for !s.full() {
		if err := workflow.Await(s.ctx, func() bool { return s.signalled() || s.full() }); err != nil {
			return err
		}
		s.receive()
	}
	// A step that is cut short is repeated by the next run: every one is
	// idempotent, and its event stays pending.
	stop()
	for {
		s.receive()
		quiet := func() bool { return s.loops == 0 && s.events.idle() && workflow.AllHandlersFinished(s.ctx) }
		if quiet() && !s.signalled() {
			s.book.Look = s.look
			return workflow.NewContinueAsNewError(s.ctx, contract.StockWorkflow, contract.StockInput{SKU: s.sku, Book: s.book})
		}
		if err := workflow.Await(s.ctx, func() bool { return s.signalled() || quiet() }); err != nil {
			return err
		}
	}
}

func (s *stock) full() bool {
	info := workflow.GetInfo(s.ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > maxHistory
}

func (s *stock) signalled() bool {
	return s.moves.Len() > 0 || s.settle.Len() > 0 || s.epochs.Len() > 0 || s.rung.Len() > 0 || s.audits.Len() > 0
}

// receive puts every stock event into the book before anything else happens.
func (s *stock) receive() {
	for s.settle.Len() > 0 {
		s.settle.ReceiveAsync(nil)
		s.dirty = true
	}
	for s.epochs.Len() > 0 {
		var m contract.StockEpoch
		if s.epochs.ReceiveAsync(&m) {
			s.book.Epoch = max(s.book.Epoch, m.Epoch)
		}
	}
	for s.rung.Len() > 0 {
		var m contract.Rung
		if s.rung.ReceiveAsync(&m) {
			s.heard(m)
		}
	}
	for s.audits.Len() > 0 {
		var m contract.StockAudit
		if s.audits.ReceiveAsync(&m) && m.Epoch >= s.book.Audit.Epoch && m.Until.After(s.book.Audit.Until) {
			s.book.Audit = m
		}
	}
	for s.moves.Len() > 0 {
		var ev contract.StockEvent
		if s.moves.ReceiveAsync(&ev) {
			s.record(ev)
		}
	}
	s.show()
}

// record notes a stock event unless the book has it. One that is none is
// refused here, with a line in the log: the door has refused it before.
func (s *stock) record(ev contract.StockEvent) {
	if err := validateEvent(ev); err != nil {
		workflow.GetLogger(s.ctx).Error("stock event refused", "sku", s.sku, "event", ev.EventID, "error", err)
		s.book.Refused++
		return
	}
	known := slices.ContainsFunc(s.book.Pending, func(p contract.StockEvent) bool { return p.EventID == ev.EventID }) ||
		slices.ContainsFunc(s.book.Events, func(b contract.BookEvent) bool { return b.EventID == ev.EventID })
	if !known {
		s.book.Pending = append(s.book.Pending, ev)
	}
}

// apply decides the pending events at the gate in their order.
func (s *stock) apply(ctx workflow.Context) {
	defer func() { s.loops-- }()
	for {
		if workflow.Await(ctx, func() bool { return s.book.Opened && len(s.book.Pending) > 0 }) != nil {
			return
		}
		ev := s.book.Pending[0]
		out, err := gateStep[activities.ApplyStockResult](ctx, "apply "+ev.Kind+" "+ev.EventID, stockActivities.ApplyStock,
			activities.ApplyStockInput{SKU: s.sku, Event: ev})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			workflow.GetLogger(ctx).Error("stock event cannot be applied", "sku", s.sku, "event", ev.EventID, "error", err)
			if workflow.Sleep(ctx, afterBug) != nil {
				return
			}
			continue
		}
		s.tell(ev, out)
		s.decided(ev, out)
	}
}

func (s *stock) decided(ev contract.StockEvent, out activities.ApplyStockResult) {
	s.book.Pending = s.book.Pending[1:]
	s.book.Events = append(s.book.Events, contract.BookEvent{
		EventID: ev.EventID, Kind: ev.Kind, Applied: out.Applied, Delta: out.Delta, Reason: out.Reason,
	})
	if over := len(s.book.Events) - keptEvents; over > 0 {
		s.book.Events = slices.Clone(s.book.Events[over:])
	}
	switch {
	case !out.Applied:
		s.book.Refused++
	case out.N <= s.book.DecidedN: // a repeat of an event that the book had forgotten
	case ev.Kind == contract.StockRestock:
		s.book.Received += out.Delta
	case ev.Kind == contract.StockReturn:
		s.book.Returned += out.Delta
	default:
		s.book.Corrected += out.Delta
	}
	s.book.DecidedN = max(s.book.DecidedN, out.N)
	s.book.Generation = max(s.book.Generation, out.Generation)
	if out.Applied && ev.Kind == contract.StockLevel {
		s.book.Level = max(s.book.Level, ev.Version)
	}
	s.dirty = s.dirty || out.Wake
	s.look = s.look || out.Rings || s.book.Alarm != nil
	s.show()
}

// drain hands out the outbox whenever somebody says that it has something due,
// and when the last drain said that it will have.
func (s *stock) drain(ctx workflow.Context) {
	defer func() { s.loops-- }()
	for {
		if workflow.Await(ctx, func() bool { return s.book.Opened && (s.dirty || s.next.due()) }) != nil {
			return
		}
		s.next.clear()
		s.dirty = false
		var report activities.DrainReport
		paused := s.book.Paused
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, drainOptions()), stockActivities.DrainOutbox,
			activities.DrainInput{SKU: s.sku, Version: s.book.Version, Paused: &paused}).Get(ctx, &report)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			workflow.GetLogger(ctx).Error("outbox not drained", "sku", s.sku, "error", err)
			s.next.set(ctx, "outbox is due", afterBug)
		case report.SettingsLost && s.restoreSettings(ctx) == nil:
			s.dirty = true
		case report.SettingsLost:
			s.next.set(ctx, "outbox is due", afterBug)
		case report.More:
			s.dirty = true
		case report.NextMillis > 0:
			s.next.set(ctx, "outbox is due", time.Duration(report.NextMillis)*time.Millisecond)
		}
	}
}

// drainOptions: an activity hands out for about a minute and beats by itself; a worker
// that died keeps the line waiting for seconds.
func drainOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "hand out what the entries have to learn",
	}
}

func (s *stock) show() {
	state, next := "open", "the next stock event"
	switch {
	case !s.book.Opened:
		state, next = "not opened", "a PUT that opens the SKU"
	case s.book.Paused:
		state = "paused"
	}
	if n := len(s.book.Pending); n > 0 {
		next = fmt.Sprintf("%d stock event(s) to be decided by the gate", n)
	}
	details(s.ctx,
		"State", state,
		"Alarm", s.alarmed(),
		"Lines", fmt.Sprintf("%s: received %d, returned %d, corrected %d, refused events %d", verbatim(s.sku), s.book.Received, s.book.Returned, s.book.Corrected, s.book.Refused),
		"Title", verbatim(s.book.About.Title),
		"Next", next,
	)
}

// Package launch starts, signals and updates the project's workflows: the one
// place that joins ids, task queues, priorities, reuse policies, summaries and
// search attributes, for the door and for activities alike.
package launch

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
)

// SKU and State are the two search attributes of every workflow.
var (
	SKU   = temporal.NewSearchAttributeKeyKeywordList(contract.SKUAttribute)
	State = temporal.NewSearchAttributeKeyKeyword(contract.StateAttribute)
)

// ErrNoOwner says that no open workflow has the id: it was never started, has
// closed, or closed while it was asked.
var ErrNoOwner = errors.New("no open workflow with this id")

// Launcher talks to Temporal for the door and for activities.
type Launcher struct{ c client.Client }

// New returns a Launcher over an open client.
func New(c client.Client) *Launcher { return &Launcher{c: c} }

// Started says what a start by id found.
type Started int

// Outcomes of a start: a new run, one that is open, one that had closed.
const (
	StartedNew Started = iota
	StartedOpen
	StartedClosed
)

func options(id string, priority int, state, summary string, skus ...string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                contract.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Priority:                                 temporal.Priority{PriorityKey: priority},
		StaticSummary:                            brief(summary),
		TypedSearchAttributes:                    temporal.NewSearchAttributes(SKU.ValueSet(skus), State.ValueSet(state)),
	}
}

// maxSummary is in bytes. A server may refuse a summary of more than 400, and counts
// its envelope and what encryption adds.
const maxSummary = 200

// brief cuts a summary between two characters.
func brief(summary string) string {
	const more = "…"
	if len(summary) <= maxSummary {
		return summary
	}
	end := maxSummary - len(more)
	for !utf8.RuneStart(summary[end]) {
		end--
	}
	return summary[:end] + more
}

// start starts a workflow unless one of its id exists, and says what it found.
func (l *Launcher) start(ctx context.Context, opts client.StartWorkflowOptions, workflow string, in any) (Started, error) {
	_, err := l.c.ExecuteWorkflow(ctx, opts, workflow, in)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return StartedNew, nil
	case !errors.As(err, &already):
		return 0, fmt.Errorf("start %s %s: %w", workflow, opts.ID, err)
	}
	d, err := l.c.DescribeWorkflow(ctx, opts.ID, already.RunId)
	if err != nil {
		return 0, fmt.Errorf("look up %s %s: %w", workflow, opts.ID, err)
	}
	if d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return StartedOpen, nil
	}
	return StartedClosed, nil
}

// Hold starts the workflow of a hold that the gate has just given.
func (l *Launcher) Hold(ctx context.Context, in contract.HoldInput) (Started, error) {
	skus := make([]string, len(in.Lines))
	summary := ""
	for i, line := range in.Lines {
		skus[i] = line.SKU
		if i > 0 {
			summary += ", "
		}
		summary += fmt.Sprintf("%d × %s", line.Quantity, line.SKU)
	}
	summary += " for " + in.Customer
	return l.start(ctx, options(in.HoldID, contract.PriorityUnit, string(contract.HoldHeld), summary, skus...), contract.HoldWorkflow, in)
}

// Entry starts the workflow of a waitlist entry.
func (l *Launcher) Entry(ctx context.Context, in contract.EntryInput) (Started, error) {
	summary := fmt.Sprintf("waits for %d × %s since %s", in.Quantity, in.SKU, in.JoinedAt.UTC().Format(time.RFC3339))
	return l.start(ctx, options(in.EntryID, contract.PriorityLine, string(contract.EntryWaiting), summary, in.SKU), contract.WaitlistEntryWorkflow, in)
}

func stockOptions(sku string) client.StartWorkflowOptions {
	opts := options(contract.StockWorkflowID(sku), contract.PriorityBook, "open", "the book of "+sku, sku)
	opts.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	opts.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	opts.WorkflowExecutionErrorWhenAlreadyStarted = false
	return opts
}

// Wake tells the SKU's Stock that its outbox has something due.
func (l *Launcher) Wake(ctx context.Context, sku string) error {
	return l.signalStock(ctx, sku, contract.SignalSettle, nil)
}

// StockEvent records a stock event in the SKU's book; it is applied there, once
// by its id, when the gate can.
func (l *Launcher) StockEvent(ctx context.Context, sku string, ev contract.StockEvent) error {
	return l.signalStock(ctx, sku, contract.SignalStockEvent, ev)
}

func (l *Launcher) signalStock(ctx context.Context, sku, signal string, arg any) error {
	opts := stockOptions(sku)
	_, err := l.c.SignalWithStartWorkflow(ctx, opts.ID, signal, arg, opts, contract.StockWorkflow, contract.StockInput{SKU: sku})
	if err != nil {
		return fmt.Errorf("signal %s to %s: %w", signal, opts.ID, err)
	}
	return nil
}

// Policy opens a SKU, or changes what is known of it or its policy.
func (l *Launcher) Policy(ctx context.Context, sku, updateID string, req contract.PolicyRequest) (contract.PolicyResult, error) {
	var out contract.PolicyResult
	err := l.updateWithStart(ctx, stockOptions(sku), contract.StockWorkflow, contract.StockInput{SKU: sku}, updateID, contract.UpdatePolicy, req, &out)
	return out, err
}

// Pause pauses or resumes a SKU.
func (l *Launcher) Pause(ctx context.Context, sku, updateID string, req contract.PauseRequest) (contract.PauseResult, error) {
	var out contract.PauseResult
	err := l.updateWithStart(ctx, stockOptions(sku), contract.StockWorkflow, contract.StockInput{SKU: sku}, updateID, contract.UpdatePause, req, &out)
	return out, err
}

// Decide gives money that met no live hold to its Payment and answers what
// became of it. A repeat finds the open Payment, or decides again by the gate's
// record.
func (l *Launcher) Decide(ctx context.Context, in contract.PaymentInput) (contract.PaymentDecision, error) {
	var out contract.PaymentDecision
	err := l.updateWithStart(ctx, paymentOptions(in), contract.PaymentWorkflow, in, "decide", contract.UpdateDecide, in, &out)
	return out, err
}

// Payment starts the Payment of money that met no live hold, without waiting
// for its decision. One that is open goes on.
func (l *Launcher) Payment(ctx context.Context, in contract.PaymentInput) error {
	if _, err := l.c.ExecuteWorkflow(ctx, paymentOptions(in), contract.PaymentWorkflow, in); err != nil {
		return fmt.Errorf("start %s: %w", in.PaymentID, err)
	}
	return nil
}

func paymentOptions(in contract.PaymentInput) client.StartWorkflowOptions {
	var skus []string
	if in.SKU != "" {
		skus = append(skus, in.SKU)
	}
	opts := options(in.PaymentID, contract.PriorityUnit, contract.PaymentDeciding, in.Cause+" payment of "+in.HoldID, skus...)
	opts.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	opts.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	opts.WorkflowExecutionErrorWhenAlreadyStarted = false
	return opts
}

// Event gives an event to its owner. One that has had it, and be it delivered
// since, keeps it: the same id is the same happening.
func (l *Launcher) Event(ctx context.Context, in contract.EventInput) error {
	opts := options(in.EventID, contract.PriorityNews, contract.EventSending, in.Type+" of "+in.Subject, in.SKUs...)
	opts.TaskQueue = contract.EventsTaskQueue
	_, err := l.c.ExecuteWorkflow(ctx, opts, contract.EventWorkflow, in)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("start %s: %w", in.EventID, err)
	}
	return nil
}

func (l *Launcher) updateWithStart(ctx context.Context, opts client.StartWorkflowOptions, workflow string, in any, updateID, update string, arg, out any) error {
	err := answered(ctx, out, func() (client.WorkflowUpdateHandle, error) {
		return l.c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: l.c.NewWithStartWorkflowOperation(opts, workflow, in),
			UpdateOptions: client.UpdateWorkflowOptions{
				UpdateID:     updateID,
				WorkflowID:   opts.ID,
				UpdateName:   update,
				Args:         []any{arg},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			},
		})
	})
	if err != nil {
		return fmt.Errorf("update %s of %s: %w", update, opts.ID, err)
	}
	return nil
}

// Confirm asks a Hold to become a sale and waits for the answer; ErrNoOwner
// when it has closed. The same update id gets the same answer.
func (l *Launcher) Confirm(ctx context.Context, holdID, updateID string, req contract.ConfirmRequest) (contract.ConfirmResult, error) {
	var out contract.ConfirmResult
	err := answered(ctx, &out, func() (client.WorkflowUpdateHandle, error) {
		return l.c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID:     updateID,
			WorkflowID:   holdID,
			UpdateName:   contract.UpdateConfirm,
			Args:         []any{req},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
	})
	return out, noOwner(err)
}

// RetryRefund has a Payment ask the provider once more. answered is false when the
// Payment has taken the word and the provider has not answered before ctx ended;
// ErrNoOwner when it has closed.
func (l *Launcher) RetryRefund(ctx context.Context, paymentID string, req contract.RefundRetry) (out contract.PaymentStatus, answered bool, err error) {
	h, err := l.c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   paymentID,
		UpdateName:   contract.UpdateRetryRefund,
		Args:         []any{req},
		WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		return out, false, noOwner(err)
	}
	err = h.Get(ctx, &out)
	if err != nil && ctx.Err() != nil {
		return out, false, nil
	}
	return out, err == nil, noOwner(err)
}

// notReadyPause is how long an update waits before it is asked again.
const notReadyPause = 20 * time.Millisecond

// answered asks an update until the workflow has taken it: a signal that comes
// in while the run completes makes the server answer "not ready", and the same
// update id may then be asked again.
func answered(ctx context.Context, out any, ask func() (client.WorkflowUpdateHandle, error)) error {
	for {
		h, err := ask()
		if err == nil {
			err = h.Get(ctx, out)
		}
		var notReady *serviceerror.WorkflowNotReady
		if !errors.As(err, &notReady) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(notReadyPause):
		}
	}
}

// Signal sends a signal to an open workflow; ErrNoOwner when there is none.
func (l *Launcher) Signal(ctx context.Context, workflowID, signal string, arg any) error {
	return noOwner(l.c.SignalWorkflow(ctx, workflowID, "", signal, arg))
}

func noOwner(err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return fmt.Errorf("%w: %w", ErrNoOwner, err)
	}
	return err
}

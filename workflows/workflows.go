// Package workflows holds the durable half of Holdfast: Hold, WaitlistEntry,
// Stock, Payment, Event, OptOut, Reconcile and ReconcileAll. A workflow function is thin: it builds a runner,
// which sets its handlers before it first yields and then runs. Nothing here
// does I/O or reads the configuration; settings travel in inputs.
package workflows

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
	"holdfast/launch"
)

// Registry is what workers, test environments and replayers have in common.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers every workflow by its name on the wire, and says what
// becomes of its open runs when a new version of the worker is made current. A
// run that ends within days stays with the version that began it. One that may
// live for months goes on with the new one, which the replay tests vouch for.
func Register(r Registry) {
	pinned, upgraded := workflow.VersioningBehaviorPinned, workflow.VersioningBehaviorAutoUpgrade
	for _, w := range []struct {
		name string
		run  any
		open workflow.VersioningBehavior
	}{
		{contract.HoldWorkflow, Hold, pinned},
		{contract.WaitlistEntryWorkflow, WaitlistEntry, upgraded},
		{contract.StockWorkflow, Stock, upgraded},
		{contract.PaymentWorkflow, Payment, pinned},
		{contract.ReconcileWorkflow, Reconcile, upgraded},
		{contract.ReconcileAllWorkflow, ReconcileAll, upgraded},
		{contract.EventWorkflow, Event, upgraded},
		{contract.OptOutWorkflow, OptOut, upgraded},
	} {
		r.RegisterWorkflowWithOptions(w.run, workflow.RegisterOptions{Name: w.name, VersioningBehavior: w.open})
	}
}

// gateStep runs one verb of the gate: as a local activity, which costs one event
// of history, and when that does not succeed in seconds as a remote one that is
// retried without limit. An outage of Redis so shows in the UI, as a pending
// activity with its failure. An error means that ctx was cancelled or that the
// verb can never succeed.
func gateStep[Out any](ctx workflow.Context, summary string, activity, in any) (Out, error) {
	out, later, err := gateAsk[Out](ctx, summary, activity, in)
	if later == nil {
		return out, err
	}
	err = later.Get(ctx, &out)
	return out, err
}

// gateAsk is a gateStep that does not wait for a gate that is closed or out of
// reach: later is then the answer to come.
func gateAsk[Out any](ctx workflow.Context, summary string, activity, in any) (out Out, later workflow.Future, err error) {
	err = workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, localGate(summary)), activity, in).Get(ctx, &out)
	if err == nil || ctx.Err() != nil || final(err) {
		return out, nil, err
	}
	return out, workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, remoteGate(summary)), activity, in), nil
}

// localGate is for a gate that answers: three tries, well within the timeout of
// a workflow task.
func localGate(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 5 * time.Second,
		StartToCloseTimeout:    2 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumAttempts: 3,
		},
		Summary: summary,
	}
}

// remoteGate is for a gate that does not: until it does. The longest pause is
// what a unit may wait after an outage.
func remoteGate(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second,
		},
		Summary: summary,
	}
}

func final(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable()
}

// timer is a named timer that can be set again. The zero timer is never due.
type timer struct {
	future workflow.Future
	stop   workflow.CancelFunc
}

// set starts the timer anew; a length of 0 or less is due at once.
func (t *timer) set(ctx workflow.Context, summary string, length time.Duration) {
	t.clear()
	ctx, t.stop = workflow.WithCancel(ctx)
	t.future = workflow.NewTimerWithOptions(ctx, max(0, length), workflow.TimerOptions{Summary: summary})
}

func (t *timer) clear() {
	if t.future != nil && !t.future.IsReady() {
		t.stop()
	}
	t.future = nil
}

func (t *timer) due() bool { return t.future != nil && t.future.IsReady() }

// setState writes the search attribute; each write costs the server one of its
// own.
func setState(ctx workflow.Context, state string) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, launch.State.ValueSet(state)); err != nil {
		workflow.GetLogger(ctx).Error("search attribute not written", "state", state, "error", err)
	}
}

// details writes the current details that operators read in the UI, as pairs of
// name and value; an empty value has no line. The UI reads them as Markdown:
// whatever comes from outside goes through verbatim.
func details(ctx workflow.Context, pairs ...string) {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			b.WriteString("- **" + pairs[i] + "**: " + pairs[i+1] + "\n")
		}
	}
	workflow.SetCurrentDetails(ctx, b.String())
}

// verbatim keeps Markdown off a text: two hyphens of an id would become a dash,
// and a shopper's name could be a link. An empty text stays empty.
func verbatim(s string) string {
	s = strings.Join(strings.Fields(s), " ") // a code span has one line
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " " // keeps a backtick at either end apart from the fence
	}
	return fence + s + fence
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func seconds(s int64) time.Duration { return time.Duration(s) * time.Second }

package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/redis"
)

// The pass over a SKU that is open. It reads while the SKU moves, so that what it
// sees may be over: each repair says what was seen, and the gate decides.

// PassGate is the gate as a pass uses it.
type PassGate interface {
	CheckGate
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	Overdue(ctx context.Context, c redis.Counters) (time.Duration, error)
	ReadSurvey(ctx context.Context, sku string) (redis.Survey, error)
	CompareCounters(ctx context.Context, sku string) (redis.Statement, bool, error)
	RepairGone(ctx context.Context, sku, id string, version int64) (redis.Base, error)
	RepairHold(ctx context.Context, sku string, h redis.LostHold) (redis.Base, error)
	RepairEntry(ctx context.Context, sku string, e redis.LostEntry) (redis.Base, error)
	RepairPlace(ctx context.Context, sku, id string, untold bool) (redis.Base, error)
	RepairCount(ctx context.Context, sku, part string, delta, mended int64, why string) (redis.Base, error)
}

// Owners answers what Temporal itself knows of workflows; client.Client does.
// Describing is never behind, listing is.
type Owners interface {
	Visibility
	Histories
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Decider gives money without an owner to its Payment and waits for what it decides.
type Decider interface {
	Decide(ctx context.Context, in contract.PaymentInput) (contract.PaymentDecision, error)
}

// Passes are the activities that look through open SKUs.
type Passes struct {
	Guard
	Gate     PassGate
	Books    Books
	Owners   Owners
	Payments Decider
	SKUs     SKUMap
	Starter  PassStarter
	Payloads *codec.Codec
	Lease    time.Duration
	// Grace is how long a Hold may keep its unit past its deadline.
	Grace time.Duration
	// Closed is the gate of the SKUs that the server with this replication id has
	// closed, and Epochs keeps the epoch of one that is opened after a rebuild.
	Closed func(replID string) RebuildGate
	Epochs Epochs
	// Drift is told by how many units a SKU's gate and workflows were apart; nil for
	// nobody.
	Drift func(sku string, units int64)
}

const (
	leastBrake  = 3               // owners that may be missing,
	brakeShare  = 20              // or one in so many
	overdueHold = 5 * time.Minute // past deadline and grace, of a hold whose owner lives
	youngSlack  = time.Minute     // and a lease: what may still be on its way
	askAtOnce   = 16              // questions to Temporal side by side
)

// LookThrough looks through one SKU and mends what it finds. Of one that is closed
// it only says so. Repeated after a crash it finds what is left.
func (a *Passes) LookThrough(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	defer beating(ctx)()
	p := &pass{Passes: a, in: in, settled: map[string]bool{}, report: contract.ReconcileReport{SKU: in.SKU, DryRun: in.DryRun, Checked: time.Now().UTC()}}
	err := p.run(ctx)
	var closed *redis.ClosedError
	if errors.As(err, &closed) {
		p.report.Closed, err = true, nil
	}
	if err != nil {
		return p.report, checkError("look through", in.SKU, err)
	}
	if a.Drift != nil {
		a.Drift(in.SKU, p.report.DriftUnits)
	}
	for _, alarm := range p.report.Alarms {
		activity.GetLogger(ctx).Error("reconcile: a person must look", "sku", in.SKU, "alarm", alarm)
	}
	return p.report, nil
}

type pass struct {
	*Passes
	in     contract.ReconcileInput
	report contract.ReconcileReport
	now    time.Time // by the gate's clock
	lost   []lostRecord
	// settled are the payments that this pass has looked after.
	settled map[string]bool
	// waits is true when a record is missing that cannot be mended yet: its units
	// still stand in the counters, and must.
	waits bool
}

func (p *pass) run(ctx context.Context) error {
	counters, _, err := p.Gate.Snapshot(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	p.now = counters.AsOf
	p.tripwire(counters)
	survey, err := p.Gate.ReadSurvey(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	for _, why := range survey.Unreadable {
		p.alarm("%s", why)
	}
	if err := p.owners(ctx, survey); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		p.leftMoney,
		p.restore,
		func(ctx context.Context) error { return p.places(ctx, survey) },
		func(ctx context.Context) error { return p.untold(ctx, survey) },
		p.count,
		p.book,
		p.wakeUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) alarm(format string, args ...any) {
	if len(p.report.Alarms) < maxDifferences {
		p.report.Alarms = append(p.report.Alarms, fmt.Sprintf(format, args...))
	}
}

// mend notes a difference and mends it, unless nothing is to be changed. Only what
// the gate found as it was seen counts: what has moved on by itself was none.
func (p *pass) mend(ctx context.Context, what string, repair func(context.Context) (redis.Base, error)) error {
	base := redis.Base{Verdict: redis.OK}
	if !p.in.DryRun {
		var err error
		if base, err = repair(ctx); err != nil {
			return err
		}
		p.wake(ctx, p.in.SKU, base)
	}
	if base.Verdict != redis.OK {
		p.waits = p.waits || base.Verdict == redis.Young
		return nil
	}
	p.report.Found++
	if !p.in.DryRun {
		p.report.Repaired++
		activity.GetLogger(ctx).Warn("reconcile: repaired", "sku", p.in.SKU, "what", what)
	}
	if len(p.report.Differences) < maxDifferences {
		p.report.Differences = append(p.report.Differences, what)
	}
	return nil
}

// young says that something which came at that time may still be on its way.
func (p *pass) young(at time.Time) bool { return p.now.Sub(at) < p.Lease+youngSlack }

// tripwire is what must never be, whatever its cause.
func (p *pass) tripwire(c redis.Counters) {
	switch {
	case c.Shortfall > 0:
		p.alarm("%d units more are promised than there are", c.Shortfall)
	case c.OnHand < 0 || c.Held < 0 || c.Offered < 0 || c.Sold < 0 || c.Returned < 0:
		p.alarm("a counter is negative: on_hand %d, held %d, offered %d, sold %d, returned %d", c.OnHand, c.Held, c.Offered, c.Sold, c.Returned)
	}
}

// places puts right what points at records.
func (p *pass) places(ctx context.Context, survey redis.Survey) error {
	slices.Sort(survey.Places)
	for _, id := range slices.Compact(survey.Places) {
		if p.in.DryRun {
			continue // a script alone can tell what is wrong from what has just moved
		}
		err := p.mend(ctx, id+" had a place that was not its own, or none", func(ctx context.Context) (redis.Base, error) {
			return p.Gate.RepairPlace(ctx, p.in.SKU, id, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// untold looks for offers whose entry does not know of them, though nothing is left
// that would tell it.
func (p *pass) untold(ctx context.Context, survey redis.Survey) error {
	for _, hold := range slices.Sorted(maps.Keys(survey.Untold)) {
		var entry contract.EntryStatus
		err := p.Books.Status(ctx, survey.Untold[hold], &entry)
		var gone *serviceerror.NotFound
		switch {
		case errors.As(err, &gone): // found by its owner
			continue
		case err != nil:
			return err
		case entry.HoldID == hold:
			continue
		}
		err = p.mend(ctx, hold+" is an offer that "+survey.Untold[hold]+" did not know of", func(ctx context.Context) (redis.Base, error) {
			return p.Gate.RepairPlace(ctx, p.in.SKU, hold, true)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wakeUp has the outbox drained when something in it waits, and the line served when
// units do.
func (p *pass) wakeUp(ctx context.Context) error {
	c, _, err := p.Gate.Snapshot(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	overdue, err := p.Gate.Overdue(ctx, c)
	if err != nil {
		return err
	}
	idle := !c.Paused && !c.Ended && c.Available > 0 && c.Waiting > 0
	p.wake(ctx, p.in.SKU, redis.Base{Wake: !p.in.DryRun && (overdue > 0 || idle)})
	return nil
}

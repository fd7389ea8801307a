package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/redis"
)

// The pass over a SKU that is open. It reads page by page while the SKU moves, so that
// what it sees may be over: each repair says what was seen, and the gate decides.

// PassGate is the gate as a pass uses it.
type PassGate interface {
	CheckGate
	AuditGate
	InspectRecords(ctx context.Context, sku string, ids []string) (missing []string, err error)
	Tripwire(ctx context.Context, sku string) (redis.Counters, []contract.Ring, error)
	Overdue(ctx context.Context, c redis.Counters) (time.Duration, error)
	Records(ctx context.Context, sku string) (int64, error)
	SurveyPage(ctx context.Context, sku string, at redis.SurveyAt) (redis.Survey, redis.SurveyAt, error)
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
	// Patience is how long one SKU of all is waited for.
	Patience time.Duration
	Lease    time.Duration
	// Grace is how long a Hold may keep its unit past its deadline.
	Grace time.Duration
	// Closed is the gate of the SKUs that the server with this replication id has
	// closed. Epochs tells a book the epoch of one that is opened after a rebuild, and
	// how its tripwire stands.
	Closed func(replID string) RebuildGate
	Epochs Epochs
	// Drift is told by how many units a SKU's gate and workflows were apart; nil for
	// nobody.
	Drift func(sku string, units int64)
	// LedgerFault is told whether a SKU's ledger does not add up; nil for nobody.
	LedgerFault func(sku string, has bool)
	// AuditAge is how old a sale must be before the book counts it as audited: more
	// than Temporal's lists may be behind.
	AuditAge time.Duration
	// Names are what the gate keeps of the names by which the shop asks for a hold.
	Names func(s contract.HoldStatus) []string

	looking atomic.Int32 // passes under way
	rung    rung
}

const (
	leastBrake  = 3               // owners that may be missing,
	brakeShare  = 20              // or one in so many
	overdueHold = 5 * time.Minute // past deadline and grace, of a hold whose owner lives
	youngSlack  = time.Minute     // and a lease: what may still be on its way
)

// LookThrough looks through one SKU and mends what it finds. Of one that is closed it
// only says so. Tried again after a crash it goes on where its last heartbeat was; what
// was mended since then is mended, and only missing in the report.
func (a *Passes) LookThrough(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	a.looking.Add(1)
	defer a.looking.Add(-1)
	p := newPass(ctx, a, in)
	defer beatingWith(ctx, func() { activity.RecordHeartbeat(ctx, p.saved.Load()) })()
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
	if a.LedgerFault != nil {
		a.LedgerFault(in.SKU, p.ledger != "")
	}
	if a.rung.worthALine(in.SKU, p.report.Alarms) {
		for _, alarm := range p.report.Alarms {
			activity.GetLogger(ctx).Error("reconcile: a person must look", "sku", in.SKU, "alarm", alarm)
		}
	}
	return p.report, nil
}

// passAt is how far a pass has got. It stands in the details of its heartbeats.
type passAt struct {
	Report contract.ReconcileReport `json:"report"`
	Stage  int                      `json:"stage"`
	Survey redis.SurveyAt           `json:"survey"`
	Page   []byte                   `json:"page,omitempty"` // of what the stage lists, of workflows that did not end by themselves
	// Waits is true when a record is missing that cannot be mended yet: its units still
	// stand in the counters, and must.
	Waits bool `json:"waits,omitempty"`
}

type pass struct {
	*Passes
	in     contract.ReconcileInput
	report contract.ReconcileReport
	at     passAt // without its report
	saved  atomic.Pointer[passAt]
	now    time.Time // by the gate's clock
	ledger string    // what the last statement found wrong in it
	ours   bool      // Temporal has the book of this SKU
	lost   bool      // a record is missing that may be on its way
	// compared: the counters were held against the records; agree: and are what those add up to
	compared, agree bool
	open            openSet
	gone            []gone        // owners that are missing, until it is known whether so many may be
	fresh           []redis.Owned // that the list has not got and that may be on their way
	most            int           // of either: more are too many in any case
	// settled are the payments that this pass has looked after.
	settled map[string]bool
	pace    pace
}

func newPass(ctx context.Context, a *Passes, in contract.ReconcileInput) *pass {
	p := &pass{
		Passes: a, in: in, settled: map[string]bool{}, open: newOpenSet(), pace: pace{looking: &a.looking},
		report: contract.ReconcileReport{SKU: in.SKU, DryRun: in.DryRun, Checked: time.Now().UTC()},
	}
	var last passAt
	// A dry run mends nothing, so that it would find everything twice.
	if !in.DryRun && activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &last) == nil && last.Report.SKU == in.SKU {
		p.report, p.at = last.Report, last
	}
	p.keep()
	return p
}

// keep makes here the place where another try goes on.
func (p *pass) keep() {
	at := p.at
	at.Report = p.report
	if at.Stage == 0 && !p.atOnce() {
		at.Survey = redis.SurveyAt{} // who is missing is only known when all were looked for
	}
	p.saved.Store(&at)
}

// save keeps it and says so.
func (p *pass) save(ctx context.Context) {
	p.keep()
	activity.RecordHeartbeat(ctx, p.saved.Load())
}

// run goes through the stages from the one that a try before has come to.
func (p *pass) run(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	stages := []func(context.Context) error{p.owners, p.leftMoney, p.leftPayments, p.books, p.audit, p.wakeUp}
	for ; p.at.Stage < len(stages); p.at.Stage++ {
		p.save(ctx)
		if err := stages[p.at.Stage](ctx); err != nil {
			return err
		}
	}
	return nil
}

// look reads the counters and the gate's clock. A SKU that has been closed meanwhile
// waits for this pass to end, so it asks with each page.
func (p *pass) look(ctx context.Context) error {
	c, rings, err := p.Gate.Tripwire(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	first := p.now.IsZero()
	p.now = c.AsOf
	if first {
		return p.rang(ctx, rings)
	}
	return nil
}

func (p *pass) alarm(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(p.report.Alarms) < maxDifferences && !slices.Contains(p.report.Alarms, text) {
		p.report.Alarms = append(p.report.Alarms, text)
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
		p.at.Waits = p.at.Waits || base.Verdict == redis.Young
		return nil
	}
	p.report.Found++
	if !p.in.DryRun {
		p.report.Repaired++
	}
	if len(p.report.Differences) < maxDifferences { // the ledger has all
		p.report.Differences = append(p.report.Differences, what)
		if !p.in.DryRun {
			activity.GetLogger(ctx).Warn("reconcile: repaired", "sku", p.in.SKU, "what", what)
		}
	}
	return nil
}

// young says that something which came at that time may still be on its way.
func (p *pass) young(at time.Time) bool { return p.now.Sub(at) < p.Lease+youngSlack }

// wakeUp has the outbox drained when something in it waits, and the line served when
// units do. It is the last look, and says how the tripwire stands.
func (p *pass) wakeUp(ctx context.Context) error {
	c, rings, err := p.Gate.Tripwire(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	overdue, err := p.Gate.Overdue(ctx, c)
	if err != nil {
		return err
	}
	idle := !c.Paused && !c.Ended && c.Available > 0 && c.Waiting > 0
	p.wake(ctx, p.in.SKU, redis.Base{Wake: !p.in.DryRun && (overdue > 0 || idle)})
	return p.endOfAlarm(ctx, c, rings)
}

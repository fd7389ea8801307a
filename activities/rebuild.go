package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// Rebuilding a SKU whose gate is closed and whose records, counters or places are
// not what its workflows and its book say: Redis came back as it was some time ago or
// empty, or a key of it is gone. Nothing moves meanwhile. Gate and workflows are merged:
// where they differ the later state wins, and a sale stays one.

// RebuildGate is the gate of one rebuild.
type RebuildGate interface {
	Inspect(ctx context.Context, sku string) (redis.Inspection, error)
	InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]redis.StockOutcome, error)
	ReadRecords(ctx context.Context, sku string) (redis.Records, error)
	ReadSurvey(ctx context.Context, sku string) (redis.Survey, error)
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
	Settings(ctx context.Context, req redis.SettingsRequest) (redis.Base, error)
	RepairGone(ctx context.Context, sku, id string, version int64) (redis.Base, error)
	RepairEntry(ctx context.Context, sku string, e redis.LostEntry) (redis.Base, error)
	RepairPlace(ctx context.Context, sku, id string, untold bool) (redis.Base, error)
	RebuildBegin(ctx context.Context, sku string, b redis.RebuildStart) (time.Time, error)
	RebuildHold(ctx context.Context, sku string, h redis.RebuiltHold) (redis.Base, error)
	RebuildClaims(ctx context.Context, sku string, holds map[string]redis.Hold, entries map[string]redis.Entry) error
	RebuildOpen(ctx context.Context, sku string, t redis.Totals) (redis.Base, error)
	NoteHold(ctx context.Context, holdID string, prints ...string) error
	RestorePayment(ctx context.Context, holdID, paymentRef string) error
	SettlePayment(ctx context.Context, holdID, paymentRef, reference string) (redis.PaymentOwner, error)
}

// Epochs keeps the epoch of a SKU in its book.
type Epochs interface {
	Signal(ctx context.Context, workflowID, signal string, arg any) error
}

// Rebuild merges and opens one closed SKU. Every step can be repeated: what is
// merged is no difference any more, and the sales that it has put in are found by
// the records. A rebuild that is begun anew shuts out the one before, and one that meets
// another server, or one that was emptied meanwhile, writes nothing and is begun anew.
func (a *Passes) Rebuild(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	defer beating(ctx)()
	r := &rebuild{Passes: a, sku: in.SKU, agree: in.Agree, report: contract.ReconcileReport{SKU: in.SKU, Closed: true, Checked: time.Now().UTC()}}
	found, err := a.Gate.Inspect(ctx, in.SKU)
	if err != nil {
		return r.report, checkError("inspect", in.SKU, err)
	}
	r.found, r.gate = found, a.Closed(found.ReplID)
	err = r.run(ctx)
	if errors.Is(err, redis.ErrOpen) { // who was before has come to the end
		return contract.ReconcileReport{SKU: in.SKU, Opened: true, Checked: r.report.Checked}, nil
	}
	if err != nil {
		return r.report, checkError("rebuild", in.SKU, err)
	}
	if r.report.Opened {
		a.wake(ctx, in.SKU, redis.Base{Wake: true})
	}
	return r.report, nil
}

type rebuild struct {
	*Passes
	sku     string
	agree   bool
	gate    RebuildGate
	found   redis.Inspection
	report  contract.ReconcileReport
	book    contract.StockBook
	came    bookTotals
	decided int64 // number of the last event that the gate has decided
	redis.Records
	gen      int64
	until    time.Time           // what the counters have counted; zero for nothing
	refunded map[string][]string // payments that go back, by hold
	missing  []gone              // owners that Temporal does not know
	asking   []redis.RebuiltHold // walk-ins' holds that their open workflows have yet to adopt
}

func (r *rebuild) differ(format string, args ...any) {
	r.report.Found++
	if len(r.report.Differences) < maxDifferences {
		r.report.Differences = append(r.report.Differences, fmt.Sprintf(format, args...))
	}
}

// stays says why the SKU stays closed.
func (r *rebuild) stays(format string, args ...any) error {
	r.report.Alarms = append(r.report.Alarms, "it stays closed: "+fmt.Sprintf(format, args...))
	return nil
}

func (r *rebuild) run(ctx context.Context) error {
	err := r.Books.Status(ctx, contract.StockWorkflowID(r.sku), &r.book)
	switch {
	case err != nil && !errors.Is(err, launch.ErrNoOwner):
		return err
	case !r.book.Opened:
		return r.stays("Temporal has no book of it")
	case r.found.ReplID == "":
		return r.stays("without the fence nobody can tell one Redis from another")
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if r.Records, err = r.gate.ReadRecords(ctx, r.sku); err != nil {
		return err
	}
	if len(r.Unreadable) > 0 {
		return r.stays("%s", strings.Join(r.Unreadable, "; "))
	}
	r.gen = max(r.Generation, r.book.Generation)
	for _, step := range []func(context.Context) error{r.refunds, r.holds, r.entries, r.closedHolds, r.sales, r.endings, r.marks} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if brake := max(leastBrake, (len(r.Holds)+len(r.Entries))/brakeShare); len(r.missing) > brake && !r.agree {
		r.report.Braked, r.report.Missing = true, len(r.missing)
		return r.stays("Temporal does not know the workflows of %d live records: if they are gone, run: holdfast reconcile %s --agree", len(r.missing), r.sku)
	}
	for _, g := range r.missing {
		r.differ("%s was live in the gate, and Temporal does not know its workflow", g.id)
		if _, err := r.gate.RepairGone(ctx, r.sku, g.id, g.owned.Version); err != nil {
			return err
		}
	}
	return r.open(ctx)
}

// begin makes the SKU this rebuild's. What the shop says of it stands in the stock hash
// before anybody can buy by it.
func (r *rebuild) begin(ctx context.Context) error {
	ids := make([]string, len(r.book.Pending))
	for i, ev := range r.book.Pending {
		ids[i] = ev.EventID
	}
	outcomes, err := eventOutcomes(ctx, r.gate, r.sku, ids)
	if err != nil {
		return err
	}
	r.came, r.decided = totalsOf(r.book, outcomes), r.book.DecidedN
	for _, out := range outcomes {
		r.decided = max(r.decided, out.N)
	}
	if r.found.Missing {
		r.differ("Redis has lost its stock")
	}
	r.until, err = r.gate.RebuildBegin(ctx, r.sku, redis.RebuildStart{
		Audited: r.book.Audit.Until, Generation: r.book.Generation, Returned: r.came.returned,
	})
	if err != nil {
		return err
	}
	_, err = r.gate.Settings(ctx, redis.SettingsRequest{
		SKU: r.sku, About: &r.book.About, Policy: &r.book.Policy, Version: r.book.Version, Paused: &r.book.Paused, Actor: redis.ActorReconcile,
	})
	return err
}

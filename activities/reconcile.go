package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	checkBatch     = 200 // events compared in one call
	maxDifferences = 50  // listed in a report; more only say the same again
	checkAtOnce    = 32  // questions side by side while a SKU is closed
	mostLate       = 16  // answers that may be late in one comparison, two of each workflow
)

// CheckGate is the gate as it is read while it is closed.
type CheckGate interface {
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	Moved(ctx context.Context, sku string, since redis.Inspection) (bool, error)
	Inspect(ctx context.Context, sku string) (redis.Inspection, error)
	InspectHolds(ctx context.Context, sku string, ids []string) (map[string]redis.Hold, error)
	InspectEntries(ctx context.Context, sku string, ids []string) (map[string]redis.Entry, error)
	InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]redis.StockOutcome, error)
	Renew(ctx context.Context, sku, replID string, holdIDs []string) (redis.Base, error)
	Open(ctx context.Context, req redis.OpenRequest) (redis.Base, error)
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
}

// Books answers a workflow's query status.
type Books interface {
	Status(ctx context.Context, workflowID string, out any) error
}

// Visibility lists workflows; client.Client is one.
type Visibility interface {
	ListWorkflow(ctx context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
}

// Reconciles are the activities of Reconcile.
type Reconciles struct {
	Guard
	Gate      CheckGate
	Books     Books
	Workflows Visibility
}

// CheckAndOpen compares a closed SKU with its book and its open workflows, and
// opens it when nothing was lost. Otherwise it stays closed and the report
// says why. One that is open, because who asked first has had it checked, is only
// reported as that: while it moves, a comparison says nothing.
func (a *Reconciles) CheckAndOpen(ctx context.Context, in SKURef) (contract.ReconcileReport, error) {
	defer beating(ctx)()
	for {
		report, moved, err := a.checkOnce(ctx, in.SKU)
		if err != nil || !moved {
			return report, err
		}
	}
}

// IsOpen says whether the gate of a SKU is open. ErrUnavailable when it does not answer.
func (a *Reconciles) IsOpen(ctx context.Context, in SKURef) (bool, error) {
	return isOpen(ctx, a.Gate, in.SKU)
}

// checkOnce says that the SKU has moved meanwhile when that is so: it was opened, or its
// server has changed, and what was found is nothing to go by.
func (a *Reconciles) checkOnce(ctx context.Context, sku string) (report contract.ReconcileReport, moved bool, err error) {
	report = contract.ReconcileReport{SKU: sku, Checked: time.Now().UTC()}
	if report.Opened, err = isOpen(ctx, a.Gate, sku); err != nil || report.Opened {
		return report, false, err
	}
	found, err := a.Gate.Inspect(ctx, sku)
	if err != nil {
		return report, false, checkError("inspect", sku, err)
	}
	c := check{Reconciles: a, sku: sku}
	ours, err := c.compare(ctx, found)
	if err != nil {
		return report, false, checkError("compare", sku, err)
	}
	if moved, err = a.Gate.Moved(ctx, sku, found); err != nil || moved {
		return report, moved, err
	}
	report.Checked = time.Now().UTC()
	report.Differences, report.Alarms = c.differences, c.alarms
	report.Rebuildable = c.known && (!found.Missing || found.ReplID != "")
	if !ours || len(c.differences) > 0 {
		return report, false, nil
	}
	if _, err := a.Gate.RegisterSKU(ctx, sku); err != nil {
		return report, false, checkError("register", sku, err)
	}
	base, err := a.Gate.Renew(ctx, sku, found.ReplID, c.asking)
	if err != nil {
		return report, false, checkError("renew the leases of", sku, err)
	}
	if base.Verdict == redis.Moved {
		return report, true, nil
	}
	base, err = a.Gate.Open(ctx, redis.OpenRequest{SKU: sku, ReplID: found.ReplID, Epoch: found.Counters.Epoch})
	if err != nil {
		return report, false, checkError("open", sku, err)
	}
	if base.Verdict == redis.Moved {
		return report, true, nil
	}
	report.Opened = true
	a.wake(ctx, sku, redis.Base{Wake: true})
	return report, false, nil
}

// isOpen asks the gate itself: more than another server shuts a SKU.
func isOpen(ctx context.Context, gate CheckGate, sku string) (bool, error) {
	_, _, err := gate.Snapshot(ctx, sku)
	var shut *redis.ClosedError
	switch {
	case errors.As(err, &shut):
		return false, nil
	case err != nil:
		return false, checkError("look at", sku, err)
	}
	return true, nil
}

func checkError(what, sku string, err error) error {
	return temporal.NewApplicationErrorWithOptions(what+" "+sku+": "+err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
}

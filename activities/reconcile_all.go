package activities

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
)

const passesAtOnce = 4 // SKUs looked through side by side: the others' shoppers come first

// PassStarter has one SKU looked through and waits for the report.
type PassStarter interface {
	Pass(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error)
}

// LookThroughAll has every SKU looked through by its own Reconcile. One that fails, or
// that takes longer than Patience, holds up no other: it goes on, and the next run waits
// for it again. Payments of no SKU are looked after here.
func (a *Passes) LookThroughAll(ctx context.Context, in contract.ReconcileAllInput) (contract.ReconcileAllReport, error) {
	defer beating(ctx)()
	var report contract.ReconcileAllReport
	skus, err := a.everySKU(ctx)
	if err != nil {
		return report, checkError("list", "all SKUs", err)
	}
	report.SKUs = len(skus)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(passesAtOnce)
	for _, sku := range skus {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			patient, cancel := context.WithTimeout(ctx, a.Patience)
			defer cancel()
			one, err := a.Starter.Pass(patient, contract.ReconcileInput{SKU: sku, ReopenSeconds: a.ReopenSeconds, Pass: true, Since: in.Since})
			mu.Lock()
			defer mu.Unlock()
			report.Found += one.Found
			report.Repaired += one.Repaired
			report.Alarms += len(one.Alarms)
			if err != nil {
				activity.GetLogger(ctx).Error("reconcile: a SKU was not looked through", "sku", sku, "error", err)
				if len(report.Failed) < maxDifferences {
					report.Failed = append(report.Failed, sku)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return report, fmt.Errorf("look through all SKUs: %w", err)
	}
	money, err := a.leftWithoutSKU(ctx, in.Since)
	report.Found += money.Found
	report.Repaired += money.Repaired
	report.Alarms += len(money.Alarms)
	if a.rung.worthALine("", money.Alarms) {
		activity.GetLogger(ctx).Error("reconcile: a person must look", "alarms", money.Alarms)
	}
	if err != nil {
		activity.GetLogger(ctx).Error("reconcile: payments of no SKU were not looked through", "error", err)
		report.Failed = append(report.Failed, "payments of no SKU")
	}
	return report, nil
}

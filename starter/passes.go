package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/contract"
)

const (
	reportsMost = 200 // that one look reads: all that are alarmed first
	rebuiltMost = 3   // SKUs that were rebuilt and are told one by one
)

// reportCache keeps the reports of the passes that were looked at last: a pass that has
// closed says the same for ever.
type reportCache struct {
	mu    sync.Mutex
	byRun map[string]contract.ReconcileReport
}

// reportOf is the report of a pass that has closed with one.
func (d *Door) reportOf(ctx context.Context, run PassRun) (report contract.ReconcileReport, err error) {
	d.reports.mu.Lock()
	report, ok := d.reports.byRun[run.RunID]
	d.reports.mu.Unlock()
	if ok {
		return report, nil
	}
	if err := d.launcher.Result(ctx, contract.ReconcileWorkflowID(run.SKU), run.RunID, &report); err != nil {
		return report, fmt.Errorf("report of a pass over %s: %w", run.SKU, err)
	}
	d.reports.mu.Lock()
	defer d.reports.mu.Unlock()
	if d.reports.byRun == nil {
		d.reports.byRun = map[string]contract.ReconcileReport{}
	}
	d.reports.byRun[run.RunID] = report
	return report, nil
}

// keep forgets the reports of all other runs.
func (c *reportCache) keep(runs []PassRun) {
	wanted := map[string]bool{}
	for _, run := range runs {
		wanted[run.RunID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.byRun {
		if !wanted[id] {
			delete(c.byRun, id)
		}
	}
}

// lookAtPasses reads the last report of each SKU, and those of the rebuilds of the last
// hour.
func (d *Door) lookAtPasses(ctx context.Context) ([]lookView, error) {
	var runs, long []PassRun
	group, lists := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		runs, err = d.directory.Passes(lists, "", time.Now().Add(-passOverdue), 0)
		return err
	})
	group.Go(func() (err error) { // the check of a closed gate waits until leases have ended
		long, err = d.directory.Passes(lists, "", time.Now().Add(-rebuiltFor), d.reopenWait())
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var looks []lookView
	overdue := len(runs) == 0
	if overdue { // what the last ones have said is true all the same
		var err error
		if runs, err = d.directory.Passes(ctx, "", time.Now().Add(-rebuiltFor), 0); err != nil {
			return nil, err
		}
	}
	if overdue && time.Since(d.began) > passOverdue {
		looks = append(looks, lookView{
			Kind: contract.LookNoPass, Grave: true,
			Says: fmt.Sprintf("no pass has ended for %s: what gate and workflows differ in is neither found nor mended", passOverdue),
			Do:   "see whether a worker runs, and whether the Schedule " + contract.ReconcileSchedule + " is paused in Temporal",
		})
	}
	last := latest(runs)
	long = slices.DeleteFunc(latest(long), func(run PassRun) bool { return !run.Completed })
	wanted := append(slices.Clone(long), last...)
	told, err := d.readReports(ctx, wanted)
	if err != nil {
		return nil, err
	}
	d.reports.keep(wanted)
	for _, run := range last {
		if !run.Completed {
			looks = append(looks, lookView{
				Kind: contract.LookPassFailed, SKU: run.SKU, Says: "its last pass, which ended at " + stamp(run.ClosedAt) + ", has failed",
				Do: "see the workflow " + contract.ReconcileWorkflowID(run.SKU) + " in Temporal and the log of the worker",
			})
		} else if report, ok := told[run.RunID]; ok {
			looks = append(looks, lookAtReport(run, report)...)
		}
	}
	return append(looks, lookAtRebuilds(long, told)...), nil
}

// lookAtRebuilds tells of each SKU that was rebuilt, or when Redis has lost many of them
// together.
func lookAtRebuilds(long []PassRun, told map[string]contract.ReconcileReport) (looks []lookView) {
	for _, run := range long {
		report, ok := told[run.RunID]
		if !ok || !report.Opened || len(report.Differences) == 0 {
			continue
		}
		looks = append(looks, lookView{
			Kind: contract.LookRebuilt, SKU: run.SKU,
			Says: fmt.Sprintf("was rebuilt at %s, for Redis had lost data: %d differences, the first: %s", stamp(run.ClosedAt), max(report.Found, len(report.Differences)), report.Differences[0]),
			Do:   "find out why Redis lost it; the workflow " + contract.ReconcileWorkflowID(run.SKU) + " of that time has the report",
		})
	}
	if len(looks) > rebuiltMost {
		return []lookView{{
			Kind: contract.LookRebuilt,
			Says: fmt.Sprintf("%d SKUs were rebuilt in the last hour, for Redis had lost data; one of them: %s %s", len(looks), looks[0].SKU, looks[0].Says),
			Do:   "find out why Redis lost it; the workflows " + contract.ReconcileWorkflowID("SKU") + " of that time have the reports",
		}}
	}
	return looks
}

// latest are the last runs of each SKU, those with something to tell first.
func latest(runs []PassRun) (last []PassRun) {
	seen := map[string]bool{"": true}
	for _, run := range runs {
		if !seen[run.SKU] {
			seen[run.SKU] = true
			last = append(last, run)
		}
	}
	slices.SortStableFunc(last, func(a, b PassRun) int {
		switch aOpen, bOpen := a.State == passOpen, b.State == passOpen; {
		case aOpen == bOpen:
			return strings.Compare(a.SKU, b.SKU)
		case bOpen:
			return -1
		}
		return 1
	})
	return last
}

// passOpen is the state of a pass that met an open gate, or opened it, and has no alarm.
const passOpen = "open"

// readReports reads the reports of passes by their runs: of alarmed ones all, and of the
// others as many as there are time and room for.
func (d *Door) readReports(ctx context.Context, runs []PassRun) (map[string]contract.ReconcileReport, error) {
	told := map[string]contract.ReconcileReport{}
	var mu sync.Mutex
	group, read := errgroup.WithContext(ctx)
	group.SetLimit(listReaders)
	room := reportsMost
	for _, alarmed := range []bool{true, false} {
		for _, run := range runs {
			if !run.Completed || alarmed == (run.State == passOpen) {
				continue
			}
			if room--; room < 0 && !alarmed {
				break
			}
			group.Go(func() error {
				report, err := d.reportOf(read, run)
				switch {
				case err != nil && alarmed:
					return err
				case err != nil:
					d.log.Warn("the report of a pass was not read", "sku", run.SKU, "error", err)
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				told[run.RunID] = report
				return nil
			})
		}
	}
	return told, group.Wait()
}

// lookAtReport is what the last report of a SKU asks of a person. A shortfall and its
// like are the tripwire's to tell.
func lookAtReport(run PassRun, report contract.ReconcileReport) (looks []lookView) {
	alarms := slices.DeleteFunc(slices.Clone(report.Alarms), toldByTripwire)
	for _, alarm := range alarms {
		looks = append(looks, lookView{
			Kind: contract.LookPassAlarm, Grave: true, SKU: run.SKU, Says: "the pass of " + stamp(run.ClosedAt) + ": " + alarm,
			Do: "see holdfast reconcile " + run.SKU + " --dry-run, and HoldfastDrift in docs/runbook.md",
		})
	}
	if len(alarms) == 0 && openDrift(report) {
		looks = append(looks, lookView{
			Kind: contract.LookDrift, Grave: true, SKU: run.SKU,
			Says: fmt.Sprintf("the pass of %s found %d units by which gate and owners differ, and mended none", stamp(run.ClosedAt), report.DriftUnits),
			Do:   "the next pass tries again; when it stays see HoldfastDrift in docs/runbook.md",
		})
	}
	return looks
}

// openDrift says that a pass has left units that gate and owners differ in. One that
// mended something is judged by the next.
func openDrift(report contract.ReconcileReport) bool {
	return !report.DryRun && report.DriftUnits != 0 && report.Repaired == 0
}

// lastReport is that of the last pass over a SKU; ok is false when none has ended for an
// hour.
func (d *Door) lastReport(ctx context.Context, sku string) (run PassRun, report contract.ReconcileReport, ok bool, err error) {
	runs, err := d.directory.Passes(ctx, sku, time.Now().Add(-rebuiltFor), 0)
	if err != nil {
		return run, report, false, err
	}
	for _, run := range runs {
		if run.Completed {
			report, err := d.reportOf(ctx, run)
			return run, report, err == nil, err
		}
	}
	return run, report, false, nil
}

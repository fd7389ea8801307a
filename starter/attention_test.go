package starter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func (h *house) attention() (v attentionView) {
	h.t.Helper()
	a := h.call("GET", "/v1/attention", nil)
	require.Equal(h.t, 200, a.status, a.body)
	a.into(h.t, &v)
	return v
}

// of are the looks of this house: others share its Redis.
func (v attentionView) of(kind string) []lookView {
	return slices.DeleteFunc(slices.Clone(v.Data), func(l lookView) bool { return l.Kind != kind })
}

func workingQueues() []Queue {
	return []Queue{
		{Name: contract.TaskQueue, Kind: "workflow", Polled: true},
		{Name: contract.TaskQueue, Kind: "activity", Polled: true},
		{Name: contract.SMSTaskQueue, Kind: "activity", Polled: true, Waiting: 5000, Oldest: time.Hour},
		{Name: contract.EventsTaskQueue, Kind: "workflow", Polled: true},
		{Name: contract.EventsTaskQueue, Kind: "activity", Polled: true},
	}
}

func TestAttentionToWorkers(t *testing.T) {
	h := newHouse(t, 1)
	h.dir.queues = workingQueues()
	v := h.attention()
	require.Equal(t, [2]string{gateOpen, gateOpen}, [2]string{v.Redis, v.Temporal})
	require.Empty(t, v.of(contract.LookNoWorker))
	require.Empty(t, v.of(contract.LookWorkWaits), "texts wait for their turn")

	h.dir.queues[0].Polled = false
	require.Equal(t, []lookView{{
		Kind: contract.LookNoWorker, Grave: true, Says: "no worker asks for the workflow tasks of queue holdfast: holds do not end, stock events are not applied and nobody is offered anything",
		Do: "start a worker, or see why it stands still: HoldfastDown in docs/runbook.md",
	}}, h.attention().of(contract.LookNoWorker))

	for i := range h.dir.queues {
		h.dir.queues[i].Polled = false
	}
	silent := h.attention().of(contract.LookNoWorker)
	require.Len(t, silent, 1, "one line for all of them")
	require.Contains(t, silent[0].Says, "no worker asks for work: holds do not end")

	h.dir.queues = workingQueues()
	h.dir.queues[1].Oldest, h.dir.queues[1].Waiting = workWaits-time.Second, 7
	require.Empty(t, h.attention().of(contract.LookWorkWaits))
	h.dir.queues[1].Oldest = workWaits
	waits := h.attention().of(contract.LookWorkWaits)
	require.Len(t, waits, 1)
	require.True(t, waits[0].Grave)
	require.Contains(t, waits[0].Says, "7 activity tasks of queue holdfast wait for a worker, the first for 1m0s")
	h.dir.queues[1].Oldest, h.dir.queues[4].Oldest = 0, workWaits
	waits = h.attention().of(contract.LookWorkWaits)
	require.Len(t, waits, 1)
	require.False(t, waits[0].Grave, "an endpoint of the shop's that hangs moves no unit")

	// Nobody looks through anything: neither does the worker's word count.
	h.dir.queues = workingQueues()
	require.Empty(t, h.attention().of(contract.LookNoPass), "a door that has just begun cannot know")
	h.door.began = time.Now().Add(-passOverdue - time.Second)
	require.Len(t, h.attention().of(contract.LookNoPass), 1)
	h.dir.passes = []PassRun{{State: "", RunID: "all", Completed: true, ClosedAt: time.Now()}}
	require.Empty(t, h.attention().of(contract.LookNoPass))
}

func TestAttentionToPasses(t *testing.T) {
	h := newHouse(t, 1)
	at := time.UnixMilli(0)
	reports := map[string]contract.ReconcileReport{}
	read := map[string]int{}
	h.wf.onReport = func(run string, out *contract.ReconcileReport) error {
		read[run]++
		*out = reports[run]
		return nil
	}
	pass := func(run, state string, report contract.ReconcileReport) []lookView {
		report.SKU = h.sku
		reports[run] = report
		h.dir.passes = append([]PassRun{{SKU: h.sku, RunID: run, State: state, Completed: true, ClosedAt: at}}, h.dir.passes...)
		v := h.attention()
		return append(v.of(contract.LookPassAlarm), v.of(contract.LookDrift)...)
	}
	require.Empty(t, pass("1", "open", contract.ReconcileReport{}))
	looks := pass("2", "alarm", contract.ReconcileReport{Braked: true, DriftUnits: 8, Alarms: []string{"more than 3 of 18 owners are missing", "shortfall: more is promised"}})
	require.Equal(t, []lookView{{
		Kind: contract.LookPassAlarm, Grave: true, SKU: h.sku, Says: "the pass of 1970-01-01T00:00:00.000Z: more than 3 of 18 owners are missing",
		Do: "see holdfast reconcile " + h.sku + " --dry-run, and HoldfastDrift in docs/runbook.md",
	}}, looks, "the tripwire tells a shortfall itself, and at once")
	h.attention()
	require.Equal(t, map[string]int{"1": 1, "2": 1}, read, "what a pass said it says for ever")

	require.Empty(t, pass("3", "open", contract.ReconcileReport{DriftUnits: 8, Found: 8, Repaired: 8}), "mended")
	looks = pass("4", "open", contract.ReconcileReport{DriftUnits: 2})
	require.Len(t, looks, 1)
	require.Contains(t, looks[0].Says, "found 2 units by which gate and owners differ, and mended none")
	require.Empty(t, pass("5", "open", contract.ReconcileReport{DriftUnits: 2, Found: 2, DryRun: true}), "a dry run mends nothing")
	require.Len(t, h.door.reports.byRun, 1, "older reports are forgotten")

	// When no pass ends any more, what the last one said is told on.
	h.door.began = time.Now().Add(-passOverdue - time.Second)
	pass("alarmed", "alarm", contract.ReconcileReport{Alarms: []string{"look"}})
	h.dir.passAge = passOverdue + time.Second
	v := h.attention()
	require.Len(t, v.of(contract.LookNoPass), 1)
	require.Len(t, v.of(contract.LookPassAlarm), 1)
	h.dir.passAge = 0

	h.dir.passes = []PassRun{{SKU: h.sku, RunID: "6", State: "checking", ClosedAt: at}}
	require.Len(t, h.attention().of(contract.LookPassFailed), 1)
	require.Zero(t, read["6"], "it has no report")

	// A rebuild is told for an hour, also when passes came after it.
	reports["7"] = contract.ReconcileReport{SKU: h.sku, Opened: true, Differences: []string{"hold_1 held 1, and Redis had forgotten it", "more"}}
	reports["8"] = contract.ReconcileReport{SKU: h.sku, Opened: true}
	h.dir.long = []PassRun{{SKU: h.sku, RunID: "7", State: "open", Completed: true, ClosedAt: at}}
	rebuilt := h.attention().of(contract.LookRebuilt)
	require.Len(t, rebuilt, 1)
	require.False(t, rebuilt[0].Grave)
	require.Contains(t, rebuilt[0].Says, "was rebuilt at 1970-01-01T00:00:00.000Z, for Redis had lost data: 2 differences, the first: hold_1 held 1, and Redis had forgotten it")
	h.dir.long = nil
	for _, sku := range []string{"A", "B", "C", "D"} {
		h.dir.long = append(h.dir.long, PassRun{SKU: sku, RunID: "7", State: "open", Completed: true, ClosedAt: at})
	}
	rebuilt = h.attention().of(contract.LookRebuilt)
	require.Len(t, rebuilt, 1, "one line for a Redis that has lost them all")
	require.Contains(t, rebuilt[0].Says, "4 SKUs were rebuilt in the last hour, for Redis had lost data; one of them: A was rebuilt at")

	h.dir.long = []PassRun{{SKU: h.sku, RunID: "8", State: "open", Completed: true, ClosedAt: at}}
	require.Empty(t, h.attention().of(contract.LookRebuilt), "a check that has found everything as it was")
}

// Money of another amount waits for a person while its hold lives, and no longer.
func TestAttentionToMoneyOfAnotherAmount(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{Outcome: contract.ConfirmAmountMismatch}, nil
	}
	ours := func() []lookView {
		return slices.DeleteFunc(h.attention().of(contract.LookOtherAmount), func(l lookView) bool { return l.ID != v.HoldID })
	}
	require.Empty(t, ours())
	exact(t, h.confirm(v.HoldID, "px_1"), 409, amountMismatch)
	require.Len(t, ours(), 1)
	require.Equal(t, h.sku, ours()[0].SKU)
	require.Contains(t, ours()[0].Says, "was paid another amount than its checkout announced")

	require.Equal(t, 200, h.call("POST", "/v1/holds/"+v.HoldID+"/release", map[string]any{}).status)
	require.Empty(t, ours())
	noted, err := h.gate.OtherAmounts(t.Context(), otherAmountsMost)
	require.NoError(t, err)
	require.NotContains(t, noted, v.HoldID, "it is forgotten")
}

// A silent part is named, and what the other knows is told all the same.
func TestAttentionWhenAPartIsSilent(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	require.NoError(t, h.gate.NoteOtherAmount(t.Context(), v.HoldID))
	h.dir.err = errTemporalDown
	a := h.attention()
	require.Equal(t, [2]string{gateOpen, gateUnavailable}, [2]string{a.Redis, a.Temporal})
	require.Equal(t, contract.LookTemporalSilent, a.Data[0].Kind)
	require.Len(t, a.of(contract.LookTemporalSilent), 1)
	require.True(t, slices.ContainsFunc(a.of(contract.LookOtherAmount), func(l lookView) bool { return l.ID == v.HoldID }))
	exact(t, h.call("GET", "/v1/attention", nil, "Authorization", ""), 401, unauthorized)
}

// Of very many SKUs every alarm is read, and of the rest as many reports as there is room
// for; one of those that is not to be had hides no alarm.
func TestAttentionOfManySKUs(t *testing.T) {
	h := newHouse(t, 1)
	var mu sync.Mutex
	read := 0
	h.wf.onReport = func(run string, out *contract.ReconcileReport) error {
		mu.Lock()
		defer mu.Unlock()
		read++
		if run == "alarmed" {
			*out = contract.ReconcileReport{Alarms: []string{"look"}}
			return nil
		}
		return errTemporalDown
	}
	for i := range reportsMost + 100 {
		h.dir.passes = append(h.dir.passes, PassRun{SKU: fmt.Sprintf("A%d", i), RunID: fmt.Sprint(i), State: passOpen, Completed: true})
	}
	h.dir.passes = append(h.dir.passes, PassRun{SKU: "Z", RunID: "alarmed", State: "alarm", Completed: true})
	v := h.attention()
	require.Equal(t, gateOpen, v.Temporal)
	require.Len(t, v.of(contract.LookPassAlarm), 1)
	require.Equal(t, reportsMost, read)

	h.dir.passes = []PassRun{{SKU: "Z", RunID: "unread", State: "alarm", Completed: true}}
	require.Equal(t, gateUnavailable, h.attention().Temporal, "an alarm that cannot be read is no silence")
}

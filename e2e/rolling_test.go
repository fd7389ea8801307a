package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
)

const deploymentName = "holdfast"

// worker runs a worker beside the house's own, with settings of its own.
func (h *house) worker(t *testing.T, env ...string) *stack.Child {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), NoDoor: true,
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env: with(nil, append(env,
			"HOLDFAST_GATE_LEASE", h.check.Lease.String(), "HOLDFAST_SMS_OUTBOX", h.TextsFile(), "HOLDFAST_HTTP_PUBLIC_URL", h.URL(),
			"HOLDFAST_HTTP_PUBLIC_ADDR", "127.0.0.1:1", "HOLDFAST_HTTP_API_ADDR", "127.0.0.1:1", "HOLDFAST_HTTP_OPS_ADDR", "127.0.0.1:1")...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Child(stack.Worker)
}

// makeCurrent gives all new work to a version of the worker, as soon as
// Temporal knows it.
func (h *house) makeCurrent(t *testing.T, build string) {
	t.Helper()
	d := h.temporal.WorkerDeploymentClient().GetHandle(deploymentName)
	require.NoError(t, until(t.Context(), build+" is current", func() error {
		_, err := d.SetCurrentVersion(t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err
	}))
}

// builds are the versions that completed a run's workflow tasks, each named
// once for a row of tasks. A task that failed is an error.
func (h *house) builds(ctx context.Context, id string) ([]string, error) {
	got, err := history.Of(ctx, h.temporal, id, "")
	if err != nil {
		return nil, err
	}
	if failed := history.Failed(got); failed != "" {
		return nil, fmt.Errorf("%s, %s", id, failed)
	}
	var row []string
	for _, e := range got.GetEvents() {
		done := e.GetWorkflowTaskCompletedEventAttributes()
		if done == nil {
			continue
		}
		build := done.GetDeploymentVersion().GetBuildId()
		if len(row) == 0 || row[len(row)-1] != build {
			row = append(row, build)
		}
	}
	return row, nil
}

// runsOn waits until a run has a version: the one that it is pinned to, or the
// one that it ran on last.
func (h *house) runsOn(t *testing.T, id, build string, behavior enumspb.VersioningBehavior) {
	t.Helper()
	require.NoError(t, until(t.Context(), id+" runs on "+build, func() error {
		d, err := h.temporal.WorkflowService().DescribeWorkflowExecution(t.Context(), &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: "default", Execution: &commonpb.WorkflowExecution{WorkflowId: id},
		})
		if err != nil {
			return err
		}
		info := d.GetWorkflowExecutionInfo().GetVersioningInfo()
		if info.GetBehavior() != behavior || info.GetDeploymentVersion().GetBuildId() != build {
			return errors.New("it is " + info.String())
		}
		return nil
	}))
}

// A new version of the worker is made current while a hold and an entry live:
// the hold ends where it began, the entry moves, new holds run on the new one,
// and the old worker goes when its last hold has ended.
func TestRollingDeploy(t *testing.T) {
	ctx := t.Context()
	const (
		build    = "HOLDFAST_WORKER_BUILD_ID"
		pinned   = enumspb.VERSIONING_BEHAVIOR_PINNED
		upgraded = enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE
	)
	h := ownHouse(t, stack.Options{Env: map[string]string{build: "a"}}, lease)
	h.makeCurrent(t, "a")
	held, line := "rolling-held", "rolling-line"
	h.opened(t, held, 2)
	h.opened(t, line, 0)
	before, err := h.shop.Hold(ctx, held, "before")
	require.NoError(t, err)
	waits, err := h.inLine(ctx, h.shop, line, phone(0))
	require.NoError(t, err)
	h.runsOn(t, before.HoldID, "a", pinned)
	h.runsOn(t, waits.EntryID, "a", upgraded)

	h.worker(t, build, "b")
	h.makeCurrent(t, "b")
	after, err := h.shop.Hold(ctx, held, "after")
	require.NoError(t, err)
	h.runsOn(t, after.HoldID, "b", pinned)
	require.NoError(t, h.shop.Restock(ctx, held, 1))
	require.NoError(t, h.shop.Restock(ctx, line, 1))
	_, err = h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	confirmed(t, h, before.HoldID, "pay_before")
	require.NoError(t, h.closed(ctx, before.HoldID))

	// The old version has nothing left: its worker goes, and nobody misses it.
	require.NoError(t, h.Child(stack.Worker).Stop())
	confirmed(t, h, after.HoldID, "pay_after")
	require.NoError(t, h.closed(ctx, after.HoldID))
	entry := h.presses(t, waits.EntryID)
	confirmed(t, h, entry.HoldID, "pay_line")
	_, err = h.entryState(ctx, waits.EntryID, "bought")
	require.NoError(t, err)

	for id, want := range map[string][]string{
		before.HoldID: {"a"}, after.HoldID: {"b"}, entry.HoldID: {"b"},
		waits.EntryID: {"a", "b"}, "stock." + held: {"a", "b"}, "stock." + line: {"a", "b"},
	} {
		require.NoError(t, until(ctx, id+" ran on "+fmt.Sprint(want), func() error {
			got, err := h.builds(ctx, id)
			if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
				err = errors.New("it ran on " + fmt.Sprint(got))
			}
			return err
		}))
	}
	h.judge(t, held, line)
}

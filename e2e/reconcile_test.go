package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
	"holdfast/dev/stack"
)

// An operator terminates Holds and a hand deletes a record. The Schedule, or whoever
// asks, gives the units back, has the money that nobody had make its sale, and puts
// the record back, each once; nobody overtakes the line. A second run finds nothing.
// B27, B35, B46.
func TestReconcileMendsWhatLostItsOwner(t *testing.T) {
	h := ownHouse(t, stack.Options{}, 2*time.Second)
	ctx := t.Context()
	const sku = "mended"
	afterwards := h.temporalForgets(t)
	h.opened(t, sku, 0)
	idle := (&play{house: h}).walkIn(t, h.shop, sku)
	paid := (&play{house: h}).walkIn(t, h.shop, sku)
	lost := (&play{house: h}).walkIn(t, h.shop, sku)
	waits, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	require.NoError(t, h.Child(stack.Worker).Stop())
	require.NoError(t, h.temporal.SignalWorkflow(ctx, paid, "", "payment-succeeded", euros("pay_"+paid, 500)))
	require.NoError(t, h.temporal.TerminateWorkflow(ctx, idle, "", "by an operator"))
	require.NoError(t, h.temporal.TerminateWorkflow(ctx, paid, "", "by an operator"))
	require.NoError(t, h.redis.HDel(ctx, "hf:{"+sku+"}:holds", lost).Err())
	require.NoError(t, h.Child(stack.Worker).Start(ctx))

	dry := h.reconcile(t, sku, "--dry-run")
	require.Zero(t, dry.Repaired)
	began := time.Now()
	// Nothing is mended that is not a lease and a minute old, and then within a minute.
	require.NoError(t, within(ctx, 4*time.Minute, "the Schedule has mended all", func() error {
		s, err := h.shop.Stock(ctx, sku)
		if err != nil {
			return err
		}
		if got := [4]int64{s.OnHand, s.Held, s.Offered, s.Sold}; got != [4]int64{2, 1, 1, 1} {
			return fmt.Errorf("on_hand, held, offered, sold %v", got)
		}
		return nil
	}))
	figure(t, "reconcile_by_schedule", time.Since(began).Seconds(), "s")
	text, err := h.offerText(ctx, waits.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(0), text.To)
	confirmed(t, h, lost, "pay_"+lost)

	require.NoError(t, until(ctx, "a run finds nothing", func() error {
		again := h.reconcile(t, sku)
		if again.Found > 0 || len(again.Alarms) > 0 {
			return fmt.Errorf("%+v", again)
		}
		return nil
	}))
	report := h.reconcile(t, sku)
	require.Zero(t, report.Found)
	afterwards()
}

type passReport struct {
	Found       int      `json:"found"`
	Repaired    int      `json:"repaired"`
	Differences []string `json:"differences"`
	Alarms      []string `json:"alarms"`
	Closed      bool     `json:"closed"`
	Owners      int      `json:"owners"`
	Missing     int      `json:"missing"`
	Braked      bool     `json:"braked"`
}

// reconcile runs the command and answers its report.
func (h *house) reconcile(t *testing.T, args ...string) passReport {
	t.Helper()
	report, err := h.tryReconcile(t, args...)
	require.NoError(t, err)
	return report
}

func (h *house) tryReconcile(t *testing.T, args ...string) (report passReport, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t, "HOLDFAST_BIN"), append([]string{"reconcile", "--json", "--wait", "3h"}, args...)...)
	cmd.Env = append(cmd.Environ(), "HOLDFAST_URL="+h.URL(), "HOLDFAST_KEY="+stack.APIKey)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) == 0) { // 1 is alarms
		return report, fmt.Errorf("%w: %s", err, complaints.String())
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return report, fmt.Errorf("%w: %s", err, out)
	}
	return report, nil
}

// Money for a hold that nobody knows is parked before a person. An operator ends its
// Payment: it has an owner again with the next run of the Schedule, though no SKU has it.
func TestATerminatedPaymentOfNoSKUHasAnOwnerAgain(t *testing.T) {
	ctx := t.Context()
	h := ownHouse(t, stack.Options{}, lease)
	const hold, ref = "hold_nobodys", "pay_nobodys"
	id := paymentID(hold, ref)
	_, err := h.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: contract.TaskQueue}, contract.PaymentWorkflow,
		contract.PaymentInput{PaymentID: id, HoldID: hold, PaymentRef: ref, Cause: contract.CauseUnknown})
	require.NoError(t, err)
	parked := func() (run string, err error) {
		v, err := h.temporal.QueryWorkflow(ctx, id, "", contract.QueryStatus)
		if err != nil {
			return "", err
		}
		var s contract.PaymentStatus
		if err := v.Get(&s); err != nil || s.State != contract.PaymentParked {
			return "", errors.Join(err, fmt.Errorf("it is %s", s.State))
		}
		d, err := h.temporal.DescribeWorkflow(ctx, id, "")
		if err == nil && d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			err = errors.New("it has closed")
		}
		if err != nil {
			return "", err
		}
		return d.WorkflowExecution.RunID, nil
	}
	var first string
	require.NoError(t, until(ctx, "it is parked", func() (err error) { first, err = parked(); return err }))
	require.NoError(t, h.temporal.TerminateWorkflow(ctx, id, "", "by an operator"))
	_, err = parked()
	require.ErrorContains(t, err, "closed")
	require.NoError(t, within(ctx, 3*time.Minute, "it is parked again", func() error { // the Schedule runs each minute
		run, err := parked()
		if err == nil && run == first {
			err = errNotYet
		}
		return err
	}))
}

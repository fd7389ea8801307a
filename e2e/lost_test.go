package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
)

// Redis forgets in the middle of traffic what it has acknowledged. Whatever it forgets,
// each hold that a client was given is honoured, every sale counts once, nothing is sold
// twice, the line keeps its order, and what differed is reported. Nothing of ours is
// started again. Then Temporal has forgotten who sold, too.
// B98.
func TestRedisLosesData(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: maps.Clone(lossEnv), AppendFsync: "always"}, 2*time.Second)
	redis, data := h.Child(stack.Redis), filepath.Join(h.dir, stack.Redis)
	holds := 15
	const units = 4000 // more than are taken however long it lasts
	if long() {
		holds = 150
	}

	t.Run("an old snapshot", func(t *testing.T) {
		r := newRush(t, h, "older", units)
		r.joins(t, 2)
		r.more(t, holds)
		kept := filepath.Join(t.TempDir(), "kept")
		t.Run("its file intact", func(t *testing.T) {
			require.NoError(t, redis.Stop())
			require.NoError(t, os.CopyFS(kept, os.DirFS(data)))
			require.NoError(t, redis.Start(t.Context()))
			r.opens(t)
		})
		r.joins(t, 2)
		r.more(t, holds)
		require.NoError(t, redis.Stop())
		require.NoError(t, os.RemoveAll(data))
		require.NoError(t, os.CopyFS(data, os.DirFS(kept)))
		require.NoError(t, redis.Start(t.Context()))
		r.opens(t)
		r.joins(t, 1)
		r.more(t, holds)
		r.ends(t)
		r.differed(t)
	})
	t.Run("emptied", func(t *testing.T) {
		r := newRush(t, h, "emptied", units)
		r.joins(t, 3)
		r.more(t, holds)
		require.NoError(t, h.redis.FlushAll(t.Context()).Err())
		r.opens(t)
		r.joins(t, 2)
		r.more(t, holds)
		t.Run("and restarted while it is rebuilt", func(t *testing.T) {
			for _, strike := range []func(){
				func() { require.NoError(t, h.redis.FlushAll(t.Context()).Err()) },
				func() { redis.Kill(); require.NoError(t, redis.Start(t.Context())) },
			} {
				require.NoError(t, h.redis.FlushAll(t.Context()).Err())
				require.NoError(t, until(t.Context(), "a rebuild has begun", func() error {
					return h.redis.HGet(t.Context(), "hf:{"+r.flash+"}:stock", "rebuild").Err()
				}))
				strike()
			}
			r.opens(t)
		})
		r.more(t, holds)
		r.ends(t)
		r.differed(t)
		forgotten(t, h, r.flash)
	})
}

// forgotten lets Temporal forget who has sold, and then empties Redis once more: what was
// sold stays sold, and as many units as are left are to be had.
func forgotten(t *testing.T, h *house, sku string) {
	t.Helper()
	ctx := t.Context()
	before, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.NoError(t, until(ctx, "the sales are audited", func() error {
		h.reconcile(t, sku)
		var book struct {
			Audit struct {
				Sold int64 `json:"sold"`
			} `json:"audit"`
		}
		v, err := h.temporal.QueryWorkflow(ctx, "stock."+sku, "", "status")
		if err == nil {
			err = v.Get(&book)
		}
		if err == nil && book.Audit.Sold != before.Sold {
			err = fmt.Errorf("%d of %d", book.Audit.Sold, before.Sold)
		}
		return err
	}))
	query := "HoldfastSku = '" + sku + "' AND ExecutionStatus != 'Running' AND WorkflowType IN ('Hold', 'Payment')"
	require.NoError(t, until(ctx, "Temporal has forgotten who sold", func() error {
		ids, err := check.List(ctx, h.temporal, query)
		if err != nil {
			return err
		}
		for _, id := range ids {
			_, err := h.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
			})
			if err != nil && ctx.Err() != nil {
				return err
			}
		}
		if len(ids) > 0 {
			return fmt.Errorf("%d are left", len(ids))
		}
		return nil
	}))
	late, err := h.shop.Hold(ctx, sku, "late")
	require.NoError(t, err)
	confirmed(t, h, late.HoldID, "pay_late") // after the audit
	require.NoError(t, h.redis.FlushAll(ctx).Err())
	h.reopens(t, sku)
	after, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, [4]int64{before.OnHand - 1, 0, 0, before.Sold + 1}, [4]int64{after.OnHand, after.Held, after.Offered, after.Sold})

	// Whoever asks, no more are given than there are.
	correction := map[string]any{"event_id": "few-" + sku, "sku": sku, "kind": "correction", "delta": 3 - after.OnHand, "reason": "few are enough"}
	decision, err := h.shop.Decided(ctx, correction)
	require.NoError(t, err)
	require.True(t, decision.Applied, "%+v", decision)
	won := 0
	for i := range 5 {
		a, err := h.shop.AskHold(ctx, sku, "last", fmt.Sprintf("last-%s-%d", sku, i))
		require.NoError(t, err)
		if a.Status == http.StatusCreated {
			won++
		}
	}
	require.Equal(t, 3, won)
}

type (
	ledgerLine = check.Line
	// lossReport is what a Reconcile says when it has closed.
	lossReport struct {
		Opened      bool     `json:"opened"`
		Differences []string `json:"differences"`
	}
)

// reports are those of all runs of a SKU's Reconcile that have closed.
func (h *house) reports(ctx context.Context, sku string) ([]lossReport, error) {
	res, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowId = 'reconcile." + sku + "' AND ExecutionStatus = 'Completed'",
	})
	if err != nil {
		return nil, err
	}
	var all []lossReport
	for _, e := range res.GetExecutions() {
		var p lossReport
		err = errors.Join(err, h.temporal.GetWorkflow(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()).Get(ctx, &p))
		all = append(all, p)
	}
	return all, err
}

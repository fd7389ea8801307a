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
// each hold that a client was given is honoured, every sale counts once, a retaken one too,
// nothing is sold twice, the line keeps its order, and what differed is reported each time.
// Nothing of ours is started again. Then Temporal has forgotten who sold, too.
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
		kept := filepath.Join(t.TempDir(), "kept")
		keeps := func() {
			require.NoError(t, redis.Stop())
			require.NoError(t, os.RemoveAll(kept))
			require.NoError(t, os.CopyFS(kept, os.DirFS(data)))
			require.NoError(t, redis.Start(t.Context()))
		}
		restores := func() {
			require.NoError(t, redis.Stop())
			require.NoError(t, os.RemoveAll(data))
			require.NoError(t, os.CopyFS(data, os.DirFS(kept)))
			require.NoError(t, redis.Start(t.Context()))
		}
		r := newRush(t, h, "older", units)
		few := r.scarce(t, "older-few")
		r.joins(t, 2)
		r.more(t, holds)
		few.expires(t)
		t.Run("its file intact", func(t *testing.T) {
			keeps()
			r.opensAsItIs(t)
		})
		r.joins(t, 2)
		r.more(t, holds)
		few.promises(t)
		restores()
		r.opensRebuilt(t)
		few.stands(t)
		r.joins(t, 1)
		r.more(t, holds)
		few.ends(t)
		r.ends(t)
		forgotten(t, h, r.flash, func() { keeps(); h.reopens(t, r.flash) }, restores)
	})
	t.Run("emptied", func(t *testing.T) {
		empties := func() { require.NoError(t, h.redis.FlushAll(t.Context()).Err()) }
		r := newRush(t, h, "emptied", units)
		few := r.scarce(t, "emptied-few")
		r.joins(t, 3)
		r.more(t, holds)
		few.expires(t)
		few.promises(t)
		empties()
		r.opensRebuilt(t)
		few.stands(t)
		r.joins(t, 2)
		r.more(t, holds)
		t.Run("and restarted while it is rebuilt", func(t *testing.T) {
			var lost time.Time
			for _, strike := range []func(){empties, func() { redis.Kill(); require.NoError(t, redis.Start(t.Context())) }} {
				lost = time.Now()
				empties()
				require.NoError(t, until(t.Context(), "a rebuild has begun", func() error {
					return h.redis.HGet(t.Context(), "hf:{"+r.flash+"}:stock", "rebuild").Err()
				}))
				strike()
			}
			r.opensRebuiltSince(t, lost)
			few.stands(t)
		})
		r.more(t, holds)
		t.Run("and Temporal is away", func(t *testing.T) {
			temporal := h.Child(stack.Temporal)
			temporal.Kill()
			lost := time.Now()
			empties()
			require.NoError(t, lasts(t.Context(), 8*time.Second)) // longer than a gate stays closed otherwise
			a, err := h.shop.AskHold(t.Context(), r.flash, "meanwhile", "meanwhile")
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, a.Status, a)
			written, err := h.redis.Exists(t.Context(), "hf:{"+r.flash+"}:stock").Result()
			require.NoError(t, err)
			require.Zero(t, written, "nothing is written of a SKU that cannot be compared")
			require.NoError(t, comesBack(t.Context(), temporal))
			r.opensRebuiltSince(t, lost)
			few.stands(t)
		})
		r.more(t, holds)
		few.ends(t)
		r.ends(t)
		forgotten(t, h, r.flash, func() {}, empties)
	})
}

// forgotten lets Temporal forget who has sold. Then Redis loses what it has not kept: what
// was sold stays sold, and as many units as are left are to be had.
func forgotten(t *testing.T, h *house, sku string, keeps, loses func()) {
	t.Helper()
	ctx := t.Context()
	before, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.NoError(t, until(ctx, "the sales are audited", func() error {
		if _, err := h.shop.Call(ctx, http.MethodPost, "/v1/stock/"+sku+"/reconcile", map[string]any{}); err != nil {
			return err
		}
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
	keeps()
	late, err := h.shop.Hold(ctx, sku, "late")
	require.NoError(t, err)
	confirmed(t, h, late.HoldID, "pay_late_"+sku) // after the audit
	loses()
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
		Opened      bool      `json:"opened"`
		Checked     time.Time `json:"checked_at"`
		Differences []string  `json:"differences"`
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

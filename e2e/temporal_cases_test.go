package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
	"holdfast/e2e/shop"
)

// B107: a signal with a start, sent again after the hold has ended, takes no unit
// a second time; the money gets its owner.
func TestASignalWithStartAfterTheEndTakesNothing(t *testing.T) {
	onEachServer(t, takesNothingAfterItsEnd)
}

func takesNothingAfterItsEnd(t *testing.T, h *house) {
	ctx := t.Context()
	const sku = "started-again"
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "customer")
	require.NoError(t, err)
	require.NoError(t, h.temporal.SignalWorkflow(ctx, hold.HoldID, "", "release", map[string]string{"reason": "shop"}))
	require.NoError(t, h.closed(ctx, hold.HoldID))
	for range 2 {
		run, err := h.temporal.SignalWithStartWorkflow(ctx, hold.HoldID, "payment-succeeded", map[string]any{"payment_ref": "pay_again_" + hold.HoldID},
			client.StartWorkflowOptions{TaskQueue: "holdfast"}, "Hold", map[string]any{
				"hold_id": hold.HoldID, "lines": []any{map[string]any{"sku": sku, "quantity": 1}}, "customer": "customer", "person": "p",
				"settings": map[string]int{"hold_seconds": 600},
			})
		require.NoError(t, err)
		var out struct {
			State string `json:"state"`
		}
		require.NoError(t, run.Get(ctx, &out))
		require.Equal(t, "released", out.State)
	}
	h.status(t, paymentID(hold.HoldID, "pay_again_"+hold.HoldID), "waits for its refund", inState("refund-pending"))
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0, 0}, []int64{stock.Available, stock.Held, stock.Sold}, "available, held, sold")
	h.judge(t, sku)
}

// B13, B108: an update that comes in the moments of the expiry gets a definite answer
// soon, which the record bears out. The same update, sent again after the run has
// closed, gets the same answer.
func TestAnUpdateInTheMomentOfTheExpiry(t *testing.T) { onEachServer(t, updatedInTheMoment) }

func updatedInTheMoment(t *testing.T, h *house) {
	ctx := t.Context()
	const sku, holds = "in-the-moment", 16
	h.opened(t, sku, holds)
	door := h.door(t, "HOLDFAST_HOLD_TTL", "5s")
	outcomes := make([]string, holds)
	require.NoError(t, each(ctx, holds, holds, func(ctx context.Context, i int) error {
		hold, err := door.Hold(ctx, sku, fmt.Sprint("customer-", i))
		if err != nil {
			return err
		}
		ask := func() (string, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			u, err := h.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
				WorkflowID: hold.HoldID, UpdateID: "the-update", UpdateName: "confirm", Args: []any{map[string]string{"payment_ref": "pay_" + hold.HoldID}},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			var out struct {
				Outcome string `json:"outcome"`
			}
			if err == nil {
				err = u.Get(ctx, &out)
			}
			var closed *serviceerror.NotFound
			var retry *serviceerror.WorkflowNotReady
			switch {
			case errors.As(err, &closed):
				return "closed", nil
			case errors.As(err, &retry):
				return "again", nil
			}
			return out.Outcome, err
		}
		select { // from 50 ms before the deadline to 250 ms after it
		case <-time.After(time.Until(hold.ExpiresAt) + time.Duration(i*20-50)*time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		for outcomes[i] == "" || outcomes[i] == "again" {
			if outcomes[i], err = ask(); err != nil {
				return err
			}
		}
		if err := h.closed(ctx, hold.HoldID); err != nil {
			return err
		}
		again, err := ask()
		if err != nil || again != outcomes[i] {
			return fmt.Errorf("%s was answered %q, and then %q: %w", hold.HoldID, outcomes[i], again, err)
		}
		record, err := h.shop.ReadHold(ctx, hold.HoldID)
		want := map[string]string{"sold": "sold", "hold-ended": "expired", "closed": "expired"}[outcomes[i]]
		if err == nil && record.State != want {
			err = fmt.Errorf("%s was answered %q, its record is %s", hold.HoldID, outcomes[i], record.State)
		}
		return err
	}))
	t.Log(outcomes)
	h.judge(t, sku)
}

// B108: the same update, sent many times at once and again after the run has closed,
// is one: one answer, one acceptance, one sale.
func TestTheSameUpdateIsOne(t *testing.T) { onEachServer(t, sameUpdateIsOne) }

func sameUpdateIsOne(t *testing.T, h *house) {
	ctx := t.Context()
	const sku, asks = "same-update", 8
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "customer")
	require.NoError(t, err)
	ask := func(ctx context.Context, _ int) error {
		return until(ctx, "the update is answered", func() error {
			u, err := h.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
				WorkflowID: hold.HoldID, UpdateID: "the-same", UpdateName: "confirm", Args: []any{map[string]string{"payment_ref": "pay_" + hold.HoldID}},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			var out struct {
				Outcome string `json:"outcome"`
			}
			if err == nil {
				err = u.Get(ctx, &out)
			}
			if err == nil && out.Outcome != "sold" {
				err = fmt.Errorf("answered %q", out.Outcome)
			}
			return err
		})
	}
	require.NoError(t, each(ctx, asks, asks, ask))
	require.NoError(t, h.closed(ctx, hold.HoldID))
	require.NoError(t, each(ctx, asks, asks, ask))
	run, err := history.Of(ctx, h.temporal, hold.HoldID, "")
	require.NoError(t, err)
	require.Equal(t, 1, history.Count(run, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED))
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, 1}, []int64{stock.Available, stock.Held, stock.Sold}, "available, held, sold")
	h.judge(t, sku)
}

// B115: in a namespace without the search attributes every workflow task would
// fail for ever. The worker does not start there, and says what to do.
func TestANamespaceWithoutSearchAttributesIsRefused(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	_, err := h.temporal.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: "bare", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.NoError(t, until(ctx, "the namespace is known", func() error {
		_, err := h.temporal.DescribeTaskQueue(ctx, "holdfast", 0)
		if err == nil {
			_, err = h.temporal.WorkflowService().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "bare"})
		}
		return err
	}))
	const at = "127.0.0.1:1"
	_, err = stack.Start(ctx, stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"), NoDoor: true,
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env: map[string]string{
			"HOLDFAST_TEMPORAL_NAMESPACE": "bare", "HOLDFAST_HTTP_PUBLIC_URL": "http://" + at,
			"HOLDFAST_HTTP_PUBLIC_ADDR": at, "HOLDFAST_HTTP_API_ADDR": at, "HOLDFAST_HTTP_OPS_ADDR": at,
		},
	})
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace bare --name HoldfastSku --type KeywordList")
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace bare --name HoldfastState --type Keyword")
}

// B116: the worker is told to stop while a text is being handed over. It waits
// for the provider's answer; nothing is sent twice and nothing is forgotten.
func TestAWorkerStopsWhileATextIsHandedOver(t *testing.T) {
	ctx := t.Context()
	provider := newTexter(t, "")
	arrived, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := (shop.Text{Body: r.FormValue("Body")}); text.Link() != "" {
			arrived <- struct{}{}
			<-answer
		}
		provider.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	env := provider.env()
	env["HOLDFAST_SMS_TWILIO_BASE_URL"] = slow.URL
	h := ownHouse(t, stack.Options{Env: env}, lease)
	const sku = "stopped"
	h.opened(t, sku, 0)
	entry, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	<-arrived
	stopped := make(chan error, 1)
	go func() { stopped <- h.Child(stack.Worker).Stop() }()
	require.NoError(t, until(ctx, "the worker stops", func() error {
		log, err := os.ReadFile(filepath.Join(h.dir, "logs", "worker.log"))
		if err == nil && !strings.Contains(string(log), "worker stops") {
			err = errNotYet
		}
		return err
	}))
	select {
	case err := <-stopped:
		t.Fatalf("it did not wait for the text: %v", err)
	case answer <- struct{}{}:
	}
	require.NoError(t, <-stopped)

	require.NoError(t, h.Child(stack.Worker).Start(ctx))
	h.status(t, entry.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
	run, err := history.Of(ctx, h.temporal, entry.EntryID, "")
	require.NoError(t, err)
	tries := 0
	for _, e := range run.GetEvents() {
		if e.GetActivityTaskStartedEventAttributes() != nil {
			require.Equal(t, int32(1), e.GetActivityTaskStartedEventAttributes().GetAttempt())
			tries++
		}
	}
	require.Equal(t, 2, tries, "one text when it joined, one of the offer")
	require.Len(t, provider.Messages(), 2)
}

// B109: who has bought joins again as somebody new, and a delivery counts once by
// the books, whatever Temporal still remembers of either.
func TestWhoBoughtJoinsAgain(t *testing.T) {
	ctx := t.Context()
	p := &play{house: sharedHouse(t)}
	const sku = "again"
	first := p.joined(t, p.shop, sku, 0)
	p.confirm(t, p.pressed(t, sku, first), money{"payment_ref": "pay_" + first}, http.StatusOK)
	_, err := p.entryState(ctx, first, "bought")
	require.NoError(t, err)
	second := p.joined(t, p.shop, sku, 0)
	require.NotEqual(t, first, second)
	e, err := p.entryState(ctx, second, "waiting")
	require.NoError(t, err)
	require.Equal(t, int64(1), e.Position)
	delivery := event(sku, "restock", map[string]any{"units": 3})
	p.decided(t, delivery, "")
	p.decided(t, delivery, "")
	require.Equal(t, int64(4), p.book(t, sku).Received)
	p.judge(t, sku)
}

// B118: what is too large is refused at the edge, and says so.
func TestALargeBodyIsRefusedAtTheEdge(t *testing.T) {
	h := sharedHouse(t)
	const sku = "large"
	h.opened(t, sku, 1)
	a, err := h.shop.Inventory(t.Context(), event(sku, "restock", map[string]any{"units": 1, "reason": strings.Repeat("x", 5<<20)}))
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	require.Equal(t, "body-too-large", a.Code())
	h.judge(t, sku)
}

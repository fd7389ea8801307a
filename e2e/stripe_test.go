package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
	"holdfast/internal/stripetest"
)

const stripeSecret = "whsec_the-endpoint-of-the-story"

// stripeHouse is a Holdfast whose payments a stand-in of Stripe takes. brief is a
// door whose holds end in seconds.
type stripeHouse struct {
	*house
	stripe *stripetest.Server
	brief  *shop.Shop
}

func newStripeHouse(t *testing.T) *stripeHouse {
	t.Helper()
	s := stripetest.New()
	t.Cleanup(s.Close)
	env := map[string]string{
		"HOLDFAST_PAYMENT_PROVIDER": "stripe", "HOLDFAST_PAYMENT_STRIPE_KEY": s.Key, "HOLDFAST_PAYMENT_STRIPE_BASE_URL": s.URL,
		"HOLDFAST_PAYMENT_STRIPE_WEBHOOK_SECRETS": stripeSecret, "HOLDFAST_HOLD_EXTENSION": "0s", "HOLDFAST_HOLD_GRACE": "0s",
	}
	h := &stripeHouse{house: ownHouse(t, stack.Options{Env: env}, lease), stripe: s}
	pairs := []string{"HOLDFAST_HOLD_TTL", "5s"}
	for k, v := range env {
		pairs = append(pairs, k, v)
	}
	h.brief = h.door(t, pairs...)
	return h
}

// reception is what the door answers to an event.
type reception struct {
	Kind      string `json:"kind"`
	Outcome   string `json:"outcome"`
	PaymentID string `json:"payment_id"`
}

// deliver sends an event until it is taken, as Stripe does.
func (h *stripeHouse) deliver(t *testing.T, kind, id string) (out reception) {
	t.Helper()
	body := h.stripe.Event(kind, id, nil)
	require.NoError(t, until(t.Context(), kind+" is taken", func() error {
		status, answer, err := h.post(t, body, stripetest.Sign(body, time.Now(), stripeSecret))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, answer)
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(answer, &out)
	}))
	return out
}

func (h *stripeHouse) post(t *testing.T, body []byte, signature string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+"/v1/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Stripe-Signature", signature)
	res, err := h.shop.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// begun is a hold of the brief door whose shopper goes to pay with ref.
func (h *stripeHouse) begun(t *testing.T, sku string, ref func(holdID string) string) (shop.Hold, string) {
	t.Helper()
	hold, err := h.brief.Hold(t.Context(), sku, "customer")
	require.NoError(t, err)
	id := ref(hold.HoldID)
	a, err := h.brief.Call(t.Context(), http.MethodPost, "/v1/holds/"+hold.HoldID+"/checkout", map[string]any{"payment_ref": id, "amount": 4900, "currency": "EUR"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	return hold, id
}

func (h *stripeHouse) intent(holdID string) string { return h.stripe.Intent(holdID, 4900, "eur") }

// details are the lines that an operator reads of a run.
func (h *house) details(t *testing.T, id string) string {
	t.Helper()
	v, err := h.temporal.QueryWorkflow(t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var m sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&m))
	return m.GetCurrentDetails()
}

// paymentState waits until a Payment is in a state.
func (h *house) paymentState(t *testing.T, id, state string) {
	t.Helper()
	require.NoError(t, until(t.Context(), id+" is "+state, func() error {
		v, err := h.temporal.QueryWorkflow(t.Context(), id, "", "status")
		if err != nil {
			return err
		}
		var status struct {
			State string `json:"state"`
		}
		if err := v.Get(&status); err != nil || status.State == state {
			return err
		}
		return errors.New("it is " + status.State)
	}))
}

// forget deletes closed runs, as the namespace's retention does; it takes Temporal
// half a minute.
func (h *house) forget(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, h.closed(t.Context(), id))
		_, err := h.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
		})
		require.NoError(t, err)
	}
}

func (h *house) forgotten(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, until(t.Context(), id+" is forgotten", func() error {
			if _, err := h.temporal.DescribeWorkflow(t.Context(), id, ""); err == nil {
				return errors.New("it is still there")
			}
			return nil
		}))
	}
}

// Stripe's own words make sales and settle refunds, and what shoppers may still
// pay ends with their hold.
func TestStripeTakesThePayments(t *testing.T) {
	h := newStripeHouse(t)
	ctx := t.Context()
	var sale, late struct{ hold, ref string }

	t.Run("a signed webhook makes the sale, beside the return page", func(t *testing.T) {
		sku := "stripe-sale"
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		body := h.stripe.Event("payment_intent.succeeded", pi, nil)
		status, answer, err := h.post(t, body, stripetest.Sign(body, time.Now(), "whsec_of-somebody-else"))
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status, "%s", answer)
		require.Contains(t, string(answer), "signature-invalid")

		race(func() { h.deliver(t, "payment_intent.succeeded", pi) }, func() {
			_, err := h.shop.Confirm(ctx, hold.HoldID, pi)
			require.NoError(t, err)
		})
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		sold := confirmed(t, h.house, hold.HoldID, pi)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, 1, h.sales(t, sku))
		sale.hold, sale.ref = hold.HoldID, pi
		h.forget(t, hold.HoldID)

		second := h.intent(hold.HoldID)
		h.stripe.Pay(second)
		require.Equal(t, "payment-conflict", h.deliver(t, "payment_intent.succeeded", second).Outcome)
		h.paymentState(t, paymentID(hold.HoldID, second), "refund-settled")
		require.Len(t, h.stripe.Refunds(), 1)
		require.Equal(t, second, h.stripe.Get(h.stripe.Refunds()[0])["payment_intent"], "never the payment that made the sale")
		h.judge(t, sku)
	})

	t.Run("a late payment goes back once, whatever repeats", func(t *testing.T) {
		sku, before := "stripe-late", len(h.stripe.Refunds())
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		owner := paymentID(hold.HoldID, pi)
		// The refund is made, and its answer lost.
		h.stripe.NewRefunds("pending")
		h.stripe.Next(&stripetest.Fault{On: "POST /v1/refunds", Drop: true, Done: true})
		got := h.deliver(t, "payment_intent.succeeded", pi)
		require.Equal(t, []string{"hold-ended", owner}, []string{got.Outcome, got.PaymentID})
		h.paymentState(t, owner, "refund-reported")
		require.Contains(t, h.stripe.Keys(), "holdfast-refund-"+owner)
		refunds := h.stripe.Refunds()[before:]
		require.Len(t, refunds, 1)

		h.stripe.NewRefunds("succeeded")
		h.stripe.EndRefund(refunds[0], "succeeded")
		require.Equal(t, "told", h.deliver(t, "refund.updated", refunds[0]).Outcome)
		require.NoError(t, h.closed(ctx, owner))
		require.Equal(t, "nothing", h.deliver(t, "refund.updated", refunds[0]).Outcome)

		// Replayed after the settled refund.
		require.Equal(t, "hold-ended", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		h.paymentState(t, owner, "refund-settled")
		late.hold, late.ref = hold.HoldID, pi
		h.forget(t, owner, hold.HoldID)
		require.Len(t, h.stripe.Refunds()[before:], 1, "one refund")
		h.judge(t, sku)
	})

	t.Run("what an expired hold left open is closed", func(t *testing.T) {
		sku := "stripe-open"
		h.opened(t, sku, 1)
		hold, cs := h.begun(t, sku, func(id string) string { return h.stripe.Session(id, "", 4900, "eur") })
		_, err := h.holdState(ctx, hold.HoldID, "expired")
		require.NoError(t, err)
		require.Equal(t, "expired", h.stripe.Get(cs)["status"], "before the unit went")
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.NotContains(t, h.details(t, hold.HoldID), "Unresolved")
		require.Equal(t, "nothing", h.deliver(t, "checkout.session.expired", cs).Outcome)
		h.judge(t, sku)
	})

	t.Run("what a released hold left open is closed", func(t *testing.T) {
		sku := "stripe-released"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, "canceled", h.stripe.Get(pi)["status"])
		h.judge(t, sku)
	})

	t.Run("paid, and the webhook was lost", func(t *testing.T) {
		sku := "stripe-lost"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Pay(pi)
		sold, err := h.holdState(ctx, hold.HoldID, "sold")
		require.NoError(t, err)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome, "it comes in the end")
		require.Equal(t, 1, h.sales(t, sku))
		h.judge(t, sku)
	})

	t.Run("nobody knows whether it was paid", func(t *testing.T) {
		sku := "stripe-unresolved"
		h.opened(t, sku, 1)
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Set(pi, stripetest.Object{"status": "processing"})
		_, err := h.holdState(ctx, hold.HoldID, "expired")
		require.NoError(t, err)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Contains(t, h.details(t, hold.HoldID), "- **Unresolved**: **a person should look at the provider**: `"+pi+"`: `"+pi+" is under way")
		h.judge(t, sku)
	})

	t.Run("money of a hold that nobody knows is listed", func(t *testing.T) {
		pi := h.intent("cart 17")
		h.stripe.Pay(pi)
		got := h.deliver(t, "payment_intent.succeeded", pi)
		require.Equal(t, "parked", got.Outcome)
		require.NoError(t, until(ctx, "the list shows it", func() error {
			out, err := h.operator("refunds", "--open")
			if err == nil && !strings.Contains(out, got.PaymentID) {
				err = errors.New(out)
			}
			return err
		}))
		_, err := h.operator("refunds", "retry", got.PaymentID)
		require.ErrorContains(t, err, "is parked: a person must find out")
		_, err = h.operator("refunds", "settle", got.PaymentID, "--ref", "booked elsewhere")
		require.NoError(t, err)
		require.Equal(t, "refund-settled", h.deliver(t, "payment_intent.succeeded", pi).Outcome, "what a person has settled stays settled")
	})

	t.Run("a refund that was refused is asked for again", func(t *testing.T) {
		sku := "stripe-retry"
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		_, err = h.shop.Declined(ctx, hold.HoldID, "pi_declined")
		require.NoError(t, err)
		pi := h.intent(hold.HoldID)
		h.stripe.Pay(pi)
		h.stripe.Next(&stripetest.Fault{On: "POST /v1/refunds", Status: http.StatusForbidden})
		owner := h.deliver(t, "payment_intent.succeeded", pi).PaymentID
		require.NoError(t, until(ctx, "a person is told", func() error {
			if d := h.details(t, owner); !strings.Contains(d, "a person must pay this money back") {
				return errors.New(d)
			}
			return nil
		}))
		out, err := h.operator("refunds", "retry", owner)
		require.NoError(t, err)
		require.Contains(t, out, owner+" is refund-settled: the money has gone back, reference re_")
		require.NoError(t, h.closed(ctx, owner))
		h.judge(t, sku)
	})

	t.Run("one payment told of for two holds stays with its own", func(t *testing.T) {
		sku, before := "stripe-two-holds", len(h.stripe.Refunds())
		h.opened(t, sku, 2)
		own, err := h.shop.Hold(ctx, sku, "customer-1")
		require.NoError(t, err)
		other, err := h.shop.Hold(ctx, sku, "customer-2")
		require.NoError(t, err)
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+other.HoldID+"/release", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
		pi := h.intent(own.HoldID)
		h.stripe.Pay(pi)
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", pi).Outcome)
		a, err = h.shop.Confirm(ctx, other.HoldID, pi)
		require.NoError(t, err)
		require.Equal(t, "hold-ended", a.Code(), a)
		owner := paymentID(other.HoldID, pi)
		require.NoError(t, until(ctx, "a person is told", func() error {
			if d := h.details(t, owner); !strings.Contains(d, "may have made that sale") {
				return errors.New(d)
			}
			return nil
		}))
		confirmed(t, h.house, own.HoldID, pi)
		require.Len(t, h.stripe.Refunds(), before, "it made a sale")
		_, err = h.operator("refunds", "settle", owner, "--ref", "nothing to pay back")
		require.NoError(t, err)
		h.judge(t, sku)
	})

	t.Run("the worker is killed while it asks", func(t *testing.T) {
		sku := "stripe-killed"
		h.opened(t, sku, 1)
		asked, over := make(chan struct{}), make(chan struct{})
		hold, pi := h.begun(t, sku, h.intent)
		h.stripe.Pay(pi)
		h.stripe.Next(&stripetest.Fault{On: "GET /v1/payment_intents/" + pi, Before: func() { close(asked); <-over }})
		<-asked
		h.Child(stack.Worker).Kill()
		close(over)
		require.NoError(t, h.Child(stack.Worker).Start(ctx))
		sold, err := h.holdState(ctx, hold.HoldID, "sold")
		require.NoError(t, err)
		require.Equal(t, pi, sold.PaymentRef)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		require.Equal(t, 1, h.sales(t, sku))
		h.judge(t, sku)
	})

	t.Run("replayed after the retention of the runs, the record decides", func(t *testing.T) {
		before, owner := len(h.stripe.Refunds()), paymentID(late.hold, late.ref)
		h.forgotten(t, sale.hold, late.hold, owner)
		require.Equal(t, "sold", h.deliver(t, "payment_intent.succeeded", sale.ref).Outcome)
		confirmed(t, h.house, sale.hold, sale.ref)
		require.Equal(t, "hold-ended", h.deliver(t, "payment_intent.succeeded", late.ref).Outcome)
		h.paymentState(t, owner, "refund-settled")
		require.NoError(t, h.closed(ctx, owner))
		require.Len(t, h.stripe.Refunds(), before, "what had gone back is found at Stripe")
		h.judge(t, "stripe-sale", "stripe-late")
	})
}

// sales counts what was ever sold.
func (h *house) sales(t *testing.T, sku string) int {
	t.Helper()
	n := 0
	for _, l := range h.ledger(t, sku) {
		if l.State == "sold" {
			n++
		}
	}
	return n
}

// operator runs a command of the product against the house.
func (h *house) operator(args ...string) (string, error) {
	cmd := exec.Command(os.Getenv("HOLDFAST_BIN"), args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+h.URL(), "HOLDFAST_KEY="+stack.APIKey)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return string(out), err
}

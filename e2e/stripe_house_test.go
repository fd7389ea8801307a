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

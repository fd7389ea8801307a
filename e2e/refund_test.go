package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// refundDesk is the shop's endpoint for refunds: it has a bad moment first.
type refundDesk struct {
	mu     sync.Mutex
	verify *standardwebhooks.Webhook
	calls  []refundCall
}

type refundCall struct {
	id, body string
	forged   error
}

func (d *refundDesk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = d.verify.Verify(body, r.Header)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, refundCall{r.Header.Get("webhook-id"), string(body), err})
	if len(d.calls) == 1 {
		w.WriteHeader(http.StatusBadGateway)
	}
}

func (d *refundDesk) seen() []refundCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// A late payment's refund is asked of the shop until it takes the request, the
// same each time, and stays open until the shop says that the money is back.
func TestTheShopIsAskedForARefund(t *testing.T) {
	ctx := t.Context()
	const secret = "whsec_cmVmdW5kcy1vZi10aGUtc2hvcC1vZi10aGUtc3Rvcnk="
	verify, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	desk := &refundDesk{verify: verify}
	endpoint := httptest.NewServer(desk)
	t.Cleanup(endpoint.Close)
	h := ownHouse(t, stack.Options{Env: map[string]string{
		"HOLDFAST_PAYMENT_PROVIDER": "webhook", "HOLDFAST_PAYMENT_WEBHOOK_URL": endpoint.URL, "HOLDFAST_PAYMENT_WEBHOOK_SECRETS": secret,
	}}, lease)
	sku := "refund"
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "late")
	require.NoError(t, err)
	_, err = h.shop.Declined(ctx, hold.HoldID, "pay_declined")
	require.NoError(t, err)
	_, err = h.holdState(ctx, hold.HoldID, "released")
	require.NoError(t, err)
	a, err := h.shop.Confirm(ctx, hold.HoldID, "pay_late")
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, a.Status, a)

	owner := paymentID(hold.HoldID, "pay_late")
	h.paymentState(t, owner, "refund-reported")
	calls := desk.seen()
	require.Len(t, calls, 2, "asked again after a bad moment, and not after it was taken")
	for _, c := range calls {
		require.NoError(t, c.forged)
		require.Equal(t, owner+"_refund-requested", c.id)
		require.Equal(t, calls[0].body, c.body)
	}
	var said struct {
		Type string `json:"type"`
		Data struct {
			PaymentID  string `json:"payment_id"`
			HoldID     string `json:"hold_id"`
			PaymentRef string `json:"payment_ref"`
			Cause      string `json:"cause"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(calls[0].body), &said))
	require.Equal(t, "refund.requested", said.Type)
	require.Equal(t, []string{owner, hold.HoldID, "pay_late", "late"}, []string{said.Data.PaymentID, said.Data.HoldID, said.Data.PaymentRef, said.Data.Cause})

	require.NoError(t, h.temporal.SignalWorkflow(ctx, owner, "", "refund-settled", map[string]string{"reference": "re_1"}))
	require.NoError(t, h.closed(ctx, owner))

	// Told again when its Payment is forgotten, the money is known to have gone back.
	h.forget(t, owner)
	a, err = h.shop.Confirm(ctx, hold.HoldID, "pay_late")
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, a.Status, a)
	require.NoError(t, h.closed(ctx, owner))
	h.paymentState(t, owner, "refund-settled")

	// A payment that made a sale, and one that went back, told for another hold.
	sold, err := h.shop.Hold(ctx, sku, "buyer")
	require.NoError(t, err)
	confirmed(t, h, sold.HoldID, "pay_sale")
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	other, err := h.shop.Hold(ctx, sku, "other")
	require.NoError(t, err)
	for _, ref := range []string{"pay_sale", "pay_late"} {
		a, err = h.shop.Confirm(ctx, other.HoldID, ref)
		require.NoError(t, err)
		require.Equal(t, "payment-conflict", a.Code(), a)
		parked := paymentID(other.HoldID, ref)
		h.paymentState(t, parked, "parked")
		require.NoError(t, h.temporal.SignalWorkflow(ctx, parked, "", "refund-settled", map[string]string{"actor": "ops"}))
		require.NoError(t, h.closed(ctx, parked))
	}
	confirmed(t, h, other.HoldID, "pay_other")
	require.Len(t, desk.seen(), 2, "the shop was asked for one refund in all")
	h.judge(t, sku)
}

package stripe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	stripego "github.com/stripe/stripe-go/v84"

	"holdfast/internal/stripetest"
	"holdfast/payment"
)

// Stripe's own mock refuses a path, parameter or value that Stripe's API does
// not have. It remembers nothing, so what calls do together is proved with the
// stand-in; here each call alone must be one of the API, and its answer readable.
func TestEveryCallIsOneOfStripesAPI(t *testing.T) {
	m, err := stripetest.StartMock()
	require.NoError(t, err)
	t.Cleanup(m.Close)
	a, err := New(Account{Key: stripetest.MockKey, WebhookSecrets: []string{hookSecret}, BaseURL: m.URL, Timeout: 30 * time.Second})
	require.NoError(t, err)
	ctx := t.Context()

	pi, err := a.intent(ctx, "pi_123")
	require.NoError(t, err)
	require.Equal(t, "pi_123", pi.ID)
	require.NotEmpty(t, pi.Status)
	require.NotEmpty(t, money(pi.Amount, pi.Currency).Currency)

	cs, err := a.session(ctx, "cs_test_123")
	require.NoError(t, err)
	require.NotEmpty(t, cs.ID)
	require.NotEmpty(t, cs.PaymentStatus)
	sessions, err := a.sessionsOf(ctx, "pi_123")
	require.NoError(t, err)
	require.NotEmpty(t, sessions)

	acted, err := a.end(ctx, begun{cs: &stripego.CheckoutSession{ID: "cs_test_123", Status: "open"}, pi: &stripego.PaymentIntent{ID: "pi_123", Status: "requires_action"}}, "")
	require.NoError(t, err, "expire and cancel")
	require.True(t, acted)

	re, err := a.createRefund(ctx, refundOf("pi_123"))
	require.NoError(t, err)
	require.NotEmpty(t, re.ID)
	require.NotEmpty(t, re.Status)
	receipt, done, err := a.refunded(ctx, refundOf("pi_123"), true)
	require.NoError(t, err)
	require.True(t, done)
	require.NotEmpty(t, receipt.Reference)

	h := Happening{}
	require.NoError(t, a.ofRefund(ctx, &h, stripego.Event{Type: stripego.EventTypeRefundUpdated, Data: &stripego.EventData{Raw: []byte(`{"id":"re_123"}`)}}))
	require.Equal(t, "re_123", h.Reference)

	_, err = a.Status(ctx, attempt("pi_123"))
	require.NoError(t, err)
	_, err = a.CancelAttempt(ctx, attempt("cs_test_123"))
	require.NoError(t, err)
	_, err = a.RequestRefund(ctx, refundOf("pi_123"))
	require.NoError(t, err)

	// The mock is a judge: it refuses what is not of the API, as Stripe would.
	bad := &stripego.PaymentIntentCancelParams{CancellationReason: stripego.String("bored")}
	_, err = a.api.V1PaymentIntents.Cancel(ctx, "pi_123", bad)
	require.True(t, refused(err), "%v", err)
	extra := &stripego.RefundCreateParams{PaymentIntent: stripego.String("pi_123")}
	extra.AddExtra("speed", "high")
	_, err = a.api.V1Refunds.Create(ctx, extra)
	require.True(t, refused(err), "%v", err)

	stranger, err := New(Account{Key: "rk_live_1", WebhookSecrets: []string{hookSecret}, BaseURL: m.URL, Timeout: 30 * time.Second})
	require.NoError(t, err)
	_, err = stranger.Status(ctx, attempt("pi_123"))
	require.True(t, payment.NeedsPerson(err), "%v", err)
}

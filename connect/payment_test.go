package connect

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/stripetest"
	"holdfast/payment"
	"holdfast/payment/stripe"
)

func TestPaymentIsWhatTheConfigurationSays(t *testing.T) {
	hold := contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	request := func(ref string) payment.Refund {
		return payment.Refund{PaymentID: contract.PaymentID(hold, ref), HoldID: hold, PaymentRef: ref, RequestedAt: time.Now()}
	}

	port, err := Payment(devConfig(t))
	require.NoError(t, err)
	require.Equal(t, "none", port.Name())

	asked := 0
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer shop.Close()
	port, err = Payment(devConfig(t, "payment.provider=webhook", "payment.webhook.url="+shop.URL, "payment.webhook.secrets="+config.DevWebhookSecret))
	require.NoError(t, err)
	require.Equal(t, "webhook", port.Name())
	_, err = port.RequestRefund(t.Context(), request("pay_1"))
	require.NoError(t, err)
	require.Equal(t, 1, asked)

	s := stripetest.New()
	defer s.Close()
	ref := s.Intent(hold, 500, "jpy")
	s.Pay(ref)
	port, err = Payment(devConfig(t, "payment.provider=stripe", "payment.stripe.base_url="+s.URL,
		"payment.stripe.key="+s.Key, "payment.stripe.webhook_secrets=whsec_0123456789abcdef"))
	require.NoError(t, err)
	require.IsType(t, &stripe.Adapter{}, port)
	receipt, err := port.RequestRefund(t.Context(), request(ref))
	require.NoError(t, err)
	require.True(t, receipt.Settled)

	// Money that names no hold is listed, or left alone when the account sells other things.
	nameless := s.Intent("", 500, "jpy")
	s.Pay(nameless)
	for unnamed, kind := range map[string]stripe.Kind{"list": stripe.Unmatched, "ignore": stripe.Ignored} {
		port, err = Payment(devConfig(t, "payment.provider=stripe", "payment.stripe.base_url="+s.URL, "payment.stripe.key="+s.Key,
			"payment.stripe.webhook_secrets=whsec_0123456789abcdef", "payment.stripe.unnamed="+unnamed))
		require.NoError(t, err)
		event := s.Event("payment_intent.succeeded", nameless, nil)
		got, err := port.(*stripe.Adapter).Receive(t.Context(), event, stripetest.Sign(event, time.Now(), "whsec_0123456789abcdef"))
		require.NoError(t, err)
		require.Equal(t, kind, got.Kind, unnamed)
	}

	for word, c := range map[string]config.Payment{
		"payment.provider":   {},
		"payment.webhook":    {Provider: "webhook"},
		"payment.stripe.key": {Provider: "stripe"},
	} {
		_, err := Payment(&config.Config{Payment: c})
		require.ErrorContains(t, err, word)
	}
}

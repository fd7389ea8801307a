package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// loadWith gives the problems of base and more, by key.
func loadWith(t *testing.T, more map[string]string) map[string]Problem {
	t.Helper()
	environ(t, more)
	_, err := Load("", nil)
	if err == nil {
		return nil
	}
	return problems(t, err)
}

// Credentials are no choice of a provider, and a choice without credentials
// stops the start.
func TestPaymentProviderIsNeverGuessed(t *testing.T) {
	environ(t, map[string]string{"payment.stripe.key": "sk_live_aaaaaaaa", "payment.stripe.webhook_secrets": "whsec_aaaaaaaaaaaaaaaa"})
	unset(t, EnvName("payment.provider"))
	_, err := Load("", nil)
	require.Equal(t, "must be none or webhook or stripe", problems(t, err)["payment.provider"].Right)

	for provider, want := range map[string][]string{
		"none":    nil,
		"webhook": {"payment.webhook.url", "payment.webhook.secrets"},
		"stripe":  {"payment.stripe.key", "payment.stripe.webhook_secrets"},
	} {
		wrong := loadWith(t, map[string]string{"payment.provider": provider})
		require.Len(t, wrong, len(want), provider)
		for _, name := range want {
			require.Contains(t, wrong[name].Right, "when payment.provider is "+provider)
		}
	}
}

func TestPaymentOverWebhook(t *testing.T) {
	const secret = "whsec_cGF5bWVudC1vZi10aGUtdGVzdA=="
	right := map[string]string{"payment.provider": "webhook", "payment.webhook.url": "https://shop.example/hooks", "payment.webhook.secrets": secret + ",whsec_YW5vdGhlci1vZi10aGUtdGVzdA=="}
	require.Empty(t, loadWith(t, right))
	for name, values := range map[string][]string{
		"payment.webhook.url":     {"", "shop.example", "http://shop.example", "https://u:p@shop.example", "https://shop.example?token=a", "ftp://shop.example"},
		"payment.webhook.secrets": {"secret-without-its-form", "whsec_", "whsec_!!!", "whsec_c2hvcnQ=", secret + "," + secret, DevWebhookSecret},
	} {
		for _, value := range values {
			more := map[string]string{}
			for k, v := range right {
				more[k] = v
			}
			more[name] = value
			wrong := loadWith(t, more)
			require.Len(t, wrong, 1, value)
			require.Contains(t, wrong, name)
			if name == "payment.webhook.secrets" && value != "whsec_" {
				require.NotContains(t, wrong[name].String(), value)
			}
		}
	}
	for _, url := range []string{"http://127.0.0.1:9/hooks", "http://localhost:9"} {
		right["payment.webhook.url"] = url
		require.Empty(t, loadWith(t, right))
	}
}

func TestPaymentWithStripe(t *testing.T) {
	right := map[string]string{"payment.provider": "stripe", "payment.stripe.key": "rk_live_51Habcdefgh", "payment.stripe.webhook_secrets": "whsec_0123456789abcdef,whsec_fedcba9876543210"}
	require.Empty(t, loadWith(t, right))
	for name, values := range map[string][]string{
		"payment.stripe.key":             {"51Habcdefgh", "pk_live_51Habcdefgh", "sk_prod_51Habcdefgh", " sk_live_51Habcdefgh", "whsec_0123456789abcdef"},
		"payment.stripe.webhook_secrets": {"whsec_short", "0123456789abcdef", "whsec_0123456789abcdef,whsec_0123456789abcdef", "we_0123456789abcdef01", "whsec_0123456789 abcdef", DevWebhookSecret},
	} {
		for _, value := range values {
			more := map[string]string{}
			for k, v := range right {
				more[k] = v
			}
			more[name] = value
			wrong := loadWith(t, more)
			require.Len(t, wrong, 1, value)
			require.Contains(t, wrong, name)
			require.NotContains(t, wrong[name].Right, value)
		}
	}
	right["payment.stripe.key"] = "pk_live_51Habcdefgh"
	require.Contains(t, loadWith(t, right)["payment.stripe.key"].Right, "not a publishable one")
}

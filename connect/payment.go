package connect

import (
	"fmt"

	"holdfast/config"
	"holdfast/events"
	"holdfast/payment"
	"holdfast/payment/stripe"
	"holdfast/payment/webhook"
)

// Payment makes the payment port that payment.provider names. With "stripe" it
// is a *stripe.Adapter, which reads Stripe's webhooks as well. It calls nobody.
func Payment(cfg *config.Config) (payment.Port, error) {
	c := cfg.Payment
	switch c.Provider {
	case payment.ProviderNone:
		return payment.None(), nil
	case payment.ProviderWebhook:
		sender, err := events.NewSender(events.Endpoint{URL: c.Webhook.URL, Secrets: c.Webhook.Secrets, Timeout: c.Timeout})
		if err != nil {
			return nil, fmt.Errorf("payment.webhook: %w", err)
		}
		return webhook.New(sender), nil
	case payment.ProviderStripe:
		a, err := stripe.New(stripe.Account{
			Key: c.Stripe.Key, WebhookSecrets: c.Stripe.WebhookSecrets, BaseURL: c.Stripe.BaseURL, Timeout: c.Timeout,
			IgnoreUnnamed: c.Stripe.Unnamed == "ignore",
		})
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	return nil, fmt.Errorf("payment.provider is %q: set none, webhook or stripe", c.Provider)
}

package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// with is a rule that counts only for one payment.provider; without the other
// keys of its section are not looked at.
func with(provider string, r rule) rule {
	when := ", when payment.provider is " + provider
	return rule{right: r.right + when, check: func(v any, c *Config) string {
		if c.Payment.Provider != provider {
			return ""
		}
		if complaint := r.check(v, c); complaint != "" {
			return complaint + when
		}
		return ""
	}}
}

func refundEndpoint() rule {
	return with("webhook", must("an absolute https URL without user, query or fragment, http only in dev or for a loopback host", func(v string, c *Config) bool {
		u, ok := webURL(v)
		return ok && secure(u, c)
	}))
}

func refundSecrets() rule { return with("webhook", webhookSecrets()) }

var (
	stripeKeyPattern  = regexp.MustCompile(`^(sk|rk)_(live|test)_[A-Za-z0-9_-]{8,}$`)
	stripeHookPattern = regexp.MustCompile(`^whsec_[A-Za-z0-9+/=_-]{16,}$`)
)

func stripeKey() rule {
	const right = "a secret or restricted key of Stripe: sk_live_…, sk_test_…, rk_live_… or rk_test_…"
	return with("stripe", rule{right: right, check: func(v any, _ *Config) string {
		switch v := v.(string); {
		case stripeKeyPattern.MatchString(v):
			return ""
		case strings.HasPrefix(v, "pk_"):
			return right + ", not a publishable one"
		}
		return right
	}})
}

func stripeHookSecrets() rule {
	return with("stripe", items("one or more signing secrets of Stripe's webhook endpoint, whsec_…", func(item string, c *Config) (complaint, unique string) {
		switch {
		case c.Mode != ModeDev && published(item):
			return weak(item, c), ""
		case !stripeHookPattern.MatchString(item):
			return fmt.Sprintf("whsec_ and at least %d letters or digits", minSecret), ""
		}
		return "", item
	}))
}

// String keeps the secrets out of a careless print.
func (w PaymentWebhook) String() string { return fmt.Sprintf("{%s (secret)}", w.URL) }

// LogValue keeps the secrets out of a careless log line.
func (w PaymentWebhook) LogValue() slog.Value { return slog.StringValue(w.String()) }

// String keeps the secrets out of a careless print.
func (s PaymentStripe) String() string { return fmt.Sprintf("{(secret) %s}", s.BaseURL) }

// LogValue keeps the secrets out of a careless log line.
func (s PaymentStripe) LogValue() slog.Value { return slog.StringValue(s.String()) }

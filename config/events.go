package config

import (
	"fmt"
	"log/slog"
)

func eventsEndpoint() rule {
	const right = "an absolute https URL without user, query or fragment, http only in dev or for a loopback host; or empty"
	return must(right, func(v string, c *Config) bool {
		u, ok := webURL(v)
		return v == "" || ok && secure(u, c)
	})
}

// eventsSecrets is the rule of secrets that nobody needs without an endpoint.
func eventsSecrets() rule {
	list := webhookSecrets()
	return rule{right: list.right + ", when events.url is set", check: func(v any, c *Config) string {
		if !c.Events.On() {
			return ""
		}
		if complaint := list.check(v, c); complaint != "" {
			return complaint + ", when events.url is set"
		}
		return ""
	}}
}

// String keeps the secrets out of a careless print.
func (e Events) String() string {
	return fmt.Sprintf("{%s (secret) %s %d}", e.URL, e.Timeout, e.Concurrency)
}

// LogValue keeps the secrets out of a careless log line.
func (e Events) LogValue() slog.Value { return slog.StringValue(e.String()) }

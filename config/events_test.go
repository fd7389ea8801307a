package config

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without an endpoint nothing else is needed; with one, its secrets are.
func TestEventsEndpoint(t *testing.T) {
	const secret = "whsec_ZXZlbnRzLW9mLXRoZS10ZXN0"
	environ(t, nil)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.False(t, cfg.Events.On())
	require.Contains(t, loadWith(t, map[string]string{"events.url": "https://shop.example/hooks"})["events.secrets"].Right, "when events.url is set")

	right := map[string]string{"events.url": "https://shop.example/hooks", "events.secrets": secret}
	require.Empty(t, loadWith(t, right))
	for name, values := range map[string][]string{
		"events.url":         {"shop.example", "http://shop.example", "https://u:p@shop.example", "https://shop.example?token=a"},
		"events.secrets":     {"secret-without-its-form", "whsec_c2hvcnQ=", secret + "," + secret, DevWebhookSecret},
		"events.timeout":     {"999ms", "31s", "10"},
		"events.concurrency": {"0", "101", "many"},
	} {
		for _, value := range values {
			more := map[string]string{name: value}
			for k, v := range right {
				if k != name {
					more[k] = v
				}
			}
			wrong := loadWith(t, more)
			require.Len(t, wrong, 1, value)
			require.Contains(t, wrong, name)
			if name == "events.secrets" {
				require.NotContains(t, wrong[name].String(), value)
			}
		}
	}
}

func TestEventsShowNoSecret(t *testing.T) {
	e := Events{URL: "https://shop.example", Secrets: []string{"whsec_marked"}}
	var shown strings.Builder
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "events", e)
	shown.WriteString(fmt.Sprint(e))
	require.Contains(t, shown.String(), "https://shop.example")
	require.NotContains(t, shown.String(), "marked")
}

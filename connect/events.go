package connect

import (
	"fmt"

	"holdfast/config"
	"holdfast/events"
)

// Events makes the sender to the shop's endpoint for events, nil when it has
// none. It calls nobody.
func Events(cfg *config.Config) (*events.Sender, error) {
	if !cfg.Events.On() {
		return nil, nil
	}
	sender, err := events.NewSender(events.Endpoint{URL: cfg.Events.URL, Secrets: cfg.Events.Secrets, Timeout: cfg.Events.Timeout})
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return sender, nil
}

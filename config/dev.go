package config

import "encoding/base64"

// Modes.
const (
	ModeProduction = "production"
	ModeDev        = "dev"
)

// Values of gate.fence.
const (
	FenceOn  = "on"
	FenceOff = "off"
)

// The published secrets of `make dev`. In mode dev they are the defaults of
// their keys; any other mode refuses them, because everybody knows them.
const (
	DevCaller        = "dev"
	DevAPIKey        = "dev"
	DevWebhookSecret = "whsec_aG9sZGZhc3QtZGV2LXdlYmhvb2s="
	DevPersonSecret  = "holdfast-dev-person-secret"
	DevMainSecret    = "holdfast-dev-main-secret"
	DevLinkSecret    = "holdfast-dev-link-secret"

	// DevPayloadKey is no default: `make dev` sets it.
	DevPayloadKey = "dev:aG9sZGZhc3QtZGV2LXBheWxvYWQta2V5LXRvLXRyeSE="
)

// devDefaults are the defaults of mode dev: the secrets, and no load balancer that
// must see a door go.
func devDefaults() map[string]any {
	return map[string]any{
		"http.drain_seconds": 0,

		"secrets.person":    DevPersonSecret,
		"secrets.main":      DevMainSecret,
		"secrets.links":     []string{"1:" + DevLinkSecret},
		"secrets.api_keys":  []string{DevCaller + ":" + DevAPIKey},
		"secrets.inventory": []string{DevWebhookSecret},
	}
}

// published says whether secret is one of the published ones, in any spelling.
func published(secret string) bool {
	switch secret {
	case DevAPIKey, DevPersonSecret, DevMainSecret, DevLinkSecret, DevWebhookSecret:
		return true
	}
	key, ok := webhookKey(secret)
	known, _ := webhookKey(DevWebhookSecret)
	if ok && string(key) == string(known) {
		return true
	}
	_, bytes, ok := PayloadKey(secret)
	_, knownBytes, _ := PayloadKey(DevPayloadKey)
	return ok && string(bytes) == string(knownBytes)
}

const webhookPrefix = "whsec_"

// webhookKey decodes a Standard Webhooks secret.
func webhookKey(secret string) ([]byte, bool) {
	if len(secret) < len(webhookPrefix) || secret[:len(webhookPrefix)] != webhookPrefix {
		return nil, false
	}
	key, err := base64.StdEncoding.DecodeString(secret[len(webhookPrefix):])
	return key, err == nil
}

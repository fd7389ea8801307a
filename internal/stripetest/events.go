package stripetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Event is the body of a webhook that carries an object as it is now. Every
// call makes an event with an id of its own; change, when not nil, may alter it.
func (s *Server) Event(kind, id string, change func(event Object)) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Object{
		"id": s.id("evt"), "object": "event", "api_version": "2026-02-25.clover", "created": 1_900_000_000,
		"livemode": false, "pending_webhooks": 1, "type": kind, "data": Object{"object": maps.Clone(s.object(id))},
	}
	if change != nil {
		change(e)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return raw
}

// Sign is the Stripe-Signature of a body by each of the secrets.
func Sign(body []byte, at time.Time, secrets ...string) string {
	header := fmt.Sprintf("t=%d", at.Unix())
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.", at.Unix())
		mac.Write(body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

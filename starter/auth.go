package starter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"strings"
)

type apiKey struct {
	caller string
	digest [sha256.Size]byte
}

// apiKeys reads "caller:secret" items; the configuration has checked them.
func apiKeys(items []string) []apiKey {
	out := make([]apiKey, 0, len(items))
	for _, item := range items {
		caller, secret, _ := strings.Cut(item, ":")
		out = append(out, apiKey{caller: caller, digest: sha256.Sum256([]byte(secret))})
	}
	return out
}

// caller names who sent the bearer key of r. Every key is compared, in constant
// time, so that an answer's delay tells nothing.
func (d *Door) caller(r *http.Request) (string, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return "", problem(unauthorized, "the header Authorization stands more than once; which one counts?")
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(secret) == "" {
		return "", problem(unauthorized, "send the header Authorization: Bearer and an API key")
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	found := ""
	for _, k := range d.apiKeys {
		if hmac.Equal(digest[:], k.digest[:]) {
			found = k.caller
		}
	}
	if found == "" {
		return "", problem(unauthorized, "the API key is not one of ours")
	}
	return found, nil
}

type callerKey struct{}

// callerOf is the caller that the route has let in.
func callerOf(ctx context.Context) string {
	s, _ := ctx.Value(callerKey{}).(string)
	return s
}

// idempotencyKey reads the header Idempotency-Key, quoted or bare; "" when
// there is none.
func idempotencyKey(r *http.Request) (string, error) {
	if len(r.Header.Values("Idempotency-Key")) > 1 {
		return "", problem(validationFailed, "the header Idempotency-Key stands more than once; which one counts?")
	}
	key := strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", problem(validationFailed, "the header Idempotency-Key must be 1 to 255 visible ASCII characters without spaces")
	}
	return key, nil
}

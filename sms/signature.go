package sms

import (
	"errors"
	"strings"

	twilio "github.com/twilio/twilio-go/client"
)

// SignatureHeader carries the signature of Twilio's requests.
const SignatureHeader = "X-Twilio-Signature"

// Verifier checks that a request is Twilio's. It goes by the URL that Twilio was
// told, never by a header: a proxy changes scheme, host and port, and so can
// anyone who sends us a request.
type Verifier struct {
	validator twilio.RequestValidator
	publicURL string
}

// NewVerifier returns a verifier for an account's token and the public base URL,
// without a slash at its end. Without a token anyone could sign.
func NewVerifier(authToken, publicURL string) (*Verifier, error) {
	if authToken == "" {
		return nil, errors.New("sms.twilio.auth_token: without it no request can be told from a forged one")
	}
	return &Verifier{validator: twilio.NewRequestValidator(authToken), publicURL: publicURL}, nil
}

// Verify checks a POST. target is the request's target as it came, path and
// query, neither decoded nor sorted; body its form.
func (v *Verifier) Verify(target string, body []byte, signature string) bool {
	if v == nil || signature == "" || !strings.HasPrefix(target, "/") {
		return false
	}
	return v.validator.ValidateBody(v.publicURL+target, body, signature)
}

package stripe

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	stripego "github.com/stripe/stripe-go/v84"

	"holdfast/payment"
)

const maxReason = 300 // bytes of what Stripe says

// failed makes our error of stripe-go's. What only a person can mend is
// Permanent; an answer that is none of Stripe's, as from a proxy, is not.
func (a *Adapter) failed(doing string, err error) *payment.Error {
	var done *payment.Error
	if errors.As(err, &done) {
		return done
	}
	var e *stripego.Error
	if !errors.As(err, &e) {
		return &payment.Error{
			Class: payment.Retry, Reason: doing + ": no answer of Stripe: " + a.clean(bare(err)), MaybeDone: true, Cause: err,
		}
	}
	out := &payment.Error{
		Class: payment.Permanent, Status: e.HTTPStatusCode, Code: string(e.Code),
		Reason: fmt.Sprintf("%s: Stripe answered %d: %s", doing, e.HTTPStatusCode, a.clean(e.Msg)),
	}
	if e.RequestID != "" {
		out.Reason += " (request " + e.RequestID + ")"
	}
	switch s := e.HTTPStatusCode; {
	case s == http.StatusUnauthorized:
		out.Do = "set payment.stripe.key to a key that is valid"
	case s == http.StatusForbidden:
		out.Do = "give the key of payment.stripe.key the right to write Refunds, PaymentIntents and Checkout Sessions"
	case s == http.StatusTooManyRequests, s == http.StatusConflict, s >= 500:
		out.Class, out.MaybeDone = payment.Retry, s >= 500
	case e.Type == stripego.ErrorTypeIdempotency:
		// The key's first call had other parameters; what it did shows in the list.
		out.Class = payment.Retry
	case e.Code == stripego.ErrorCodeResourceMissing:
		out.Do = "find out whose payment this is: it is not in the account and mode of payment.stripe.key"
	default:
		out.Do = "look at the payment in the Stripe Dashboard"
	}
	return out
}

// refused says that Stripe understood and did not do it: its state forbids.
func refused(err error) bool {
	var e *stripego.Error
	return errors.As(err, &e) && e.HTTPStatusCode == http.StatusBadRequest && e.Type == stripego.ErrorTypeInvalidRequest
}

func hasCode(err error, code stripego.ErrorCode) bool {
	var e *stripego.Error
	return errors.As(err, &e) && e.Code == code
}

// replayed says that an error is the one that Stripe kept of an earlier call
// with the same idempotency key. It would come for a day, whatever has been
// mended since.
func replayed(err error) bool {
	var e *stripego.Error
	return errors.As(err, &e) && e.LastResponse != nil && e.LastResponse.Header.Get("Idempotent-Replayed") == "true"
}

// clean keeps the key out of what others say, and what they say short.
func (a *Adapter) clean(s string) string {
	s = strings.ReplaceAll(s, a.key, "(key)")
	if len(s) > maxReason {
		s = s[:maxReason]
		for !utf8.ValidString(s) && len(s) > maxReason-utf8.UTFMax {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return strings.ToValidUTF8(s, "")
}

// bare leaves out the URL that net/http puts before every reason.
func bare(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

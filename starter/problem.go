package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// Names of the problems, which are their codes as well.
const (
	malformedBody         = "malformed-body"
	idempotencyKeyMissing = "idempotency-key-missing"
	unauthorized          = "unauthorized"
	signatureInvalid      = "signature-invalid"
	unknownSKU            = "unknown-sku"
	unknownHold           = "unknown-hold"
	unknownEntry          = "unknown-entry"
	unknownLink           = "unknown-link"
	unknownEvent          = "unknown-event"
	unknownPath           = "unknown-path"
	methodNotAllowed      = "method-not-allowed"
	soldOut               = "sold-out"
	reservedForLine       = "reserved-for-line"
	paused                = "paused"
	saleEnded             = "sale-ended"
	limitReached          = "limit-reached"
	justGone              = "just-gone"
	optedOut              = "opted-out"
	holdEnded             = "hold-ended"
	paymentConflict       = "payment-conflict"
	amountMismatch        = "amount-mismatch"
	preconditionFailed    = "precondition-failed"
	bodyTooLarge          = "body-too-large"
	unsupportedMediaType  = "unsupported-media-type"
	validationFailed      = "validation-failed"
	idempotencyKeyReused  = "idempotency-key-reused"
	tooManyRequests       = "too-many-requests"
	unavailable           = "unavailable"
)

var problems = map[string]struct {
	status int
	title  string
}{
	malformedBody:         {http.StatusBadRequest, "The body is not JSON"},
	idempotencyKeyMissing: {http.StatusBadRequest, "The header Idempotency-Key is missing"},
	unauthorized:          {http.StatusUnauthorized, "A valid API key is needed"},
	signatureInvalid:      {http.StatusUnauthorized, "The webhook signature does not hold"},
	unknownSKU:            {http.StatusNotFound, "No such SKU"},
	unknownHold:           {http.StatusNotFound, "No such hold"},
	unknownEntry:          {http.StatusNotFound, "No such waitlist entry"},
	unknownLink:           {http.StatusNotFound, "This link is not known"},
	unknownEvent:          {http.StatusNotFound, "No such event"},
	unknownPath:           {http.StatusNotFound, "No such call"},
	methodNotAllowed:      {http.StatusMethodNotAllowed, "Not a method of this path"},
	soldOut:               {http.StatusConflict, "Sold out"},
	reservedForLine:       {http.StatusConflict, "What is free is reserved for the line"},
	paused:                {http.StatusConflict, "The sale is paused"},
	saleEnded:             {http.StatusConflict, "The sale has ended"},
	limitReached:          {http.StatusConflict, "The customer has as many as one may have"},
	justGone:              {http.StatusConflict, "It was gone before the hold was made"},
	optedOut:              {http.StatusConflict, "The person wants no texts"},
	holdEnded:             {http.StatusConflict, "The hold has ended"},
	paymentConflict:       {http.StatusConflict, "The payment conflicts with what was told before"},
	amountMismatch:        {http.StatusConflict, "Not the amount that was announced"},
	preconditionFailed:    {http.StatusPreconditionFailed, "It has changed since, or nobody said which version is meant"},
	bodyTooLarge:          {http.StatusRequestEntityTooLarge, "The body is too large"},
	unsupportedMediaType:  {http.StatusUnsupportedMediaType, "Unsupported media type"},
	validationFailed:      {http.StatusUnprocessableEntity, "The request is not valid"},
	idempotencyKeyReused:  {http.StatusUnprocessableEntity, "This key was used for another request"},
	tooManyRequests:       {http.StatusTooManyRequests, "Too many requests"},
	unavailable:           {http.StatusServiceUnavailable, "Not available right now"},
}

// Problem is an RFC 9457 problem document, and the error of a handler that
// refuses a request.
type Problem struct {
	Type    string               `json:"type"`
	Title   string               `json:"title"`
	Status  int                  `json:"status"`
	Code    string               `json:"code"`
	Detail  string               `json:"detail"`
	Errors  []FieldError         `json:"errors,omitempty"`
	SKU     string               `json:"sku,omitempty"`     // of the line that was refused
	Pointer string               `json:"pointer,omitempty"` // to it in the request
	JoinURL string               `json:"join_url,omitempty"`
	Waiting *int64               `json:"waiting,omitempty"`
	Refund  *contract.RefundInfo `json:"refund,omitempty"`

	retryAfter time.Duration
}

// FieldError says what is wrong with one member of a body. Pointer is a JSON
// pointer (RFC 6901).
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func problem(name, format string, args ...any) *Problem {
	kind := problems[name]
	return &Problem{
		Type: "urn:holdfast:problem:" + name, Title: kind.title, Status: kind.status,
		Code: name, Detail: fmt.Sprintf(format, args...),
	}
}

// tryLater is the answer to what is neither done nor refused.
func tryLater(after time.Duration, format string, args ...any) *Problem {
	p := problem(unavailable, format, args...)
	p.retryAfter = after
	return p
}

const (
	retrySoon   = time.Second
	retryClosed = 5 * time.Second // a closed gate is checked for some seconds
)

// problemOf turns any error of a handler into what the client is told. A gate
// that did not answer is never a refusal.
func (d *Door) problemOf(r *http.Request, err error) *Problem {
	var p *Problem
	var closed *redis.ClosedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &closed):
		d.metClosed(closed)
		return tryLater(retryClosed, "SKU %s is being checked after a restart of its store; nothing was changed", closed.SKU)
	case errors.Is(err, redis.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		d.log.Warn("request not answered in time", "route", r.Pattern, "error", err)
	default:
		d.log.Error("request failed", "route", r.Pattern, "error", err)
	}
	return tryLater(retrySoon, "the outcome is not known; repeat the request as it was")
}

// retrySeconds is the header Retry-After: whole seconds, never too few.
func (p *Problem) retrySeconds() string {
	return strconv.Itoa(int((p.retryAfter + time.Second - 1) / time.Second))
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", p.retrySeconds())
	}
	if p.Status == http.StatusUnauthorized && p.Code == unauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	writeBody(w, p.Status, "application/problem+json", p)
}

func writeJSON(w http.ResponseWriter, status int, body any) error {
	writeBody(w, status, "application/json", body)
	return nil
}

func writeBody(w http.ResponseWriter, status int, contentType string, body any) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // links stay readable
	if err := enc.Encode(body); err != nil {
		panic(fmt.Sprintf("an answer of ours does not encode: %v", err)) // only plain structs come here
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(raw.Bytes()) // the client has gone: nobody left to tell
}

// stamp is an instant as the API shows it.
func stamp(t time.Time) string { return contract.Instant(t) }

// stampIf is stamp, or nothing for no instant.
func stampIf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

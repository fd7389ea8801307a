package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Endpoint is where events go.
type Endpoint struct {
	URL     string
	Secrets []string      // "whsec_…"; each signs, so that the shop can change them one by one
	Timeout time.Duration // of one call, its answer included
}

const (
	firstBytes    = 200     // of an answer, shown in an error
	drainBytes    = 4 << 10 // read of an answer so that its connection serves again
	maxRetryAfter = time.Hour
)

// Sender sends events to one endpoint. It is safe for concurrent use.
type Sender struct {
	url     string
	signers []*standardwebhooks.Webhook
	http    *http.Client
}

// NewSender returns a Sender. It does not call the endpoint.
func NewSender(e Endpoint) (*Sender, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the endpoint's URL must be an absolute http or https URL")
	}
	if len(e.Secrets) == 0 {
		return nil, errors.New("the endpoint needs at least one secret that signs")
	}
	if e.Timeout <= 0 {
		return nil, errors.New("the endpoint needs a time-out")
	}
	s := &Sender{url: e.URL, http: &http.Client{
		Timeout:   e.Timeout,
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A signed body must not travel to where an answer points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for i, secret := range e.Secrets {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil || secret == "" {
			return nil, fmt.Errorf("secret %d of the endpoint must be whsec_ and base64", i+1)
		}
		s.signers = append(s.signers, signer)
	}
	return s, nil
}

// Error is why an event is not known to have been taken.
type Error struct {
	Event  string // its id
	Reason string
	Status int    // HTTP's; 0 without an answer
	Answer string // the first bytes of the answer's body
	// Final says that a repeat will not help: the event cannot be sent, or the
	// endpoint wants no more (410).
	Final bool
	// MaybeTaken says that the answer was lost: the shop may have the event.
	MaybeTaken bool
	RetryAfter time.Duration // what the endpoint asked for; 0 to 1 h
	cause      error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("event %s not acknowledged: %s", e.Event, e.Reason)
	if e.Answer != "" {
		s += fmt.Sprintf(" %q", e.Answer)
	}
	return s
}

// Advice is what a person can do, "" when only time helps.
func (e *Error) Advice() string {
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "compare the endpoint's secrets here with what it verifies"
	case e.Status >= 300 && e.Status <= 399, e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return "check the endpoint's URL"
	case e.Status >= 400 && e.Status <= 499 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusGone:
		return "look at the endpoint's log: it refused the event"
	}
	return ""
}

// Unwrap gives the cause, such as a context that ended.
func (e *Error) Unwrap() error { return e.cause }

// Send posts an event once. Only an answer of 200 to 299 acknowledges it; all
// else is an *Error.
func (s *Sender) Send(ctx context.Context, e Event) error {
	raw, err := e.Body()
	if err != nil {
		return &Error{Event: e.ID, Reason: err.Error(), Final: true, cause: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(raw))
	if err != nil {
		return &Error{Event: e.ID, Reason: "no request can be made for the endpoint's URL", Final: true, cause: err}
	}
	if err := s.sign(req.Header, e.ID, raw); err != nil {
		return &Error{Event: e.ID, Reason: "cannot be signed: " + err.Error(), Final: true, cause: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Holdfast")
	res, err := s.http.Do(req)
	if err != nil {
		return &Error{Event: e.ID, Reason: "no answer: " + bare(err), MaybeTaken: true, cause: err}
	}
	defer res.Body.Close()
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		_, _ = io.CopyN(io.Discard, res.Body, drainBytes) // the status has acknowledged, whatever becomes of the rest
		return nil
	}
	return refused(e.ID, res)
}

// sign sets the headers. The time is that of this attempt: receivers refuse old
// ones.
func (s *Sender) sign(h http.Header, id string, raw []byte) error {
	now := time.Now()
	signatures := make([]string, len(s.signers))
	for i, signer := range s.signers {
		signature, err := signer.Sign(id, now, raw)
		if err != nil {
			return err
		}
		signatures[i] = signature
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

func refused(id string, res *http.Response) *Error {
	e := &Error{Event: id, Status: res.StatusCode, Reason: fmt.Sprintf("the endpoint answered %d", res.StatusCode)}
	first := make([]byte, firstBytes)
	n, err := io.ReadFull(res.Body, first)
	e.Answer = strings.ToValidUTF8(string(first[:n]), "")
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		e.cause = err
	}
	switch {
	case res.StatusCode == http.StatusGone:
		e.Final, e.Reason = true, "the endpoint answered 410: it wants no more events"
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		e.Reason = fmt.Sprintf("the endpoint answered %d: redirects are not followed, configure the URL it leads to", res.StatusCode)
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusServiceUnavailable:
		e.RetryAfter = retryAfter(res.Header.Get("Retry-After"))
	}
	// Behind a gateway a 5xx may hide an answer that was 2xx.
	e.MaybeTaken = res.StatusCode >= 500
	return e
}

// retryAfter reads both forms of the header, bounded.
func retryAfter(v string) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}

// bare leaves out the URL that net/http puts before every reason: its path may
// be a secret.
func bare(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

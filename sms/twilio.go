package sms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	twilio "github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

// TwilioAccount is where texts go. Exactly one of From and MessagingService is
// set. BaseURL, when not empty, replaces Twilio's API host. StatusCallback, when
// not empty, is told how far each text has come; its query names the text's
// entry and, of an offer, the hold.
type TwilioAccount struct {
	AccountSID       string
	AuthToken        string
	From             string
	MessagingService string
	BaseURL          string
	StatusCallback   string
}

const (
	// Long enough for a slow acceptance: what times out may have been sent.
	twilioTimeout = 10 * time.Second
	// Twilio's greatest validity period.
	maxValidity = 36000 * time.Second
)

// Twilio sends texts through Twilio's Messages API.
type Twilio struct {
	account TwilioAccount
	base    *url.URL
}

// NewTwilio returns a sender for an account. It does not call Twilio.
func NewTwilio(account TwilioAccount) (*Twilio, error) {
	switch {
	case account.AccountSID == "" || account.AuthToken == "":
		return nil, errors.New("sms.twilio: account_sid and auth_token are both needed")
	case (account.From == "") == (account.MessagingService == ""):
		return nil, errors.New("sms.twilio: exactly one of from and messaging_service is needed")
	}
	t := &Twilio{account: account}
	if account.BaseURL != "" {
		base, err := url.Parse(account.BaseURL)
		if err != nil || base.Host == "" {
			return nil, fmt.Errorf("sms.twilio.base_url: %q is not an absolute URL", account.BaseURL)
		}
		t.base = base
	}
	return t, nil
}

// Send hands a text to Twilio. Acceptance is not yet sent.
func (t *Twilio) Send(ctx context.Context, text Text) (Receipt, error) {
	params := &api.CreateMessageParams{}
	params.SetTo(text.To)
	params.SetBody(text.Body)
	if t.account.MessagingService != "" {
		params.SetMessagingServiceSid(t.account.MessagingService)
	} else {
		params.SetFrom(t.account.From)
	}
	if text.Validity > 0 {
		params.SetValidityPeriod(max(1, int(min(text.Validity, maxValidity)/time.Second)))
	}
	if t.account.StatusCallback != "" {
		params.SetStatusCallback(t.account.StatusCallback + "?" + callbackQuery(text))
	}
	service, call := t.service(ctx)
	msg, err := service.CreateMessage(params)
	if err != nil {
		return Receipt{}, classify(err, text.To, call.retryAfter)
	}
	if msg.Sid == nil {
		return Receipt{}, &Error{Class: Later, Reason: "an acceptance without a message id", MaybeSent: true}
	}
	return Receipt{ID: *msg.Sid}, nil
}

// StatusPath is where status callbacks go, under the public URL.
const StatusPath = "/v1/webhooks/twilio/status"

// Members of the query of a status callback.
const (
	CallbackEntry = "entry_id"
	CallbackHold  = "hold_id"
	CallbackCause = "cause"
)

func callbackQuery(t Text) string {
	q := url.Values{CallbackCause: {t.Cause}, CallbackEntry: {t.EntryID}}
	if t.HoldID != "" {
		q.Set(CallbackHold, t.HoldID)
	}
	return q.Encode()
}

const (
	// One number gets few texts of an account; more than these are not looked at.
	findMost = 200
	findPage = 50
	// Twilio's clock and ours differ, and its times are whole seconds.
	findSlack = 5 * time.Minute
)

// Find looks for a text whose acceptance was lost, by its link, among those made
// to its number since then. It does not ask for a time of sending: a text that is
// still queued has none, and it is the one that must not be missed. A text that
// was lost on its way for a reason that passes counts as never sent.
func (t *Twilio) Find(ctx context.Context, text Text, since time.Time) (Receipt, bool, error) {
	params := &api.ListMessageParams{}
	params.SetTo(text.To)
	params.SetPageSize(findPage)
	params.SetLimit(findMost)
	service, call := t.service(ctx)
	list, err := service.ListMessage(params)
	if err != nil {
		refusal := classify(err, text.To, call.retryAfter)
		refusal.MaybeSent = true // still
		return Receipt{}, false, refusal
	}
	for _, m := range list {
		if m.Sid == nil || text.Link == "" || !strings.Contains(value(m.Body), text.Link) {
			continue
		}
		made, err := time.Parse(time.RFC1123Z, value(m.DateCreated))
		if err != nil || made.Before(since.Add(-findSlack)) {
			continue
		}
		state := State(value(m.Status))
		if !state.Lost() {
			return Receipt{ID: *m.Sid, Sent: ranks[state] >= ranks[StateSent], Arrived: state.Final()}, true, nil
		}
		if class := ClassOf(value(m.ErrorCode), 0); class != Later {
			return Receipt{}, false, &Error{Class: class, Code: value(m.ErrorCode), Reason: "the text was " + string(state)}
		}
	}
	return Receipt{}, false, nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// service is made for one call: twilio-go has no context of its own, so the
// transport carries it.
func (t *Twilio) service(ctx context.Context) (*api.ApiService, *transport) {
	call := &transport{ctx: ctx, base: t.base}
	c := &twilio.Client{
		Credentials: twilio.NewCredentials(t.account.AccountSID, t.account.AuthToken),
		HTTPClient: &http.Client{
			Timeout: twilioTimeout, Transport: call,
			// A send that is led elsewhere would be a second send.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	c.SetAccountSid(t.account.AccountSID)
	return api.NewApiService(twilio.NewRequestHandler(c)), call
}

// transport carries the caller's context and another API host, makes every
// refusal readable to twilio-go, which knows only JSON ones, and keeps the
// Retry-After that twilio-go drops.
type transport struct {
	ctx        context.Context
	base       *url.URL
	retryAfter time.Duration
}

// The longest Retry-After that is believed.
const mostRetryAfter = 10 * time.Minute

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(t.ctx)
	if t.base != nil {
		req.URL.Scheme, req.URL.Host = t.base.Scheme, t.base.Host
		req.URL.Path = strings.TrimRight(t.base.Path, "/") + req.URL.Path
		req.Host = t.base.Host
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || res.StatusCode < 400 {
		return res, err
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		t.retryAfter = min(time.Duration(n)*time.Second, mostRetryAfter)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	refusal := twilio.TwilioRestError{}
	if json.Unmarshal(raw, &refusal) != nil {
		refusal.Message = "no readable reason"
	}
	refusal.Status = res.StatusCode
	if raw, err = json.Marshal(refusal); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return res, nil
}

// classify makes our error of twilio-go's. The provider's words may quote the
// number, which must not get into logs and histories.
func classify(err error, to string, retryAfter time.Duration) *Error {
	var refusal *twilio.TwilioRestError
	if !errors.As(err, &refusal) {
		return &Error{Class: Later, Reason: redact(err.Error(), to), MaybeSent: true}
	}
	return &Error{
		Class: ClassOf(refusal.Code, refusal.Status), Code: refusal.Code, Status: refusal.Status,
		Reason: redact(refusal.Message, to), MaybeSent: refusal.Status >= 500, RetryAfter: retryAfter,
	}
}

func redact(s, to string) string {
	for _, form := range []string{to, url.QueryEscape(to), strings.TrimPrefix(to, "+")} {
		if form != "" {
			s = strings.ReplaceAll(s, form, "(number)")
		}
	}
	return s
}

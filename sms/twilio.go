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
	"strings"
	"time"

	twilio "github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

// TwilioAccount is where texts go. Exactly one of From and MessagingService is
// set. BaseURL, when not empty, replaces Twilio's API host.
type TwilioAccount struct {
	AccountSID       string
	AuthToken        string
	From             string
	MessagingService string
	BaseURL          string
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
	msg, err := t.service(ctx).CreateMessage(params)
	if err != nil {
		return Receipt{}, classify(err, text.To)
	}
	if msg.Sid == nil {
		return Receipt{}, &Error{Class: Later, Reason: "an acceptance without a message id", MaybeSent: true}
	}
	return Receipt{ID: *msg.Sid}, nil
}

// service is made for one call: twilio-go has no context of its own, so the
// transport carries it.
func (t *Twilio) service(ctx context.Context) *api.ApiService {
	c := &twilio.Client{
		Credentials: twilio.NewCredentials(t.account.AccountSID, t.account.AuthToken),
		HTTPClient:  &http.Client{Timeout: twilioTimeout, Transport: transport{ctx: ctx, base: t.base}},
	}
	c.SetAccountSid(t.account.AccountSID)
	return api.NewApiService(twilio.NewRequestHandler(c))
}

// transport carries the caller's context and another API host, and makes every
// refusal readable to twilio-go, which knows only JSON ones.
type transport struct {
	ctx  context.Context
	base *url.URL
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
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

// codes is what Twilio's codes mean for the next text. A code that is not here
// goes by its HTTP status.
var codes = map[int]Class{
	21211: Never, // not a valid number
	21214: Never, // cannot be reached
	21216: Never, // blocked
	21217: Never, // not a phone number
	21265: Never, // a short code
	21408: Never, // its region is not allowed
	21610: Never, // has opted out
	21612: Never, // no route to it
	21614: Never, // not a mobile
	21635: Never, // a landline
	60205: Never, // a landline

	20003: StopAll, // authentication
	20005: StopAll, // account not active
	21212: StopAll, // from is not valid
	21222: StopAll, // account SID is malformed
	21224: StopAll, // auth token is malformed
	21603: StopAll, // no from
	21606: StopAll, // from is not ours
	21701: StopAll, // no such messaging service
	21703: StopAll, // messaging service has no numbers
	21705: StopAll, // messaging service is not valid

	20429: Later, // too many requests
	21611: Later, // queue is full
}

// classify makes our error of twilio-go's. The provider's words may quote the
// number, which must not get into logs and histories.
func classify(err error, to string) *Error {
	var refusal *twilio.TwilioRestError
	if !errors.As(err, &refusal) {
		return &Error{Class: Later, Reason: redact(err.Error(), to), MaybeSent: true}
	}
	class, known := codes[refusal.Code]
	switch {
	case known:
	case refusal.Status == http.StatusUnauthorized, refusal.Status == http.StatusForbidden:
		class = StopAll
	default:
		// An unknown refusal may pass or be mended; closing a place for it may not.
		class = Later
	}
	return &Error{Class: class, Code: refusal.Code, Status: refusal.Status, Reason: redact(refusal.Message, to), MaybeSent: refusal.Status >= 500}
}

func redact(s, to string) string {
	for _, form := range []string{to, url.QueryEscape(to), strings.TrimPrefix(to, "+")} {
		if form != "" {
			s = strings.ReplaceAll(s, form, "(number)")
		}
	}
	return s
}

package twiliostub

import (
	"crypto/hmac"
	"crypto/sha1" // what Twilio signs with
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Advance moves a message to a state and tells its status callback, when it has
// one. code is the error of an undelivered or failed message, else 0. It answers
// the status of the callback's answer, 0 without a callback. Nothing keeps it
// from moving a message backwards or twice.
func (s *Server) Advance(sid, state string, code int) (int, error) {
	s.mu.Lock()
	m := s.find(sid)
	if m == nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("no message %s", sid)
	}
	m.Status, m.ErrorCode = state, code
	if state == Sent && m.SentAt.IsZero() {
		m.SentAt = s.opts.Now()
	}
	told := *m
	s.mu.Unlock()
	return s.Tell(told)
}

// Tell tells the status callback of a message what m says, true or not.
func (s *Server) Tell(m Message) (int, error) {
	if m.StatusCallback == "" {
		return 0, nil
	}
	form := url.Values{
		"MessageSid": {m.SID}, "SmsSid": {m.SID}, "MessageStatus": {m.Status}, "SmsStatus": {m.Status},
		"To": {m.To}, "From": {m.From}, "AccountSid": {s.opts.AccountSID}, "ApiVersion": {"2010-04-01"},
	}
	if m.MessagingService != "" {
		form.Set("MessagingServiceSid", m.MessagingService)
	}
	if m.ErrorCode != 0 {
		form.Set("ErrorCode", strconv.Itoa(m.ErrorCode))
	}
	return s.Post(m.StatusCallback, form)
}

// Text sends an inbound text to a webhook. optOutType is what Advanced Opt-Out
// makes of it, "" without. It answers the status and the body of the answer.
func (s *Server) Text(webhook, from, to, body, optOutType string) (status int, answer string, err error) {
	form := url.Values{
		"MessageSid": {newSID("SM")}, "AccountSid": {s.opts.AccountSID}, "From": {from}, "To": {to}, "Body": {body},
		"NumMedia": {"0"}, "NumSegments": {"1"}, "ApiVersion": {"2010-04-01"},
	}
	if optOutType != "" {
		form.Set("OptOutType", optOutType)
	}
	return s.post(webhook, form)
}

// Post posts a signed form, as every webhook of Twilio is.
func (s *Server) Post(webhook string, form url.Values) (int, error) {
	status, _, err := s.post(webhook, form)
	return status, err
}

func (s *Server) post(webhook string, form url.Values) (int, string, error) {
	req, err := http.NewRequest(http.MethodPost, webhook, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Twilio-Signature", Signature(s.token(), webhook, form))
	res, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	return res.StatusCode, string(raw), err
}

func (s *Server) token() string {
	if s.opts.AuthToken == "" {
		return "token"
	}
	return s.opts.AuthToken
}

// Signature is Twilio's signature of a form that is posted to a URL: HMAC-SHA1
// under the account's token over the URL and, in the order of their names, each
// name with its value.
func Signature(token, webhook string, form url.Values) string {
	h := hmac.New(sha1.New, []byte(token))
	h.Write([]byte(webhook))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		h.Write([]byte(name + form.Get(name)))
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// follow moves a message through Options.Follow.
func (s *Server) follow(sid string) {
	for _, state := range s.opts.Follow {
		select {
		case <-s.closing:
			return
		case <-time.After(s.opts.Pace):
		}
		// As with Twilio, a webhook that is away is not told again.
		_, _ = s.Advance(sid, state, 0)
	}
}

package sms

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const number = "+12025550101"

// standIn is a Twilio of our own behind the real twilio-go.
func standIn(t *testing.T, answer http.HandlerFunc) (*Twilio, *url.Values) {
	form := &url.Values{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.URL.Path != "/twilio/2010-04-01/Accounts/AC1/Messages.json" || user != "AC1" || password != "token1" {
			http.Error(w, "unexpected call of "+r.URL.Path, http.StatusTeapot)
			return
		}
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		*form = r.PostForm
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	sender, err := NewTwilio(TwilioAccount{AccountSID: "AC1", AuthToken: "token1", From: "+12025550100", BaseURL: srv.URL + "/twilio"})
	require.NoError(t, err)
	return sender, form
}

func TestTwilioAccepts(t *testing.T) {
	sender, form := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"sid":"SM123","status":"queued"}`)
	})
	receipt, err := sender.Send(t.Context(), Text{To: number, Body: "Größe & mehr", Validity: 900 * time.Second})
	require.NoError(t, err)
	require.Equal(t, Receipt{ID: "SM123"}, receipt, "accepted is not sent")
	require.Equal(t, url.Values{"To": {number}, "From": {"+12025550100"}, "Body": {"Größe & mehr"}, "ValidityPeriod": {"900"}}, *form)

	for validity, want := range map[time.Duration]string{time.Millisecond: "1", 7 * 24 * time.Hour: "36000"} {
		_, err = sender.Send(t.Context(), Text{To: number, Body: "b", Validity: validity})
		require.NoError(t, err)
		require.Equal(t, want, form.Get("ValidityPeriod"))
	}

	sender.account.From, sender.account.MessagingService = "", "MG1"
	_, err = sender.Send(t.Context(), Text{To: number, Body: "b"})
	require.NoError(t, err)
	require.Equal(t, url.Values{"To": {number}, "MessagingServiceSid": {"MG1"}, "Body": {"b"}}, *form)
}

func TestTwilioRefuses(t *testing.T) {
	refusal := func(code int) string {
		return fmt.Sprintf(`{"code":%d,"message":"The 'To' number %s is not good","status":400}`, code, number)
	}
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   Class
		maybe  bool
	}{
		{"invalid number", 400, refusal(21211), Never, false},
		{"region not allowed", 400, refusal(21408), Never, false},
		{"opted out", 400, refusal(21610), Never, false},
		{"no route", 400, refusal(21612), Never, false},
		{"landline", 400, refusal(21614), Never, false},
		{"from is not ours", 400, refusal(21606), StopAll, false},
		{"a code nobody knows", 400, refusal(29999), Later, false},
		{"wrong token", 401, `{"code":20003,"message":"Authenticate","status":401}`, StopAll, false},
		{"wrong token, no reason", 401, "", StopAll, false},
		{"suspended", 403, `{"code":20005,"status":403}`, StopAll, false},
		{"too many", 429, `{"code":20429,"status":429}`, Later, false},
		{"too many, from a proxy", 429, "<html>slow down</html>", Later, false},
		{"queue full", 400, refusal(21611), Later, false},
		{"broken", 500, "oops", Later, true},
		{"away", 503, `{"code":20503,"status":503}`, Later, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sender, _ := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err := sender.Send(t.Context(), Text{To: number, Body: "b"})
			var got *Error
			require.ErrorAs(t, err, &got)
			require.Equal(t, c.want, got.Class, got.Error())
			require.Equal(t, c.status, got.Status)
			require.Equal(t, c.maybe, got.MaybeSent)
			require.NotContains(t, got.Error(), number[1:], "no number in an error")
		})
	}
}

func TestTwilioAnswerLost(t *testing.T) {
	gone := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	blocked := make(chan struct{})
	hangs := func(http.ResponseWriter, *http.Request) { <-blocked }
	defer close(blocked)
	for name, answer := range map[string]http.HandlerFunc{
		"dropped": gone, "never": hangs, "not JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"without an id": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			sender, _ := standIn(t, answer)
			ctx, cancel := context.WithCancel(t.Context())
			if name == "never" {
				cancel() // the caller's context bounds the call
			}
			defer cancel()
			_, err := sender.Send(ctx, Text{To: number, Body: "b"})
			var got *Error
			require.ErrorAs(t, err, &got)
			require.Equal(t, Later, got.Class)
			require.True(t, got.MaybeSent, "the text may be on its way")
			require.NotContains(t, got.Error(), number[1:])
		})
	}
}

func TestTwilioNeedsAnAccount(t *testing.T) {
	for word, account := range map[string]TwilioAccount{
		"auth_token":        {AccountSID: "AC1", From: "x"},
		"account_sid":       {AuthToken: "x", From: "x"},
		"messaging_service": {AccountSID: "AC1", AuthToken: "x"},
		"exactly one":       {AccountSID: "AC1", AuthToken: "x", From: "a", MessagingService: "b"},
		"base_url":          {AccountSID: "AC1", AuthToken: "x", From: "a", BaseURL: "not a url"},
	} {
		_, err := NewTwilio(account)
		require.ErrorContains(t, err, word)
	}
}

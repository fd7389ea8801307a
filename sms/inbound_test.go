package sms_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/twiliostub"
	"holdfast/sms"
)

func TestKeywords(t *testing.T) {
	words := map[sms.Keyword][]string{
		sms.KeywordStop:  {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT", "stop", "sToP", " Stop\n"},
		sms.KeywordStart: {"START", "UNSTOP", "YES", "yes ", "Start"},
		sms.KeywordHelp:  {"HELP", "INFO", "info"},
		sms.KeywordNone:  {"", "STOP PLEASE", "please stop", "STOP.", "STOPP", "OPT OUT", "no", "Yes please", "STOP\nSTOP"},
	}
	for want, list := range words {
		for _, body := range list {
			got := sms.ParseInbound(url.Values{"Body": {body}, "From": {number}, "To": {"+12025550100"}, "MessageSid": {"SM1"}})
			require.Equal(t, sms.Inbound{ID: "SM1", From: number, To: "+12025550100", Keyword: want}, got, "%q", body)
		}
	}
	for _, c := range []struct {
		optOut, body string
		want         sms.Keyword
	}{
		{"STOP", "ARRET", sms.KeywordStop}, // a word of a language that we do not know
		{"START", "hola", sms.KeywordStart},
		{"HELP", "ayuda", sms.KeywordHelp},
		{"STOP", "START", sms.KeywordStop}, // Twilio's word counts, not ours
		{"", "STOP", sms.KeywordStop},
		{"LATER", "STOP", sms.KeywordStop}, // a word that Twilio may add one day
	} {
		require.Equal(t, c.want, sms.ParseInbound(url.Values{"OptOutType": {c.optOut}, "Body": {c.body}}).Keyword)
	}
}

// hook is the door as Twilio's webhooks meet it: behind a proxy that ends TLS.
func hook(t *testing.T, publicURL string) (address string, last *bool) {
	verifier, err := sms.NewVerifier(token, publicURL)
	require.NoError(t, err)
	last = new(bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*last = verifier.Verify(r.RequestURI, raw, r.Header.Get(sms.SignatureHeader))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, last
}

// post sends form to a target, signed for another URL.
func post(t *testing.T, address, target, signedFor string, form url.Values, header http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, address+target, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set(sms.SignatureHeader, twiliostub.Signature(token, signedFor, form))
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func TestSignatures(t *testing.T) {
	form := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}, "Body": {"a+b & c='d' Größe"}}
	for _, public := range []string{"https://n.example", "https://n.example:8443", "https://n.example/wait", "http://127.0.0.1:8080"} {
		for _, target := range []string{
			"/v1/webhooks/twilio/status",
			"/v1/webhooks/twilio/status?sku=a%27b&x=1+2",
			"/v1/webhooks/twilio/status?z=1&a=2&a=1", // neither sorted nor made one
			"/v1/webhooks/twilio/status?sku=a'b%20c",
			"/v1/webhooks/twilio/status?e=%7Bx%7d",
		} {
			address, ok := hook(t, public)
			post(t, address, target, public+target, form, nil)
			require.True(t, *ok, "%s%s", public, target)
			post(t, address, target, public+target+"&more=1", form, nil)
			require.False(t, *ok, "another target")
			post(t, address, target, address+target, form, nil)
			require.False(t, *ok, "the address behind the proxy is not the public one")
			post(t, address, target, "https://evil.example"+target, form, http.Header{
				"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"https"}, "Forwarded": {"host=evil.example;proto=https"},
			})
			require.False(t, *ok, "a forged header has no effect")
			post(t, address, target, public+target, form, http.Header{"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"http"}})
			require.True(t, *ok, "nor does it break a true one")
		}
	}
}

func TestSignaturesOfOthers(t *testing.T) {
	v, err := sms.NewVerifier(token, "https://n.example")
	require.NoError(t, err)
	form := url.Values{"Body": {"STOP"}}
	good := twiliostub.Signature(token, "https://n.example/x", form)
	require.True(t, v.Verify("/x", []byte(form.Encode()), good))
	require.False(t, v.Verify("/x", []byte("Body=START"), good), "another body")
	require.False(t, v.Verify("/x", []byte("Body=%zz"), good), "no form")
	require.False(t, v.Verify("/x", []byte(form.Encode()), ""), "no signature")
	require.False(t, v.Verify("/x", []byte(form.Encode()), twiliostub.Signature("other", "https://n.example/x", form)), "another token")
	require.False(t, v.Verify("https://n.example/x", []byte(form.Encode()), good), "a target that brings its own host")
	var none *sms.Verifier
	require.False(t, none.Verify("/x", []byte(form.Encode()), twiliostub.Signature("", "/x", form)), "no verifier verifies nothing")
	_, err = sms.NewVerifier("", "https://n.example")
	require.ErrorContains(t, err, "auth_token")
}

func TestClasses(t *testing.T) {
	for code, want := range map[int]sms.Class{
		21211: sms.Never, 21408: sms.Never, 21610: sms.Never, 21614: sms.Never, 30005: sms.Never, 30006: sms.Never,
		20003: sms.StopAll, 30007: sms.StopAll, 30034: sms.StopAll,
		20429: sms.Later, 30003: sms.Later, 39999: sms.Later, 0: sms.Later,
	} {
		require.Equal(t, want, sms.ClassOf(code, 0), code)
	}
	require.Equal(t, sms.StopAll, sms.ClassOf(0, http.StatusUnauthorized))
	require.Equal(t, sms.Never, sms.ClassOf(21610, http.StatusForbidden), "a code that is known says more than the status")
}

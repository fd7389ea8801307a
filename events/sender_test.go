package events

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

const (
	first  = "whsec_Zmlyc3Qtc2VjcmV0LW9mLXRoZS10ZXN0"
	second = "whsec_c2Vjb25kLXNlY3JldC1vZi10aGUtdGVzdA=="
)

var happened = time.Date(2027, 3, 14, 9, 26, 53, 589_793_000, time.FixedZone("there", 3600))

func event() Event {
	return Event{
		ID: "payment_x-refund-requested", Type: "refund.requested", Time: happened, Sequence: 7,
		Data: map[string]any{"payment_id": "payment_x", "amount": 1250},
	}
}

// got is a request as the shop saw it.
type got struct {
	header http.Header
	body   []byte
}

// shop is an endpoint that keeps what came and answers by answer.
func shop(t *testing.T, answer http.HandlerFunc) (*Sender, *[]got, string) {
	t.Helper()
	var came []got
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		came = append(came, got{r.Header.Clone(), body})
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	sender, err := NewSender(Endpoint{URL: srv.URL + "/hooks/secret-path", Secrets: []string{first, second}, Timeout: 5 * time.Second})
	require.NoError(t, err)
	return sender, &came, srv.URL
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestSendIsSignedByEverySecret(t *testing.T) {
	sender, came, _ := shop(t, status(204))
	require.NoError(t, sender.Send(t.Context(), event()))
	require.Len(t, *came, 1)
	r := (*came)[0]
	require.Equal(t, "payment_x-refund-requested", r.header.Get("Webhook-Id"))
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.JSONEq(t, `{"type":"refund.requested","timestamp":"2027-03-14T08:26:53.589Z","sequence":7,
		"data":{"payment_id":"payment_x","amount":1250}}`, string(r.body))
	at, err := strconv.ParseInt(r.header.Get("Webhook-Timestamp"), 10, 64)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.Unix(at, 0), 5*time.Second, "the attempt's time, not the event's")

	for _, secret := range []string{first, second} {
		v, err := standardwebhooks.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, v.Verify(r.body, r.header), "the shop may know either secret")
		changed := append([]byte{}, r.body...)
		changed[len(changed)-2] = ' '
		require.Error(t, v.Verify(changed, r.header))
	}
	stranger, err := standardwebhooks.NewWebhook("whsec_c29tZWJvZHktZWxzZXMtc2VjcmV0")
	require.NoError(t, err)
	require.Error(t, stranger.Verify(r.body, r.header))
}

// A shop knows a repeat by its id and by its bytes.
func TestARepeatIsTheSame(t *testing.T) {
	answers := []int{500, 200}
	sender, came, _ := shop(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[0])
		answers = answers[1:]
	})
	require.Error(t, sender.Send(t.Context(), event()))
	require.NoError(t, sender.Send(t.Context(), event()))
	require.Len(t, *came, 2)
	require.Equal(t, (*came)[0].body, (*came)[1].body)
	require.Equal(t, (*came)[0].header.Get("Webhook-Id"), (*came)[1].header.Get("Webhook-Id"))
}

func TestOnly2xxAcknowledges(t *testing.T) {
	for _, code := range []int{200, 201, 202, 204, 299} {
		sender, _, _ := shop(t, status(code))
		require.NoError(t, sender.Send(t.Context(), event()), code)
	}
	for code, want := range map[int]Error{
		300: {}, 301: {}, 304: {}, 308: {},
		400: {}, 401: {}, 404: {}, 409: {}, 429: {RetryAfter: 7 * time.Second},
		410: {Final: true},
		500: {MaybeTaken: true}, 502: {MaybeTaken: true}, 503: {MaybeTaken: true, RetryAfter: 7 * time.Second},
	} {
		sender, _, _ := shop(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			if code != 304 {
				fmt.Fprint(w, "not today")
			}
		})
		err := sender.Send(t.Context(), event())
		var e *Error
		require.ErrorAs(t, err, &e, code)
		require.Equal(t, code, e.Status)
		require.Equal(t, want.Final, e.Final, code)
		require.Equal(t, want.MaybeTaken, e.MaybeTaken, code)
		require.Equal(t, want.RetryAfter, e.RetryAfter, code)
		require.ErrorContains(t, err, strconv.Itoa(code))
		if code != 304 {
			require.Equal(t, "not today", e.Answer)
			require.ErrorContains(t, err, `"not today"`)
		}
	}
}

// A signed body goes where the configuration says and nowhere else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		sender, came, _ := shop(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) })
		require.ErrorContains(t, sender.Send(t.Context(), event()), "redirects are not followed")
		require.Len(t, *came, 1)
	}
	require.Zero(t, elsewhere)
}

// An endless answer costs neither memory nor time.
func TestTheAnswerIsBounded(t *testing.T) {
	for _, code := range []int{200, 500} {
		sent := make(chan int, 1)
		sender, _, _ := shop(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			n := 0
			for chunk := strings.Repeat("é\x00", 10_000); n < 1<<30; {
				m, err := io.WriteString(w, chunk)
				if n += m; err != nil {
					break
				}
			}
			sent <- n
		})
		err := sender.Send(t.Context(), event())
		if code == 200 {
			require.NoError(t, err)
		} else {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, len(e.Answer), firstBytes)
			require.NotContains(t, err.Error(), "\x00")
		}
		require.Less(t, <-sent, 1<<29, "the connection was cut")
	}
}

func TestNoAnswerMayHaveBeenTaken(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	drips := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	drops := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	for name, answer := range map[string]http.HandlerFunc{"hangs": hangs, "drips": drips, "drops": drops} {
		t.Run(name, func(t *testing.T) {
			sender, _, _ := shop(t, answer)
			sender.http.Timeout = 100 * time.Millisecond
			began := time.Now()
			err := sender.Send(t.Context(), event())
			require.Less(t, time.Since(began), 4*time.Second)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.True(t, e.MaybeTaken)
			require.False(t, e.Final)
			require.NotContains(t, err.Error(), "secret-path", "a path may be a secret")
		})
	}
	sender, _, _ := shop(t, hangs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sender.Send(ctx, event()), context.Canceled)
}

func TestRetryAfterIsBounded(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "90": 90 * time.Second, "86400": time.Hour, "99999999999999": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):     0,
		time.Now().Add(48 * time.Hour).UTC().Format(http.TimeFormat): time.Hour,
	} {
		require.Equal(t, want, retryAfter(v), v)
	}
}

func TestWhatIsNoEvent(t *testing.T) {
	sender, came, _ := shop(t, status(200))
	for name, change := range map[string]func(*Event){
		"no id":          func(e *Event) { e.ID = "" },
		"id with a dot":  func(e *Event) { e.ID = "msg_1.1700000000" },
		"id with a line": func(e *Event) { e.ID = "msg\n1" },
		"long id":        func(e *Event) { e.ID = strings.Repeat("a", 201) },
		"no type":        func(e *Event) { e.Type = "" },
		"one word":       func(e *Event) { e.Type = "refund" },
		"no time":        func(e *Event) { e.Time = time.Time{} },
		"no data":        func(e *Event) { e.Data = nil },
		"data: a list":   func(e *Event) { e.Data = []int{1} },
		"data: no JSON":  func(e *Event) { e.Data = func() {} },
		"too large":      func(e *Event) { e.Data = map[string]string{"a": strings.Repeat("x", MaxBody)} },
	} {
		e := event()
		change(&e)
		err := sender.Send(t.Context(), e)
		var refusal *Error
		require.ErrorAs(t, err, &refusal, name)
		require.True(t, refusal.Final, "%s: a repeat does not help", name)
		require.Less(t, len(err.Error()), 500, name)
	}
	require.Empty(t, *came)
}

func TestWhatIsNoEndpoint(t *testing.T) {
	good := Endpoint{URL: "https://shop.example/hooks", Secrets: []string{first}, Timeout: time.Second}
	_, err := NewSender(good)
	require.NoError(t, err)
	for word, change := range map[string]func(*Endpoint){
		"URL":            func(e *Endpoint) { e.URL = "shop.example" },
		"absolute":       func(e *Endpoint) { e.URL = "ftp://shop.example" },
		"at least one":   func(e *Endpoint) { e.Secrets = nil },
		"secret 2":       func(e *Endpoint) { e.Secrets = []string{first, "whsec_do-not-show!"} },
		"secret 1":       func(e *Endpoint) { e.Secrets = []string{""} },
		"needs a time-o": func(e *Endpoint) { e.Timeout = 0 },
	} {
		e := good
		change(&e)
		_, err := NewSender(e)
		require.ErrorContains(t, err, word)
		require.NotContains(t, err.Error(), "do-not-show")
	}
}

// The body's keys are the contract with every shop.
func TestBodyHasFourMembers(t *testing.T) {
	raw, err := event().Body()
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &members))
	require.Len(t, members, 4)
	for _, name := range []string{"type", "timestamp", "sequence", "data"} {
		require.Contains(t, members, name)
	}
}

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/events"
	"holdfast/payment"
)

const secret = "whsec_c2VjcmV0LW9mLXRoZS1zaG9wLWhlcmU="

// shop is a shop that pays each Payment back once, however often it is asked.
type shop struct {
	mu      sync.Mutex
	answers []int // one a call, then 200
	asked   int
	bad     int // calls that no known secret has signed
	paid    map[string]Data
	ids     map[string]bool // webhook-ids
	last    []byte          // body
}

func newShop(t *testing.T, answers ...int) (*shop, payment.Port) {
	t.Helper()
	s := &shop{answers: answers, paid: map[string]Data{}, ids: map[string]bool{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	sender, err := events.NewSender(events.Endpoint{URL: srv.URL, Secrets: []string{secret}, Timeout: 5 * time.Second})
	require.NoError(t, err)
	return s, New(sender)
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	raw, err := io.ReadAll(r.Body)
	v, verr := standardwebhooks.NewWebhook(secret)
	if err := errors.Join(err, verr); err != nil || v.Verify(raw, r.Header) != nil {
		s.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.last = raw
	var e struct {
		Type string
		Data Data
	}
	if err := json.Unmarshal(raw, &e); err != nil || e.Type != "refund.requested" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code := 200
	if len(s.answers) > 0 {
		code, s.answers = s.answers[0], s.answers[1:]
	}
	if code == 200 || code >= 500 { // a 5xx of a gateway hides that the shop has done it
		s.ids[r.Header.Get("Webhook-Id")] = true
		s.paid[e.Data.PaymentID] = e.Data
	}
	if code == 0 { // done, and the answer is lost
		s.ids[r.Header.Get("Webhook-Id")] = true
		s.paid[e.Data.PaymentID] = e.Data
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return
	}
	w.WriteHeader(code)
	fmt.Fprint(w, "a word of the shop")
}

func refund() payment.Refund {
	hold := contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	return payment.Refund{
		PaymentID: contract.PaymentID(hold, "pay_1"), HoldID: hold, PaymentRef: "pay_1", SaleRef: "pay_0",
		Money: &contract.Money{Amount: 500, Currency: "JPY"}, Cause: contract.CauseSecond,
		RequestedAt: time.Date(2027, 3, 14, 9, 26, 53, 0, time.UTC), Sequence: 3,
	}
}

func TestRefundIsAskedOfTheShop(t *testing.T) {
	s, port := newShop(t)
	r := refund()
	receipt, err := port.RequestRefund(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, payment.Receipt{}, receipt, "acknowledged is not settled")
	amount := int64(500)
	require.Equal(t, map[string]Data{r.PaymentID: {
		PaymentID: r.PaymentID, HoldID: r.HoldID, PaymentRef: "pay_1", SaleRef: "pay_0", Amount: &amount, Currency: "JPY", Cause: "second",
	}}, s.paid)
	require.Zero(t, s.bad)

	r.Money = nil
	_, err = port.RequestRefund(t.Context(), r)
	require.NoError(t, err)
	require.Nil(t, s.paid[r.PaymentID].Amount)
	require.Empty(t, s.paid[r.PaymentID].Currency)
}

// What docs/payment.md shows a shop is what it gets.
func TestTheDocsShowTheEventAsItIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/payment.md")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, found := strings.Cut(example, "```")
	require.True(t, found)
	var shown struct {
		Timestamp time.Time
		Sequence  int64
		Data      Data
	}
	require.NoError(t, json.Unmarshal([]byte(example), &shown))

	s, port := newShop(t)
	d := shown.Data
	_, err = port.RequestRefund(t.Context(), payment.Refund{
		PaymentID: d.PaymentID, HoldID: d.HoldID, PaymentRef: d.PaymentRef, SaleRef: d.SaleRef, Cause: d.Cause,
		Money: &contract.Money{Amount: *d.Amount, Currency: d.Currency}, RequestedAt: shown.Timestamp, Sequence: shown.Sequence,
	})
	require.NoError(t, err)
	require.JSONEq(t, example, string(s.last))
}

// Lost answers, refusals and twenty askers at once are one refund to a shop
// that goes by the id.
func TestARepeatedRequestIsTheSameRequest(t *testing.T) {
	s, port := newShop(t, 0, 500, 503, 429, 404)
	for i := range 5 {
		_, err := port.RequestRefund(t.Context(), refund())
		require.Error(t, err, i)
		require.False(t, payment.NeedsPerson(err), i)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := port.RequestRefund(t.Context(), refund())
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 25, s.asked)
	require.Equal(t, map[string]bool{refund().PaymentID + "_refund-requested": true}, s.ids)
	require.Len(t, s.paid, 1)
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	for code, want := range map[int]struct {
		class payment.Class
		do    string
		maybe bool
	}{
		302: {payment.Retry, "payment.webhook.url", false},
		400: {payment.Retry, "endpoint's log", false},
		401: {payment.Retry, "payment.webhook.secrets", false},
		403: {payment.Retry, "payment.webhook.secrets", false},
		404: {payment.Retry, "payment.webhook.url", false},
		410: {payment.Permanent, "holdfast refunds settle payment_", false},
		429: {payment.Retry, "", false},
		500: {payment.Retry, "", true},
		0:   {payment.Retry, "", true},
	} {
		_, port := newShop(t, code)
		_, err := port.RequestRefund(t.Context(), refund())
		var e *payment.Error
		require.ErrorAs(t, err, &e, code)
		require.Equal(t, want.class, e.Class, code)
		require.Equal(t, code, e.Status)
		require.Equal(t, want.maybe, e.MaybeDone, code)
		require.Contains(t, e.Do, want.do, code)
		require.Equal(t, want.do == "", e.Do == "", "%d: %s", code, e.Do)
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), "a word of the shop", "it may name the payment, and this is logged")
		if code > 0 {
			require.Equal(t, "a word of the shop", e.Answer)
		}
	}
}

func TestTheSaleIsNotRefunded(t *testing.T) {
	s, port := newShop(t)
	r := refund()
	r.SaleRef = r.PaymentRef
	_, err := port.RequestRefund(t.Context(), r)
	require.True(t, payment.NeedsPerson(err))
	require.Zero(t, s.asked)
}

func TestOnlyTheShopKnows(t *testing.T) {
	s, port := newShop(t)
	require.Equal(t, payment.ProviderWebhook, port.Name())
	require.NoError(t, port.CheckRef("INV/1"))
	require.Error(t, port.CheckRef(""))
	a := payment.Attempt{HoldID: "hold_x", Ref: "pay_1"}
	for _, ask := range []func(context.Context, payment.Attempt) (payment.Status, error){port.Status, port.CancelAttempt} {
		got, err := ask(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, payment.Unknown, got.State)
		require.NotEmpty(t, got.Reason)
	}
	require.Zero(t, s.asked)
}

// An error that is no *events.Error of ours is no reason to give up.
func TestAnUnknownFailureIsTriedAgain(t *testing.T) {
	_, err := New(broken{}).RequestRefund(t.Context(), refund())
	var e *payment.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, payment.Retry, e.Class)
	require.True(t, e.MaybeDone)
}

type broken struct{}

func (broken) Send(context.Context, events.Event) error { return errors.New("broken") }

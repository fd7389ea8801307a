package stripe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/stripetest"
	"holdfast/payment"
)

func paid(s *stripetest.Server, hold string) string {
	id := s.Intent(hold, 1250, "eur")
	s.Pay(id)
	return id
}

func TestARefundIsAskedOnce(t *testing.T) {
	s, a := standIn(t)
	ref := paid(s, holdID)
	receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	require.Equal(t, payment.Receipt{Reference: s.Refunds()[0], Settled: true}, receipt)
	require.Equal(t, stripetest.Object{"hold_id": holdID, "payment_id": refundOf(ref).PaymentID}, s.Get(s.Refunds()[0])["metadata"])

	again := refundOf(ref)
	again.Cause = contract.CauseSecond // a later run may name another cause
	got, err := a.RequestRefund(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, receipt, got)
	require.Len(t, s.Refunds(), 1)
	require.Equal(t, 1, count(s, "POST /v1/refunds"), "it looks before it asks")
}

// Twenty workers at once: Stripe sees one refund.
func TestManyAskersAreOneRefund(t *testing.T) {
	s, a := standIn(t)
	ref := paid(s, holdID)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
			if err != nil || !receipt.Settled {
				t.Error(receipt, err)
			}
		})
	}
	all.Wait()
	require.Len(t, s.Refunds(), 1)
}

// Every way in which the answer to the refund itself can be lost or bad, and
// the next attempt after it.
func TestALostAnswerIsFoundAgain(t *testing.T) {
	for name, c := range map[string]struct {
		fault stripetest.Fault
		maybe bool
	}{
		"dropped before":        {stripetest.Fault{Drop: true}, true},
		"dropped after":         {stripetest.Fault{Drop: true, Done: true}, true},
		"500 before":            {stripetest.Fault{Status: 500}, true},
		"500 after":             {stripetest.Fault{Status: 500, Done: true}, true},
		"500 kept":              {stripetest.Fault{Status: 500, Kept: true}, true},
		"500 kept, but done":    {stripetest.Fault{Status: 500, Kept: true, Done: true}, true},
		"502 of a proxy":        {stripetest.Fault{Status: 502, Body: "<html>bad gateway</html>"}, true},
		"503 of a proxy, after": {stripetest.Fault{Status: 503, Body: "<html>", Done: true}, true},
		"200 of a proxy":        {stripetest.Fault{Status: 200, Body: "<html>hello</html>"}, true},
		"429":                   {stripetest.Fault{Status: 429, Code: "rate_limit"}, false},
		"409":                   {stripetest.Fault{Status: 409, Code: "idempotency_key_in_use"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := standIn(t)
			ref := paid(s, holdID)
			fault := c.fault
			fault.On = "POST /v1/refunds"
			s.Next(&fault)
			if c.fault.Drop { // net/http repeats by itself once, on a new connection
				again := fault
				s.Next(&again)
			}
			_, err := a.RequestRefund(t.Context(), refundOf(ref))
			e := passes(t, err)
			require.Equal(t, c.maybe, e.MaybeDone, e.Error())

			receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
			require.NoError(t, err)
			require.Len(t, s.Refunds(), 1, "no second refund")
			require.Equal(t, payment.Receipt{Reference: s.Refunds()[0], Settled: true}, receipt)
		})
	}
}

// Stripe keeps its own 500 under the key for a day; the refund is not lost to it.
func TestAKeptFailureIsNotRepeatedForADay(t *testing.T) {
	s, a := standIn(t)
	ref := paid(s, holdID)
	s.Next(&stripetest.Fault{On: "POST /v1/refunds", Status: 500, Kept: true}, &stripetest.Fault{On: "POST /v1/refunds"},
		&stripetest.Fault{On: "POST /v1/refunds", Status: 500, Kept: true})
	for range 2 {
		_, err := a.RequestRefund(t.Context(), refundOf(ref))
		passes(t, err)
		require.Empty(t, s.Refunds())
	}
	receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	require.True(t, receipt.Settled)
	require.Len(t, s.Refunds(), 1)
	require.Equal(t, 5, count(s, "POST /v1/refunds"))
}

func TestARefundUnderWayIsNotSettled(t *testing.T) {
	for _, status := range []string{"pending", "requires_action"} {
		s, a := standIn(t)
		s.NewRefunds(status)
		ref := paid(s, holdID)
		for range 2 {
			receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
			require.NoError(t, err)
			require.Equal(t, payment.Receipt{Reference: s.Refunds()[0]}, receipt)
		}
		s.EndRefund(s.Refunds()[0], "succeeded")
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err)
		require.True(t, receipt.Settled)
		require.Len(t, s.Refunds(), 1)
	}
}

func TestAFailedRefundNeedsAPerson(t *testing.T) {
	s, a := standIn(t)
	s.NewRefunds("pending")
	ref := paid(s, holdID)
	_, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	s.EndRefund(s.Refunds()[0], "failed")
	for range 2 {
		_, err = a.RequestRefund(t.Context(), refundOf(ref))
		needsPerson(t, err, s.Refunds()[0]+" of "+ref+" is failed", "holdfast refunds settle "+refundOf(ref).PaymentID)
		require.ErrorContains(t, err, "lost_or_stolen_card")
	}
	require.Len(t, s.Refunds(), 1)

	s.NewRefunds("succeeded")
	byHand := s.RefundByHand(ref, 1250)
	receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	require.Equal(t, payment.Receipt{Reference: byHand, Settled: true}, receipt)
}

// Somebody was faster: whole, in part, or between our look and our request.
func TestAlreadyRefundedIsDone(t *testing.T) {
	t.Run("whole", func(t *testing.T) {
		s, a := standIn(t)
		ref := paid(s, holdID)
		id := s.RefundByHand(ref, 1250)
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err)
		require.Equal(t, payment.Receipt{Reference: id, Settled: true}, receipt)
		require.Zero(t, count(s, "POST"))
	})
	t.Run("whole, under way", func(t *testing.T) {
		s, a := standIn(t)
		s.NewRefunds("pending")
		ref := paid(s, holdID)
		id := s.RefundByHand(ref, 1250)
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err)
		require.Equal(t, payment.Receipt{Reference: id}, receipt)
	})
	t.Run("in part", func(t *testing.T) {
		s, a := standIn(t)
		ref := paid(s, holdID)
		s.RefundByHand(ref, 250)
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err)
		require.Len(t, s.Refunds(), 2)
		require.Equal(t, payment.Receipt{Reference: s.Refunds()[1], Settled: true}, receipt)
		require.EqualValues(t, 1000, s.Get(s.Refunds()[1])["amount"], "what was left")
	})
	t.Run("in between", func(t *testing.T) {
		s, a := standIn(t)
		ref := paid(s, holdID)
		s.Next(&stripetest.Fault{On: "POST /v1/refunds", Before: func() { s.RefundByHand(ref, 1250) }})
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err)
		require.Len(t, s.Refunds(), 1)
		require.Equal(t, payment.Receipt{Reference: s.Refunds()[0], Settled: true}, receipt)
	})
}

// The payment that made a sale is never paid back by machine, under whatever
// name it comes.
func TestMoneyOfASaleStays(t *testing.T) {
	for name, prepare := range map[string]func(s *stripetest.Server) payment.Refund{
		"of another hold": func(s *stripetest.Server) payment.Refund { return refundOf(paid(s, otherID)) },
		"of another hold, by its session": func(s *stripetest.Server) payment.Refund {
			ref := paid(s, "")
			s.Session(otherID, ref, 1250, "eur")
			return refundOf(ref)
		},
		"sold under its session": func(s *stripetest.Server) payment.Refund {
			r := refundOf(paid(s, holdID))
			r.SaleRef = s.Session(holdID, r.PaymentRef, 1250, "eur")
			return r
		},
		"asked by its session": func(s *stripetest.Server) payment.Refund {
			return refundOf(s.Session(holdID, paid(s, holdID), 1250, "eur"))
		},
		"sold under this name": func(s *stripetest.Server) payment.Refund {
			r := refundOf(paid(s, holdID))
			r.SaleRef = r.PaymentRef
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := standIn(t)
			_, err := a.RequestRefund(t.Context(), prepare(s))
			needsPerson(t, err, "", "holdfast refunds settle")
			require.Empty(t, s.Refunds())
			require.Zero(t, count(s, "POST"))
		})
	}
	// A sale by another payment is no reason to keep this one.
	s, a := standIn(t)
	for _, sale := range []string{"cs_test_gone", s.Session(holdID, paid(s, holdID), 1250, "eur"), paid(s, holdID)} {
		r := refundOf(paid(s, holdID))
		r.SaleRef = sale
		receipt, err := a.RequestRefund(t.Context(), r)
		require.NoError(t, err, sale)
		require.True(t, receipt.Settled)
	}
}

// Somebody said it was paid, and it was not: nothing may be taken later.
func TestWhatWasNotPaidIsEnded(t *testing.T) {
	for _, status := range []string{"requires_payment_method", "requires_action", "requires_capture", "requires_confirmation", "canceled"} {
		s, a := standIn(t)
		ref := s.Intent(holdID, 1250, "eur")
		s.Set(ref, stripetest.Object{"status": status})
		receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
		require.NoError(t, err, status)
		require.Equal(t, payment.Receipt{Reference: ref, Settled: true}, receipt)
		require.Equal(t, "canceled", s.Get(ref)["status"])
		require.Empty(t, s.Refunds())
	}
	s, a := standIn(t)
	ref := s.Intent(holdID, 1250, "eur")
	s.Set(ref, stripetest.Object{"status": "processing"})
	_, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.Contains(t, passes(t, err).Reason, "processing")

	// Paid between our look and our cancel: the next attempt pays it back.
	ref = s.Intent(holdID, 1250, "eur")
	s.Next(&stripetest.Fault{On: "POST /v1/payment_intents", Before: func() { s.Pay(ref) }})
	_, err = a.RequestRefund(t.Context(), refundOf(ref))
	passes(t, err)
	receipt, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	require.True(t, receipt.Settled)
	require.Len(t, s.Refunds(), 1)

	// A session with nothing to pay.
	cs := s.Session(holdID, "", 0, "eur")
	s.Set(cs, stripetest.Object{"payment_status": "no_payment_required", "status": "complete"})
	receipt, err = a.RequestRefund(t.Context(), refundOf(cs))
	require.NoError(t, err)
	require.Equal(t, payment.Receipt{Reference: cs, Settled: true}, receipt)
}

func TestWhatOnlyAPersonCanMend(t *testing.T) {
	s, a := standIn(t)
	_, err := a.RequestRefund(t.Context(), refundOf("pi_unknown"))
	needsPerson(t, err, "404", "account and mode")
	_, err = a.RequestRefund(t.Context(), refundOf("order-7"))
	needsPerson(t, err, "no PaymentIntent", "holdfast refunds settle")
	_, err = a.RequestRefund(t.Context(), payment.Refund{HoldID: holdID, PaymentRef: "pi_1", PaymentID: "payment_x"})
	needsPerson(t, err, "not that of its hold", "look at the hold")

	ref := paid(s, holdID)
	s.Set(s.Get(ref)["latest_charge"].(string), stripetest.Object{"disputed": true})
	_, err = a.RequestRefund(t.Context(), refundOf(ref))
	needsPerson(t, err, "[charge_disputed]", "holdfast refunds settle")
	require.Empty(t, s.Refunds())

	for status, do := range map[int]string{401: "payment.stripe.key", 403: "the right to write Refunds", 400: "Dashboard"} {
		s.Next(&stripetest.Fault{On: "GET /v1/payment_intents", Status: status, Code: "x"})
		_, err = a.RequestRefund(t.Context(), refundOf(ref))
		needsPerson(t, err, fmt.Sprint(status), do)
	}
}

func TestTheKeyIsNotShown(t *testing.T) {
	s, _ := standIn(t)
	const key = "sk_test_do-not-show-me"
	a, err := New(Account{Key: key, WebhookSecrets: []string{hookSecret}, BaseURL: s.URL, Timeout: time.Second})
	require.NoError(t, err)
	_, err = a.RequestRefund(t.Context(), refundOf("pi_1")) // the stand-in answers 401 and repeats what it got
	needsPerson(t, err, "(key)", "payment.stripe.key")
	require.NotContains(t, fmt.Sprintf("%v %+v", err, err), key)
}

// Slow, endless or wandering answers cost neither time nor memory nor the key.
func TestAnswersAreBounded(t *testing.T) {
	elsewhere, sent := 0, make(chan int, 1)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			n := 0
			for chunk := make([]byte, 1<<16); n < 1<<28; {
				m, err := w.Write(chunk)
				if n += m; err != nil {
					break
				}
			}
			sent <- n
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answer)
			defer srv.Close()
			timeout := 300 * time.Millisecond
			if name == "endless" {
				timeout = time.Minute
			}
			a, err := New(Account{Key: "sk_test_1", WebhookSecrets: []string{hookSecret}, BaseURL: srv.URL, Timeout: timeout})
			require.NoError(t, err)
			_, err = a.Status(t.Context(), payment.Attempt{HoldID: holdID, Ref: "pi_1"})
			e := passes(t, err)
			require.Less(t, len(e.Error()), 600)
			require.NotContains(t, e.Error(), srv.URL)
		})
	}
	require.Zero(t, elsewhere)
	require.Less(t, <-sent, 1<<27, "cut by size, not by time")

	s, a := standIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.RequestRefund(ctx, refundOf(paid(s, holdID)))
	require.ErrorIs(t, err, context.Canceled)
	passes(t, err)
}

package stripe

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/stripetest"
	"holdfast/payment"
)

func attempt(ref string) payment.Attempt { return payment.Attempt{HoldID: holdID, Ref: ref} }

func TestStatusOfAPayment(t *testing.T) {
	s, a := standIn(t)
	intent := func(status string) string {
		id := s.Intent(holdID, 500, "jpy")
		s.Set(id, stripetest.Object{"status": status})
		return id
	}
	session := func(status, payment string, amount int64) string {
		id := s.Session(holdID, "", amount, "jpy")
		s.Set(id, stripetest.Object{"status": status, "payment_status": payment})
		return id
	}
	whole := paid(s, holdID)
	back := paid(s, holdID)
	s.RefundByHand(back, 1)
	ofSession := s.Session(holdID, whole, 1250, "eur")
	free := session("complete", "no_payment_required", 0)
	byMeta := s.Intent("", 1250, "eur")
	s.Pay(byMeta)
	s.Session(holdID, byMeta, 1250, "eur")
	yen := s.Intent(holdID, 500, "jpy")
	s.Pay(yen)
	paidNow := func(ref string, amount int64, currency string) payment.Status {
		return payment.Status{State: payment.Paid, Ref: ref, Money: &contract.Money{Amount: amount, Currency: currency}}
	}
	unpaid := payment.Status{State: payment.Unpaid}

	for name, c := range map[string]struct {
		ref  string
		want payment.Status // of Unknown only the state
	}{
		"paid":                           {whole, paidNow(whole, 1250, "EUR")},
		"paid, yen as they come":         {yen, paidNow(yen, 500, "JPY")},
		"paid, asked by its session":     {ofSession, paidNow(whole, 1250, "EUR")},
		"paid, named by its session":     {byMeta, paidNow(byMeta, 1250, "EUR")},
		"free session":                   {free, paidNow(free, 0, "JPY")},
		"not begun":                      {intent("requires_payment_method"), unpaid},
		"to be confirmed":                {intent("requires_confirmation"), unpaid},
		"asks the bank":                  {intent("requires_action"), unpaid},
		"only reserved":                  {intent("requires_capture"), unpaid},
		"cancelled":                      {intent("canceled"), unpaid},
		"open session":                   {session("open", "unpaid", 500), unpaid},
		"open free session":              {session("open", "no_payment_required", 0), unpaid},
		"expired session":                {session("expired", "unpaid", 500), unpaid},
		"under way":                      {intent("processing"), payment.Status{State: payment.Unknown}},
		"a state of tomorrow":            {intent("requires_magic"), payment.Status{State: payment.Unknown}},
		"session complete, not paid":     {session("complete", "unpaid", 500), payment.Status{State: payment.Unknown}},
		"paid without a PaymentIntent":   {session("complete", "paid", 500), payment.Status{State: payment.Unknown}},
		"went back":                      {back, payment.Status{State: payment.Unknown}},
		"another hold's":                 {paid(s, otherID), payment.Status{State: payment.Unknown}},
		"another hold's session":         {s.Session(otherID, whole, 1250, "eur"), payment.Status{State: payment.Unknown}},
		"not in this account":            {"pi_unknown", payment.Status{State: payment.Unknown}},
		"session not in this account":    {"cs_test_unknown", payment.Status{State: payment.Unknown}},
		"no name of a payment at Stripe": {"order-7", payment.Status{State: payment.Unknown}},
		"no name at all":                 {"", payment.Status{State: payment.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := a.Status(t.Context(), attempt(c.ref))
			require.NoError(t, err)
			require.Equal(t, got.State == payment.Unknown, got.Reason != "", "a person is told why")
			got.Reason = ""
			require.Equal(t, c.want, got)
		})
	}
	require.Zero(t, count(s, "POST"), "asking changes nothing")
}

// An outage is no answer: neither paid nor unpaid.
func TestStatusWithoutAnAnswerIsAnError(t *testing.T) {
	s, a := standIn(t)
	ref, cs := paid(s, ""), s.Session("", "", 500, "eur")
	for _, fault := range []stripetest.Fault{{Status: 500}, {Status: 429}, {Drop: true}, {Status: 502, Body: "<html>"}} {
		for _, on := range []struct{ call, ref string }{
			{"GET /v1/payment_intents", ref}, {"GET /v1/checkout/sessions", ref}, {"GET /v1/checkout/sessions", cs},
		} {
			one, two := fault, fault
			one.On, two.On = on.call, on.call
			s.Next(&one)
			if fault.Drop { // net/http repeats a GET by itself once
				s.Next(&two)
			}
			got, err := a.Status(t.Context(), attempt(on.ref))
			passes(t, err)
			require.Zero(t, got)
		}
	}
	s.Next(&stripetest.Fault{On: "GET", Status: 401})
	_, err := a.Status(t.Context(), attempt(ref))
	needsPerson(t, err, "401", "payment.stripe.key")
}

func TestAnEndedHoldTakesNoMoney(t *testing.T) {
	t.Run("intent", func(t *testing.T) {
		for _, status := range []string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture"} {
			s, a := standIn(t)
			ref := s.Intent(holdID, 500, "jpy")
			s.Set(ref, stripetest.Object{"status": status})
			for range 2 {
				got, err := a.CancelAttempt(t.Context(), attempt(ref))
				require.NoError(t, err)
				require.Equal(t, payment.Status{State: payment.Unpaid}, got)
				require.Equal(t, "canceled", s.Get(ref)["status"])
				require.Equal(t, "abandoned", s.Get(ref)["cancellation_reason"])
			}
			require.Equal(t, 1, count(s, "POST"))
		}
	})
	t.Run("session nobody has paid at", func(t *testing.T) {
		s, a := standIn(t)
		cs := s.Session(holdID, "", 500, "jpy")
		for range 2 {
			got, err := a.CancelAttempt(t.Context(), attempt(cs))
			require.NoError(t, err)
			require.Equal(t, payment.Status{State: payment.Unpaid}, got)
			require.Equal(t, "expired", s.Get(cs)["status"])
		}
		require.Equal(t, 1, count(s, "POST"))
	})
	t.Run("session with its intent, by either name", func(t *testing.T) {
		for _, by := range []string{"intent", "session"} {
			s, a := standIn(t)
			pi := s.Intent(holdID, 500, "jpy")
			cs := s.Session("", pi, 500, "jpy")
			got, err := a.CancelAttempt(t.Context(), attempt(map[string]string{"intent": pi, "session": cs}[by]))
			require.NoError(t, err)
			require.Equal(t, payment.Unpaid, got.State)
			require.Equal(t, "expired", s.Get(cs)["status"])
			require.Equal(t, "canceled", s.Get(pi)["status"])
			require.Less(t, index(s, "POST /v1/checkout/sessions"), index(s, "POST /v1/payment_intents"), "the intent of an open session cannot be cancelled")
		}
	})
}

// What is reserved for a sale, and captured after it, is open and must stay so:
// under the name of its session too.
func TestTheSalesOwnPaymentIsNotEnded(t *testing.T) {
	s, a := standIn(t)
	pi := s.Intent(holdID, 500, "eur")
	s.Set(pi, stripetest.Object{"status": "requires_capture"})
	cs := s.Session(holdID, pi, 500, "eur")
	s.Set(cs, stripetest.Object{"status": "complete"})
	for _, ref := range []string{pi, cs} {
		for _, sale := range []string{pi, cs} {
			got, err := a.CancelAttempt(t.Context(), payment.Attempt{HoldID: holdID, Ref: ref, SaleRef: sale})
			require.NoError(t, err)
			require.Equal(t, payment.Unpaid, got.State, "it is not paid, and may yet be")
		}
	}
	require.Zero(t, count(s, "POST"))
	_, err := a.CancelAttempt(t.Context(), payment.Attempt{HoldID: holdID, Ref: cs, SaleRef: s.Intent(holdID, 500, "eur")})
	require.NoError(t, err)
	require.Equal(t, "canceled", s.Get(pi)["status"], "another payment made the sale")
}

func index(s *stripetest.Server, call string) int {
	for i, c := range s.Calls() {
		if len(c) >= len(call) && c[:len(call)] == call {
			return i
		}
	}
	return -1
}

// B21: the shopper was faster than the end of the hold, before we look and between
// our look and our word: no error, as the webhook brings the money.
func TestPaidMeanwhileIsNoError(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		s, a := standIn(t)
		ref := paid(s, holdID)
		got, err := a.CancelAttempt(t.Context(), attempt(ref))
		require.NoError(t, err)
		require.Equal(t, payment.Status{State: payment.Paid, Ref: ref, Money: &contract.Money{Amount: 1250, Currency: "EUR"}}, got)
		require.Zero(t, count(s, "POST"))
	})
	t.Run("between, intent", func(t *testing.T) {
		s, a := standIn(t)
		ref := s.Intent(holdID, 1250, "eur")
		s.Next(&stripetest.Fault{On: "POST /v1/payment_intents", Before: func() { s.Pay(ref) }})
		got, err := a.CancelAttempt(t.Context(), attempt(ref))
		require.NoError(t, err)
		require.Equal(t, payment.Paid, got.State)
		require.Equal(t, ref, got.Ref)
		require.Equal(t, "succeeded", s.Get(ref)["status"])
	})
	t.Run("between, session", func(t *testing.T) {
		s, a := standIn(t)
		cs := s.Session(holdID, "", 1250, "eur")
		ref := s.Intent(holdID, 1250, "eur")
		s.Next(&stripetest.Fault{On: "POST /v1/checkout/sessions", Before: func() {
			s.Pay(ref)
			s.Set(cs, stripetest.Object{"status": "complete", "payment_status": "paid", "payment_intent": ref})
		}})
		got, err := a.CancelAttempt(t.Context(), attempt(cs))
		require.NoError(t, err)
		require.Equal(t, payment.Paid, got.State)
		require.Equal(t, ref, got.Ref, "the name that the webhook will use")
	})
	t.Run("under way", func(t *testing.T) {
		s, a := standIn(t)
		ref := s.Intent(holdID, 1250, "eur")
		s.Set(ref, stripetest.Object{"status": "processing"})
		got, err := a.CancelAttempt(t.Context(), attempt(ref))
		require.NoError(t, err)
		require.Equal(t, payment.Unknown, got.State)
		require.Zero(t, count(s, "POST"))
	})
}

// A payment_ref is what somebody typed: another hold's payment is left alone.
func TestOnlyItsOwnAttemptIsEnded(t *testing.T) {
	s, a := standIn(t)
	other := s.Intent(otherID, 500, "eur")
	bySession := s.Intent("", 500, "eur")
	s.Session(otherID, bySession, 500, "eur")
	for _, ref := range []string{other, bySession, s.Session(otherID, "", 500, "eur"), "pi_unknown", "cs_test_unknown", "order-7", ""} {
		got, err := a.CancelAttempt(t.Context(), attempt(ref))
		require.NoError(t, err, ref)
		require.Equal(t, payment.Unknown, got.State, ref)
		require.NotEmpty(t, got.Reason)
	}
	require.Zero(t, count(s, "POST"))

	// One that names no hold anywhere is the hold's word alone.
	ref := s.Intent("", 500, "eur")
	got, err := a.CancelAttempt(t.Context(), attempt(ref))
	require.NoError(t, err)
	require.Equal(t, payment.Unpaid, got.State)
}

// Whatever answer is lost, the next attempt ends it.
func TestALostEndIsRepeated(t *testing.T) {
	for _, call := range []string{"GET /v1/payment_intents", "GET /v1/checkout/sessions", "POST /v1/checkout/sessions", "POST /v1/payment_intents"} {
		for _, fault := range []stripetest.Fault{{Status: 500}, {Status: 500, Done: true}, {Status: 429}, {Status: 502, Body: "<html>", Done: true}} {
			s, a := standIn(t)
			pi := s.Intent(holdID, 500, "eur")
			cs := s.Session(holdID, pi, 500, "eur")
			f := fault
			f.On = call
			s.Next(&f)
			_, err := a.CancelAttempt(t.Context(), attempt(pi))
			passes(t, err)
			got, err := a.CancelAttempt(t.Context(), attempt(pi))
			require.NoError(t, err)
			require.Equal(t, payment.Unpaid, got.State)
			require.Equal(t, "canceled", s.Get(pi)["status"])
			require.Equal(t, "expired", s.Get(cs)["status"])
		}
	}
	s, a := standIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.CancelAttempt(ctx, attempt(s.Intent(holdID, 500, "eur")))
	require.ErrorIs(t, err, context.Canceled)
}

package stripe

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/stripetest"
	"holdfast/payment"
)

const (
	hookSecret = "whsec_the-secret-of-the-endpoint"
	oldSecret  = "whsec_the-secret-before-that"
)

var (
	holdID  = contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes))
	otherID = contract.HoldID("TABLE", make([]byte, contract.IDTailBytes))
)

func standIn(t *testing.T) (*stripetest.Server, *Adapter) {
	t.Helper()
	s := stripetest.New()
	t.Cleanup(s.Close)
	a, err := New(Account{Key: s.Key, WebhookSecrets: []string{hookSecret, oldSecret}, BaseURL: s.URL, Timeout: 5 * time.Second})
	require.NoError(t, err)
	return s, a
}

// refundOf is the request for a payment of holdID.
func refundOf(ref string) payment.Refund {
	return payment.Refund{
		PaymentID: contract.PaymentID(holdID, ref), HoldID: holdID, PaymentRef: ref, Cause: contract.CauseLate,
		RequestedAt: time.Date(2027, 3, 14, 9, 26, 53, 0, time.UTC),
	}
}

// count is how many calls began like that.
func count(s *stripetest.Server, call string) int {
	n := 0
	for _, c := range s.Calls() {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// needsPerson asserts that a person is told what happened and what to do.
func needsPerson(t *testing.T, err error, what, do string) {
	t.Helper()
	require.True(t, payment.NeedsPerson(err), "%v", err)
	require.ErrorContains(t, err, what)
	var e *payment.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Do, do)
}

func passes(t *testing.T, err error) *payment.Error {
	t.Helper()
	var e *payment.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, payment.Retry, e.Class, e.Error())
	return e
}

// B28: the return page and the webhook must not name one payment twice.
func TestOnlyPaymentIntentsNameMoney(t *testing.T) {
	_, a := standIn(t)
	require.Equal(t, "stripe", a.Name())
	for _, ref := range []string{"pi_1", "pi_3Nabc_secret"} {
		require.NoError(t, a.CheckRef(ref))
	}
	for _, ref := range []string{"", "pi_", "cs_test_1", "ch_1", "re_1", "order 7", "pi_1/cancel", "pi_1?x=y", "pi_" + strings.Repeat("a", 200), "PI_1", " pi_1"} {
		require.ErrorContains(t, a.CheckRef(ref), "pi_…", ref)
	}
}

func TestWhatIsNoAccount(t *testing.T) {
	good := Account{Key: "sk_test_1", WebhookSecrets: []string{"whsec_x"}, Timeout: time.Second}
	for word, change := range map[string]func(*Account){
		"payment.stripe.key":             func(a *Account) { a.Key = "pk_live_do-not-show" },
		"payment.stripe.webhook_secrets": func(a *Account) { a.WebhookSecrets = nil },
		"payment.timeout":                func(a *Account) { a.Timeout = 0 },
	} {
		acc := good
		change(&acc)
		_, err := New(acc)
		require.ErrorContains(t, err, word)
		require.NotContains(t, err.Error(), "do-not-show")
	}
	for key, live := range map[string]bool{"sk_live_1": true, "rk_live_1": true, "sk_test_1": false, "rk_test_1": false} {
		acc := good
		acc.Key = key
		a, err := New(acc)
		require.NoError(t, err)
		require.Equal(t, live, a.live, key)
	}
}

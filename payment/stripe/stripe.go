// Package stripe is the payment adapter of a shop that takes payments with
// Stripe: it reads Stripe's webhooks, pays back, and ends what a shopper has
// begun for a hold that is over.
//
// The name of a payment is the id of its PaymentIntent (pi_…). The hold stands
// in the metadata hold_id of the PaymentIntent or of the Checkout Session; "none"
// says that the payment is for something else.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v84"

	"holdfast/contract"
	"holdfast/payment"
)

// MetaHold is the metadata that names the hold, and MetaPayment the one by
// which a refund of ours is known.
const (
	MetaHold    = "hold_id"
	MetaPayment = "payment_id"
)

// NoHold as the hold of a payment says that it is for something else.
const NoHold = "none"

// Account is whose payments they are.
type Account struct {
	Key            string        // sk_… or rk_…
	WebhookSecrets []string      // whsec_… of the webhook endpoint; each is accepted
	BaseURL        string        // another API host, for a stand-in; empty for Stripe's
	Timeout        time.Duration // of one call, its answer included
	// IgnoreUnnamed leaves payments alone that name no hold. The account may sell
	// other things; otherwise such money is Unmatched.
	IgnoreUnnamed bool
}

// maxAnswer bounds what is read of an answer, in bytes. A page of a hundred
// refunds has some 100 KiB.
const maxAnswer = 4 << 20

// Adapter is the payment.Port over Stripe, and reads Stripe's webhooks.
type Adapter struct {
	api     *stripego.Client
	key     string
	live    bool
	secrets []string
	unnamed Kind // what a payment without a hold is
}

var _ payment.Port = (*Adapter)(nil)

var keyPattern = regexp.MustCompile(`^(sk|rk)_(live|test)_`)

// New returns the adapter of an account. It does not call Stripe.
func New(acc Account) (*Adapter, error) {
	mode := keyPattern.FindStringSubmatch(acc.Key)
	switch {
	case mode == nil:
		return nil, errors.New("payment.stripe.key must begin with sk_live_, sk_test_, rk_live_ or rk_test_")
	case len(acc.WebhookSecrets) == 0:
		return nil, errors.New("payment.stripe.webhook_secrets needs the secret of the webhook endpoint")
	case acc.Timeout <= 0:
		return nil, errors.New("payment.timeout must be more than 0")
	}
	conf := &stripego.BackendConfig{
		EnableTelemetry: stripego.Bool(false),
		LeveledLogger:   &stripego.LeveledLogger{Level: stripego.LevelNull},
		// Who calls repeats, and knows for how long.
		MaxNetworkRetries: stripego.Int64(0),
		HTTPClient: &http.Client{
			Timeout:   acc.Timeout,
			Transport: bounded{http.DefaultTransport.(*http.Transport).Clone()},
			// The key must not travel to where an answer points.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if acc.BaseURL != "" {
		conf.URL = stripego.String(acc.BaseURL)
	}
	backend := stripego.GetBackendWithConfig(stripego.APIBackend, conf)
	unnamed := Unmatched
	if acc.IgnoreUnnamed {
		unnamed = Ignored
	}
	return &Adapter{
		unnamed: unnamed,
		api:     stripego.NewClient(acc.Key, stripego.WithBackends(&stripego.Backends{API: backend})),
		key:     acc.Key,
		live:    mode[2] == "live",
		secrets: acc.WebhookSecrets,
	}, nil
}

// bounded cuts answers at maxAnswer: stripe-go reads them whole.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Name says that Stripe takes the payments.
func (*Adapter) Name() string { return payment.ProviderStripe }

var (
	intentPattern  = regexp.MustCompile(`^pi_[A-Za-z0-9_]{1,190}$`)
	sessionPattern = regexp.MustCompile(`^cs_[A-Za-z0-9_]{1,190}$`)
)

// CheckRef takes the ids of PaymentIntents only. One payment also has a
// Checkout Session, a charge and a receipt: sold under one name and heard of
// under another, it would look like two payments and one would be paid back.
func (*Adapter) CheckRef(ref string) error {
	if !intentPattern.MatchString(ref) {
		return fmt.Errorf("payment_ref %.60q is no PaymentIntent: send its id (pi_…); of a Checkout Session it is the field payment_intent", ref)
	}
	return nil
}

func (a *Adapter) intent(ctx context.Context, id string) (*stripego.PaymentIntent, error) {
	params := &stripego.PaymentIntentRetrieveParams{}
	params.AddExpand("latest_charge")
	return a.api.V1PaymentIntents.Retrieve(ctx, id, params)
}

func (a *Adapter) session(ctx context.Context, id string) (*stripego.CheckoutSession, error) {
	return a.api.V1CheckoutSessions.Retrieve(ctx, id, nil)
}

// sessionsOf lists the Checkout Sessions of a PaymentIntent; it has one or none.
func (a *Adapter) sessionsOf(ctx context.Context, intent string) ([]*stripego.CheckoutSession, error) {
	params := &stripego.CheckoutSessionListParams{PaymentIntent: stripego.String(intent)}
	var all []*stripego.CheckoutSession
	for cs, err := range a.api.V1CheckoutSessions.List(ctx, params) {
		if err != nil {
			return nil, err
		}
		all = append(all, cs)
	}
	return all, nil
}

// holdOf is the hold that a payment is for, "" when nothing names one.
func (a *Adapter) holdOf(ctx context.Context, pi *stripego.PaymentIntent) (string, error) {
	if hold := pi.Metadata[MetaHold]; hold != "" {
		return hold, nil
	}
	sessions, err := a.sessionsOf(ctx, pi.ID)
	if err != nil {
		return "", err
	}
	for _, cs := range sessions {
		if hold := cs.Metadata[MetaHold]; hold != "" {
			return hold, nil
		}
	}
	return "", nil
}

// money is an amount as Stripe gives it: minor units, whole units of a currency
// that has none. It is never converted.
func money(amount int64, currency stripego.Currency) *contract.Money {
	return &contract.Money{Amount: amount, Currency: strings.ToUpper(string(currency))}
}

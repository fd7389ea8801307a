package activities_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/events"
	"holdfast/payment"
	"holdfast/redis"
)

type deaf struct{ err error }

func (d deaf) Send(context.Context, events.Event) error { return d.err }

type refuses struct {
	payment.Port
	err error
}

func (r refuses) RequestRefund(context.Context, payment.Refund) (payment.Receipt, error) {
	return payment.Receipt{}, r.err
}

// failure runs an activity that fails and answers its error and what the log says.
func failure(t *testing.T, a, method, in any) (*temporal.ApplicationError, string) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	var said bytes.Buffer
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&said, nil))))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	_, err := env.ExecuteActivity(method, in)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	return app, said.String()
}

// What passes by itself is a warning, not an error at each of a thousand attempts:
// Temporal's SDK logs every attempt that is not benign.
func TestAnOutageIsNoErrorAtEachAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		activity, method, in any
		kind                 string
	}{
		"a closed gate": {
			&activities.Stock{Gate: &outbox{drainErr: &redis.ClosedError{SKU: "CHAIR"}}, Guard: activities.Guard{Waker: &outbox{}}},
			(*activities.Stock)(nil).DrainOutbox,
			activities.DrainInput{SKU: "CHAIR"},
			contract.ErrClosed,
		},
		"a silent gate": {
			&activities.Stock{Gate: &outbox{drainErr: fmt.Errorf("%w: refused", redis.ErrUnavailable)}},
			(*activities.Stock)(nil).DrainOutbox,
			activities.DrainInput{SKU: "CHAIR"},
			contract.ErrUnavailable,
		},
		"a dead endpoint": {
			&activities.Deliveries{Sender: deaf{&events.Error{Event: "event_1", Status: 503, Reason: "the endpoint answered 503"}}},
			(*activities.Deliveries)(nil).DeliverEvent,
			contract.EventInput{EventID: "event_1"},
			contract.ErrEventLater,
		},
		"no endpoint any more": {
			&activities.Deliveries{}, (*activities.Deliveries)(nil).DeliverEvent, contract.EventInput{EventID: "event_1"}, contract.ErrEventLater,
		},
		"a silent provider": {
			&activities.Refunds{Port: refuses{err: &payment.Error{Class: payment.Retry, Reason: "no answer"}}},
			(*activities.Refunds)(nil).RequestRefund,
			activities.RequestRefundInput{PaymentID: "payment_1"},
			contract.ErrUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			app, said := failure(t, c.activity, c.method, c.in)
			require.Equal(t, c.kind, app.Type())
			require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
			require.False(t, app.NonRetryable())
			require.NotContains(t, said, "level=ERROR")
			if name != "no endpoint any more" {
				require.Equal(t, 1, strings.Count(said, "level=WARN"), said)
			}
		})
	}
	broken := &activities.Stock{Gate: &outbox{drainErr: errors.New("script error")}}
	app, _ := failure(t, broken, (*activities.Stock)(nil).DrainOutbox, activities.DrainInput{SKU: "CHAIR"})
	require.Equal(t, temporal.ApplicationErrorCategoryUnspecified, app.Category(), "a script that breaks is a surprise")
}

// The first attempt, then each time that there were twice as many: a dozen lines for
// the attempts of three days.
func TestAnOutageIsToldNowAndThen(t *testing.T) {
	var told []int32
	for n := int32(1); n <= 1000; n++ {
		if activities.WorthALine(n) {
			told = append(told, n)
		}
	}
	require.Equal(t, []int32{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, told)
}

// What the shop's endpoint answers may repeat the payment, and every message is
// logged.
func TestTheAnswerToARefundIsNotInItsMessage(t *testing.T) {
	port := refuses{err: &payment.Error{Class: payment.Retry, Reason: "the endpoint answered 500", Answer: "no pay_secret here"}}
	app, said := failure(t, &activities.Refunds{Port: port}, (*activities.Refunds)(nil).RequestRefund, activities.RequestRefundInput{PaymentID: "payment_1"})
	require.NotContains(t, app.Error()+said, "pay_secret")
	var answer string
	require.NoError(t, app.Details(&answer))
	require.Equal(t, "no pay_secret here", answer)
}

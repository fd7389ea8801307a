package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"holdfast/contract"
)

func payloads(text string) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{jsonPayload(text)}}
}

// did is an activity that has completed.
func did(name, input, result string) []*historypb.HistoryEvent {
	return []*historypb.HistoryEvent{
		{
			EventId: 7, EventType: scheduled,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityType: &commonpb.ActivityType{Name: name}, Input: payloads(input),
				},
			},
		},
		{
			EventId: 8, EventType: completed,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 7, Result: payloads(result)},
			},
		},
	}
}

// Money that only the provider told of is money: a hold that was terminated right
// after the answer owes it an owner.
func TestUnsettledPaymentsOfWhichTheProviderTold(t *testing.T) {
	const begun = `{"hold_id":"h","ref":"P1"}`
	amount := int64(500)
	owed := func(ref string) []contract.PaymentInput {
		return []contract.PaymentInput{{
			PaymentID: contract.PaymentID(closedHoldID, ref), HoldID: closedHoldID, PaymentRef: ref, Amount: &amount, Currency: "EUR", Cause: contract.CauseLate,
		}}
	}
	for name, c := range map[string]struct {
		events []*historypb.HistoryEvent
		want   []contract.PaymentInput
	}{
		"paid":                 {did("AskAttempt", begun, `{"state":"paid","ref":"PI","money":{"amount":500,"currency":"EUR"}}`), owed("PI")},
		"paid at the end":      {did("EndAttempt", begun, `{"state":"paid","ref":"P1","money":{"amount":500,"currency":"EUR"}}`), owed("P1")},
		"paid, without a name": {did("AskAttempt", begun, `{"state":"paid","money":{"amount":500,"currency":"EUR"}}`), owed("P1")},
		"open":                 {did("AskAttempt", begun, `{"state":"unpaid"}`), nil},
		"its word came by itself": {
			append([]*historypb.HistoryEvent{signal(contract.SignalPaymentSucceeded, jsonPayload(`{"payment_ref":"P1","amount":500,"currency":"EUR"}`))},
				did("AskAttempt", begun, `{"state":"paid","ref":"PI"}`)...),
			owed("P1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := UnsettledPayments(t.Context(), written(c.events), plain(t), closedHoldID, "")
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// What the provider says of another payment is no word of the gate's.
func TestASaleIsNotForgottenOverAnotherAttempt(t *testing.T) {
	events := cut(t, recorded(t, "hold-sold-by-signal"), marker, 2)
	require.Empty(t, left(t, events))
	require.Empty(t, left(t, append(events, did("EndAttempt", `{"ref":"P2"}`, `{"state":"unpaid"}`)...)))
}

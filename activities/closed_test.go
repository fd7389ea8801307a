package activities

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"holdfast/codec"
	"holdfast/contract"
)

// recorded is a history from the files of the replay tests.
func recorded(t *testing.T, path string) []*historypb.HistoryEvent {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../workflows/testdata/histories/current", path+".json"))
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h.GetEvents()
}

// cut ends a history, as a termination does, after its n-th event of a kind.
func cut(t *testing.T, events []*historypb.HistoryEvent, kind enumspb.EventType, n int) []*historypb.HistoryEvent {
	t.Helper()
	for i, e := range events {
		if e.GetEventType() == kind {
			if n--; n == 0 {
				return events[:i+1]
			}
		}
	}
	require.Fail(t, "no such event", "%s", kind)
	return nil
}

// written is a Temporal with one run.
type written []*historypb.HistoryEvent

func (w written) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &iterator{w}
}

type iterator struct{ left written }

func (i *iterator) HasNext() bool { return len(i.left) > 0 }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	e := i.left[0]
	i.left = i.left[1:]
	return e, nil
}

func plain(t *testing.T, keys ...codec.Key) *codec.Codec {
	t.Helper()
	c, err := codec.New(keys...)
	require.NoError(t, err)
	return c
}

const closedHoldID = "hold_bjmyietwaaaaaaaaaaaaaaaaaa"

// left says what is unsettled, as "reference cause amount", the reference without the
// hold's id that each ends with.
func left(t *testing.T, events []*historypb.HistoryEvent) []string {
	t.Helper()
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	all, err := UnsettledPayments(t.Context(), written(events), plain(t), id, "")
	require.NoError(t, err)
	out := []string{}
	for _, in := range all {
		require.Equal(t, id, in.HoldID)
		require.NotEmpty(t, in.SKU)
		require.Equal(t, contract.PaymentID(id, in.PaymentRef), in.PaymentID)
		text := strings.TrimSuffix(in.PaymentRef, "_"+id) + " " + in.Cause
		if in.Amount != nil {
			require.Equal(t, "EUR", in.Currency)
			text += " " + string(rune('0'+*in.Amount/100)) + "00"
		}
		out = append(out, text)
	}
	return out
}

const (
	signaled  = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
	accepted  = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
	answered  = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED
	marker    = enumspb.EVENT_TYPE_MARKER_RECORDED
	scheduled = enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
	completed = enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
)

// Histories of holds, cut off where an operator's terminate would have cut them.
func TestUnsettledPaymentsOfATerminatedHold(t *testing.T) {
	for _, c := range []struct {
		path string
		kind enumspb.EventType
		nth  int
		want []string
	}{
		{"hold-sold-by-signal", marker, 1, []string{}},
		{"hold-sold-by-signal", signaled, 1, []string{"pay_1 late 500"}},
		{"hold-sold-by-signal", marker, 2, []string{}}, // the gate has said that it is sold
		{"hold-sold-by-update", accepted, 1, []string{"pay_1 late"}},
		{"hold-sold-by-update", marker, 2, []string{}},
		{"hold-extended", signaled, 1, []string{}}, // a payment that has only started
		{"hold-failed-then-sold", signaled, 3, []string{}},
		{"hold-paid-twice", signaled, 2, []string{"pay_1 late 500", "pay_2 late 500"}},
		{"hold-paid-twice", scheduled, 1, []string{"pay_2 second 500"}}, // nobody knows whether it was started
		{"hold-paid-twice", completed, 1, []string{}},
		{"hold-mismatched", answered, 1, []string{"pay_1 late 400"}}, // kept until the end, and the end came
		{"hold-mismatched", scheduled, 1, []string{"pay_1 late 400"}},
		{"hold-mismatched", completed, 1, []string{}},
		{"hold-mismatched-then-sold", accepted, 2, []string{"pay_1 late 500"}}, // put right
		{"hold-mismatched-then-sold", answered, 2, []string{}},
		{"hold-sold-after-an-outage", scheduled, 1, []string{"pay_1 late 500"}},
		{"hold-sold-after-an-outage", completed, 1, []string{}},
		{"hold-late", scheduled, 1, []string{}}, // the release
		{"hold-late", signaled, 2, []string{"pay_late late 500"}},
		{"hold-late", completed, 1, []string{"pay_late late 500"}},
		{"hold-late", completed, 2, []string{}},
		{"hold-cart-sold", marker, 3, []string{"pay_1 late 500"}}, // one line of two
		{"hold-cart-sold", marker, 4, []string{}},
		{"hold-cart-undone", marker, 3, []string{"pay_1 late 500"}},
		{"hold-cart-undone", marker, 5, []string{"pay_1 late 500"}}, // both were sold for a moment, or so it may seem
		{"hold-cart-undone", completed, 1, []string{}},
	} {
		require.Equal(t, c.want, left(t, cut(t, recorded(t, c.path), c.kind, c.nth)), "%s after %s no. %d", c.path, c.kind, c.nth)
	}
}

func TestAHoldThatEndedByItselfLeavesNothing(t *testing.T) {
	files, err := filepath.Glob("../workflows/testdata/histories/current/hold-*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		path := strings.TrimSuffix(filepath.Base(file), ".json")
		require.Empty(t, left(t, recorded(t, path)), path)
	}
}

// What nobody can read gets the very Payment that the Hold would have started.
func TestUnreadablePaymentsOfATerminatedHold(t *testing.T) {
	events := recorded(t, "hold-undecodable")
	var in contract.PaymentInput
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			ok, err := (&closedHold{payloads: plain(t)}).decode(a.GetInput(), &in)
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	got, err := UnsettledPayments(t.Context(), written(cut(t, events, signaled, 1)), plain(t), in.HoldID, "")
	require.NoError(t, err)
	require.Equal(t, []contract.PaymentInput{in}, got)
	require.Equal(t, `{"payment_ref":17}`, string(in.Raw))

	for name, c := range map[string]struct {
		signal, payload string
		want            int
	}{
		"a reference that is none":     {contract.SignalPaymentSucceeded, `{"payment_ref":""}`, 1},
		"an amount without a currency": {contract.SignalPaymentSucceeded, `{"payment_ref":"P","amount":5}`, 1},
		"no payload":                   {contract.SignalPaymentSucceeded, ``, 1},
		"a start with a wrong amount":  {contract.SignalPaymentStarted, `{"payment_ref":"P","amount":-5,"currency":"EUR"}`, 1},
		"a failure that is no JSON":    {contract.SignalPaymentFailed, `{`, 1},
		"a failure":                    {contract.SignalPaymentFailed, `{"final":true}`, 0},
		"another signal":               {contract.SignalRelease, `{`, 0},
	} {
		got, err := UnsettledPayments(t.Context(), written{signal(c.signal, jsonPayload(c.payload))}, plain(t), closedHoldID, "")
		require.NoError(t, err, name)
		require.Len(t, got, c.want, name)
		for _, in := range got {
			require.Equal(t, contract.UndecodablePayment(closedHoldID, "", []byte(c.payload)), in, name)
		}
	}
}

func jsonPayload(text string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text)}
}

func signal(name string, p *commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: signaled,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: name, Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{p}},
			},
		},
	}
}

func TestUnsettledPaymentsAreDecrypted(t *testing.T) {
	key := codec.Key{ID: "k", Secret: bytes.Repeat([]byte{7}, codec.KeyBytes)}
	ring := plain(t, key)
	sealed, err := ring.Encode([]*commonpb.Payload{jsonPayload(`{"payment_ref":"P1"}`)})
	require.NoError(t, err)
	altered := proto.CloneOf(sealed[0])
	altered.Data[20] ^= 1
	run := written{
		signal(contract.SignalPaymentSucceeded, sealed[0]),
		signal(contract.SignalPaymentSucceeded, altered),
		signal(contract.SignalPaymentSucceeded, jsonPayload(`{"payment_ref":"P2"}`)),
	}
	got, err := UnsettledPayments(t.Context(), run, ring, closedHoldID, "")
	require.NoError(t, err)
	require.Equal(t, []contract.PaymentInput{
		{PaymentID: contract.PaymentID(closedHoldID, "P1"), HoldID: closedHoldID, PaymentRef: "P1", Cause: contract.CauseLate},
		contract.UndecodablePayment(closedHoldID, "", altered.GetData()),
		{PaymentID: contract.PaymentID(closedHoldID, "P2"), HoldID: closedHoldID, PaymentRef: "P2", Cause: contract.CauseLate},
	}, got)

	_, err = UnsettledPayments(t.Context(), run, plain(t), closedHoldID, "")
	var unknown *codec.UnknownKeyError
	require.ErrorAs(t, err, &unknown, "without the key nobody can say what is owed")
	require.ErrorContains(t, err, closedHoldID)
}

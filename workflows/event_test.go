package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/events"
)

func anEvent() contract.EventInput {
	return contract.EventInput{
		EventID: contract.EventID(holdID, contract.EventHoldCreated, ""), Type: contract.EventHoldCreated, Subject: holdID,
		SKUs: []string{chair}, At: began, Sequence: began.UnixMicro(), Data: []byte(`{"hold_id":"` + holdID + `"}`),
	}
}

var (
	down = &events.Error{Event: "e", Reason: "the endpoint answered 500", Status: 500, MaybeTaken: true}
	gone = &events.Error{Event: "e", Reason: "the endpoint answered 410: it wants no more events", Answer: "moved away", Status: 410, Final: true}
)

func (w *world) eventStatus() contract.EventStatus {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	var s contract.EventStatus
	require.NoError(w.t, v.Get(&s))
	return s
}

func (w *world) runEvent() contract.EventStatus {
	w.ExecuteWorkflow(contract.EventWorkflow, anEvent())
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var s contract.EventStatus
	require.NoError(w.t, w.GetWorkflowResult(&s))
	return s
}

func TestAnEventIsDeliveredOnceItIsTaken(t *testing.T) {
	w := newWorld(t)
	w.endpoint.answer(down, down, nil)
	s := w.runEvent()
	require.Equal(t, contract.EventDelivered, s.State)
	require.Equal(t, began.Add(6*time.Second), w.Now(), "two pauses, the second twice the first")
	require.Len(t, w.endpoint.got, 3)
	for _, got := range w.endpoint.got {
		require.Equal(t, w.endpoint.got[0], got, "a repeat is the same event")
		body, err := got.Body()
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"hold.created","timestamp":"2026-03-01T12:00:00.000Z","sequence":1772366400000000,"data":{"hold_id":"`+holdID+`"}}`, string(body))
	}
}

// Three days of attempts, then it is parked until a person says retry; and then
// again three days.
func TestAnEventIsParkedAfterThreeDays(t *testing.T) {
	w := newWorld(t)
	w.endpoint.answer(down)
	const limit = 72 * time.Hour
	tries := 0
	w.at(limit-11*time.Minute, func() { require.Equal(t, contract.EventSending, w.eventStatus().State) })
	w.at(limit, func() {
		tries = w.endpoint.calls()
		s := w.eventStatus()
		require.Equal(t, contract.EventParked, s.State)
		require.Contains(t, s.Reason, "the endpoint answered 500")
		require.WithinDuration(t, began.Add(limit), *s.ParkedAt, 10*time.Minute)
		require.Contains(t, w.currentDetails(), "`holdfast events retry "+s.EventID+"`")
	})
	w.at(30*day, func() {
		require.Equal(t, tries, w.endpoint.calls(), "parked is at rest")
		w.SignalWorkflow(contract.SignalRetry, contract.EventMove{Actor: "ops"})
	})
	w.at(30*day+time.Minute, func() {
		require.Equal(t, contract.EventSending, w.eventStatus().State)
		require.Greater(t, w.endpoint.calls(), tries)
	})
	w.at(33*day, func() {
		require.Equal(t, contract.EventParked, w.eventStatus().State, "parked again")
		w.endpoint.answer(nil)
		w.SignalWorkflow(contract.SignalRetry, nil)
	})
	s := w.runEvent()
	require.Equal(t, contract.EventDelivered, s.State)
	require.Equal(t, began.Add(33*day), w.Now())
	require.Greater(t, tries, 400)
	require.Less(t, tries, 460, "every ten minutes at most")
}

func TestAnEventThatNobodyWantsIsParkedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.endpoint.answer(gone, nil)
	w.at(time.Second, func() {
		s := w.eventStatus()
		require.Equal(t, contract.EventParked, s.State)
		require.Equal(t, `the endpoint answered 410: it wants no more events; it said "moved away"`, s.Reason)
		require.Equal(t, 1, w.endpoint.calls())
		w.SignalWorkflow(contract.SignalRetry, contract.EventMove{Actor: "ops"})
	})
	require.Equal(t, contract.EventDelivered, w.runEvent().State)
	require.Equal(t, 2, w.endpoint.calls())
}

// An endpoint may ask for a longer pause, not for a shorter one.
func TestTheEndpointMayAskForTime(t *testing.T) {
	for asked, waits := range map[time.Duration]time.Duration{time.Hour: time.Hour, time.Millisecond: 2 * time.Second} {
		w := newWorld(t)
		busy := *down
		busy.RetryAfter = asked
		w.endpoint.answer(&busy, nil)
		require.Equal(t, contract.EventDelivered, w.runEvent().State)
		require.Equal(t, began.Add(waits), w.Now())
	}
}

// A retry does not wait for the pause of the attempts before it.
func TestARetryIsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.endpoint.answer(down)
	w.at(5*time.Hour+time.Second, func() {
		w.endpoint.answer(nil)
		w.SignalWorkflow(contract.SignalRetry, contract.EventMove{Actor: "ops"})
	})
	require.Equal(t, contract.EventDelivered, w.runEvent().State)
	require.Equal(t, began.Add(5*time.Hour+time.Second), w.Now())
}

func TestAPersonGivesAnEventUp(t *testing.T) {
	w := newWorld(t)
	w.endpoint.answer(down)
	w.at(time.Hour, func() {
		w.SignalWorkflow(contract.SignalDiscard, contract.EventMove{Actor: "ops", Reason: "the shop has moved"})
	})
	s := w.runEvent()
	require.Equal(t, contract.EventDiscarded, s.State)
	require.Equal(t, "the shop has moved", s.Reason)
	require.Equal(t, began.Add(time.Hour), w.Now())

	w = newWorld(t)
	w.endpoint.answer(down)
	w.at(time.Hour, w.CancelWorkflow)
	w.ExecuteWorkflow(contract.EventWorkflow, anEvent())
	require.True(t, w.IsWorkflowCompleted())
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, w.GetWorkflowError(), &cancelled)
}

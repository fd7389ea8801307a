package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
	"holdfast/sms"
)

// reckon counts the events that a server would keep of a run: one of the start and
// of the end, of each signal, marker, search attribute and timer's start, end or
// cancellation, three of an activity however often it is tried, and three of each
// workflow task, which every signal, timer and activity's end brings.
func (w *world) reckon() *int {
	events := new(int)
	*events = 1 + 3 + 1
	add := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		*events += n
	}
	w.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { add(1) })
	w.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { add(3 + 3) })
	w.SetOnTimerScheduledListener(func(string, time.Duration) { add(1) })
	w.SetOnTimerFiredListener(func(string) { add(1 + 3) })
	w.SetOnTimerCanceledListener(func(string) { add(1) })
	w.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(mock.Arguments) { add(1) }).Return(nil)
	w.signalled = func() { add(1 + 3) }
	return events
}

func longest() contract.EntryInput {
	in := entryInput()
	in.Settings.TTLSeconds = 400 * 86400
	return in
}

// An idle entry keeps below 50 events in the longest time that a place can have; a
// turn costs what the architecture page says, and a busy year stays far below what a
// server would cut off.
func TestEntryHistoryStaysSmall(t *testing.T) {
	run := func(w *world) {
		w.ExecuteWorkflow(contract.WaitlistEntryWorkflow, longest())
		require.NoError(t, w.GetWorkflowError())
	}
	t.Run("idle", func(t *testing.T) {
		w := joined(t)
		events := w.reckon()
		run(w)
		require.Equal(t, began.Add(400*day), w.Now())
		t.Log("an idle entry: ", *events)
		require.LessOrEqual(t, *events, 25, "50 in a year is the most")
	})

	const turns, idle = 12, 19
	delivered := func(w *world, id string) {
		w.at(20*time.Second, func() { w.textIs(id, sms.StateSent, 0) })
		w.at(30*time.Second, func() { w.textIs(id, sms.StateDelivered, 0) })
	}
	for name, c := range map[string]struct {
		each func(w *world, id string)
		most int
	}{
		"missed":       {each: delivered, most: 33},
		"never called": {each: func(*world, string) {}, most: 22},
		"pressed, and the payment fails": {most: 40, each: func(w *world, id string) {
			delivered(w, id)
			w.at(time.Minute, func() {
				w.press()
				w.SignalWorkflow(contract.SignalClaimed, contract.Claimed{HoldID: id, ExpiresAt: w.hold.Deadline})
			})
			w.at(5*time.Minute, func() { w.holdEnds(contract.HoldReleased, contract.ReasonPaymentFailed) })
		}},
		"not told": {most: 22, each: func(w *world, _ string) {
			w.send = func(sms.Text) (sms.Receipt, error) {
				return sms.Receipt{}, &sms.Error{Class: sms.StopAll, Reason: "away"}
			}
		}},
		"paused, resumed and missed": {most: 50, each: func(w *world, id string) {
			w.paused = true
			w.at(time.Hour, func() {
				w.paused = false
				w.SignalWorkflow(contract.SignalOffered, contract.Offered{HoldID: id})
				delivered(w, id)
			})
		}},
		"with every word of the provider ten times": {most: 33 + 18*4, each: func(w *world, id string) {
			for i := range 10 {
				w.at(time.Duration(20+i)*time.Second, func() {
					w.textIs(id, sms.StateSent, 0)
					w.textIs(id, sms.StateDelivered, 0)
				})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := joined(t)
			w.missedKeep = turns
			w.send = accepted
			events := w.reckon()
			for i := range turns {
				id := fmt.Sprintf("%s%02d", secondHold[:len(secondHold)-2], i)
				w.at(time.Duration(i+1)*30*day, func() {
					w.send, w.paused = accepted, false
					w.offers(id)
					c.each(w, id)
				})
			}
			run(w)
			require.Equal(t, contract.EntryExpired, w.entry.State)
			each := (*events - idle + turns - 1) / turns
			t.Logf("a turn that is %s: %d events", name, each)
			require.LessOrEqual(t, each, c.most)
			require.Less(t, *events, 2000)
		})
	}
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/sms"
)

func stop(id string) contract.Said {
	return contract.Said{Word: contract.SaidStop, Source: contract.SaidByText, MessageID: id}
}

func start(id string) contract.Said {
	return contract.Said{Word: contract.SaidStart, Source: contract.SaidByText, MessageID: id}
}

// says sends a word after a while.
func (w *world) says(after time.Duration, m contract.Said) {
	w.at(after, func() { w.SignalWorkflow(contract.SignalSaid, m) })
}

func (w *world) runOptOut(in contract.OptOutInput) contract.OptOutResult {
	w.ExecuteWorkflow(contract.OptOutWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var out contract.OptOutResult
	require.NoError(w.t, w.GetWorkflowResult(&out))
	return out
}

func (w *world) optOutStatus() (s contract.OptOutStatus) {
	v, err := w.QueryWorkflow(contract.QueryStatus)
	require.NoError(w.t, err)
	require.NoError(w.t, v.Get(&s))
	return s
}

func TestStopEndsEveryPlaceAndStartEndsIt(t *testing.T) {
	w := newWorld(t)
	w.places.live = map[string]string{"A": "entry_a", "B": "entry_b"}
	w.says(0, stop("SM1"))
	w.at(200*day, func() {
		require.Equal(t, []string{"entry_a", "entry_b"}, w.places.left)
		require.Equal(t, contract.OptOutStatus{Person: "p1", State: contract.OptedOut, Since: began, Source: "text", Ended: 2}, w.optOutStatus())
		require.Equal(t, page(
			"State", "opted_out",
			"Customer", "`p1`",
			"Since", "2026-03-01T12:00:00Z",
			"Cause", "`text`",
			"Places ended", "2",
			"Next", "a START from the person; until then they get no texts and cannot join",
		), w.currentDetails())
	})
	w.says(400*day, start("SM2"))
	require.Equal(t, []string{"SM1", "SM2"}, w.runOptOut(contract.OptOutInput{Person: "p1"}).Seen)
	require.Equal(t, began.Add(400*day), w.Now(), "nothing but START ends it")
}

func TestARepeatedWordChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.says(0, stop("SM3"))
	w.says(time.Hour, stop("SM3"))
	w.says(2*time.Hour, start("SM2")) // of an earlier run
	w.says(3*time.Hour, contract.Said{Word: "help"})
	w.at(4*time.Hour, func() {
		require.Equal(t, contract.OptedOut, w.optOutStatus().State)
		require.Equal(t, 1, w.places.asked)
		w.CancelWorkflow()
	})
	w.at(5*time.Hour, func() {
		require.Equal(t, contract.OptedOut, w.optOutStatus().State, "a cancel is no START")
		w.SignalWorkflow(contract.SignalSaid, stop("SM4")) // another STOP: a join may have slipped past the first
	})
	w.says(6*time.Hour, start("SM5"))
	require.Equal(t, []string{"SM1", "SM2", "SM3", "SM4", "SM5"}, w.runOptOut(contract.OptOutInput{Person: "p1", Seen: []string{"SM1", "SM2"}}).Seen)
	require.Equal(t, 2, w.places.asked)
}

// A gate that is closed keeps the places of the others not waiting, and its own
// ends when it opens.
func TestStopWaitsForAClosedGate(t *testing.T) {
	w := newWorld(t)
	w.places.live, w.places.closed = map[string]string{"A": "entry_a", "B": "entry_b"}, "A"
	w.says(0, stop("SM1"))
	w.at(20*time.Second, func() { require.Equal(t, []string{"entry_b"}, w.places.left) })
	w.at(40*time.Second, func() { w.places.set(func() { w.places.closed = "" }) })
	w.says(time.Hour, start("SM2"))
	w.runOptOut(contract.OptOutInput{Person: "p1"})
	require.Equal(t, []string{"entry_b", "entry_a"}, w.places.left)
}

// START while places still end: what is left may stay.
func TestStartStopsTheEnding(t *testing.T) {
	w := newWorld(t)
	w.places.live, w.places.closed = map[string]string{"A": "entry_a"}, "A"
	w.says(0, stop("SM1"))
	w.says(time.Minute, start("SM2"))
	w.runOptOut(contract.OptOutInput{Person: "p1"})
	require.Empty(t, w.places.left)
	require.Equal(t, began.Add(time.Minute), w.Now())
}

// Words that arrive together count in their order.
func TestTheLastWordCounts(t *testing.T) {
	w := newWorld(t)
	w.says(0, stop("SM1"))
	w.at(time.Hour, func() {
		w.SignalWorkflow(contract.SignalSaid, start("SM2"))
		w.SignalWorkflow(contract.SignalSaid, stop("SM3"))
	})
	w.at(2*time.Hour, func() { require.Equal(t, contract.OptedOut, w.optOutStatus().State) })
	w.says(3*time.Hour, start("SM4"))
	w.runOptOut(contract.OptOutInput{Person: "p1"})
}

func TestOnlyTheLastWordsAreRemembered(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		w.says(time.Duration(i)*time.Minute, stop(string(rune('a'+i))))
	}
	w.says(time.Hour, start("SM"))
	seen := w.runOptOut(contract.OptOutInput{Person: "p1"}).Seen
	require.Len(t, seen, 20)
	require.Equal(t, "SM", seen[19])
}

// The entry of who opted out ends as that, and its unit goes on at once.
func TestEntryOfAnOptOut(t *testing.T) {
	w := joined(t)
	w.optedOut = true
	require.Equal(t, contract.EntryOptedOut, w.runEntry().State)
	require.Empty(t, w.texts)

	w = joined(t)
	w.at(day, func() {
		w.optedOut = true
		w.SignalWorkflow(contract.SignalOffered, w.offer(holdID))
	})
	require.Equal(t, contract.EntryOptedOut, w.runEntry().State)
	require.Equal(t, []string{sms.CauseJoined}, w.causesOfTexts())
	require.Equal(t, began.Add(day), w.hold.EndedAt)
	require.Zero(t, w.called("told ok"))

	w = joined(t)
	w.send = func(sms.Text) (sms.Receipt, error) {
		return sms.Receipt{}, &sms.Error{Class: sms.Never, Code: 21610, Reason: "unsubscribed"}
	}
	require.Equal(t, contract.EntryOptedOut, w.runEntry().State)
}

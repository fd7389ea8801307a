package workflows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
	"holdfast/redis"
)

func about() contract.About {
	return contract.About{Title: "Windsor chair", CheckoutURL: "https://shop.example/cart/{hold_id}"}
}

// wantsAbout is what a shop that says a of its SKU asks for.
func wantsAbout(a contract.About) contract.PolicyRequest { return contract.PolicyRequest{About: &a} }

func openBook() contract.StockBook {
	return contract.StockBook{SKU: chair, Opened: true, About: about(), Version: 1}
}

func restock(id string, units int64) contract.StockEvent {
	return contract.StockEvent{EventID: id, Kind: contract.StockRestock, Units: units}
}

// runStock lets the book run until rollAt, and answers the input of its next
// run.
func (w *world) runStock(in contract.StockInput, rollAt time.Duration) contract.StockInput {
	w.paused, w.version = in.Book.Paused, in.Book.Version // the gate too
	w.at(rollAt, func() {
		w.SetContinueAsNewSuggested(true)
		w.SignalWorkflow(contract.SignalSettle, nil)
	})
	w.ExecuteWorkflow(contract.StockWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	var next *workflow.ContinueAsNewError
	require.ErrorAs(w.t, w.GetWorkflowError(), &next)
	require.Equal(w.t, contract.StockWorkflow, next.WorkflowType.Name)
	var out contract.StockInput
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &out))
	return out
}

func TestStockAppliesAnEventOnceByItsID(t *testing.T) {
	w := newWorld(t)
	w.at(time.Minute, func() {
		for range 3 {
			w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5))
		}
	})
	w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	w.at(3*time.Minute, func() {
		w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "e2", Kind: contract.StockCorrection, Delta: -2})
		w.SignalWorkflow(contract.SignalStockEvent, contract.StockEvent{EventID: "e3", Kind: contract.StockCorrection, Delta: -9})
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.EqualValues(t, 3, w.free)
	require.Equal(t, []contract.BookEvent{
		{EventID: "e1", Kind: contract.StockRestock, Applied: true, Delta: 5},
		{EventID: "e2", Kind: contract.StockCorrection, Applied: true, Delta: -2},
		{EventID: "e3", Kind: contract.StockCorrection, Reason: "would-oversell"},
	}, out.Book.Events)
	require.EqualValues(t, 5, out.Book.Received)
	require.EqualValues(t, -2, out.Book.Corrected)
	require.EqualValues(t, 1, out.Book.Refused)
	require.Equal(t, 1, w.called("stock e1 ok"))
}

// An event that the book has forgotten and the gate still knows counts no second
// time.
func TestStockCountsAnOldEventOnce(t *testing.T) {
	w := newWorld(t)
	w.applied["e0"] = 1
	w.at(time.Minute, func() {
		w.SignalWorkflow(contract.SignalStockEvent, restock("e0", 40))
		w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5))
	})
	book := openBook()
	book.Received, book.DecidedN = 40, 1
	out := w.runStock(contract.StockInput{SKU: chair, Book: book}, time.Hour)
	require.EqualValues(t, 45, out.Book.Received)
	require.EqualValues(t, 2, out.Book.DecidedN)
	require.EqualValues(t, 5, w.free)
}

func level(id string, version, units, countsSold int64) contract.StockEvent {
	return contract.StockEvent{EventID: id, Kind: contract.StockLevel, Version: version, Units: units, CountsSold: countsSold}
}

func returned(id, returnID string, units int64, resell bool) contract.StockEvent {
	return contract.StockEvent{
		EventID: id, Kind: contract.StockReturn, ReturnID: returnID, HoldID: contract.HoldID(chair, []byte("eleven bytes")), Units: units, Resell: resell,
	}
}

// Each kind counts in its own total, and nothing counts twice.
func TestStockTotalsFollowEachKind(t *testing.T) {
	w := newWorld(t)
	all := []contract.StockEvent{
		restock("e1", 5),
		returned("e2", "r1", 2, true),
		returned("e3", "r1", 2, true), // the same return, told of again
		returned("e4", "r2", 1, false),
		level("e5", 1, 4, 0), // 7 are there
		{EventID: "e6", Kind: contract.StockCorrection, Delta: 2, Reason: "found"},
		level("e7", 2, 0, 0),
	}
	for _, after := range []time.Duration{time.Minute, time.Hour} {
		w.at(after, func() {
			for _, ev := range all {
				w.SignalWorkflow(contract.SignalStockEvent, ev)
			}
		})
	}
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, 2*time.Hour)
	require.Equal(t, []int64{5, 2, -3 + 2 - 6, 0}, []int64{out.Book.Received, out.Book.Returned, out.Book.Corrected, out.Book.Refused})
	require.EqualValues(t, 0, w.free)
	require.Len(t, out.Book.Events, len(all))
	require.Equal(t, contract.BookEvent{EventID: "e4", Kind: contract.StockReturn, Applied: true}, out.Book.Events[3])

	// A book that has forgotten every event and hears them all again.
	again := newWorld(t)
	again.applied, again.free = w.applied, w.free
	again.at(time.Minute, func() {
		for _, ev := range all {
			again.SignalWorkflow(contract.SignalStockEvent, ev)
		}
	})
	forgetful := out
	forgetful.Book.Events = nil
	next := again.runStock(forgetful, time.Hour)
	require.Equal(t, []int64{5, 2, -7}, []int64{next.Book.Received, next.Book.Returned, next.Book.Corrected})
	require.EqualValues(t, 0, again.free)
}

func TestStockRefusesWhatIsNoEvent(t *testing.T) {
	strange := func(ev contract.StockEvent, change func(*contract.StockEvent)) contract.StockEvent {
		change(&ev)
		return ev
	}
	bad := []contract.StockEvent{
		restock("", 5), restock("a", 0), restock("b", -1), restock("c", 1_000_000_001), restock("return\nr1", 1),
		{EventID: "d", Kind: "gift", Units: 1},
		{EventID: "e", Kind: contract.StockCorrection},
		{EventID: "f", Kind: contract.StockCorrection, Delta: -1_000_000_001},
		level("g", 0, 1, 0), level("h", 1<<53, 1, 0), level("i", 1, -1, 0), level("j", 1, 1_000_000_001, 0), level("k", 1, 1, -1),
		returned("l", "r", 0, true), returned("m", "", 1, true), returned("n", "r\n", 1, true),
		strange(returned("o", "r", 1, true), func(ev *contract.StockEvent) { ev.HoldID = "" }),
		strange(returned("p", "r", 1, true), func(ev *contract.StockEvent) { ev.HoldID = "entry_7hlieilch25wm6nd74gjabh6uu" }),
		restock(strings.Repeat("q", 129), 1), returned("r", strings.Repeat("r", 129), 1, true),
		strange(restock("s", 1), func(ev *contract.StockEvent) { ev.Reason = strings.Repeat("s", 501) }),
	}
	w := newWorld(t)
	w.at(time.Minute, func() {
		for _, ev := range bad {
			w.SignalWorkflow(contract.SignalStockEvent, ev)
		}
		w.SignalWorkflow(contract.SignalStockEvent, "not an event")
		w.SignalWorkflow(contract.SignalStockEvent, restock("good", 1))
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.EqualValues(t, len(bad), out.Book.Refused)
	require.Len(t, out.Book.Events, 1)
	require.EqualValues(t, 1, w.free)
}

func TestStockKeepsAnEventWhileTheGateIsClosed(t *testing.T) {
	w := newWorld(t)
	w.down = func(verb string) error {
		if strings.HasPrefix(verb, "stock") && w.Now().Before(began.Add(outage)) {
			return &redis.ClosedError{SKU: chair}
		}
		return nil
	}
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	w.at(2*time.Minute, func() {
		v, err := w.QueryWorkflow(contract.QueryStatus)
		require.NoError(t, err)
		var book contract.StockBook
		require.NoError(t, v.Get(&book))
		require.Equal(t, []contract.StockEvent{restock("e1", 5)}, book.Pending)
		require.Positive(t, w.checks, "the check of the closed gate was started")
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Empty(t, out.Book.Pending)
	require.EqualValues(t, 5, out.Book.Received)
	require.EqualValues(t, 5, w.free)
}

func TestStockPendingEventsSurviveTheNextRun(t *testing.T) {
	w := newWorld(t)
	w.down = func(verb string) error {
		if strings.HasPrefix(verb, "stock") {
			return redis.ErrUnavailable
		}
		return nil
	}
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 5)) })
	w.at(time.Minute+10*time.Second, func() { // together with the roll-over
		w.SignalWorkflowSkippingWorkflowTask(contract.SignalStockEvent, restock("e2", 7))
	})
	in := contract.StockInput{SKU: chair, Book: openBook()}
	in.Book.Epoch, in.Book.Paused, in.Book.Received = 3, true, 40
	in.Book.Events = []contract.BookEvent{{EventID: "e0", Kind: contract.StockRestock, Applied: true, Delta: 40}}
	want := in
	want.Book.Pending = []contract.StockEvent{restock("e1", 5), restock("e2", 7)}
	require.Equal(t, want, w.runStock(in, time.Minute+10*time.Second))

	again := newWorld(t)
	out := again.runStock(want, time.Hour)
	require.EqualValues(t, 12, again.free)
	require.EqualValues(t, 52, out.Book.Received)
}

// B104, B105: what arrives together with the roll-over is in the next run's book.
// On real servers: the story of a book that is continued, in the long form.
func TestStockRollsOverByItself(t *testing.T) {
	w := newWorld(t)
	w.at(time.Minute-time.Millisecond, func() {
		w.SignalWorkflowSkippingWorkflowTask(contract.SignalStockEvent, restock("e1", 5))
	})
	w.at(time.Minute, func() { w.SetCurrentHistoryLength(1001) })
	w.at(time.Hour, func() { t.Error("the run should have ended") })
	w.ExecuteWorkflow(contract.StockWorkflow, contract.StockInput{SKU: chair, Book: openBook()})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var out contract.StockInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &out))
	require.Equal(t, 1, len(out.Book.Pending)+len(out.Book.Events))
}

// B118: what a book carries from run to run stays far below what the server takes.
func TestStockRemembersTheLastEvents(t *testing.T) {
	w := newWorld(t)
	in := contract.StockInput{SKU: chair, Book: openBook()}
	for i := range 499 {
		in.Book.Events = append(in.Book.Events, contract.BookEvent{EventID: fmt.Sprintf("old%d", i)})
	}
	w.at(time.Minute, func() {
		w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 1))
		w.SignalWorkflow(contract.SignalStockEvent, restock("e2", 1))
	})
	out := w.runStock(in, time.Hour)
	require.Len(t, out.Book.Events, 500)
	require.Equal(t, "old1", out.Book.Events[0].EventID)
	require.Equal(t, "e2", out.Book.Events[499].EventID)

	for i := range out.Book.Events {
		out.Book.Events[i] = contract.BookEvent{
			EventID: strings.Repeat("\u00e9", 128), Kind: contract.StockCorrection, Applied: true, Delta: -1_000_000_000, Reason: "would-oversell",
		}
	}
	largest, err := converter.GetDefaultDataConverter().ToPayload(out)
	require.NoError(t, err)
	require.Less(t, len(largest.GetData()), 512<<10, "bytes of the largest book; the server refuses 2 MiB")
}

func TestStockDrains(t *testing.T) {
	t.Run("when it starts, when woken, and when more is due", func(t *testing.T) {
		w := newWorld(t)
		var at []time.Duration
		next := []time.Duration{0, 20 * time.Second, 50 * time.Millisecond, 0}
		w.drain = func() redis.DrainOutcome {
			at = append(at, w.Now().Sub(began))
			out := redis.DrainOutcome{}
			if len(at) <= len(next) {
				out.Next = next[len(at)-1]
			}
			return out
		}
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalSettle, nil) })
		w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
		require.Equal(t, []time.Duration{0, 60 * time.Second, 80 * time.Second, 80 * time.Second}, at, "what is due soon the drain itself waits for")
	})
	t.Run("after a stock event that says so", func(t *testing.T) {
		w := newWorld(t)
		w.wakes = true
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 1)) })
		w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
		require.Equal(t, 2, w.called("drain ok"))
	})
	t.Run("failing, which holds up no event", func(t *testing.T) {
		w := newWorld(t)
		w.down = func(verb string) error {
			if verb == "drain" {
				return errors.New("script error")
			}
			return nil
		}
		w.at(time.Second, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("e1", 4)) })
		w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Minute)
		require.EqualValues(t, 4, w.free)
		require.Zero(t, w.called("drain ok"))
	})
}

// What was sold is in the book, whatever repeats, comes late or comes of a server that
// was replaced, and in its next run.
func TestStockKeepsTheLastAudit(t *testing.T) {
	w := newWorld(t)
	at := func(minute int, sold, epoch int64) contract.StockAudit {
		return contract.StockAudit{Until: began.Add(time.Duration(minute) * time.Minute), Sold: sold, Epoch: epoch}
	}
	w.at(time.Minute, func() {
		for _, m := range []contract.StockAudit{at(2, 20, 1), at(2, 21, 1), at(1, 10, 1), at(3, 30, 2)} {
			w.SignalWorkflow(contract.SignalAudit, m)
		}
		w.SignalWorkflow(contract.SignalAudit, "no audit")
		w.SignalWorkflow(contract.SignalEpoch, contract.StockEpoch{Epoch: 9})
	})
	w.at(2*time.Minute, func() { w.SignalWorkflow(contract.SignalAudit, at(9, 90, 1)) })
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Equal(t, at(3, 30, 2), out.Book.Audit)

	again := newWorld(t)
	again.at(time.Minute, func() { again.SignalWorkflow(contract.SignalAudit, at(5, 25, 2)) }) // a sale was undone
	require.Equal(t, at(5, 25, 2), again.runStock(out, time.Hour).Book.Audit)
}

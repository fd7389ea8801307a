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

func openBook() contract.StockBook {
	return contract.StockBook{SKU: chair, Opened: true, About: about(), Version: 1}
}

func restock(id string, units int64) contract.StockEvent {
	return contract.StockEvent{EventID: id, Kind: contract.StockRestock, Units: units}
}

// runStock lets the book run until rollAt, and answers the input of its next
// run.
func (w *world) runStock(in contract.StockInput, rollAt time.Duration) contract.StockInput {
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

func TestStockRefusesWhatIsNoEvent(t *testing.T) {
	w := newWorld(t)
	w.at(time.Minute, func() {
		for _, ev := range []contract.StockEvent{
			restock("", 5), restock("a", 0), restock("b", -1), restock("c", 1_000_000_001),
			{EventID: "d", Kind: "level", Units: 1},
			{EventID: "e", Kind: contract.StockCorrection},
			{EventID: "f", Kind: contract.StockCorrection, Delta: -1_000_000_001},
		} {
			w.SignalWorkflow(contract.SignalStockEvent, ev)
		}
		w.SignalWorkflow(contract.SignalStockEvent, "not an event")
		w.SignalWorkflow(contract.SignalStockEvent, restock("good", 1))
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.EqualValues(t, 7, out.Book.Refused)
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

func TestStockRollsOverByItself(t *testing.T) {
	w := newWorld(t)
	w.at(time.Minute-time.Millisecond, func() {
		w.SignalWorkflowSkippingWorkflowTask(contract.SignalStockEvent, restock("e1", 5))
	})
	w.at(time.Minute, func() { w.SetCurrentHistoryLength(5001) })
	w.at(time.Hour, func() { t.Error("the run should have ended") })
	w.ExecuteWorkflow(contract.StockWorkflow, contract.StockInput{SKU: chair, Book: openBook()})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var out contract.StockInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &out))
	require.Equal(t, 1, len(out.Book.Pending)+len(out.Book.Events))
}

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
		require.Equal(t, []time.Duration{0, 60 * time.Second, 80 * time.Second, 81 * time.Second}, at)
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

func TestStockPolicyOpensASKU(t *testing.T) {
	w := newWorld(t)
	changed := about()
	changed.Title = "Rocking chair"
	var created, same, second *answer[contract.PolicyResult]
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("early", 5)) })
	w.at(2*time.Minute, func() {
		require.Empty(t, w.calls, "nothing reaches the gate before the SKU is opened")
		created = update[contract.PolicyResult](w, contract.UpdatePolicy, "a", contract.PolicyRequest{About: about()})
		same = update[contract.PolicyResult](w, contract.UpdatePolicy, "b", contract.PolicyRequest{About: about()})
		second = update[contract.PolicyResult](w, contract.UpdatePolicy, "c", contract.PolicyRequest{About: changed})
	})
	out := w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.Equal(t, contract.PolicyResult{Version: 1, Created: true}, created.result)
	require.Equal(t, contract.PolicyResult{Version: 1}, same.result)
	require.Equal(t, contract.PolicyResult{Version: 2}, second.result)
	require.Equal(t, changed, out.Book.About)
	require.EqualValues(t, 2, out.Book.Version)
	require.Equal(t, 1, w.called("open ok"))
	require.Len(t, w.settings, 2)
	require.EqualValues(t, 5, w.free)
}

func TestStockPolicyRefusesANumberOfAnother(t *testing.T) {
	w := newWorld(t)
	w.owner = "OTHER"
	var a *answer[contract.PolicyResult]
	w.at(time.Minute, func() {
		a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", contract.PolicyRequest{About: about()})
	})
	out := w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.ErrorContains(t, a.err, "OTHER")
	require.False(t, out.Book.Opened)
}

func TestStockPolicyRefusesBadInput(t *testing.T) {
	for word, change := range map[string]func(a *contract.About){
		"title is empty":     func(a *contract.About) { a.Title = " " },
		"at most 200":        func(a *contract.About) { a.Title = strings.Repeat("ä", 201) },
		"control characters": func(a *contract.About) { a.Title = "a\x00b" },
		"checkout_url":       func(a *contract.About) { a.CheckoutURL = "/cart" },
		"image_url":          func(a *contract.About) { a.ImageURL = "ftp://x/y" },
		"price":              func(a *contract.About) { a.Price = &contract.Money{Amount: 5, Currency: "eur"} },
	} {
		w := newWorld(t)
		bad := about()
		change(&bad)
		var a *answer[contract.PolicyResult]
		w.at(time.Minute, func() {
			a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", contract.PolicyRequest{About: bad})
		})
		w.runStock(contract.StockInput{SKU: chair}, time.Hour)
		require.ErrorContains(t, a.rejected, word)
		require.Empty(t, w.settings)
	}
}

func TestStockPauses(t *testing.T) {
	w := newWorld(t)
	var a, b *answer[contract.PauseResult]
	w.at(time.Minute, func() {
		a = update[contract.PauseResult](w, contract.UpdatePause, "a", contract.PauseRequest{Paused: true, Actor: "ops"})
	})
	w.at(2*time.Minute, func() {
		b = update[contract.PauseResult](w, contract.UpdatePause, "b", contract.PauseRequest{})
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, 90*time.Second)
	require.True(t, a.result.Paused)
	require.Nil(t, b)
	require.True(t, out.Book.Paused)
	require.True(t, *w.settings[0].Paused)
	require.Equal(t, "ops", w.settings[0].Actor)

	w = newWorld(t)
	w.at(time.Minute, func() {
		a = update[contract.PauseResult](w, contract.UpdatePause, "a", contract.PauseRequest{Paused: true})
	})
	w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.ErrorContains(t, a.rejected, "not been opened")
}

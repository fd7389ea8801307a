package starter

import (
	"context"
	"errors"
	"fmt"

	"holdfast/contract"
	"holdfast/launch"
)

// States of a stock event.
const (
	stockApplied  = "applied"
	stockRefused  = "refused"
	stockRecorded = "recorded" // in its book, not yet decided by the gate
	stockReceived = "received" // the door was sent it, and no more is known
)

// seekStock finds a stock event of the shop's: decided by the gate, or sent to the door
// and then in its book. The books are all asked when nobody knows the term: after a loss
// of Redis they alone know what was decided before.
func (f *finding) seekStock(ctx context.Context, id string, skus []string) error {
	decided, err := f.d.gate.OutcomesOf(ctx, id, skus)
	if err != nil {
		return err
	}
	claims := make([]string, len(skus))
	for i, sku := range skus {
		claims[i] = eventClaim(sku, id)
	}
	came, err := f.d.gate.Claimed(ctx, claims)
	if err != nil {
		return err
	}
	var undecided []string
	for i, sku := range skus {
		out, ok := decided[sku]
		moved, inLedger := f.applied[sku]
		switch {
		case ok:
			f.stockDecided(sku, id, out.Applied, out.Reason, out.Delta)
		case inLedger: // so long ago that nothing else knows
			f.stockDecided(sku, id, true, "", moved)
		case came[claims[i]]:
			undecided = append(undecided, sku)
		}
	}
	for _, sku := range undecided {
		switch answered, known := f.seekBook(ctx, id, sku); {
		case known:
		case answered:
			f.stockEvent(sku, id, stockReceived, "it is not in its book: the shop sends it again, as it was")
		default:
			f.stockEvent(sku, id, stockReceived, "its book applies it when a worker runs: see that one does")
		}
	}
	return nil
}

// seekBooks asks the book of every SKU, until the time for seeking is over.
func (f *finding) seekBooks(ctx, soon context.Context, id string, skus []string) {
	for _, sku := range skus {
		if soon.Err() != nil {
			f.whole = false
			return
		}
		if answered, _ := f.seekBook(ctx, id, sku); !answered {
			return
		}
	}
}

// seekBook tells what a book knows of an event, if it answers.
func (f *finding) seekBook(ctx context.Context, id, sku string) (answered, known bool) {
	var book contract.StockBook
	answered = f.asks(ctx, silentWorker, func(ctx context.Context) error {
		err := f.d.launcher.Status(ctx, contract.StockWorkflowID(sku), &book)
		if errors.Is(err, launch.ErrNoOwner) {
			return nil // and so it has no events
		}
		return err
	})
	for _, e := range book.Events {
		if e.EventID == id {
			f.stockDecided(sku, id, e.Applied, e.Reason, e.Delta)
			return answered, true
		}
	}
	for _, e := range book.Pending {
		if e.EventID == id {
			f.stockEvent(sku, id, stockRecorded, "its book applies it when the gate of "+sku+" decides: holdfast status says how that stands")
			return answered, true
		}
	}
	return answered, false
}

func (f *finding) stockDecided(sku, id string, applied bool, reason string, delta int64) {
	if applied {
		f.stockEvent(sku, id, stockApplied, fmt.Sprintf("nothing: applied, on_hand moved by %+d", delta))
		return
	}
	f.stockEvent(sku, id, stockRefused, "refused ("+reason+"): a repeat changes nothing; the shop sends what is right under an event_id of its own")
}

func (f *finding) stockEvent(sku, id, state, next string) {
	f.things = append(f.things, thingView{Kind: "stock-event", ID: id, SKU: sku, State: state, Next: next, UI: f.d.uiURL(contract.StockWorkflowID(sku))})
}

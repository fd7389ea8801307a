package redis

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// watcher writes down what it is told.
type watcher struct {
	verbs []string
	paid  []time.Duration
}

func (w *watcher) Verb(verb, outcome string, took time.Duration) {
	if took <= 0 {
		outcome = "in no time"
	}
	w.verbs = append(w.verbs, verb+" "+outcome)
}

func (w *watcher) Paid(after time.Duration) { w.paid = append(w.paid, after) }

func TestTheObserverSeesEachCallOnce(t *testing.T) {
	f := open(t, 1)
	w := &watcher{}
	f.g.opts.Observer = w
	id := f.held()
	require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.confirm(id, "pi")
	require.Equal(t, []string{"reserve ok", "adopt_hold ok", "reserve sold-out", "confirm ok"}, w.verbs)

	w.verbs = nil
	_, _, err := f.g.Snapshot(t.Context(), "no sku")
	require.Error(t, err)
	_, err = f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id})
	require.Error(t, err)
	require.Empty(t, w.verbs, "nothing was sent")

	_, _, err = f.g.Snapshot(t.Context(), f.sku+"-never")
	require.Error(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = f.g.Snapshot(gone, f.sku)
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, []string{"snapshot closed", "snapshot unavailable"}, w.verbs)
}

func TestTheObserverSeesAScriptThatBroke(t *testing.T) {
	w := &watcher{}
	opts := testOptions()
	opts.Observer = w
	g := New(shared, opts)
	const sku = "BROKEN-FOR-THE-OBSERVER"
	_, err := g.Open(t.Context(), OpenRequest{SKU: sku, New: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, name := range keyNames {
			require.NoError(t, shared.Del(context.Background(), key(sku, name)).Err())
		}
	})
	require.NoError(t, shared.Set(t.Context(), key(sku, "leases"), "no set", 0).Err())
	_, _, err = g.Snapshot(t.Context(), sku)
	var closed *ClosedError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, []string{"open ok", "snapshot failed"}, w.verbs)
}

// From the hold to its payment: once, however often the payment is told, and not
// for a hold whose beginning the record does not have.
func TestTheObserverHearsOfAPaymentOnce(t *testing.T) {
	f := open(t, 2)
	w := &watcher{}
	f.g.opts.Observer = w
	id := f.held()
	f.pass(90 * time.Second)
	f.confirm(id, "pi")
	f.pass(time.Second)
	f.confirm(id, "pi")
	f.confirm(id, "pi_2")
	require.Equal(t, []time.Duration{90 * time.Second}, w.paid)

	blocker := f.held()
	f.line(1)
	f.release(blocker, contract.ReasonShop)
	offers := must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 10)).Items
	require.Len(t, offers, 1)
	offer := offers[0].HoldID
	require.Equal(t, OK, f.press(offer).Verdict)
	require.Equal(t, OK, f.adopt(offer, true).Verdict)
	require.Equal(t, OK, f.confirm(offer, "pi_3").Verdict)
	require.Len(t, w.paid, 1)
}

func TestHowLongTheOutboxIsOverdue(t *testing.T) {
	f := open(t, 0)
	f.g.testClock += 1000 - f.g.testClock%1000 // counters have milliseconds, the outbox microseconds
	overdue := func() time.Duration { return must[time.Duration](f)(f.g.Overdue(t.Context(), f.counters())) }
	require.Zero(t, overdue())
	entry := f.joinAs("p", 1).Entry.ID
	require.Zero(t, overdue(), "the door starts it")
	f.pass(startDelay + 7*time.Second)
	require.Equal(t, 7*time.Second, overdue())
	f.pass(time.Second)
	must[DrainOutcome](f)(f.g.Drain(t.Context(), f.sku, 10))
	require.Zero(t, overdue(), "handed out")
	f.pass(35 * time.Second)
	require.Equal(t, 5*time.Second, overdue(), "and nobody took it")

	f.ack(entry)
	require.Zero(t, overdue())
	f.restock("r", 1)
	f.pass(20 * time.Second)
	require.Equal(t, 20*time.Second, overdue(), "an offer")
	paused := true
	must[Base](f)(f.g.Settings(t.Context(), SettingsRequest{SKU: f.sku, Paused: &paused}))
	require.Zero(t, overdue(), "which a pause holds back")
}

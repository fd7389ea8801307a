package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestThePressOfAnOfferTakesItAndAWalkInNever(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	number, err := contract.HoldNumber(offer)
	require.NoError(t, err)
	require.Equal(t, contract.SKUNumber(f.sku), number)
	_, err = contract.HoldIDBytes(offer)
	require.NoError(t, err, "an offer's id is canonical base32")

	require.Equal(t, Unknown, f.press(f.id(contract.HoldID)).Verdict, "a link never makes a record")
	out := f.press(offer)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.HoldProvisional, out.Hold.State)
	require.Equal(t, contract.EntryHolding, f.entry(entry).State)
	held := f.adopt(offer, false)
	again := f.press(offer)
	require.Equal(t, Existing, again.Verdict)
	require.Equal(t, held.Hold.Deadline, again.Hold.Deadline, "pressed again: the same deadline")
	require.Equal(t, Claimed, f.lapse(offer).Verdict)
	require.Equal(t, OK, f.confirm(offer, "pi_1").Verdict)
	require.Equal(t, contract.EntryBought, f.entry(entry).State)
	require.Equal(t, Existing, f.press(offer).Verdict)
	require.Equal(t, [4]int64{0, 0, 0, 1}, f.parts())
	require.True(t, f.joinAs("ada", 1).Created, "who bought may join again")
}

func TestADeadPressGivesTheOfferBackOnce(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.told(offer, true)
	f.pass(15*time.Minute - time.Second)
	f.press(offer)
	f.pass(testLease)
	require.Equal(t, [4]int64{1, 0, 1, 0}, f.parts(), "an ended lease of an offer counts as offered")
	f.drain()
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	early := f.lapse(offer)
	require.Equal(t, Early, early.Verdict)
	require.Equal(t, 2*time.Minute, early.Left)
	f.press(offer)
	f.pass(testLease)
	require.Equal(t, 110*time.Second, f.lapse(offer).Left, "the deadline moves once")
	f.pass(2 * time.Minute)
	require.Equal(t, OK, f.lapse(offer).Verdict)
	require.Equal(t, contract.EntryLapsed, f.entry(entry).State)
}

func TestTheHoldWorkflowOfADeadPressTakesTheOfferAgain(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.press(offer)
	f.pass(testLease)
	require.Equal(t, Gone, f.adopt(offer, false).Verdict)
	out := f.adopt(offer, true)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, entry, out.Hold.EntryID)
	require.Equal(t, contract.EntryHolding, f.entry(entry).State)
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
}

func TestLapsePassesTheUnitOn(t *testing.T) {
	f := open(t, 0)
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.restock("e1", 1)
	offer := f.entry(a).HoldID
	require.Equal(t, Early, f.lapse(offer).Verdict)
	require.Equal(t, 16*time.Minute, f.told(offer, false).Left, "window and sent grace")
	f.pass(time.Minute)
	sent := f.told(offer, true)
	require.Equal(t, 15*time.Minute, sent.Left)
	f.pass(time.Minute)
	require.Equal(t, sent.Hold.Deadline, f.told(offer, true).Hold.Deadline, "sent is final")
	require.Equal(t, sent.Hold.Deadline, f.told(offer, false).Hold.Deadline)
	f.pass(14 * time.Minute)
	out := f.lapse(offer)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.EntryLapsed, f.entry(a).State)
	require.Equal(t, contract.EntryOffered, f.entry(b).State)
	require.Equal(t, Existing, f.lapse(offer).Verdict)
	require.Equal(t, Existing, f.press(offer).Verdict, "a link never revives a lapsed offer")
	require.Equal(t, Gone, f.told(offer, false).Verdict)
}

func TestAnOfferNeverOutlivesItsGreatestAge(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("a", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.pass(48*time.Hour - time.Minute)
	require.Equal(t, time.Minute, f.told(offer, false).Left)
}

func TestEndsOfAHoldEndItsEntry(t *testing.T) {
	for reason, want := range map[string]contract.EntryState{
		contract.ReasonShopper:       contract.EntryLeft,
		contract.ReasonPaymentFailed: contract.EntryLapsed,
		contract.ReasonShop:          contract.EntryLapsed,
		contract.ReasonExpired:       contract.EntryLapsed,
	} {
		f := open(t, 0)
		entry, next := f.waits("a", 1), f.waits("b", 1)
		f.restock("e1", 1)
		offer := f.entry(entry).HoldID
		f.ackOffers()
		f.press(offer)
		f.adopt(offer, true)
		f.pass(10 * time.Minute)
		require.Equal(t, OK, f.release(offer, reason).Verdict)
		require.Equal(t, want, f.entry(entry).State, reason)
		require.Equal(t, contract.EntryOffered, f.entry(next).State, "each route wakes the line")
		items := f.drain().Items
		require.Len(t, items, 2)
		require.Equal(t, ItemEnd, items[0].Kind)
		require.Equal(t, entry, items[0].EntryID)
		require.Equal(t, offer, items[0].HoldID)
		require.Equal(t, ItemOffer, items[1].Kind)
	}
}

func (f *fixture) ackOffers() {
	for _, item := range f.drain().Items {
		_, err := f.g.AdoptOffer(f.t.Context(), f.sku, item.HoldID)
		require.NoError(f.t, err)
	}
}

func TestLeavingDuringADeadPressFreesTheUnit(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("a", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.press(offer)
	f.leave(entry, contract.EntryLeft)
	f.pass(testLease)
	f.drain()
	require.Equal(t, int64(1), f.counters().OpenToAll)
	require.Equal(t, contract.EntryLeft, f.entry(entry).State)
	require.Equal(t, contract.HoldReleased, f.hold(offer).State)
}

func TestAMissedTurnKeepsItsPlaceUntilTheNextRestock(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.restock("e1", 1)
	f.pass(48 * time.Hour)
	require.Equal(t, OK, f.lapse(f.entry(a).HoldID).Verdict)
	parked := f.entry(a)
	require.Equal(t, contract.EntryWaiting, parked.State)
	require.Equal(t, int64(1), parked.Position, "it keeps its place")
	require.Equal(t, contract.EntryOffered, f.entry(b).State)
	offer := f.entry(b).HoldID
	f.press(offer)
	f.adopt(offer, true)
	f.release(offer, contract.ReasonShopper)
	require.Equal(t, int64(1), f.counters().OpenToAll, "nobody is offered twice in one restock")
	f.restock("e2", 1)
	require.Equal(t, contract.EntryOffered, f.entry(a).State)
	f.pass(48 * time.Hour)
	f.lapse(f.entry(a).HoldID)
	require.Equal(t, contract.EntryLapsed, f.entry(a).State, "one missed turn, not two")
}

// An offer that we could not tell costs no turn: it may end before its deadline, the
// unit goes on, and the place is kept for the next restock as if nothing had been
// offered. What may be missed is not used up, and in this restock the entry gets no
// second offer, so a sender that fails leads nobody in a circle.
func TestAnOfferThatWasNotToldCostsNoTurn(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.restock("e1", 1)
	offer := f.offered(a)
	f.told(offer, false) // asked before an attempt that then failed
	out := f.lapseNotTold(offer)
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.HoldLapsed, out.Hold.State)
	require.Equal(t, contract.ReasonNotTold, out.Hold.Reason)
	lines := must[[]LedgerLine](f)(f.g.Ledger(t.Context(), f.sku, "", 100))
	line := lines[len(lines)-2]
	require.Equal(t, [3]string{"lapse", "lapsed", contract.ReasonNotTold}, [3]string{line.Verb, line.Kind, line.Reason})
	require.Equal(t, Existing, f.lapseNotTold(offer).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(a).State)
	require.Equal(t, int64(1), f.entry(a).Position)
	require.Equal(t, contract.EntryOffered, f.entry(b).State, "the unit goes on")
	f.lapseNotTold(f.offered(b))
	require.Equal(t, int64(1), f.counters().OpenToAll, "nobody is offered twice in one restock")

	f.restock("e2", 1)
	for _, want := range []contract.EntryState{contract.EntryWaiting, contract.EntryLapsed} {
		f.pass(48 * time.Hour)
		f.lapse(f.offered(a))
		require.Equal(t, want, f.entry(a).State, "one turn may be missed after all")
		f.restock("e3 "+string(want), 1)
	}
}

// B84: of a text that went out and never arrived only the reason differs, in the record
// and in the ledger; the turn is one like any other.
func TestAnOfferWhoseTextNeverArrived(t *testing.T) {
	f := open(t, 0)
	a := f.waits("a", 1)
	f.restock("e1", 1)
	id := f.offered(a)
	f.told(id, true)
	lapse := func(notTold bool) HoldOutcome {
		return must[HoldOutcome](f)(f.g.Lapse(t.Context(), LapseRequest{SKU: f.sku, HoldID: id, NotTold: notTold, NotDelivered: true}))
	}
	require.Equal(t, Early, lapse(false).Verdict)
	f.pass(48 * time.Hour)
	out := lapse(false)
	require.Equal(t, [2]any{OK, contract.ReasonNotDelivered}, [2]any{out.Verdict, out.Hold.Reason})
	lines := must[[]LedgerLine](f)(f.g.Ledger(t.Context(), f.sku, "", 100))
	require.Equal(t, contract.ReasonNotDelivered, lines[len(lines)-1].Reason)
	require.EqualValues(t, 1, f.entry(a).Missed+map[bool]int64{true: 1}[f.entry(a).State == contract.EntryLapsed], "a missed turn")
	require.Equal(t, Existing, lapse(true).Verdict)
}

// A restock that came while the offer was out is one in which the entry was offered
// nothing yet: it has its turn in that, at its own place.
func TestAnOfferThatWasNotToldInANewerRestock(t *testing.T) {
	f := open(t, 0)
	a := f.waits("a", 1)
	f.restock("e1", 1)
	first := f.offered(a)
	f.restock("e2", 1)
	b := f.waits("b", 1)
	require.Equal(t, contract.EntryOffered, f.entry(b).State)
	require.Equal(t, OK, f.lapseNotTold(first).Verdict)
	second := f.offered(a)
	require.NotEqual(t, first, second)
	require.Equal(t, int64(2), f.entry(a).Generation)
	require.Equal(t, OK, f.lapseNotTold(second).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(a).State, "once in a restock")
}

// Whoever may have the text keeps the offer until its deadline; and who has pressed
// keeps the hold.
func TestAnOfferThatWasSentKeepsItsDeadline(t *testing.T) {
	f := open(t, 0)
	a, b := f.waits("a", 1), f.waits("b", 1)
	f.restock("e1", 2)
	sent := f.offered(a)
	f.told(sent, true)
	early := f.lapseNotTold(sent)
	require.Equal(t, Early, early.Verdict)
	require.Equal(t, 15*time.Minute, early.Left)
	pressed := f.offered(b)
	f.press(pressed)
	require.Equal(t, Claimed, f.lapseNotTold(pressed).Verdict)
	f.pass(15 * time.Minute)
	require.Equal(t, OK, f.lapseNotTold(sent).Verdict, "a text that was lost on its way")
	require.Equal(t, contract.EntryWaiting, f.entry(a).State)
}

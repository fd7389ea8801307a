package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B64, B68.
func TestRestockCountsOnceHoweverOftenItArrives(t *testing.T) {
	f := open(t, 0)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			out, err := f.g.Stock(t.Context(), f.sku, contract.StockEvent{EventID: "e1", Kind: contract.StockRestock, Units: 5})
			if err != nil || !out.Applied || out.Delta != 5 {
				t.Errorf("a delivery answered %+v, %v", out, err)
			}
		})
	}
	wg.Wait()
	c := f.counters()
	require.Equal(t, int64(5), c.OnHand)
	require.Equal(t, int64(1), c.Generation)
	require.Equal(t, 2, f.lines(), "open and one restock")
	require.True(t, f.restock("e2", 5).Applied, "another event id counts again")
	require.Equal(t, int64(10), f.counters().Received)
}

func TestARepeatKeepsTheNumberOfItsDecision(t *testing.T) {
	f := open(t, 0)
	first := f.restock("e1", 5)
	require.Equal(t, int64(2), first.N, "after the opening line")
	require.Equal(t, int64(3), f.restock("e2", 5).N)
	require.Equal(t, first.N, f.restock("e1", 5).N)
	require.Equal(t, int64(3), f.correct("c1", -99, false).N, "a refusal has no line of its own")
}

func TestCorrectionNeverTakesClaimedUnitsUnasked(t *testing.T) {
	f := open(t, 2)
	a, b := f.held(), f.held()
	out := f.correct("c1", -2, false)
	require.False(t, out.Applied)
	require.Equal(t, string(WouldOversell), out.Reason)
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts())
	require.False(t, f.correct("c1", -2, true).Applied, "a repeat answers the kept outcome")

	require.False(t, f.correct("c2", -3, true).Applied, "on_hand never falls below 0")
	out = f.correct("c3", -1, true)
	require.True(t, out.Applied)
	require.Equal(t, int64(1), out.Counters.Shortfall)
	require.Equal(t, int64(-1), out.Counters.Available)
	require.Equal(t, int64(0), out.Counters.OpenToAll)
	require.Equal(t, OK, f.confirm(a, "pi_a").Verdict, "first to pay wins")
	require.Equal(t, Shortfall, f.confirm(b, "pi_b").Verdict)
	require.Equal(t, [4]int64{0, 1, 0, 1}, f.parts())
	f.restock("e2", 1)
	require.Equal(t, OK, f.confirm(b, "pi_b").Verdict)
	require.Equal(t, [4]int64{0, 0, 0, 2}, f.parts())
}

// expiredAndOfferedAgain is somebody whose first hold expired unpaid, and whose
// entry was offered another unit by the next restock.
func expiredAndOfferedAgain(t *testing.T) (f *fixture, entry, first, second string) {
	f = open(t, 0)
	f.g.opts.MissedKeep = 1
	entry = f.waits("a", 1)
	f.restock("e1", 1)
	first = f.entry(entry).HoldID
	f.press(first)
	f.adopt(first, true)
	f.pass(10 * time.Minute)
	f.release(first, contract.ReasonExpired)
	f.restock("e2", 1)
	second = f.entry(entry).HoldID
	require.NotEqual(t, first, second)
	return f, entry, first, second
}

// Somebody pays for an expired hold while their entry has been offered another
// unit: one sale, and the other offer goes back.
func TestARetakeGivesTheOtherOfferBack(t *testing.T) {
	f, entry, first, second := expiredAndOfferedAgain(t)
	out := must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: first, PaymentRef: "pi", Retake: true}))
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.HoldReleased, f.hold(second).State)
	require.Equal(t, contract.EntryBought, f.entry(entry).State)
	require.Equal(t, Existing, f.press(second).Verdict, "it makes no entry live again")
	require.Equal(t, [4]int64{1, 0, 0, 1}, f.parts())
}

func (f *fixture) returns(ev contract.StockEvent) StockOutcome {
	f.t.Helper()
	ev.Kind = contract.StockReturn
	return must[StockOutcome](f)(f.g.Stock(f.t.Context(), f.sku, ev))
}

// One return is one return id, whatever event tells of it; and each event's id
// tells what became of it.
func TestAReturnCountsOnceByItsReturnID(t *testing.T) {
	f := open(t, 3)
	id := f.id(contract.HoldID)
	f.reserve(id, 3)
	f.adopt(id, true)
	early := f.returns(contract.StockEvent{EventID: "e1", ReturnID: "r1", HoldID: id, Units: 2, Resell: true})
	require.Equal(t, "not-sold", early.Reason)
	f.confirm(id, "pi")
	first := f.returns(contract.StockEvent{EventID: "e2", ReturnID: "r1", HoldID: id, Units: 2, Resell: true})
	require.True(t, first.Applied, "a refused return comes again in another event")
	lines := f.lines()
	again := f.returns(contract.StockEvent{EventID: "e3", ReturnID: "r1", HoldID: id, Units: 2, Resell: true})
	require.True(t, again.Applied)
	require.Equal(t, first.N, again.N)
	require.Equal(t, lines, f.lines())
	for _, event := range []string{"e2", "e3"} {
		out, decided, err := f.g.EventOutcome(t.Context(), f.sku, event)
		require.NoError(t, err)
		require.True(t, decided, event)
		require.Equal(t, int64(2), out.Delta, event)
	}
	require.Equal(t, "more-than-sold", f.returns(contract.StockEvent{EventID: "e4", ReturnID: "r2", HoldID: id, Units: 2, Resell: true}).Reason)
	require.True(t, f.returns(contract.StockEvent{EventID: "e5", ReturnID: "r2", HoldID: id, Units: 1}).Applied, "broken, and back all the same")
	other := f.returns(contract.StockEvent{EventID: "e6", ReturnID: "r1", HoldID: id, Units: 1, Resell: true})
	require.Equal(t, "return-id-reused", other.Reason, "r1 was of 2 units")
	require.True(t, f.restock("return r1", 1).Applied, "no event id looks like a return id")
	require.Equal(t, [4]int64{3, 0, 0, 1}, f.parts())
	require.Equal(t, int64(2), f.counters().Returned)
	require.Equal(t, int64(3), f.hold(id).Returned)
}

// A level is what is on the shelf at a count that has some of our sales in it.
func TestALevelKnowsWhichSalesItCounted(t *testing.T) {
	f := open(t, 5)
	sold := []string{f.held(), f.held()}
	for _, id := range sold {
		require.Equal(t, OK, f.confirm(id, "pi_"+id).Verdict)
	}
	level := func(event string, version, units, counts int64) StockOutcome {
		return must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{
			EventID: event, Kind: contract.StockLevel, Version: version, Units: units, CountsSold: counts,
		}))
	}
	require.Equal(t, int64(0), level("l1", 1, 4, 1).Delta, "4 on the shelf when the second sale was not made yet")
	require.Equal(t, int64(7), level("l3", 3, 10, 2).Delta)
	require.Equal(t, "level-outdated", level("l2", 2, 99, 2).Reason)
	require.Equal(t, "counts-unknown-sales", level("l4", 4, 10, 3).Reason)
	require.Equal(t, [4]int64{10, 0, 0, 2}, f.parts())
	require.Equal(t, int64(3), f.counters().LevelVersion)

	require.True(t, f.returns(contract.StockEvent{EventID: "r1", ReturnID: "r1", HoldID: sold[0], Units: 1, Resell: true}).Applied)
	require.Equal(t, int64(-4), level("l5", 5, 6, 2).Delta, "a sale that was counted came back after the count: 6 and 1")
	require.Equal(t, [4]int64{7, 0, 0, 1}, f.parts())
}

// They have pressed the other offer: one entry buys once, so the late payment is
// refused and the pressed hold runs on.
func TestARetakeBesideAPressedOfferIsRefused(t *testing.T) {
	f, entry, first, second := expiredAndOfferedAgain(t)
	f.press(second)
	f.adopt(second, true)
	require.Equal(t, int64(1), f.counters().OpenToAll, "there is a unit to retake")
	out := must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: first, PaymentRef: "pi", Retake: true}))
	require.Equal(t, HoldEnded, out.Verdict)
	require.Equal(t, contract.EntryHolding, f.entry(entry).State)
	require.Equal(t, [4]int64{2, 1, 0, 0}, f.parts())
	require.Equal(t, OK, f.confirm(second, "pi_2").Verdict)
}

func TestUnitsStayBelowTheLimit(t *testing.T) {
	f := open(t, 999_999_999)
	out := f.restock("more", 2)
	require.False(t, out.Applied)
	require.Equal(t, "too-many", out.Reason)
	require.True(t, f.restock("one", 1).Applied)
	require.Equal(t, int64(1_000_000_000), f.counters().OnHand)
	id := f.held()
	f.confirm(id, "pi")
	require.True(t, f.returns(contract.StockEvent{EventID: "r", ReturnID: "r", HoldID: id, Units: 1, Resell: true}).Applied, "a return brings nothing new")
}

// A shop that sends last year's events once more moves nothing, whatever the book
// of the SKU has forgotten meanwhile. What was refused may be decided anew.
func TestAnEventThatMovedStockIsRememberedAsLongAsASale(t *testing.T) {
	f := open(t, 0)
	first := f.restock("e1", 5)
	require.True(t, f.correct("c1", -2, false).Applied)
	require.False(t, f.correct("c2", -4, false).Applied)
	later := func(d time.Duration) {
		f.pass(d)
		for range 3 { // purges go in bites
			f.drain()
		}
	}
	later(399 * 24 * time.Hour)
	again := f.restock("e1", 5)
	require.Equal(t, [2]any{true, first.N}, [2]any{again.Applied, again.N})
	require.True(t, f.correct("c1", -2, false).Applied)
	require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
	f.restock("e2", 1)
	require.True(t, f.correct("c2", -4, false).Applied, "it had moved nothing")
	require.Equal(t, [4]int64{}, f.parts())
	later(2 * 24 * time.Hour)
	f.restock("e1", 5)
	require.Equal(t, [4]int64{5, 0, 0, 0}, f.parts(), "past every retention it is a new one")
}

func TestPausedSellsNothingNewAndLosesNothing(t *testing.T) {
	f := open(t, 2)
	id := f.held()
	f.pause(true)
	require.Equal(t, Paused, f.reserve(f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, contract.SKUPaused, f.counters().State)
	entry := f.waits("ada", 1)
	require.Equal(t, contract.EntryWaiting, f.entry(entry).State, "no offers while paused")
	require.Equal(t, OK, f.confirm(id, "pi_1").Verdict, "live holds go on")
	require.True(t, f.pause(false).Wake)
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
}

func TestAboutKeepsTheNewestVersion(t *testing.T) {
	f := open(t, 0)
	for _, v := range []int64{1, 3, 2} {
		about := contract.About{Title: string(rune('a' + v)), CheckoutURL: "https://shop.example/c", Price: &contract.Money{Amount: v, Currency: "EUR"}}
		base, err := f.g.Settings(t.Context(), SettingsRequest{SKU: f.sku, About: &about, Version: v})
		require.NoError(t, err)
		require.Equal(t, OK, base.Verdict)
	}
	c, about, err := f.g.Snapshot(t.Context(), f.sku)
	require.NoError(t, err)
	require.Equal(t, int64(3), c.PolicyVersion)
	require.Equal(t, "d", about.Title)
	require.Equal(t, int64(3), about.Price.Amount)
}

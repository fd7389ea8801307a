package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

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

// Somebody pays for an expired hold while their entry has been offered another
// unit: one sale, and the other offer goes back.
func TestARetakeGivesTheOtherOfferBack(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1
	entry := f.waits("a", 1)
	f.restock("e1", 1)
	first := f.entry(entry).HoldID
	f.press(first)
	f.adopt(first, true)
	f.pass(10 * time.Minute)
	f.release(first, contract.ReasonExpired)
	f.restock("e2", 1)
	second := f.entry(entry).HoldID
	require.NotEqual(t, first, second)
	out := must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: first, PaymentRef: "pi", Retake: true}))
	require.Equal(t, OK, out.Verdict)
	require.Equal(t, contract.HoldReleased, f.hold(second).State)
	require.Equal(t, contract.EntryBought, f.entry(entry).State)
	require.Equal(t, Existing, f.press(second).Verdict, "it makes no entry live again")
	require.Equal(t, [4]int64{1, 0, 0, 1}, f.parts())
}

func TestUnitsStayBelowTheLimit(t *testing.T) {
	f := open(t, 999_999_999)
	out := f.restock("more", 2)
	require.False(t, out.Applied)
	require.Equal(t, "too-many", out.Reason)
	require.True(t, f.restock("one", 1).Applied)
	require.Equal(t, int64(1_000_000_000), f.counters().OnHand)
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

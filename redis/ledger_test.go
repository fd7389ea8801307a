package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
	"holdfast/e2e/check"
)

// replayed is what the lines of a ledger say, read alone.
type replayed struct {
	sums   Movement
	states map[string]contract.HoldState
	units  map[string]int64
}

// replay plays lines from the first on. Each line's own counters must agree.
func replay(t require.TestingT, lines []LedgerLine) replayed {
	r := replayed{states: map[string]contract.HoldState{}, units: map[string]int64{}}
	for i, l := range lines {
		require.NotZero(t, l.At)
		require.NotZero(t, l.Epoch)
		if i > 0 {
			require.Equal(t, lines[i-1].N+1, l.N, "the ledger has no gap")
		}
		r.sums = r.sums.Plus(l.Moves())
		require.Equal(t, l.after(), Movement{OnHand: r.sums.OnHand, Held: r.sums.Held, Offered: r.sums.Offered, Sold: r.sums.Sold},
			"line %d: %s %s %d", l.N, l.Verb, l.Kind, l.Units)
		if state, ok := stateAfter(l); ok {
			r.states[l.RefID], r.units[l.RefID] = state, l.Units
		}
	}
	return r
}

// stateAfter is the state of the hold that a line is about.
func stateAfter(l LedgerLine) (contract.HoldState, bool) {
	switch l.Verb {
	case "reserve":
		return contract.HoldProvisional, true
	case "offer", "sweep", "unconfirm", "release", "withdraw", "lapse":
		return contract.HoldState(l.Kind), true
	case "adopt":
		if l.Kind == "extended" {
			return contract.HoldHeld, true
		}
		return contract.HoldState(l.Kind), true
	case "confirm":
		return contract.HoldSold, true
	}
	return "", false
}

// leadsHere asserts that the ledger alone leads to the counters and to the state
// and units of each hold.
func (f *fixture) leadsHere() {
	f.t.Helper()
	ctx := context.Background()
	lines, err := f.g.Ledger(ctx, f.sku, "", 1_000_000)
	require.NoError(f.t, err)
	r := replay(f.t, lines)
	in, err := f.g.Inspect(ctx, f.sku)
	require.NoError(f.t, err)
	c := in.Counters
	require.Equal(f.t, Movement{c.OnHand, c.Held, c.Offered, c.Sold, c.Received, c.Corrected, c.Returned}, r.sums)
	records, err := f.g.rdb.HGetAll(ctx, key(f.sku, "holds")).Result()
	require.NoError(f.t, err)
	require.Len(f.t, r.states, len(records))
	for id, raw := range records {
		h, err := f.g.parseHold(f.sku, id, raw)
		require.NoError(f.t, err)
		require.Equal(f.t, h.State, r.states[id], id)
		require.Equal(f.t, h.Units, r.units[id], id)
	}
	st, ok, err := f.g.ReadStatement(ctx, f.sku)
	require.NoError(f.t, err)
	require.True(f.t, ok)
	require.Empty(f.t, st.Drift)
	require.Empty(f.t, st.Faults)
	require.Equal(f.t, [2]any{true, int64(len(lines))}, [2]any{st.Whole, st.Lines})
}

// The ledger of a long random run, replayed, gives the counters and the state of
// every hold.
func TestTheLedgerLeadsToTheCounters(t *testing.T) {
	checks, seed := "4", "20261129" // the short form plays the same sequences each time
	if long {
		checks, seed = "100", "0"
	}
	setFlag(t, "rapid.checks", checks)
	setFlag(t, "rapid.steps", "2500")
	setFlag(t, "rapid.seed", seed)
	setFlag(t, "rapid.nofailfile", "true")
	longest := 0
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(t, rt, map[string]int{})
		steps := r.steps()
		steps[""] = func(*rapid.T) {} // TestGateAgreesWithTheModel compares after each
		rt.Repeat(steps)
		r.leadsHere()
		// The stories' judge, which shares no code with the gate, reads the same.
		facts, err := (&check.Checker{Redis: shared, Lease: testLease}).Gate(context.Background(), r.sku)
		require.NoError(t, err)
		longest = max(longest, len(facts.Ledger))
		require.Empty(t, check.JudgeGate(facts))
		require.NoError(t, shared.Del(context.Background(), keysOf(r.sku)...).Err())
	})
	require.Greater(t, longest, 500, "lines of the longest run")
}

// Every verb's line names what it is about.
func TestWhatLedgerLinesHold(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ann", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	f.press(offer)
	f.adopt(offer, true)
	f.restock("e2", 1) // a generation later than the offer's
	must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{
		SKU: f.sku, HoldID: offer, PaymentRef: "pi_1", Amount: &contract.Money{Amount: 4900, Currency: "EUR"}, Actor: "shop",
	}))
	for i, resell := range []bool{true, false} {
		must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{
			EventID: []string{"r1", "r2"}[i], Kind: contract.StockReturn, ReturnID: "rma", HoldID: offer, Units: 1, Resell: resell, Actor: "desk", Reason: "too small",
		}))
	}
	lines, err := f.g.Ledger(t.Context(), f.sku, "", 100)
	require.NoError(t, err)
	byVerb := map[string]LedgerLine{}
	for _, l := range lines {
		require.WithinDuration(t, time.UnixMicro(f.g.testClock), l.At, time.Millisecond)
		byVerb[l.Verb+" "+l.Kind] = l
	}
	for _, verb := range []string{"offer offered", "reserve press", "adopt held", "confirm sold"} {
		l := byVerb[verb]
		require.Equal(t, [5]any{offer, entry, "ann", int64(1), int64(1)}, [5]any{l.RefID, l.OtherID, l.Person, l.Generation, l.Units}, verb)
		require.NotEmpty(t, l.Actor, verb)
	}
	sale := byVerb["confirm sold"]
	require.Equal(t, [4]any{"pi_1", int64(4900), "EUR", "shop"}, [4]any{sale.PaymentRef, sale.Amount, sale.Currency, sale.Actor})
	back := byVerb["stock return"]
	require.Equal(t, [7]any{offer, "r1", "ann", "pi_1", "desk", "too small", int64(3)},
		[7]any{back.RefID, back.OtherID, back.Person, back.PaymentRef, back.Actor, back.Reason, back.Generation})
	require.Equal(t, "e2", byVerb["stock restock"].RefID)
	require.NotContains(t, byVerb, "stock discarded", "one return counts once, whatever event brings it")
	require.Equal(t, entry, byVerb["join waiting"].RefID)
	f.leadsHere()
}

// A refused adoption leaves a record, an offer that is given back was never
// held, and a press by the Hold itself is a press: each has a line that says so.
func TestLinesOfRareEndings(t *testing.T) {
	f := open(t, 0)
	f.g.opts.MissedKeep = 1 // the entry keeps its place for a second offer
	require.Equal(t, SoldOut, f.adopt(f.id(contract.HoldID), true).Verdict)
	entry := f.waits("ann", 1)
	f.restock("e1", 1)
	offer := f.entry(entry).HoldID
	require.Equal(t, OK, f.adopt(offer, true).Verdict)
	f.release(offer, contract.ReasonShop)
	f.restock("e2", 1)
	require.Equal(t, OK, f.release(f.entry(entry).HoldID, contract.ReasonShop).Verdict)
	var got []string
	lines, err := f.g.Ledger(t.Context(), f.sku, "", 100)
	require.NoError(t, err)
	for _, l := range lines {
		if strings.HasPrefix(l.RefID, contract.HoldPrefix) {
			got = append(got, l.Verb+" "+l.Kind)
		}
	}
	require.Equal(t, []string{"adopt refused", "offer offered", "reserve press", "adopt held", "release released", "offer offered", "withdraw released"}, got[:7])
	f.leadsHere()
}

func TestLedgerLinesBySpanAndCursor(t *testing.T) {
	f := open(t, 0)
	var at []time.Time
	for i := range 3 {
		f.restock(string(rune('a'+i)), 1)
		newest, err := shared.XRevRangeN(t.Context(), key(f.sku, "ledger"), "+", "-", 1).Result()
		require.NoError(t, err)
		id, ok := parseStreamID(newest[0].ID)
		require.True(t, ok)
		at = append(at, time.UnixMilli(id.ms))
		require.Eventually(t, func() bool { return time.Now().UnixMilli() > id.ms }, time.Second, 100*time.Microsecond)
	}
	read := func(q LedgerQuery) (events string) {
		t.Helper()
		q.Limit = 10
		lines, err := f.g.LedgerLines(t.Context(), f.sku, q)
		require.NoError(t, err)
		for _, l := range lines {
			events += l.RefID[:1]
		}
		return events
	}
	require.Equal(t, "bc", read(LedgerQuery{Since: at[1]}))
	require.Equal(t, "b", read(LedgerQuery{Since: at[1], Until: at[2]}))
	require.Empty(t, read(LedgerQuery{Since: at[2].Add(time.Millisecond)}))
	all, err := f.g.Ledger(t.Context(), f.sku, "", 10)
	require.NoError(t, err)
	require.Equal(t, "c", read(LedgerQuery{Since: at[1], After: all[2].ID}), "the cursor is past the span's begin")
	require.Equal(t, "bc", read(LedgerQuery{Since: at[1], After: all[0].ID}), "the span begins past the cursor")
}

// Trimming never takes a line within retention, and what goes stands in the
// opening balance: the ledger leads to the same counters as before.
func TestTrimLedger(t *testing.T) {
	f := open(t, 5)
	keep := testOptions().SaleRetention
	two := f.id(contract.HoldID)
	f.reserve(two, 2)
	f.confirm(two, "pi_1")
	for i, resell := range []bool{true, false} {
		n := fmt.Sprint(i)
		must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{
			EventID: "r" + n, Kind: contract.StockReturn, ReturnID: n, HoldID: two, Units: 1, Resell: resell,
		}))
	}
	f.correct("c1", -1, false)
	must[StockOutcome](f)(f.g.Stock(t.Context(), f.sku, contract.StockEvent{EventID: "l1", Kind: contract.StockLevel, Units: 5, Version: 1, CountsSold: 1}))
	f.held() // lives on, below the opening balance
	f.waits("ann", 1)
	f.pass(keep)
	trim := func() (dropped int64, more bool) {
		t.Helper()
		dropped, more, err := f.g.TrimLedger(t.Context(), f.sku)
		require.NoError(t, err)
		return dropped, more
	}
	read := func() []LedgerLine {
		t.Helper()
		lines, err := f.g.Ledger(t.Context(), f.sku, "", 10_000)
		require.NoError(t, err)
		return lines
	}

	before := read()
	dropped, _ := trim()
	require.Zero(t, dropped, "a line that is as old as the retention still lies within it")
	require.Equal(t, before, read())
	f.pass(time.Millisecond)

	for range 150 { // young lines, and more of them than one call reads
		f.pause(true)
		f.pause(false)
	}
	young := read()[len(before):]
	dropped, more := trim()
	require.Equal(t, int64(len(before)), dropped)
	require.False(t, more)
	lines := read()
	require.Equal(t, young, lines[1:], "only old lines went")
	opening, last := lines[0], before[len(before)-1]
	require.Equal(t, [4]any{LedgerVerbOpening, last.ID, last.At, last.N}, [4]any{opening.Verb, opening.ID, opening.At, opening.N})
	require.Equal(t, Movement{OnHand: 5, Held: 1, Offered: 1, Sold: 1, Received: 5, Corrected: 1, Returned: 1}, opening.Balance)
	require.Equal(t, replay(t, before).sums, opening.Balance)
	replay(t, lines)

	f.pass(keep + time.Millisecond)
	total := int64(0)
	for more := true; more; {
		dropped, more = trim()
		require.LessOrEqual(t, dropped, int64(trimBound), "bounded")
		total += dropped
	}
	require.Equal(t, int64(len(young)-1), total, "the newest line stays")
	lines = read()
	require.Len(t, lines, 2)
	sums := replay(t, lines).sums
	c := f.counters()
	require.Equal(t, Movement{c.OnHand, c.Held, c.Offered, c.Sold, c.Received, c.Corrected, c.Returned}, sums)
	st, ok, err := f.g.ReadStatement(t.Context(), f.sku)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, st.Faults)
	require.Empty(t, st.Drift)
	require.True(t, st.Whole)

	after, err := f.g.Ledger(t.Context(), f.sku, before[0].ID, 10)
	require.NoError(t, err)
	require.Equal(t, LedgerVerbOpening, after[0].Verb, "a reader whose place was trimmed sees that it was")
	after, err = f.g.Ledger(t.Context(), f.sku, opening.ID, 10)
	require.NoError(t, err)
	require.Equal(t, LedgerVerbOpening, after[0].Verb)
	after, err = f.g.Ledger(t.Context(), f.sku, lines[0].ID, 10)
	require.NoError(t, err)
	require.Equal(t, lines[1:], after)
}

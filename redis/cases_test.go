package redis

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The files cases_*_test.go play faults that shops have reported in public, one
// file a subject. The number before each is its number in that collection.

// atOnce calls do n times at the same moment.
func atOnce(n int, do func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

// verdicts plays n calls at once and counts their answers.
func verdicts(t *testing.T, n int, call func(i int) (HoldOutcome, error)) map[Verdict]int {
	t.Helper()
	got := make([]Verdict, n)
	atOnce(n, func(i int) {
		out, err := call(i)
		if err != nil {
			t.Error(err)
			return
		}
		got[i] = out.Verdict
	})
	count := map[Verdict]int{}
	for _, v := range got {
		count[v]++
	}
	return count
}

// moves are the ledger's lines after the first n: kind, units and on_hand, held,
// offered, sold after it.
func (f *fixture) moves(n int) []string {
	f.t.Helper()
	lines, err := f.g.Ledger(f.t.Context(), f.sku, "", 100000)
	require.NoError(f.t, err)
	var out []string
	for _, l := range lines[n:] {
		out = append(out, fmt.Sprintf("%s %d: %d %d %d %d", l.Kind, l.Units, l.OnHand, l.Held, l.Offered, l.Sold))
	}
	return out
}

// unmoved asserts that do moves nothing: no counter, no line, no record.
func (f *fixture) unmoved(do func()) {
	f.t.Helper()
	records := func() [2]map[string]string {
		var out [2]map[string]string
		for i, name := range []string{"holds", "entries"} {
			all, err := shared.HGetAll(f.t.Context(), key(f.sku, name)).Result()
			require.NoError(f.t, err)
			out[i] = all
		}
		return out
	}
	before, lines, kept := f.counters(), f.lines(), records()
	do()
	after := f.counters()
	after.AsOf = before.AsOf
	require.Equal(f.t, before, after)
	require.Equal(f.t, lines, f.lines())
	require.Equal(f.t, kept, records())
}

// line joins people who are acknowledged, in order.
func (f *fixture) line(n int) []string {
	f.t.Helper()
	var entries []string
	for i := range n {
		entries = append(entries, f.waits(fmt.Sprint("waits", i), 1))
	}
	return entries
}

// toldNow are the entries that a drain hands offers to, in order.
func (f *fixture) toldNow() []string {
	f.t.Helper()
	var out []string
	for _, item := range f.drain().Items {
		if item.Kind == ItemOffer {
			out = append(out, item.EntryID)
		}
	}
	return out
}

func (f *fixture) states(entries []string) []contract.EntryState {
	f.t.Helper()
	var out []contract.EntryState
	for _, id := range entries {
		out = append(out, f.entry(id).State)
	}
	return out
}

// offered is the hold that an entry has been offered.
func (f *fixture) offered(entry string) string {
	f.t.Helper()
	e := f.entry(entry)
	require.Equal(f.t, contract.EntryOffered, e.State)
	return e.HoldID
}

// claimed presses and adopts the offer of an entry.
func (f *fixture) claimed(entry string) string {
	f.t.Helper()
	id := f.offered(entry)
	require.Equal(f.t, OK, f.press(id).Verdict)
	require.Equal(f.t, OK, f.adopt(id, true).Verdict)
	return id
}

func (f *fixture) event(ev contract.StockEvent) StockOutcome {
	f.t.Helper()
	return must[StockOutcome](f)(f.g.Stock(f.t.Context(), f.sku, ev))
}

// comesBack returns units of a sale; event and return id are fresh.
func (f *fixture) comesBack(hold string, units int64, resell bool) StockOutcome {
	f.t.Helper()
	f.n++
	return f.event(contract.StockEvent{
		EventID: fmt.Sprint("return", f.n), Kind: contract.StockReturn, ReturnID: fmt.Sprint("rma", f.n), HoldID: hold, Units: units, Resell: resell,
	})
}

func (f *fixture) retake(hold, ref string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Confirm(f.t.Context(), ConfirmRequest{SKU: f.sku, HoldID: hold, PaymentRef: ref, Retake: true}))
}

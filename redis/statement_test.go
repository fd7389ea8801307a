package redis

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
)

// The statement names what does not add up.
func TestStatementFindsFaults(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		spoil func(f *fixture, stock string)
		says  string
	}{
		"counter": {func(f *fixture, stock string) { shared.HIncrBy(ctx, stock, "held", 1) }, "held 3 records 2\nheld 3 ledger 2"},
		"record": {func(f *fixture, _ string) {
			shared.HDel(ctx, key(f.sku, "holds"), shared.HKeys(ctx, key(f.sku, "holds")).Val()[0])
		}, "held 2 records 1"},
		"line gone": {func(f *fixture, _ string) {
			ids := shared.XRange(ctx, key(f.sku, "ledger"), "-", "+").Val()
			shared.XDel(ctx, key(f.sku, "ledger"), ids[2].ID)
		}, "line no. 2 of epoch 1 is followed by no. 4"},
		"first gone": {func(f *fixture, _ string) {
			ids := shared.XRange(ctx, key(f.sku, "ledger"), "-", "+").Val()
			shared.XDel(ctx, key(f.sku, "ledger"), ids[0].ID)
		}, "its first line is no. 2"},
		"record unreadable": {func(f *fixture, _ string) {
			shared.HSet(ctx, key(f.sku, "holds"), shared.HKeys(ctx, key(f.sku, "holds")).Val()[0], "[1")
		}, "does not parse"},
		"counter unreadable": {func(f *fixture, stock string) { shared.HSet(ctx, stock, "sold", "two") }, `sold of the stock hash reads "two"`},
		"last line gone": {func(f *fixture, _ string) {
			newest := shared.XRevRangeN(ctx, key(f.sku, "ledger"), "+", "-", 1).Val()[0]
			shared.XDel(ctx, key(f.sku, "ledger"), newest.ID)
		}, "held 2 ledger 1"},
		"ledger gone": {func(f *fixture, _ string) {
			shared.Del(ctx, key(f.sku, "ledger"))
		}, "received 5 ledger 0"},
		"line wrong": {func(f *fixture, _ string) {
			newest := shared.XRevRangeN(ctx, key(f.sku, "ledger"), "+", "-", 1).Val()[0]
			values := []string{}
			for k, v := range newest.Values {
				if k == "u" {
					v = "7"
				}
				values = append(values, k, v.(string))
			}
			shared.XDel(ctx, key(f.sku, "ledger"), newest.ID)
			shared.XAdd(ctx, &goredis.XAddArgs{Stream: key(f.sku, "ledger"), Values: values})
		}, "(reserve walk-in, 7 units) leaves"},
		"opening wrong": {func(f *fixture, stock string) { shared.HIncrBy(ctx, stock, "received", 1) }, "received 6 ledger 5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, shared, 5)
			f.held()
			f.reserve(f.id(contract.HoldID), 1)
			st, ok, err := f.g.ReadStatement(ctx, f.sku)
			require.NoError(t, err)
			require.True(t, ok && st.Whole)
			require.Empty(t, st.Drift)
			require.Empty(t, st.Faults)
			c.spoil(f, key(f.sku, "stock"))
			st, _, err = f.g.ReadStatement(ctx, f.sku)
			require.NoError(t, err)
			found := strings.Join(st.Faults, "\n")
			for _, d := range st.Drift {
				found += "\n" + strings.Join([]string{d.Part, fmt.Sprint(d.Counter), d.Against, fmt.Sprint(d.Adds)}, " ")
			}
			require.Contains(t, found, c.says)
			require.NoError(t, shared.Del(ctx, keysOf(f.sku)...).Err())
			*f = *open(t, 0) // the fixture's own check needs books that add up
		})
	}
	_, ok, err := New(shared, testOptions()).ReadStatement(ctx, "NEVER-OPENED")
	require.NoError(t, err)
	require.False(t, ok)
}

// Of a long ledger only the newest lines are checked; the newest one still leads
// to its four counters.
func TestStatementOfALongLedger(t *testing.T) {
	ctx := t.Context()
	f := open(t, 5)
	f.held()
	st, ok, err := f.g.readStatement(ctx, f.sku, 3)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, [2]any{int64(3), false}, [2]any{st.Lines, st.Whole})
	require.Empty(t, st.Faults)
	require.Empty(t, st.Drift)
	stock := key(f.sku, "stock")
	shared.HIncrBy(ctx, stock, "sold", 1)
	shared.HIncrBy(ctx, stock, "received", 1)
	st, _, err = f.g.readStatement(ctx, f.sku, 3)
	require.NoError(t, err)
	require.Equal(t, []Drift{{"sold", 1, AgainstLedger, 0}}, st.Drift)
	shared.HIncrBy(ctx, stock, "sold", -1)
	shared.HIncrBy(ctx, stock, "received", -1)
}

// The books of a SKU that eight callers move all the while are compared all the
// same, and are never said to have drifted.
func TestStatementWhileTheSKUMoves(t *testing.T) {
	f := open(t, 50)
	f.g.testClock = 0
	var movers errgroup.Group
	var stop atomic.Bool
	var ids atomic.Int64
	for range 8 {
		movers.Go(func() error {
			for !stop.Load() {
				if err := f.comeAndGo(ids.Add(1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 40 {
		st, ok, err := f.g.ReadStatement(t.Context(), f.sku)
		require.NoError(t, err)
		require.True(t, ok)
		require.Empty(t, st.Drift)
		require.Empty(t, st.Faults)
	}
	require.Greater(t, ids.Load(), int64(40), "it moved meanwhile")
	stop.Store(true)
	require.NoError(t, movers.Wait())
	st, _, err := f.g.ReadStatement(t.Context(), f.sku)
	require.NoError(t, err)
	require.Empty(t, st.Drift)
}

// comeAndGo takes a unit, sells it, and four times in five takes the sale back.
func (f *fixture) comeAndGo(n int64) error {
	ctx := f.t.Context()
	id := contract.HoldID(f.sku, fmt.Appendf(nil, "%011d", n))
	out, err := f.g.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
	if err != nil || out.Verdict != OK {
		return err
	}
	if _, err := f.g.Confirm(ctx, ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi"}); err != nil || n%5 == 0 {
		return err
	}
	if _, err := f.g.Unconfirm(ctx, f.sku, id, "pi", "test"); err != nil {
		return err
	}
	_, err = f.g.Release(ctx, ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonShop})
	return err
}

// A record that moves between the reading of all records and the transaction counts
// as its lines say, one that moves before it as it then is.
func TestStatementCountsWhatMovesMeanwhile(t *testing.T) {
	f := open(t, 5)
	early, late, returned := f.held(), f.held(), f.held()
	f.confirm(returned, "pi")
	r := statementReader{g: f.g, sku: f.sku, most: statementLines, parts: map[string]statementPart{}, st: Statement{SKU: f.sku}}
	_, err := r.compare(t.Context()) // reads all records
	require.NoError(t, err)
	require.Empty(t, r.st.Drift)
	f.confirm(early, "pi")
	moved := map[string]bool{}
	require.NoError(t, r.catchUp(t.Context(), moved))
	require.Equal(t, map[string]bool{early: true}, moved)
	f.confirm(late, "pi")
	f.comesBack(returned, 1, true)
	f.release(f.held(), contract.ReasonShop)
	require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	met, ok, err := r.meet(t.Context(), moved)
	require.NoError(t, err)
	require.True(t, met && ok)
	r.addUp()
	require.Empty(t, r.st.Drift)
	require.Equal(t, Movement{Held: 0, Sold: 0, OnHand: 0, Returned: 1}, r.since, "one sold, one back and one taken since")
}

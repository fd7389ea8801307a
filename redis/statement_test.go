package redis

import (
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

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

// A SKU that moves all the while is never said to have drifted.
func TestStatementWhileTheSKUMoves(t *testing.T) {
	f := open(t, 50)
	f.g.testClock = 0
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			id := contract.HoldID(f.sku, fmt.Appendf(nil, "%011d", i))
			steps := []func() error{
				func() error {
					_, err := f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: 1, Person: id})
					return err
				},
				func() error {
					_, err := f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi"})
					return err
				},
				func() error {
					_, err := f.g.Unconfirm(t.Context(), f.sku, id, "pi", "test")
					return err
				},
				func() error {
					_, err := f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonShop})
					return err
				},
			}
			for _, step := range steps[:2+2*min(i%5, 1)] { // every fifth stays sold
				if err := step(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	compared := 0
	for range 40 {
		st, ok, err := f.g.ReadStatement(t.Context(), f.sku)
		require.NoError(t, err)
		require.True(t, ok)
		require.Empty(t, st.Drift)
		require.Empty(t, st.Faults)
		if !st.Moving {
			compared++
		}
	}
	close(stop)
	require.NoError(t, <-done)
	st, _, err := f.g.ReadStatement(t.Context(), f.sku)
	require.NoError(t, err)
	require.False(t, st.Moving)
	require.Empty(t, st.Drift)
	require.Positive(t, compared, "it never stood still for a moment")
}

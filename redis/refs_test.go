package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/keys"
)

// everything is all that Redis holds of a SKU.
func (f *fixture) everything() string {
	f.t.Helper()
	ctx, all := context.Background(), &strings.Builder{}
	for _, k := range keysOf(f.sku) {
		kind, err := shared.Type(ctx, k).Result()
		require.NoError(f.t, err)
		var v any
		switch kind {
		case "none":
			continue
		case "hash":
			v, err = shared.HGetAll(ctx, k).Result()
		case "zset":
			v, err = shared.ZRangeWithScores(ctx, k, 0, -1).Result()
		case "stream":
			v, err = shared.XRange(ctx, k, "-", "+").Result()
		default:
			f.t.Errorf("%s is a %s, which nobody reads here", k, kind)
		}
		require.NoError(f.t, err)
		fmt.Fprintf(all, "%s %v\n", k, v)
	}
	return all.String()
}

// Every verb that compares a payment's reference does so with the sealed one, and
// every answer shows the real one.
func TestPaymentRefsAreSealedInRedis(t *testing.T) {
	f := open(t, 3)
	f.g.opts.Refs = keys.NewRefs([]byte("a person secret of the test"))
	refund := func(id, ref string) Verdict {
		return must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, ref, "test")).Verdict
	}
	unconfirm := func(id, ref string) Verdict {
		return must[HoldOutcome](f)(f.g.Unconfirm(t.Context(), f.sku, id, ref, "test")).Verdict
	}

	sold := f.held()
	require.Equal(t, "pi_sale", f.confirm(sold, "pi_sale").Hold.PaymentRef)
	require.Equal(t, OK, f.confirm(sold, "pi_sale").Verdict, "the repeat is the sale")
	require.Equal(t, Conflict, f.confirm(sold, "pi_second").Verdict)
	require.Equal(t, MadeSale, refund(sold, "pi_sale"))
	require.Equal(t, OK, refund(sold, "pi_second"))
	require.Equal(t, OK, refund(sold, "pi_second"), "marked once")
	require.Equal(t, []string{"pi_second"}, f.hold(sold).Refunded)

	undone := f.held()
	require.Equal(t, OK, f.confirm(undone, "pi_cart").Verdict)
	require.Equal(t, Existing, unconfirm(undone, "pi_other"))
	require.Equal(t, OK, unconfirm(undone, "pi_cart"))
	require.Empty(t, f.hold(undone).PaymentRef)
	require.Equal(t, Refunded, f.confirm(undone, "pi_cart").Verdict)

	lines, err := f.g.Ledger(t.Context(), f.sku, "", 1000)
	require.NoError(t, err)
	var told []string
	for _, l := range lines {
		if l.PaymentRef != "" {
			told = append(told, l.Verb+" "+l.PaymentRef)
		}
	}
	require.Equal(t, []string{"confirm pi_sale", "refund pi_second", "confirm pi_cart", "unconfirm pi_cart"}, told)

	require.NotContains(t, f.everything(), "pi_")
	// The look itself would see one.
	f.g.opts.Refs = plainRefs{}
	plain := f.held()
	require.Equal(t, OK, f.confirm(plain, "pi_plain").Verdict)
	require.Equal(t, 2, strings.Count(f.everything(), "pi_plain"), "record and ledger")
	require.Equal(t, contract.HoldSold, f.hold(plain).State)
}

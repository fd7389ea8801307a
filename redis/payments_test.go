package redis

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// One payment pays for one hold: the first that it is told for, whatever its SKU.
func TestAPaymentBelongsToOneHold(t *testing.T) {
	f := open(t, 2)
	register(t, f)
	g, ctx := f.g, t.Context()
	first, second := fresh(contract.HoldID, f.sku), fresh(contract.HoldID, f.sku)
	for _, id := range []string{first, second} {
		require.Equal(t, OK, f.reserve(id, 1).Verdict)
	}
	ref := "pay-" + first
	for range 2 { // a repeat answers the same
		owner, err := g.ClaimPayment(ctx, first, ref)
		require.NoError(t, err)
		require.Equal(t, PaymentOwner{HoldID: first}, owner)
		owner, err = g.ClaimPayment(ctx, second, ref)
		require.NoError(t, err)
		require.Equal(t, PaymentOwner{HoldID: first}, owner, "it is the first one's")
	}
	left, err := shared.PTTL(ctx, g.paymentKey(ref)).Result()
	require.NoError(t, err)
	require.InDelta(t, g.opts.SaleRetention.Hours(), left.Hours(), 1, "as long as a sale is known")

	t.Run("a settlement stays, whoever asks", func(t *testing.T) {
		_, err := g.SettlePayment(ctx, second, ref, "re_other")
		require.NoError(t, err)
		owner, err := g.ClaimPayment(ctx, first, ref)
		require.NoError(t, err)
		require.False(t, owner.Settled, "another hold settles nothing")
		_, err = g.SettlePayment(ctx, first, ref, "re_1")
		require.NoError(t, err)
		for _, id := range []string{first, second} {
			owner, err = g.ClaimPayment(ctx, id, ref)
			require.NoError(t, err)
			require.Equal(t, PaymentOwner{HoldID: first, Settled: true, Reference: "re_1"}, owner)
		}
		owner, err = g.ReopenPayment(ctx, first, ref)
		require.NoError(t, err)
		require.Equal(t, PaymentOwner{HoldID: first}, owner)
	})
}

// A payment that was told for a hold which nobody knows, such as a misspelt one, is
// free for the hold that it was meant for, unless a person has settled it.
func TestAPaymentOfAnUnknownHoldIsGivenUp(t *testing.T) {
	f := open(t, 1)
	register(t, f)
	g, ctx := f.g, t.Context()
	hold := fresh(contract.HoldID, f.sku)
	require.Equal(t, OK, f.reserve(hold, 1).Verdict)
	require.NoError(t, g.MarkMapWhole(ctx))
	for _, nobody := range []string{fresh(contract.HoldID, f.sku), fresh(contract.HoldID, "NEVER-OPENED"), "no hold id at all"} {
		ref := "pay-" + nobody
		_, err := g.ClaimPayment(ctx, nobody, ref)
		require.NoError(t, err)
		owner, err := g.ClaimPayment(ctx, hold, ref)
		require.NoError(t, err)
		require.Equal(t, PaymentOwner{HoldID: hold}, owner, nobody)

		ref += "-settled"
		_, err = g.SettlePayment(ctx, nobody, ref, "")
		require.NoError(t, err)
		owner, err = g.ClaimPayment(ctx, hold, ref)
		require.NoError(t, err)
		require.Equal(t, PaymentOwner{HoldID: nobody, Settled: true}, owner, "a person has seen to it")
	}
}

func register(t *testing.T, f *fixture) {
	owner, err := f.g.RegisterSKU(t.Context(), f.sku)
	require.NoError(t, err)
	require.Equal(t, f.sku, owner)
}

func TestAPaymentNeedsItsNames(t *testing.T) {
	f := open(t, 1)
	for _, pair := range [][2]string{{"", "pay-1"}, {f.id(contract.HoldID), ""}} {
		_, err := f.g.ClaimPayment(t.Context(), pair[0], pair[1])
		require.ErrorContains(t, err, "claim payment")
	}
}

func TestWithoutRedisNobodyKnowsWhosePayment(t *testing.T) {
	server := startServer(t)
	rdb := goredis.NewClient(&goredis.Options{Addr: server.Addr, MaxRetries: -1})
	defer rdb.Close()
	server.Kill()
	_, err := New(rdb, testOptions()).ClaimPayment(t.Context(), fresh(contract.HoldID, "ANY"), "pay-1")
	require.ErrorIs(t, err, ErrUnavailable)
}

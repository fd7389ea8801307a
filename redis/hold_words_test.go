package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// What the shopper pays may change on the way, as with another voucher: the last
// amount that was named counts, whether there is an extension or not.
func TestTheLastAnnouncedAmountCounts(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	lines := f.lines()
	name := func(by time.Duration, amount int64) HoldOutcome {
		return must[HoldOutcome](f)(f.g.AdoptHold(t.Context(), AdoptHoldRequest{
			SKU: f.sku, HoldID: id, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: "p",
			Extend: &Extension{By: by, Amount: &contract.Money{Amount: amount, Currency: "EUR"}},
		}))
	}
	before := f.hold(id).Deadline
	out := name(0, 100)
	require.Equal(t, []any{before, false, int64(100)}, []any{out.Hold.Deadline, out.Hold.Extended, out.Hold.Amount.Amount})
	require.Equal(t, lines, f.lines(), "nothing moved")
	name(time.Minute, 200)
	require.Equal(t, before.Add(time.Minute), name(time.Minute, 300).Hold.Deadline)
	require.Equal(t, OK, f.adopt(id, true).Verdict)
	require.Equal(t, int64(300), f.hold(id).Amount.Amount, "no amount names no other")
	confirm := func(amount int64) Verdict {
		return must[HoldOutcome](f)(f.g.Confirm(t.Context(), ConfirmRequest{
			SKU: f.sku, HoldID: id, PaymentRef: "pi", Amount: &contract.Money{Amount: amount, Currency: "EUR"}, SameAmount: true,
		})).Verdict
	}
	require.Equal(t, AmountMismatch, confirm(200))
	require.Equal(t, OK, confirm(300))
	name(time.Minute, 400)
	require.Equal(t, int64(300), f.hold(id).Amount.Amount, "sold")
}

// A question moves nothing, and answers as the release would.
func TestReleaseCanBeAskedOnly(t *testing.T) {
	f := open(t, 1)
	id := f.held()
	ask := func(reason string) HoldOutcome {
		return must[HoldOutcome](f)(f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: reason, AskOnly: true}))
	}
	lines := f.lines()
	require.Equal(t, Early, ask(contract.ReasonExpired).Verdict)
	require.Equal(t, 10*time.Minute, ask(contract.ReasonExpired).Left)
	require.Equal(t, OK, ask(contract.ReasonShop).Verdict)
	f.pass(10 * time.Minute)
	out := ask(contract.ReasonExpired)
	require.Equal(t, []any{OK, contract.HoldHeld}, []any{out.Verdict, out.Hold.State})
	require.Equal(t, lines, f.lines())
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
	require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, Existing, ask(contract.ReasonExpired).Verdict)
	require.Equal(t, Unknown, must[HoldOutcome](f)(f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Reason: contract.ReasonShop, AskOnly: true})).Verdict)
}

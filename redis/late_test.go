package redis

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A sale that a cart takes back: the line is held again, or expired when it had
// been retaken; once, by its own payment only, which never sells again, and not
// after units came back.
func TestUnconfirmTakesASaleBackOnce(t *testing.T) {
	f := open(t, 2)
	f.limit(1)
	unconfirm := func(id, ref string) Verdict {
		return must[HoldOutcome](f)(f.g.Unconfirm(t.Context(), f.sku, id, ref, "cart")).Verdict
	}
	id := f.held()
	f.unmoved(func() { require.Equal(t, Existing, unconfirm(id, "pi"), "never sold") })
	f.confirm(id, "pi")
	f.unmoved(func() { require.Equal(t, Existing, unconfirm(id, "another"), "sold by another") })
	lines := f.lines()
	got := verdicts(t, 5, func(int) (HoldOutcome, error) { return f.g.Unconfirm(t.Context(), f.sku, id, "pi", "cart") })
	require.Equal(t, map[Verdict]int{OK: 5}, got)
	require.Equal(t, []string{"held 1: 2 1 0 0"}, f.moves(lines))
	require.Equal(t, []string{"pi"}, f.hold(id).Refunded)
	f.unmoved(func() { require.Equal(t, Refunded, f.confirm(id, "pi").Verdict) })
	require.Equal(t, OK, f.confirm(id, "pi_2").Verdict, "another payment still can")
	require.True(t, f.comesBack(id, 1, true).Applied)
	f.unmoved(func() { require.Equal(t, Returned, unconfirm(id, "pi_2")) })
	f.unmoved(func() { require.Equal(t, Unknown, unconfirm(f.id(contract.HoldID), "pi")) })

	late := f.held()
	f.pass(10 * time.Minute)
	f.release(late, contract.ReasonExpired)
	require.Equal(t, OK, f.retake(late, "pi").Verdict)
	require.True(t, f.hold(late).Retaken)
	require.Empty(t, f.hold(late).Reason, "a sale has no reason for its end")
	lines = f.lines()
	require.Equal(t, OK, unconfirm(late, "pi"))
	require.Equal(t, []string{"expired 1: 2 0 0 0"}, f.moves(lines))
	require.Equal(t, contract.HoldExpired, f.hold(late).State)
	require.Equal(t, contract.ReasonExpired, f.hold(late).Reason)
	f.unmoved(func() { require.Equal(t, Refunded, f.retake(late, "pi").Verdict) })
	require.Equal(t, OK, f.retake(late, "pi_2").Verdict)
	require.Equal(t, LimitReached, f.reserveAs("p-"+late, f.id(contract.HoldID), 1).Verdict)
	require.Equal(t, OK, unconfirm(late, "pi_2"))
	require.Equal(t, OK, f.reserveAs("p-"+late, f.id(contract.HoldID), 1).Verdict, "a sale taken back counts no more")
	require.Equal(t, [4]int64{2, 1, 0, 0}, f.parts())
}

// A late payment needs more than a free unit: an expired hold, nobody eligible
// waiting, a SKU on sale, a person within limits, and a payment not marked for
// refund.
func TestWhatALatePaymentNeeds(t *testing.T) {
	refund := func(f *fixture, id string) {
		must[HoldOutcome](f)(f.g.Refund(f.t.Context(), f.sku, id, "pi", "test"))
	}
	for name, c := range map[string]struct {
		before func(f *fixture, id string)
		want   Verdict
	}{
		"nothing else":    {func(*fixture, string) {}, OK},
		"not enough":      {func(f *fixture, _ string) { f.reserve(f.id(contract.HoldID), 1) }, HoldEnded},
		"somebody new":    {func(f *fixture, _ string) { f.joinAs("bob", 1) }, HoldEnded},
		"paused":          {func(f *fixture, _ string) { f.pause(true) }, HoldEnded},
		"ended":           {func(f *fixture, _ string) { f.ends(0) }, HoldEnded},
		"at the limit":    {func(f *fixture, _ string) { f.limit(1) }, HoldEnded},
		"to be paid back": {refund, Refunded},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 2)
			id := f.id(contract.HoldID)
			f.reserve(id, 2)
			f.adopt(id, true)
			f.pass(10 * time.Minute)
			f.release(id, contract.ReasonExpired)
			c.before(f, id)
			lines := f.lines()
			require.Equal(t, c.want, f.retake(id, "pi").Verdict)
			if c.want != OK {
				require.Empty(t, f.moves(lines))
				require.Equal(t, contract.HoldExpired, f.hold(id).State)
				return
			}
			require.Equal(t, []string{"retaken 2: 0 0 0 2"}, f.moves(lines))
			f.unmoved(func() { require.Equal(t, OK, f.retake(id, "pi").Verdict) })
		})
	}
	for _, state := range []contract.HoldState{contract.HoldReleased, contract.HoldSwept, contract.HoldRefused, contract.HoldLapsed} {
		t.Run(string(state), func(t *testing.T) {
			f := open(t, 1)
			id := f.id(contract.HoldID)
			switch state {
			case contract.HoldReleased:
				f.reserve(id, 1)
				f.adopt(id, true)
				f.release(id, contract.ReasonShopper)
			case contract.HoldSwept:
				f.reserve(id, 1)
				f.pass(testLease)
			case contract.HoldRefused:
				f.held()
				f.adopt(id, true)
				f.restock("e1", 1)
			case contract.HoldLapsed:
				id = f.offered(f.waits("ada", 1))
				f.pass(48 * time.Hour)
				f.lapse(id)
			}
			f.drain()
			require.Equal(t, state, f.hold(id).State)
			f.unmoved(func() { require.Equal(t, HoldEnded, f.retake(id, "pi").Verdict, "only an expired hold is retaken") })
		})
	}
}

// ends sets the end of the sale, so long from now.
func (f *fixture) ends(in time.Duration) {
	f.t.Helper()
	at := time.UnixMicro(f.g.testClock).Add(in)
	must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, Ends: &at, Actor: "test"}))
}

// The record of a purchase of a person whose name, payment and order hold any
// text at all is the same after it was written and read.
func TestAnyTextSurvivesARecord(t *testing.T) {
	f := open(t, 1)
	id, ref := f.id(contract.HoldID), "\"\\/\n\t\x00é名\U0001F600[]{}:,null"
	f.reserveAs(ref, id, 1)
	f.adopt(id, true)
	require.Equal(t, OK, f.confirm(id, ref).Verdict)
	require.Equal(t, OK, f.confirm(id, ref).Verdict)
	must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, ref+ref, ref))
	h := f.hold(id)
	require.Equal(t, [3]string{ref, ref, ref + ref}, [3]string{h.Person, h.PaymentRef, h.Refunded[0]})
	raw, err := json.Marshal(h)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "\uFFFD")
}

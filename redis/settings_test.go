package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func (f *fixture) policy(version int64, p contract.Policy) Base {
	f.t.Helper()
	return must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, Policy: &p, Version: version, Actor: "shop"}))
}

func (f *fixture) policyNow() contract.PolicyOf {
	f.t.Helper()
	return must[contract.PolicyOf](f)(f.g.Policy(f.t.Context(), f.sku))
}

// A policy counts for what is made after it: each setting that the gate itself needs
// is the SKU's own, and falls back when the next policy leaves it open.
func TestAPolicyCountsForWhatComesAfterIt(t *testing.T) {
	f := open(t, 0)
	require.Equal(t, contract.PolicyOf{}, f.policyNow())
	a, b, c := f.waits("a", 1), f.waits("b", 1), f.waits("c", 1)
	f.restock("e1", 1)
	age := func(entry string) time.Duration { h := f.hold(f.offered(entry)); return h.Deadline.Sub(h.OfferedAt) }
	require.Equal(t, 48*time.Hour, age(a))

	p := contract.Policy{OfferMaxAgeSeconds: new(int64(3600)), MissedKeep: new(int64(1)), HoldSeconds: new(int64(60))}
	require.Equal(t, OK, f.policy(7, p).Verdict)
	require.Equal(t, contract.PolicyOf{Policy: p, Version: 7}, f.policyNow())
	require.EqualValues(t, 7, f.counters().PolicyVersion)
	require.Equal(t, 48*time.Hour, age(a), "an offer keeps its age")
	f.restock("e2", 1)
	require.Equal(t, time.Hour, age(b))
	f.pass(time.Hour)
	require.Equal(t, OK, f.lapse(f.offered(b)).Verdict)
	require.Equal(t, contract.EntryWaiting, f.entry(b).State, "one missed turn is forgiven here")

	require.Equal(t, OK, f.policy(8, contract.Policy{}).Verdict)
	require.Equal(t, contract.PolicyOf{Version: 8}, f.policyNow())
	f.pass(48 * time.Hour)
	require.Equal(t, OK, f.lapse(f.offered(c)).Verdict)
	require.Equal(t, contract.EntryLapsed, f.entry(c).State)
}

// A message of before, of a book or of a zombie, changes nothing; the same one again
// is no second change.
func TestAnOlderPolicyChangesNothing(t *testing.T) {
	f := open(t, 1)
	p := contract.Policy{LimitPerPerson: new(int64(1)), EndsAt: new(time.UnixMilli(f.g.testClock / 1000).UTC().Add(time.Hour))}
	f.policy(5, p)
	lines := f.lines()
	f.policy(5, p)
	f.policy(4, contract.Policy{})
	must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, About: &contract.About{Title: "Old"}, Version: 4}))
	require.Equal(t, contract.PolicyOf{Policy: p, Version: 5}, f.policyNow())
	c := f.counters()
	require.EqualValues(t, 1, c.Limit)
	require.Equal(t, lines, f.lines())
	last := must[[]LedgerLine](f)(f.g.Ledger(f.t.Context(), f.sku, "", 100))
	require.Equal(t, []string{"settings", "policy", "shop"}, []string{last[lines-1].Verb, last[lines-1].Kind, last[lines-1].Actor})

	f.policy(6, contract.Policy{})
	require.Zero(t, f.counters().Limit, "no limit is none, not the one of before")
	f.pass(2 * time.Hour)
	require.False(t, f.counters().Ended, "nor an end of the sale")
}

// B46: a policy that raises the limit, or puts the end of the sale off, frees what
// somebody waits for.
func TestAPolicyWakesTheLine(t *testing.T) {
	for name, first := range map[string]contract.Policy{
		"limit": {LimitPerPerson: new(int64(1))},
		"end":   {EndsAt: new(time.UnixMilli(1))},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 1)
			f.reserveAs("ada", f.id(contract.HoldID), 1)
			entry := f.waits("ada", 1)
			f.policy(1, first)
			f.restock("e1", 1)
			require.Empty(t, f.toldNow())
			require.Zero(t, f.counters().Offered)
			f.pass(time.Second)
			require.True(t, f.policy(2, contract.Policy{LimitPerPerson: new(int64(2))}).Wake)
			require.Equal(t, []string{entry}, f.toldNow())
		})
	}
}

func TestTheGateRefusesWhatIsNoPolicy(t *testing.T) {
	f := open(t, 1)
	_, err := f.g.Settings(t.Context(), SettingsRequest{SKU: f.sku, Version: 1, Policy: &contract.Policy{HoldSeconds: new(int64(1))}})
	require.ErrorContains(t, err, "hold_seconds is 1")
	require.Equal(t, contract.PolicyOf{}, f.policyNow())
}

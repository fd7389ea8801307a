package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

func wants(p contract.Policy, versions ...int64) contract.PolicyRequest {
	return contract.PolicyRequest{Policy: &p, Versions: versions, Actor: "shop-ops"}
}

func TestStockKeepsItsPolicy(t *testing.T) {
	w := newWorld(t)
	ends := began.Add(24 * time.Hour)
	first := contract.Policy{HoldSeconds: new(int64(60)), LimitPerPerson: new(int64(2)), EndsAt: &ends}
	then := contract.Policy{OfferWindowSeconds: new(int64(30))}
	var a, again, titled, stale, any *answer[contract.PolicyResult]
	w.at(time.Minute, func() {
		a = update[contract.PolicyResult](w, contract.UpdatePolicy, "a", wants(first, 1))
		again = update[contract.PolicyResult](w, contract.UpdatePolicy, "b", wants(first, 1)) // its answer was lost
	})
	w.at(2*time.Minute, func() {
		other := about()
		other.Title = "Rocking chair"
		titled = update[contract.PolicyResult](w, contract.UpdatePolicy, "c", wantsAbout(other))
		stale = update[contract.PolicyResult](w, contract.UpdatePolicy, "d", wants(then, 1, 2))
		any = update[contract.PolicyResult](w, contract.UpdatePolicy, "e", wants(then))
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.Equal(t, contract.PolicyResult{Version: 2}, a.result)
	require.Equal(t, contract.PolicyResult{Version: 2}, again.result, "what stands is no change")
	require.Equal(t, contract.PolicyResult{Version: 3}, titled.result, "a policy stays when the title changes")
	require.Equal(t, contract.PolicyResult{Version: 3, Outdated: true}, stale.result)
	require.Equal(t, contract.PolicyResult{Version: 4}, any.result)
	require.Equal(t, then, out.Book.Policy)
	require.EqualValues(t, 4, out.Book.Version)
	require.Equal(t, "Rocking chair", out.Book.About.Title)
	require.Len(t, w.settings, 3)
	require.Equal(t, redis.SettingsRequest{SKU: chair, Policy: &first, Version: 2, Actor: "shop-ops"}, w.settings[0])
	require.EqualValues(t, []int64{2, 3, 4}, []int64{w.settings[0].Version, w.settings[1].Version, w.settings[2].Version})
}

// Two who have seen the same version: the second is told, whichever comes first.
func TestOfTwoChangesFromOneVersionOneIsMade(t *testing.T) {
	w := newWorld(t)
	var a, b *answer[contract.PolicyResult]
	w.at(time.Minute, func() {
		a = update[contract.PolicyResult](w, contract.UpdatePolicy, "a", wants(contract.Policy{HoldSeconds: new(int64(60))}, 1))
		b = update[contract.PolicyResult](w, contract.UpdatePolicy, "b", wants(contract.Policy{HoldSeconds: new(int64(90))}, 1))
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
	require.NotEqual(t, a.result.Outdated, b.result.Outdated)
	require.Equal(t, contract.PolicyResult{Version: 2, Outdated: true}, b.result)
	require.EqualValues(t, 60, *out.Book.Policy.HoldSeconds)
}

func TestStockRefusesWhatIsNoPolicy(t *testing.T) {
	for word, req := range map[string]contract.PolicyRequest{
		"nothing to change":                  {},
		"hold_seconds is 4":                  wants(contract.Policy{HoldSeconds: new(int64(4))}),
		"hold_seconds is 7201":               wants(contract.Policy{HoldSeconds: new(int64(7201))}),
		"extension_seconds is -1":            wants(contract.Policy{ExtensionSeconds: new(int64(-1))}),
		"grace_seconds is 601":               wants(contract.Policy{GraceSeconds: new(int64(601))}),
		"offer_window_seconds is 604801":     wants(contract.Policy{OfferWindowSeconds: new(int64(604801))}),
		"waitlist_ttl_seconds is 34560001":   wants(contract.Policy{WaitlistTTLSeconds: new(int64(34560001))}),
		"limit_per_person is 0":              wants(contract.Policy{LimitPerPerson: new(int64(0))}),
		"missed_keep is -1":                  wants(contract.Policy{MissedKeep: new(int64(-1))}),
		"more than offer_max_age_seconds":    wants(contract.Policy{OfferWindowSeconds: new(int64(60)), OfferMaxAgeSeconds: new(int64(30))}),
		"ends_at is 1969-12-31 00:00:00 +00": wants(contract.Policy{EndsAt: new(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC))}),
	} {
		w := newWorld(t)
		var a *answer[contract.PolicyResult]
		w.at(time.Minute, func() { a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", req) })
		out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Hour)
		require.ErrorContains(t, a.rejected, word)
		require.Empty(t, w.settings, word)
		require.Equal(t, openBook(), out.Book)
	}
	w := newWorld(t)
	var a *answer[contract.PolicyResult]
	w.at(time.Minute, func() { a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", wants(contract.Policy{})) })
	w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.ErrorContains(t, a.rejected, "not been opened")
	require.Empty(t, w.calls)
}

// A gate that is away holds the change up, and the book has it afterwards; a roll-over
// does not cut it short.
func TestAPolicySurvivesAGateThatIsAway(t *testing.T) {
	w := newWorld(t)
	w.down = func(verb string) error {
		if strings.HasPrefix(verb, "settings") && w.Now().Before(began.Add(outage)) {
			return redis.ErrUnavailable
		}
		return nil
	}
	var a *answer[contract.PolicyResult]
	w.at(time.Minute, func() {
		a = update[contract.PolicyResult](w, contract.UpdatePolicy, "a", wants(contract.Policy{HoldSeconds: new(int64(60))}, 1))
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, time.Minute+time.Second)
	require.Equal(t, contract.PolicyResult{Version: 2}, a.result)
	require.EqualValues(t, 60, *out.Book.Policy.HoldSeconds)
}

// A Redis that went back, or was built anew, gets the settings from the book before
// anything is handed out.
func TestAGateThatLostItsSettingsGetsThemBack(t *testing.T) {
	w := newWorld(t)
	in := contract.StockInput{SKU: chair, Book: openBook()}
	in.Book.Policy, in.Book.Paused, in.Book.Version = contract.Policy{LimitPerPerson: new(int64(2))}, true, 7
	w.outdated = true
	out := w.runStock(in, time.Hour)
	paused := true
	require.Equal(t, []redis.SettingsRequest{{
		SKU: chair, About: &in.Book.About, Policy: &in.Book.Policy, Version: 7, Paused: &paused, Actor: "book",
	}}, w.settings)
	require.Equal(t, []string{"settings ok", "drain ok"}, w.calls)
	require.EqualValues(t, 7, out.Book.Version)
}

// Of a pause that Redis has lost there is no version: the book compares it with every drain.
func TestAPauseThatTheGateHasLostComesBack(t *testing.T) {
	for _, paused := range []bool{true, false} {
		w := newWorld(t)
		in := contract.StockInput{SKU: chair, Book: openBook()}
		in.Book.Paused = paused
		w.at(time.Minute, func() {
			w.paused = !paused
			w.SignalWorkflow(contract.SignalSettle, nil)
		})
		w.runStock(in, time.Hour)
		require.Equal(t, paused, w.paused)
		require.Len(t, w.settings, 1, "once")
	}
}

// The window of an offer is that of the policy when its entry learns of it: one that
// joined before a change gets the new one, and an offer that is told keeps its own.
func TestAnOfferHasThePolicyOfItsTime(t *testing.T) {
	w := joined(t)
	w.at(day-time.Minute, func() {
		w.policy = contract.Policy{OfferWindowSeconds: new(int64(300)), OfferMaxAgeSeconds: new(int64(7200))}
	})
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	w.at(day+time.Minute, func() { w.policy = contract.Policy{OfferWindowSeconds: new(int64(3600))} })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+5*time.Minute), w.hold.EndedAt)
	require.Contains(t, w.texts[1].Body, "for 5 min.")
	require.Equal(t, 5*time.Minute, w.texts[1].Validity)
	require.Contains(t, w.texts[1].Body, holdID+".20260302T141000", "the link lives as long as the offer, and its slack")

	w = joined(t)
	w.policy = contract.Policy{OfferWindowSeconds: new(int64(3600)), OfferMaxAgeSeconds: new(int64(1800))}
	w.at(day, func() { w.SignalWorkflow(contract.SignalOffered, w.offer(holdID)) })
	require.Equal(t, contract.EntryLapsed, w.runEntry().State)
	require.Equal(t, began.Add(day+30*time.Minute), w.hold.EndedAt, "never past its greatest age")
}

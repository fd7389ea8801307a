package redis

import (
	"fmt"
	"slices"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// Whatever points at a record is put right by the record.
func TestPlacesFollowTheRecords(t *testing.T) {
	zadd := func(f *fixture, name, member string, score float64) error {
		return f.g.rdb.ZAdd(f.t.Context(), key(f.sku, name), goredis.Z{Score: score, Member: member}).Err()
	}
	zrem := func(f *fixture, name, member string) error {
		return f.g.rdb.ZRem(f.t.Context(), key(f.sku, name), member).Err()
	}
	type people struct{ acked, fresh, left, leased, offer string }
	for name, c := range map[string]struct {
		spoil  func(f *fixture, p people) error
		id     func(p people) string
		untold bool
		why    string
	}{
		"a lost place":          {func(f *fixture, p people) error { return zrem(f, "line", p.acked) }, func(p people) string { return p.acked }, false, "lost from line"},
		"a place elsewhere":     {func(f *fixture, p people) error { return zadd(f, "line", p.acked, 1) }, func(p people) string { return p.acked }, false, "lost from line"},
		"a second place":        {func(f *fixture, p people) error { return zadd(f, "parked", p.acked, 1) }, func(p people) string { return p.acked }, false, "astray in parked"},
		"a lost fresh place":    {func(f *fixture, p people) error { return zrem(f, "fresh", p.fresh) }, func(p people) string { return p.fresh }, false, "lost from fresh"},
		"the place of one gone": {func(f *fixture, p people) error { return zadd(f, "line", p.left, 1) }, func(p people) string { return p.left }, false, "astray in line"},
		"the place of nobody":   {func(f *fixture, _ people) error { return zadd(f, "line", "entry_nobody", 1) }, func(people) string { return "entry_nobody" }, false, "astray in line"},
		"a lost lease":          {func(f *fixture, p people) error { return zrem(f, "leases", p.leased) }, func(p people) string { return p.leased }, false, "lost from leases"},
		"a lost start":          {func(f *fixture, p people) error { return zrem(f, "outbox", "s:"+p.fresh) }, func(p people) string { return p.fresh }, false, "lost from outbox"},
		"a lost offer":          {func(f *fixture, p people) error { return zrem(f, "offers", "o:"+p.offer) }, func(p people) string { return p.offer }, true, "lost from offers"},
		"a person without place": {func(f *fixture, _ people) error {
			return f.g.rdb.HDel(f.t.Context(), key(f.sku, "people"), "acked").Err()
		}, func(p people) string { return p.acked }, false, "lost from people"},
		"a place of a ghost": {func(f *fixture, p people) error {
			return f.g.rdb.HSet(f.t.Context(), key(f.sku, "people"), "left", p.left).Err()
		}, func(p people) string { return p.left }, false, "astray in people"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 0)
			offered := f.waits("offered", 1)
			f.restock("e1", 1)
			p := people{offer: f.entry(offered).HoldID, left: f.waits("left", 1)}
			f.leave(p.left, contract.EntryLeft)
			f.restock("e2", 1)
			p.leased = f.id(contract.HoldID)
			require.Equal(t, OK, f.reserve(p.leased, 1).Verdict)
			p.acked = f.waits("acked", 1)
			p.fresh = f.joinAs("fresh", 1).Entry.ID
			for _, id := range []string{p.acked, p.fresh, p.left, p.leased, p.offer, "entry_nobody"} {
				require.Equal(t, Existing, f.place(id, true), id)
			}
			f.whole()
			lines := f.lines()
			f.surveyed(nil)
			require.NoError(t, c.spoil(f, p))
			f.surveyed([]string{c.id(p)})
			require.Equal(t, OK, f.place(c.id(p), c.untold))
			ledger := must[[]LedgerLine](f)(f.g.Ledger(t.Context(), f.sku, "", 1000))
			require.Len(t, ledger, lines+1)
			last := ledger[lines]
			require.Equal(t, [4]string{"repair", "place", c.id(p), c.why}, [4]string{last.Verb, last.Kind, last.RefID, last.Reason})
			require.Equal(t, Existing, f.place(c.id(p), c.untold), "a second run finds nothing")
			f.surveyed(nil)
			f.whole()
		})
	}
}

// surveyed asserts what a survey names for a look under a script.
func (f *fixture) surveyed(want []string) {
	f.t.Helper()
	s := must[Survey](f)(f.g.ReadSurvey(f.t.Context(), f.sku))
	require.Empty(f.t, s.Unreadable)
	got := slices.Clone(s.Places)
	for _, u := range s.Untold {
		got = append(got, u.Hold)
	}
	slices.Sort(got)
	require.Equal(f.t, want, slices.Compact(got))
}

// A survey goes on from a page to the next, and names each record that needs an owner.
func TestASurveyIsReadByPages(t *testing.T) {
	f, owned := manyRecords(t)
	met := 0
	for at := (SurveyAt{}); !at.Done(); {
		page, next, err := f.g.SurveyPage(t.Context(), f.sku, at)
		require.NoError(t, err)
		require.NotEqual(t, at, next)
		require.Empty(t, page.Places)
		for _, o := range page.Owned {
			met++
			require.True(t, owned[o.ID], o.ID)
			require.False(t, o.Since.IsZero())
			delete(owned, o.ID)
		}
		at = next
	}
	require.Empty(t, owned)
	require.Equal(t, 6*surveyPage, met, "each once: no table has changed its size meanwhile")
}

// It holds no more than a page at once, however many records there are.
func TestAPageOfASurveyIsBounded(t *testing.T) {
	f, _ := manyRecords(t)
	pages := 0
	for at := (SurveyAt{}); !at.Done(); pages++ {
		page, next, err := f.g.SurveyPage(t.Context(), f.sku, at)
		require.NoError(t, err)
		require.Less(t, len(page.Owned), 2*surveyPage)
		at = next
	}
	require.GreaterOrEqual(t, pages, 11, "holds, entries, line and people are of three pages and more")
}

// manyRecords are three pages of holds and as many of entries, with an ended one.
func manyRecords(t *testing.T) (f *fixture, owned map[string]bool) {
	const many = 3 * surveyPage
	f, owned = open(t, many), map[string]bool{}
	for range many {
		owned[f.held()] = true
	}
	for i := range many {
		owned[f.waits(fmt.Sprint("p", i), 1)] = true
	}
	f.leave(f.waits("gone", 1), contract.EntryLeft)
	return f, owned
}

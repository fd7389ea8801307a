package starter

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func TestJoin(t *testing.T) {
	h := newHouse(t, 0)
	a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "07700 900001", "consent": true, "quantity": 2, "name": "Ada", "locale": "en-GB"})
	require.Equal(t, http.StatusCreated, a.status, a.body)
	var v entryView
	a.into(t, &v)
	require.Equal(t, "/v1/waitlist/"+v.EntryID, a.header.Get("Location"))
	require.Equal(t, []any{h.sku, "Oak Chair", contract.EntryWaiting, int64(2), int64(1), int64(0)},
		[]any{v.SKU, v.Title, v.State, v.Quantity, v.Position, *v.Ahead})

	h.eventually("its workflow starts inline", func() bool { _, ok := h.wf.entry(v.EntryID); return ok })
	in, _ := h.wf.entry(v.EntryID)
	require.Equal(t, v.JoinedAt, stamp(in.JoinedAt))
	require.Equal(t, contract.EntryInput{
		EntryID: v.EntryID, SKU: h.sku, Quantity: 2, Person: h.ring.PersonOfPhone("+447700900001"),
		Phone: "+447700900001", Name: "Ada", Locale: "en-GB", Consent: in.Consent, JoinedAt: in.JoinedAt, Position: 1,
		Settings: contract.EntrySettings{TTLSeconds: 180 * 86400, WindowSeconds: 900, MaxAgeSeconds: 48 * 3600},
	}, in)
	require.NotContains(t, h.log.String(), "7700900001", "no number in the log")
}

// B85: every spelling of a number is one person with one place.
func TestPhoneSpellings(t *testing.T) {
	h := newHouse(t, 0)
	first := h.join("+447700900001")
	for _, spelling := range []string{
		"00447700900001", "07700 900001", "+44 (0)7700 900001", "  +44 7700 900001 ", "07700-900-001", "(07700) 900001",
		"\uff0b\uff14\uff14\uff17\uff17\uff10\uff10\uff19\uff10\uff10\uff10\uff10\uff11",           // full-width
		"+44\u00a07700\u00a0900\u00a0001",                                                          // no-break spaces
		"\u0660\u0667\u0667\u0660\u0660 \u0669\u0660\u0660\u0660\u0660\u0661", "07700\u2011900001", // Arabic digits, no-break hyphen
	} {
		h.untouched(func() {
			a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": spelling, "consent": true})
			require.Equal(t, http.StatusOK, a.status, "%q: %s", spelling, a.body)
			var v entryView
			a.into(t, &v)
			require.Equal(t, first.EntryID, v.EntryID, "%q", spelling)
		})
	}
	require.Equal(t, int64(1), h.counters().Waiting)
}

// From the public answer nobody learns whether a number waits.
func TestPublicJoinLeaksNothing(t *testing.T) {
	h := newHouse(t, 0)
	ask := func(phone string) answer {
		return h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": phone, "consent": true}, "Authorization", "")
	}
	fresh, known, other := ask("+12025550101"), ask("+12025550101"), ask("+12025550102")
	require.Equal(t, http.StatusAccepted, fresh.status)
	require.Equal(t, fresh, known)
	require.Equal(t, fresh, other)
	require.NotContains(t, fresh.body, "entry")
	require.Empty(t, fresh.header.Get("Location"))
	require.Equal(t, int64(2), h.counters().Waiting)

	form := func(phone string) answer {
		return h.browse("POST", "/join/"+h.sku, map[string][]string{"phone": {phone}, "consent": {"yes"}, "quantity": {"1"}})
	}
	first, second := form("+12025550103"), form("+12025550103")
	require.Equal(t, http.StatusAccepted, first.status, first.body)
	require.Equal(t, first, second)
	require.NotContains(t, first.body, "/w/")
}

// A join never waits for Temporal.
func TestJoinWithoutTemporal(t *testing.T) {
	h := newHouse(t, 0)
	h.wf.set(func() { h.wf.down = true })
	require.Equal(t, int64(1), h.join("+12025550101").Position)
	h.eventually("the start and a wake are tried", func() bool { return h.wf.called("Entry") > 0 && h.wf.called("Wake") > 0 })
	h.wf.set(func() { h.wf.down = false })
	h.eventually("Stock is woken once Temporal answers", func() bool { return h.wf.woken(h.sku) > 0 })
}

// What the pool has no room for stays in the outbox, and no answer waits for a
// start.
func TestJoinPoolFull(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.Join.Workers = 1 })
	h.wf.slowEntry = make(chan struct{})
	first, second := h.join("+12025550101"), h.join("+12025550102")
	h.eventually("Stock is woken for the second", func() bool { return h.wf.woken(h.sku) > 0 })
	require.Equal(t, []int64{1, 2}, []int64{first.Position, second.Position})
	close(h.wf.slowEntry)
	h.eventually("the first starts inline", func() bool { _, ok := h.wf.entry(first.EntryID); return ok })
	_, ok := h.wf.entry(second.EntryID)
	require.False(t, ok)
	due := false
	h.eventually("the outbox has the second's start", func() bool {
		out, err := h.gate.Drain(t.Context(), h.sku, 100)
		require.NoError(t, err)
		for _, item := range out.Items {
			if item.Kind == redis.ItemStart && item.EntryID == second.EntryID {
				in, err := h.ring.Unseal(item.EntryID, item.Sealed)
				require.NoError(t, err)
				require.Equal(t, "+12025550102", in.Phone)
				due = true
			}
		}
		return due
	})
}

func TestJoinBacklog(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.Join.MaxBacklog = 1 })
	h.join("+12025550101")
	h.join("+12025550102") // its answer tells that the backlog is above 1
	h.untouched(func() {
		a := h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": "+12025550103", "consent": true})
		exact(t, a, 429, tooManyRequests)
		require.Equal(t, "1", a.header.Get("Retry-After"))
	})
	require.True(t, h.door.backlog.admits("another SKU"))
}

func TestReadAndLeave(t *testing.T) {
	h := newHouse(t, 0)
	one, two := h.join("+12025550101"), h.join("+12025550102")
	read := func(id string) (v entryView) {
		a := h.call("GET", "/v1/waitlist/"+id, nil, "Authorization", "") // the id is the key
		require.Equal(t, http.StatusOK, a.status, a.body)
		a.into(t, &v)
		return v
	}
	require.Equal(t, []int64{2, 1}, []int64{read(two.EntryID).Position, *read(two.EntryID).Ahead})
	require.Equal(t, http.StatusNoContent, h.call("DELETE", "/v1/waitlist/"+one.EntryID, nil, "Authorization", "").status)
	h.untouched(func() {
		require.Equal(t, http.StatusNoContent, h.call("DELETE", "/v1/waitlist/"+one.EntryID, nil, "Authorization", "").status)
		for _, id := range []string{"x", contract.EntryID(h.sku, []byte("eleven bytes")), contract.EntryID("NOBODY", []byte("eleven bytes"))} {
			for _, method := range []string{"GET", "DELETE"} {
				exact(t, h.call(method, "/v1/waitlist/"+id, nil), 404, unknownEntry)
			}
		}
	})
	require.Equal(t, contract.EntryLeft, read(one.EntryID).State)
	require.Equal(t, int64(1), read(two.EntryID).Position)
}

func TestEntryShowsItsOffer(t *testing.T) {
	h := newHouse(t, 0)
	entryID, holdID, path := h.offer()
	a := h.call("GET", "/v1/waitlist/"+entryID, nil)
	var v entryView
	a.into(t, &v)
	require.Equal(t, contract.EntryOffered, v.State)
	require.Equal(t, offerView{HoldID: holdID, Quantity: 1, ExpiresAt: stamp(h.record(holdID).Deadline)}, *v.Offer)
	require.NotContains(t, a.body, path, "the link travels only in the text")
	require.Nil(t, v.Ahead)
}

func TestJoinCrowd(t *testing.T) {
	h := newHouse(t, 0)
	const people = 50
	answers := make([]answer, people)
	var crowd sync.WaitGroup
	for i := range answers {
		crowd.Go(func() {
			answers[i] = h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": fmt.Sprintf("+120255501%02d", i), "consent": true})
		})
	}
	crowd.Wait()
	seen := map[int64]bool{}
	for _, a := range answers {
		var v entryView
		a.into(t, &v)
		require.False(t, seen[v.Position], "two people on place %d", v.Position)
		seen[v.Position] = true
	}
	require.Len(t, seen, people)
}

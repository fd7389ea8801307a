package starter

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// A missed turn keeps the place: the old link says so and takes nothing more, and the
// place's page and the API show it at its number. After the last one that may be
// missed the page offers to join again.
func TestAMissedTurnKeepsThePlace(t *testing.T) {
	h := newHouse(t, 0, func(_ *config.Config, opts *redis.Options) {
		opts.OfferMaxAge, opts.MissedKeep = time.Millisecond, 1
	})
	entryID, first, path := h.offer()
	lapses := func(holdID string) {
		h.eventually("the offer lapses", func() bool {
			out, err := h.gate.Lapse(t.Context(), redis.LapseRequest{SKU: h.sku, HoldID: holdID})
			return err == nil && out.Verdict == redis.OK
		})
	}
	lapses(first)
	body := h.same(path, http.StatusGone, "You are still no. 1 in line.")
	require.Contains(t, body, "available in the shop right now", "nobody else waits, so it is open to all")
	require.NotContains(t, body, "/again")
	require.Contains(t, h.browse("GET", "/w/"+entryID, nil).text(), "You are no. 1 in line")
	a := h.call("GET", "/v1/waitlist/"+entryID, nil)
	require.Contains(t, a.body, `"state":"waiting"`)
	require.Contains(t, a.body, `"position":1`)

	h.restock(1)
	e, ok, err := h.gate.ReadEntry(t.Context(), h.sku, entryID)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotEqual(t, first, e.HoldID)
	require.Equal(t, contract.EntryOffered, e.State, "the next restock asks it")
	lapses(e.HoldID)
	require.Contains(t, h.same(path, http.StatusGone, "The time is over."), `action="/w/`+entryID+`/again"`)
}

// B13: pages follow the gate's rule. A deadline that has passed ends nothing: until
// the ending has come the link leads to the checkout, and a payment sells.
func TestAPageGoesByTheEndingNotByTheClock(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) { cfg.Hold.TTL = time.Second })
	_, holdID, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	h.eventually("the deadline passes", func() bool {
		out, ok, err := h.gate.ReadHold(t.Context(), h.sku, holdID)
		return err == nil && ok && out.Left == 0
	})
	require.Equal(t, contract.HoldHeld, h.record(holdID).State)
	require.Contains(t, h.browse("GET", "/h/"+holdID, nil).body, "shop.example/pay")
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	require.Equal(t, http.StatusOK, h.confirm(holdID, "p").status)
	h.same(path, http.StatusOK, "Bought")

	_, late, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	h.eventually("the hold expires", func() bool {
		out, err := h.gate.Release(t.Context(), redis.ReleaseRequest{SKU: h.sku, HoldID: late, Reason: contract.ReasonExpired})
		return err == nil && out.Verdict == redis.OK
	})
	h.same(path, http.StatusGone, "The time is over.")
}

// B15: the last unit, and the payment fails. The same link shows the same hold with
// the same deadline, on a second device as well, and another payment buys it.
func TestAFailedPaymentLeavesTheLinkAsItWas(t *testing.T) {
	h := newHouse(t, 0)
	_, holdID, path := h.offer()
	first := h.press(path)
	require.Equal(t, http.StatusSeeOther, first.status)
	held := h.record(holdID)
	a := h.call("POST", "/v1/holds/"+holdID+"/payment-failed", map[string]any{"payment_ref": "p1", "reason": "declined"})
	require.Equal(t, http.StatusOK, a.status, a.body)
	h.untouched(func() {
		for range 2 { // devices: what makes them one shopper is the link
			again := h.press(path)
			require.Equal(t, []any{first.status, first.header.Get("Location")}, []any{again.status, again.header.Get("Location")})
			require.Contains(t, h.browse("GET", path, nil).body, "/h/"+holdID)
		}
		require.Equal(t, held.Deadline, h.record(holdID).Deadline)
	})
	require.Equal(t, [4]int64{1, 1, 0, 0}, h.parts(), "no second unit is needed")
	require.Equal(t, http.StatusOK, h.confirm(holdID, "p2").status)
	h.same(path, http.StatusOK, "Bought")
}

package starter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// event posts a signed stock event of the house's SKU and answers what the door
// says; one that is not decided fails the test.
func (h *house) event(kind, id string, members map[string]any) eventView {
	h.t.Helper()
	a := h.askEvent(kind, id, members)
	require.Equal(h.t, http.StatusOK, a.status, a.body)
	var v eventView
	a.into(h.t, &v)
	require.Equal(h.t, id, v.EventID)
	require.NotNil(h.t, v.Applied)
	require.Equal(h.t, *v.Applied, v.Reason == "", a.body)
	return v
}

func (h *house) askEvent(kind, id string, members map[string]any) answer {
	h.t.Helper()
	body := map[string]any{"event_id": id, "sku": h.sku, "kind": kind}
	maps.Copy(body, members)
	raw, err := json.Marshal(body)
	require.NoError(h.t, err)
	return h.send(h.signedEvent(string(raw), time.Now(), webhookSecret))
}

// sale is a hold of some units that was paid for.
func (h *house) sale(units int64) string {
	h.t.Helper()
	a := h.askHold("sale", "quantity", units)
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
	id := a.hold(h.t).HoldID
	require.Equal(h.t, http.StatusOK, h.confirm(id, "pi").status)
	return id
}

func TestInventory(t *testing.T) {
	h := newHouse(t, 0)
	body := fmt.Sprintf(`{"event_id":"e-%s","sku":%q,"kind":"restock","units":5,"delivery":"unknown members are ignored","occurred_at":"2026-01-31T12:00:00Z"}`, h.sku, h.sku)
	post := func(body string) (answer, eventView) {
		a := h.send(h.signedEvent(body, time.Now(), webhookSecret))
		var v eventView
		if a.status < 300 {
			a.into(t, &v)
		}
		return a, v
	}
	a, v := post(body)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.True(t, *v.Applied)
	require.Equal(t, float64(5), v.Stock.(map[string]any)["on_hand"])

	h.untouched(func() { // also while Temporal is down: the gate knows the event
		h.wf.set(func() { h.wf.down = true })
		again, v := post(body)
		require.Equal(t, http.StatusOK, again.status)
		require.True(t, *v.Applied)
		h.wf.set(func() { h.wf.down = false })
	})

	for range 5 {
		h.hold()
	}
	a, v = post(fmt.Sprintf(`{"event_id":"c-%s","sku":%q,"kind":"correction","delta":-1,"reason":"count"}`, h.sku, h.sku))
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.False(t, *v.Applied)
	require.Equal(t, "would-oversell", v.Reason)

	// Not recorded: the sender is told to come again.
	h.wf.set(func() { h.wf.fail["StockEvent"] = errTemporalDown })
	h.untouched(func() {
		a, _ := post(fmt.Sprintf(`{"event_id":"d-%s","sku":%q,"kind":"restock","units":1}`, h.sku, h.sku))
		exact(t, a, 503, unavailable)
	})
}

// Recorded, but the gate has not decided: 202, also while the gate is silent.
// B65.
func TestInventoryUndecided(t *testing.T) {
	h := newHouse(t, 0)
	h.wf.inert = true
	h.gate.break_("EventOutcome", errors.Join(redis.ErrUnavailable), nil)
	a := h.send(h.signedEvent(fmt.Sprintf(`{"event_id":"e","sku":%q,"kind":"restock","units":5}`, h.sku), time.Now(), webhookSecret))
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	require.JSONEq(t, `{"event_id":"e"}`, a.body)
}

func TestReturns(t *testing.T) {
	h := newHouse(t, 3)
	id := h.sale(3)
	back := func(event, returnID string, units int64, resell bool) eventView {
		return h.event(contract.StockReturn, event, map[string]any{"return_id": returnID, "hold_id": id, "units": units, "resell": resell})
	}
	v := back("e1", "r1", 1, true)
	require.True(t, *v.Applied)
	require.Equal(t, []any{1.0, 2.0, 1.0}, []any{v.Stock.(map[string]any)["on_hand"], v.Stock.(map[string]any)["sold"], v.Stock.(map[string]any)["returned"]})
	h.untouched(func() {
		require.True(t, *back("e1", "r1", 1, true).Applied, "the event again")
		require.True(t, *back("e2", "r1", 1, true).Applied, "the return again, in another event")
		require.True(t, *back("e2", "r1", 1, true).Applied)
		require.Equal(t, "more-than-sold", back("e3", "r2", 3, true).Reason)
	})
	require.True(t, *back("e4", "r2", 2, false).Applied, "broken: they come back and are not sold again")
	require.Equal(t, [4]int64{1, 0, 0, 2}, h.parts())
	h.untouched(func() { require.Equal(t, "more-than-sold", back("e5", "r3", 1, true).Reason) })
	id = h.hold().HoldID
	h.untouched(func() {
		require.Equal(t, "not-sold", back("e6", "r4", 1, true).Reason)
		id = h.ring.HoldID(h.sku, "nobody", "nothing")
		require.Equal(t, "unknown-hold", back("e7", "r4", 1, true).Reason)
	})
}

func TestLevels(t *testing.T) {
	h := newHouse(t, 5)
	h.sale(2)
	level := func(event string, version, units, counts int64, more ...any) eventView {
		members := map[string]any{"version": version, "units": units, "counts_sold": counts, "reason": "count"}
		for i := 0; i+1 < len(more); i += 2 {
			members[more[i].(string)] = more[i+1]
		}
		return h.event(contract.StockLevel, event, members)
	}
	require.True(t, *level("l1", 1, 9, 0).Applied, "9 on the shelf before the sale of 2")
	require.Equal(t, [4]int64{7, 0, 0, 2}, h.parts())
	require.True(t, *level("l3", 3, 4, 2).Applied)
	h.untouched(func() {
		require.Equal(t, "level-outdated", level("l2", 2, 50, 2).Reason)
		require.Equal(t, "level-outdated", level("l3b", 3, 50, 2).Reason)
		require.Equal(t, "counts-unknown-sales", level("l4", 4, 50, 3).Reason)
	})
	h.hold()
	h.hold()
	require.Equal(t, "would-oversell", level("l5", 4, 1, 2).Reason)
	require.True(t, *level("l6", 4, 1, 2, "allow_shortfall", true).Applied, "a refused level has not spent its version")
	require.Equal(t, int64(1), h.counters().Shortfall)
	require.Equal(t, "would-oversell", level("l7", contract.MaxLevelVersion, 0, 0, "allow_shortfall", true).Reason, "2 sold of 0 that were there")
	require.Equal(t, [4]int64{1, 2, 0, 2}, h.parts())
	require.True(t, *level("l8", contract.MaxLevelVersion, 4, 2).Applied)
	require.EqualValues(t, contract.MaxLevelVersion, h.counters().LevelVersion)
}

// An event's id belongs to one movement: another one under it is refused, and
// not told the outcome of the first.
// B68.
func TestAnEventIDIsOneMovement(t *testing.T) {
	h := newHouse(t, 0)
	require.True(t, *h.event("restock", "e1", map[string]any{"units": 5}).Applied)
	h.untouched(func() {
		require.True(t, *h.event("restock", "e1", map[string]any{"units": 5, "reason": "sent again", "occurred_at": "2026-01-31T12:00:00Z", "actor": "cron"}).Applied)
		exact(t, h.askEvent("restock", "e1", map[string]any{"units": 9}), 422, idempotencyKeyReused)
		exact(t, h.askEvent("correction", "e1", map[string]any{"delta": 5, "reason": "count"}), 422, idempotencyKeyReused)
	})
	require.False(t, *h.event("correction", "c1", map[string]any{"delta": -9, "reason": "count"}).Applied)
	exact(t, h.askEvent("correction", "c1", map[string]any{"delta": -9, "reason": "count", "allow_shortfall": true}), 422, idempotencyKeyReused)
	require.Equal(t, [4]int64{5, 0, 0, 0}, h.parts())

	// While Redis is silent nobody can tell, and the book must have the event.
	h.wf.inert = true
	h.gate.break_("ClaimKey", redis.ErrUnavailable, nil)
	require.Equal(t, http.StatusAccepted, h.askEvent("restock", "e2", map[string]any{"units": 1}).status)
	require.Equal(t, 1+2, h.wf.called("StockEvent"))
}

// What was decided counts, whoever claimed the id first when Redis was back.
// B65.
func TestAnEventIDIsTheMovementThatWasDecided(t *testing.T) {
	h := newHouse(t, 0)
	h.gate.break_("ClaimKey", redis.ErrUnavailable, nil)
	require.True(t, *h.event("restock", "e1", map[string]any{"units": 1}).Applied)
	h.untouched(func() {
		exact(t, h.askEvent("restock", "e1", map[string]any{"units": 7}), 422, idempotencyKeyReused)
		require.True(t, *h.event("restock", "e1", map[string]any{"units": 1}).Applied, "the true repeat")
	})
}

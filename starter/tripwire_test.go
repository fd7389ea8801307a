package starter

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// A tripwire that rings is named, with its wires, and leaves the door green. The API
// says what its book makes of it, and whether the shop was told.
func TestATripwireIsADetailOfReadiness(t *testing.T) {
	h := newHouse(t, 1)
	ready := func() readiness {
		t.Helper()
		h.door.health.at = time.Time{}
		var v readiness
		a := h.call("GET", "/readyz", nil, "Authorization", "")
		require.Equal(t, 200, a.status, "an alarm alone does not turn it red")
		a.into(t, &v)
		return v
	}
	// The looks go through all SKUs of the shared server in turn.
	ring := func(want ...string) (v readiness) {
		t.Helper()
		h.eventually("the SKU was looked at", func() bool {
			v = ready()
			return slices.Equal(want, h.door.health.rings[h.sku])
		})
		return v
	}
	tripwire := func() (v tripwireView) {
		a := h.call("GET", "/v1/stock/"+h.sku+"/tripwire", nil)
		require.Equal(t, 200, a.status, a.body)
		a.into(t, &v)
		return v
	}
	require.NoError(t, h.gate.MarkMapWhole(t.Context()))
	ring()
	v := tripwire()
	require.Empty(t, v.Rings)
	require.Nil(t, v.Alarm)

	h.hold()
	_, err := h.gate.Stock(t.Context(), h.sku, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -1, AllowShortfall: true})
	require.NoError(t, err)
	require.Positive(t, ring(contract.WireShortfall).Rings)
	event := contract.EventStatus{EventID: contract.EventID(h.sku, contract.EventStockShortfall, "1"), State: contract.EventDelivered}
	h.becomes(event)
	book := contract.StockBook{
		SKU: h.sku, Opened: true, Paused: true, AlarmEvent: event.EventID,
		Alarm: &contract.StockAlarm{Rings: []contract.Ring{{Wire: contract.WireShortfall, Says: "1 unit"}}, Since: paidAt},
	}
	h.wf.set(func() { h.wf.statuses[contract.StockWorkflowID(h.sku)] = book })
	v = tripwire()
	require.Equal(t, contract.WireShortfall, v.Rings[0].Wire)
	require.True(t, v.Paused)
	require.Equal(t, alarmView{Rings: book.Alarm.Rings, Since: stamp(paidAt)}, *v.Alarm)
	require.Equal(t, []string{event.EventID, contract.EventDelivered}, []string{v.Event.EventID, v.Event.State})

	_, err = h.gate.Stock(t.Context(), h.sku, contract.StockEvent{EventID: "more", Kind: contract.StockRestock, Units: 1})
	require.NoError(t, err)
	ring()
	require.Empty(t, tripwire().Rings)
	require.Equal(t, 404, h.call("GET", "/v1/stock/NO-SUCH-SKU/tripwire", nil).status)
	require.Equal(t, 401, h.call("GET", "/v1/stock/"+h.sku+"/tripwire", nil, "Authorization", "").status)
}

// A SKU's stock names every wire that rings.
func TestStockNamesTheWiresThatRing(t *testing.T) {
	h := newHouse(t, 1)
	require.NoError(t, h.gate.MarkMapWhole(t.Context()))
	rings := func() []string {
		var v stockView
		h.call("GET", "/v1/stock/"+h.sku, nil).into(t, &v)
		return v.Rings
	}
	require.Empty(t, rings())
	require.NotContains(t, h.call("GET", "/v1/stock/"+h.sku, nil).body, "rings")
	stock := "hf:{" + h.sku + "}:stock"
	require.NoError(t, shared.HIncrBy(t.Context(), stock, "held", -1).Err())
	require.Equal(t, []string{contract.WireNegative, contract.WireLedger}, rings())
	require.NoError(t, shared.HIncrBy(t.Context(), stock, "held", 3).Err())
	require.Equal(t, []string{contract.WireShortfall, contract.WireLedger}, rings())
	require.NoError(t, shared.HIncrBy(t.Context(), stock, "sold", 2).Err())
	require.Equal(t, []string{contract.WireOversold, contract.WireShortfall, contract.WireLedger}, rings())
}

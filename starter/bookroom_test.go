package starter

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// While a gate is closed its book takes a bounded number of events; then senders are
// told to slow down, and nothing is lost: what is not recorded is said to be so.
func TestABookThatIsFullTakesNoMore(t *testing.T) {
	h := newHouse(t, 0)
	id := contract.StockWorkflowID(h.sku)
	send := func(event string) answer {
		return h.send(h.signedEvent(fmt.Sprintf(`{"event_id":%q,"sku":%q,"kind":"restock","units":1}`, event, h.sku), time.Now(), webhookSecret))
	}
	holds := func(n int) {
		h.wf.set(func() { h.wf.statuses[id] = contract.StockBook{Pending: make([]contract.StockEvent, n)} })
	}
	holds(contract.MaxPendingEvents)
	require.Equal(t, http.StatusOK, send("e1").status, "it is not even asked while its gate decides")
	require.Zero(t, h.wf.called("Status"))

	h.wf.inert = true
	fence, err := shared.HGet(t.Context(), "hf:{"+h.sku+"}:stock", "fence").Result()
	require.NoError(t, err)
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", "another server").Err())
	require.Equal(t, http.StatusAccepted, send("e0").status, "the first one that is not decided at once")
	before := h.wf.called("StockEvent")
	p := send("e2")
	require.NotEmpty(t, p.header.Get("Retry-After"))
	require.Contains(t, exact(t, p, 503, unavailable).Detail, "not recorded")
	require.Equal(t, before, h.wf.called("StockEvent"))

	holds(contract.MaxPendingEvents - 1)
	require.Equal(t, http.StatusAccepted, send("e2").status)
	h.wf.fail["Status"] = errTemporalDown
	require.Equal(t, http.StatusAccepted, send("e3").status, "without a worker it is recorded all the same")
	require.Equal(t, before+2, h.wf.called("StockEvent"))

	// The gate is open again and the book empty: nobody asks it any more.
	delete(h.wf.fail, "Status")
	holds(0)
	h.wf.inert = false
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", fence).Err())
	require.Equal(t, http.StatusOK, send("e4").status)
	asked := h.wf.called("Status")
	require.Equal(t, http.StatusOK, send("e5").status)
	require.Equal(t, asked, h.wf.called("Status"))
}

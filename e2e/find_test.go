package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

type found struct {
	Things []struct{ Kind, ID, State, Next, UI string }
	Story  []struct{ What string }
}

func (h *house) find(t *testing.T, term string) (f found) {
	t.Helper()
	a, err := h.shop.Call(t.Context(), http.MethodPost, "/v1/find", map[string]any{"term": term})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	require.NoError(t, json.Unmarshal(a.Body, &f))
	return f
}

// Whoever is on call learns what is next from the workflow itself: that a payment has
// begun, that its amount is another, that nobody owns the hold; and of a stock event
// while no worker runs, and of one that was refused.
func TestWhatIsNextIsFound(t *testing.T) {
	const sku = "found"
	h := ownHouse(t, stack.Options{}, lease)
	h.opened(t, sku, 3)
	h.putPolicy(t, sku, map[string]any{"extension_seconds": 0, "grace_seconds": 40})
	next := func(term, holdID string) string {
		t.Helper()
		for _, thing := range h.find(t, term).Things {
			if thing.ID == holdID {
				return thing.Next
			}
		}
		return "not found by " + term
	}
	hold, err := h.shop.Hold(t.Context(), sku, "ada")
	require.NoError(t, err)
	require.Contains(t, next("ada", hold.HoldID), "given back at the deadline unless paid")
	path := "/v1/holds/" + hold.HoldID
	a, err := h.shop.Call(t.Context(), http.MethodPost, path+"/checkout", map[string]any{"payment_ref": "px_1", "amount": 4900, "currency": "EUR"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	require.Contains(t, next("px_1", hold.HoldID), "when the deadline and the grace have passed")
	a, err = h.shop.Call(t.Context(), http.MethodPost, path+"/confirm", map[string]any{"payment_ref": "px_2", "amount": 1, "currency": "EUR"})
	require.NoError(t, err)
	require.Equal(t, "amount-mismatch", a.Code(), a)
	require.Contains(t, next("px_2", hold.HoldID), "a person should look: 1 payment(s) of another amount")
	require.NoError(t, h.temporal.TerminateWorkflow(t.Context(), hold.HoldID, "", "by a person"))
	require.Contains(t, next("px_1", hold.HoldID), "holdfast reconcile "+sku)

	_, err = h.shop.Decided(t.Context(), map[string]any{"event_id": "e-refused", "sku": sku, "kind": "correction", "delta": -50, "reason": "counted"})
	require.NoError(t, err)
	refused := h.find(t, "e-refused").Things
	require.Len(t, refused, 1)
	require.Equal(t, []string{"stock-event", "refused"}, []string{refused[0].Kind, refused[0].State})
	require.NoError(t, h.Child(stack.Worker).Stop())
	a, err = h.shop.Inventory(t.Context(), map[string]any{"event_id": "e-waits", "sku": sku, "kind": "restock", "units": 1})
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, a.Status, a)
	waits := h.find(t, "e-waits").Things
	require.Len(t, waits, 1)
	require.Contains(t, waits[0].Next, "when a worker runs")
	require.NoError(t, h.Child(stack.Worker).Start(t.Context()))
	require.NoError(t, until(t.Context(), "its book has applied it", func() error {
		if things := h.find(t, "e-waits").Things; len(things) != 1 || things[0].State != "applied" {
			return fmt.Errorf("it is %v", things)
		}
		return nil
	}))
}

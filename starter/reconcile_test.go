package starter

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"holdfast/contract"
	"holdfast/launch"
)

func TestReconcile(t *testing.T) {
	h := newHouse(t, 1)
	path := "/v1/stock/" + h.sku + "/reconcile"
	const run = "01a22b02-4a33-745f-94a8-08092df718bf"
	var asked []contract.ReconcileInput
	busy := 1
	h.wf.onPass = func(in contract.ReconcileInput) (string, error) {
		asked = append(asked, in)
		if busy > 0 {
			busy--
			return "", launch.ErrRuns
		}
		return run, nil
	}
	h.wf.onReport = func(id string, out *contract.ReconcileReport) error {
		require.Equal(t, run, id)
		*out = contract.ReconcileReport{SKU: h.sku, Checked: time.UnixMilli(0), Found: 2, Repaired: 1, Alarms: []string{"look"}, DriftUnits: 3}
		return nil
	}
	var got passView
	h.call("POST", path, map[string]any{"agree": true}).into(t, &got)
	require.Equal(t, passView{
		RunID: run, Done: true, SKU: h.sku, Found: 2, Repaired: 1, DriftUnits: 3, Differences: []string{}, Alarms: []string{"look"}, CheckedAt: "1970-01-01T00:00:00.000Z",
	}, got)
	require.Len(t, asked, 2, "one that ran was waited for: it may have been asked for less")
	require.Equal(t, [3]any{true, false, true}, [3]any{asked[1].Pass, asked[1].DryRun, asked[1].Agree})
	require.Equal(t, 200, h.call("GET", path+"?run_id="+run, nil).status)

	// Temporal breaks off: the pass runs all the same, and is asked for again.
	h.wf.onReport = func(string, *contract.ReconcileReport) error { return errors.New("stream terminated") }
	started := h.call("POST", path, map[string]any{})
	require.Equal(t, 202, started.status)
	var running passView
	started.into(t, &running)
	require.Equal(t, [2]any{run, false}, [2]any{running.RunID, running.Done})
	require.GreaterOrEqual(t, h.call("GET", path+"?run_id="+run, nil).status, 500)

	// A pass takes longer than one request waits for it, and Temporal sees that first.
	for _, end := range []error{
		serviceerror.NewDeadlineExceeded("context deadline exceeded"), serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"),
	} {
		h.wf.onReport = func(string, *contract.ReconcileReport) error { return end }
		require.Equal(t, 202, h.call("GET", path+"?run_id="+run, nil).status)
	}

	h.wf.onReport = func(string, *contract.ReconcileReport) error { return launch.ErrNoOwner }
	exact(t, h.call("GET", path, nil), 503, unavailable)
	exact(t, h.call("GET", path+"?run_id="+run, nil), 422, validationFailed)
	exact(t, h.call("GET", path+"?run_id=../x", nil), 422, validationFailed)
	exact(t, h.call("POST", path, map[string]any{"agree": "yes"}), 422, validationFailed, "/agree")
	exact(t, h.call("POST", "/v1/stock/NOBODY/reconcile", map[string]any{}), 404, unknownSKU)
	exact(t, h.call("POST", path, nil, "Authorization", ""), http.StatusUnauthorized, unauthorized)
}

package workflows_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/workflows"
)

const (
	historiesDir = "testdata/histories"
	current      = "current" // the folder that make corpus writes
)

// paths are the ways through the workflows that a history must be kept of: the
// names of its files in the folder current.
var paths = []string{
	"entry-bought", "entry-expired", "entry-hold-ended", "entry-idle", "entry-lapsed", "entry-left", "entry-left-an-offer",
	"entry-passed-in-the-night", "entry-removed", "entry-told-after-a-night", "entry-unreachable",
	"hold-cancelled", "hold-cart-refused", "hold-cart-sold", "hold-cart-undone", "hold-declined", "hold-expired", "hold-extended", "hold-failed-then-sold", "hold-late", "hold-mismatched",
	"hold-mismatched-then-sold", "hold-of-a-link", "hold-paid-in-time", "hold-paid-twice", "hold-refused", "hold-released",
	"hold-sold-after-an-outage", "hold-sold-by-signal", "hold-sold-by-update", "hold-undecodable", "hold-unfinished-payment",
	"payment-late", "payment-mismatched", "payment-parked", "payment-refunded", "payment-retake", "payment-second",
	"payment-unknown-settled",
	"reconcile-closed", "reconcile-opened", "reconcile-rebuilt",
	"stock-continued", "stock-continues", "stock-drained", "stock-events",
}

// histories are the kept ones by folder and path. The replayer writes into a
// history, so each call reads the files anew.
func histories(t *testing.T) map[string]*historypb.History {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(historiesDir, "*", "*"))
	require.NoError(t, err)
	all := map[string]*historypb.History{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		var raw io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			raw, err = gzip.NewReader(file)
			require.NoError(t, err)
		}
		path, _, _ := strings.Cut(filepath.Base(name), ".")
		path = filepath.Base(filepath.Dir(name)) + "/" + path
		all[path], err = client.HistoryFromJSON(raw, client.HistoryJSONOptions{})
		require.NoError(t, err, name)
	}
	return all
}

// replayer replays as a worker does. Workflows in place of the real ones may be
// given by name.
func replayer(t *testing.T, changed map[string]any) worker.WorkflowReplayer {
	t.Helper()
	payloads, err := codec.New()
	require.NoError(t, err)
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DisableRegistrationAliasing: true,
		DataConverter:               payloads.DataConverter(),
		FailureConverter:            payloads.FailureConverter(),
		Interceptors:                []interceptor.WorkerInterceptor{payloads.Signals().(interceptor.WorkerInterceptor)},
	})
	require.NoError(t, err)
	workflows.Register(registryWith{r, changed})
	return r
}

type registryWith struct {
	workflows.Registry
	changed map[string]any
}

func (r registryWith) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	if other, ok := r.changed[options.Name]; ok {
		w = other
	}
	r.Registry.RegisterWorkflowWithOptions(w, options)
}

func workflowOf(h *historypb.History) string {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

// B110: what runs when a new version comes goes on with it. A history that
// does not replay belongs to a change that needs a version guard: see
// docs/deploy.md. The long form replays a hundred times, for an order that comes
// of a map or a goroutine shows only now and then.
func TestEveryKeptHistoryReplays(t *testing.T) {
	all := histories(t)
	for _, path := range paths {
		require.Contains(t, all, current+"/"+path, "no history of this path: make corpus")
	}
	for path := range all {
		if name, ok := strings.CutPrefix(path, current+"/"); ok {
			require.True(t, slices.Contains(paths, name), "%s is no path: remove the file, or name the path", path)
		}
	}
	rounds := 1
	if os.Getenv("HOLDFAST_LONG") != "" {
		rounds = 100
	}
	for range rounds {
		r := replayer(t, nil)
		for path, h := range histories(t) {
			require.NoError(t, r.ReplayWorkflowHistory(nil, h), path)
		}
	}
}

// B111: histories that a worker with an older SDK wrote, of every workflow and with timers
// and updates in them, replay with the one that is built in. docs/deploy.md says how they
// are made.
func TestHistoriesOfAnOlderSDKReplay(t *testing.T) {
	seen, timers, updates := map[string]bool{}, 0, 0
	r := replayer(t, nil)
	for path, h := range histories(t) {
		version, older := strings.CutPrefix(filepath.Dir(path), "sdk-")
		if !older {
			continue
		}
		require.NotEqual(t, temporal.SDKVersion, version, "%s shows nothing: this is the SDK that is built in", path)
		for _, e := range h.GetEvents() {
			if by := e.GetWorkflowTaskCompletedEventAttributes().GetSdkMetadata().GetSdkVersion(); by != "" {
				require.Equal(t, version, by, "%s is of another SDK", path)
				seen[workflowOf(h)] = true
			}
			if e.GetTimerFiredEventAttributes() != nil {
				timers++
			}
			if e.GetWorkflowExecutionUpdateCompletedEventAttributes() != nil {
				updates++
			}
		}
		require.NoError(t, r.ReplayWorkflowHistory(nil, h), path)
	}
	for _, w := range []string{
		contract.HoldWorkflow, contract.PaymentWorkflow, contract.WaitlistEntryWorkflow, contract.StockWorkflow, contract.ReconcileWorkflow,
	} {
		require.True(t, seen[w], "no history of a %s", w)
	}
	require.Positive(t, timers)
	require.Positive(t, updates)
}

// A change of what a workflow does, in each place of its own, is noticed.
// B110.
func TestAChangedWorkflowDoesNotReplay(t *testing.T) {
	for name, c := range map[string]struct {
		changed map[string]any
		path    string
	}{
		"a hold sleeps first": {map[string]any{contract.HoldWorkflow: func(ctx workflow.Context, in contract.HoldInput) (contract.HoldResult, error) {
			if err := workflow.Sleep(ctx, 1); err != nil {
				return contract.HoldResult{}, err
			}
			return workflows.Hold(ctx, in)
		}}, "hold-sold-by-update"},
		"a hold waits at its end": {map[string]any{contract.HoldWorkflow: func(ctx workflow.Context, in contract.HoldInput) (contract.HoldResult, error) {
			out, err := workflows.Hold(ctx, in)
			if err == nil {
				err = workflow.Sleep(ctx, 1)
			}
			return out, err
		}}, "hold-expired"},
		"a payment answers at once": {map[string]any{contract.PaymentWorkflow: func(workflow.Context, contract.PaymentInput) (contract.PaymentStatus, error) {
			return contract.PaymentStatus{}, nil
		}}, "payment-parked"},
		"an entry has another clock": {map[string]any{contract.WaitlistEntryWorkflow: func(ctx workflow.Context, in contract.EntryInput) (contract.EntryResult, error) {
			workflow.NewTimer(ctx, 1)
			return workflows.WaitlistEntry(ctx, in)
		}}, "entry-idle"},
		"a book forgets to continue": {map[string]any{contract.StockWorkflow: func(ctx workflow.Context, in contract.StockInput) error {
			_ = workflows.Stock(ctx, in)
			return nil
		}}, "stock-continued"},
	} {
		t.Run(name, func(t *testing.T) {
			h := histories(t)[current+"/"+c.path]
			require.Contains(t, c.changed, workflowOf(h))
			require.Error(t, replayer(t, c.changed).ReplayWorkflowHistory(nil, h))
		})
	}
}

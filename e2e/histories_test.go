package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
	"holdfast/e2e/shop"
)

// corpus makes TestHistories write what it has seen: the histories that the
// replay tests of the workflows read, and the texts below.
var corpus = flag.Bool("corpus", false, "write workflows/testdata/histories/current and e2e/testdata/histories")

const (
	historiesDir = "../workflows/testdata/histories/current"
	textsDir     = "testdata/histories"
)

// asTexts are the histories that are kept as texts, to be read by people and to show
// what a change does to them.
var asTexts = map[string]string{
	"hold-sold-by-update": "happy-path",
	"hold-expired":        "expiry",
	"payment-refunded":    "late-refund",
}

// large histories are kept packed.
var large = map[string]bool{"stock-continued": true, "stock-continues": true}

// play is a house in which every path is walked once. Its quick door has short
// clocks.
type play struct {
	*house
	quick *shop.Shop

	mu   sync.Mutex
	runs map[string][2]string // workflow and run id of each path
}

// keep names the path that a workflow has walked. An empty run id means its
// latest run.
func (p *play) keep(name, id, runID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.runs[name]; twice {
		panic("two runs walked " + name)
	}
	p.runs[name] = [2]string{id, runID}
}

// TestHistories walks every path of every workflow on real servers. No workflow
// task fails on the way, three of the histories read as they always did, and a
// sale stays within its budget. With -corpus it writes the histories for the
// replay tests: see docs/deploy.md.
func TestHistories(t *testing.T) {
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "5s"}}, lease/2)
	p := &play{house: h, runs: map[string][2]string{}}
	require.NoError(t, until(t.Context(), "the Schedule is paused: the stories keep the last run of a Reconcile", func() error {
		return h.temporal.ScheduleClient().GetHandle(t.Context(), "reconcile").Pause(t.Context(), client.SchedulePauseOptions{})
	}))
	p.quick = h.door(t, "HOLDFAST_HOLD_TTL", "5s", "HOLDFAST_HOLD_EXTENSION", "1s", "HOLDFAST_HOLD_GRACE", "1s",
		"HOLDFAST_OFFER_WINDOW", "5s", "HOLDFAST_SMS_SENT_GRACE", "1s", "HOLDFAST_WAITLIST_TTL", "5s")
	stories := pathsOfAWorkingHouse
	if *corpus || long() {
		stories = append(stories, path{"stock-continued", aBookIsContinued})
	}
	t.Run("side by side", func(t *testing.T) {
		for _, s := range stories {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.walk(t, p)
			})
		}
	})
	for _, s := range pathsOfATroubledHouse {
		if !t.Failed() {
			t.Run(s.name, func(t *testing.T) { s.walk(t, p) })
		}
	}
	if t.Failed() {
		return
	}
	histories := map[string]*historypb.History{}
	for name, run := range p.runs {
		got, err := history.Of(t.Context(), h.temporal, run[0], run[1])
		require.NoError(t, err)
		require.Empty(t, history.Failed(got), name)
		histories[name] = got
	}
	sale := histories["hold-sold-by-update"]
	require.LessOrEqual(t, len(sale.GetEvents()), 16, "events of a confirmed walk-in hold")
	require.LessOrEqual(t, history.Count(sale, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES), 1, "its writes to visibility")
	figure(t, "events_of_a_confirmed_walk_in_hold", float64(len(sale.GetEvents())), "events")

	if *corpus {
		write(t, histories)
	}
	for name, file := range asTexts {
		want, err := os.ReadFile(filepath.Join(textsDir, file+".txt"))
		require.NoError(t, err)
		require.Equal(t, string(want), history.Text(histories[name]), "%s; if this is meant, run make corpus", file)
	}
}

// write replaces all files.
func write(t *testing.T, histories map[string]*historypb.History) {
	t.Helper()
	for _, dir := range []string{historiesDir, textsDir} {
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	total := 0
	for name, h := range histories {
		raw, err := history.JSON(h)
		require.NoError(t, err)
		file := name + ".json"
		if large[name] {
			file, raw = file+".gz", packed(t, raw)
		}
		total += len(raw)
		require.NoError(t, os.WriteFile(filepath.Join(historiesDir, file), raw, 0o644))
	}
	for name, file := range asTexts {
		require.NoError(t, os.WriteFile(filepath.Join(textsDir, file+".txt"), []byte(history.Text(histories[name])), 0o644))
	}
	t.Logf("%d histories, %d bytes", len(histories), total)
}

func packed(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = zip.Write(raw)
	require.NoError(t, errors.Join(err, zip.Close()))
	return out.Bytes()
}

// status asks a workflow for its status until that is as wanted.
func (h *house) status(t *testing.T, id, what string, wanted func(map[string]any) bool) {
	t.Helper()
	require.NoError(t, until(t.Context(), id+" "+what, func() error {
		var status map[string]any
		v, err := h.temporal.QueryWorkflow(t.Context(), id, "", "status")
		if err == nil {
			err = v.Get(&status)
		}
		if err == nil && !wanted(status) {
			err = fmt.Errorf("it is %v", status)
		}
		return err
	}))
}

func inState(state string) func(map[string]any) bool {
	return func(s map[string]any) bool { return s["state"] == state }
}

// happened waits until a run's history has an event of a kind that is wanted.
func (h *house) happened(t *testing.T, id, what string, wanted func(*historypb.HistoryEvent) bool) {
	t.Helper()
	require.NoError(t, until(t.Context(), what+" in the history of "+id, func() error {
		got, err := history.Of(t.Context(), h.temporal, id, "")
		if err != nil {
			return err
		}
		for _, e := range got.GetEvents() {
			if wanted(e) {
				return nil
			}
		}
		return errors.New("not yet")
	}))
}

func scheduled(activity string) func(*historypb.HistoryEvent) bool {
	return func(e *historypb.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activity
	}
}

func timerFired(e *historypb.HistoryEvent) bool { return e.GetTimerFiredEventAttributes() != nil }

func (h *house) signal(t *testing.T, id, signal string, payload any) {
	t.Helper()
	require.NoError(t, h.temporal.SignalWorkflow(t.Context(), id, "", signal, payload))
}

// ended waits until a run has closed and keeps it.
func (p *play) ended(t *testing.T, name, id string) {
	t.Helper()
	require.NoError(t, p.closed(t.Context(), id))
	p.keep(name, id, "")
}

// payOf is a payment reference of one hold: a payment pays for one hold only.
func payOf(hold, which string) string { return "pay_" + which + "_" + hold }

package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// passDoor answers a pass after it was asked for a while, and keeps what was asked.
type passDoor struct {
	asked  []string
	report string
	away   int  // times that it cannot answer
	runs   bool // the pass does not end
	looks  string
}

func (d *passDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.asked = append(d.asked, r.Method+" "+r.URL.String()+" "+string(body))
	switch {
	case r.URL.Path == "/v1/stock":
		_, _ = io.WriteString(w, `{"data":[{"sku":"A"},{"sku":"B"}],"next_cursor":null}`)
	case r.URL.Path == "/v1/attention":
		_, _ = io.WriteString(w, d.looks)
	case r.Method == http.MethodPost, d.runs:
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"run_id":"run 1","done":false}`)
	case d.away > 0:
		d.away--
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, d.report)
	}
}

func TestReconcileWaitsForTheReport(t *testing.T) {
	plain(t)
	d := &passDoor{report: `{"run_id":"run 1","done":true,"sku":"CHAIR","found":2,"repaired":1,"differences":["hold_1 held 2,\nand its workflow is not open"],"alarms":[]}`}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)

	got := run(t, Services{}, "reconcile", "CHAIR", "--agree", "--yes")
	require.Zero(t, got.code, got.err)
	require.Equal(t, []string{
		`POST /v1/stock/CHAIR/reconcile {"agree":true,"dry_run":false}`, "GET /v1/stock/CHAIR/reconcile?run_id=run+1 ",
	}, d.asked)
	require.Equal(t, "CHAIR\topen, 2 differences, 1 mended\n\tdifference: hold_1 held 2, and its workflow is not open\n", got.out)

	d.asked, d.report = nil, `{"run_id":"run 1","done":true,"sku":"A","alarms":["look"],"closed":true}`
	got = run(t, Services{}, "reconcile", "--dry-run")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "2 alarms")
	require.Contains(t, got.out, "\talarm: look\n")
	require.Equal(t, `POST /v1/stock/A/reconcile {"agree":false,"dry_run":true}`, d.asked[1])

	// The pass goes on without the door.
	d.away = 1
	require.Contains(t, run(t, Services{}, "reconcile", "A").out, "\talarm: look\n")

	for _, args := range [][]string{{"reconcile", "a/b"}, {"reconcile", "--agree"}, {"reconcile", "A", "B"}} {
		require.Equal(t, 2, run(t, Services{}, args...).code, args)
	}
}

// What the missing workflows held is gone for their shoppers: a person agrees to it, or a
// script says --yes. A dry run changes nothing.
func TestReconcileAsksBeforeItAgrees(t *testing.T) {
	plain(t)
	d := &passDoor{report: `{"run_id":"run 1","done":true,"sku":"CHAIR","alarms":[]}`}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	agree := func(typed string, terminal bool, more ...string) result {
		var out, err bytes.Buffer
		code := Main(t.Context(), append([]string{"reconcile", "CHAIR", "--agree"}, more...), Streams{Out: &out, Err: &err, In: strings.NewReader(typed), Terminal: terminal}, Services{})
		return result{code, out.String(), err.String()}
	}
	got := agree("yes\n", false)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "What the missing workflows of CHAIR held is given back")
	require.Contains(t, got.err, "add --yes")
	require.Equal(t, exitFailure, agree("no\n", true).code)
	require.Empty(t, d.asked)
	require.Zero(t, agree("yes\n", true).code)
	require.Zero(t, agree("", false, "--yes").code)
	require.Zero(t, agree("", false, "--dry-run").code)
	require.Len(t, d.asked, 6)
}

// A pass that does not end is not waited for without a word, nor for ever.
func TestReconcileSaysWhatItWaitsFor(t *testing.T) {
	plain(t)
	d := &passDoor{runs: true, looks: `{"data":[{"kind":"no-worker","grave":true,"says":"no worker asks for work","do":"start one"}],"redis":"open","temporal":"open"}`}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	got := run(t, Services{}, "reconcile", "CHAIR", "--wait", "1s")
	require.Equal(t, exitFailure, got.code)
	require.Empty(t, got.out)
	require.Equal(t, "holdfast: CHAIR: the pass has not ended in 1s; it goes on, and the report is its workflow's, reconcile.CHAIR. It waits, for no worker asks for work: start one\n", got.err)

	door, err := newDoor()
	require.NoError(t, err)
	var words []string
	_, err = door.reconcile(t.Context(), "CHAIR", false, false, passWait{most: time.Second, say: func(word string) { words = append(words, word) }})
	require.Error(t, err)
	require.Len(t, words, 1, "a word now and then is enough")
	require.Contains(t, words[0], "waiting for the pass over CHAIR for 0s. It waits, for no worker asks for work: start one")

	d.looks = wellDoor
	require.Contains(t, door.passWaitsFor(t.Context()), "A worker does it, and goes on also without this command")
	d.looks = ""
	require.Contains(t, door.passWaitsFor(t.Context()), "The door does not say whether a worker runs")
	require.Equal(t, exitUsage, run(t, Services{}, "reconcile", "CHAIR", "--wait", "0s").code)
}

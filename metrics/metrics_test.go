package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/sms"
)

// scrape answers the lines of a scrape that begin with prefix.
func scrape(t *testing.T, m *Metrics, prefix string) []string {
	t.Helper()
	got := httptest.NewRecorder()
	m.Handler().ServeHTTP(got, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, got.Code, got.Body.String())
	var lines []string
	for line := range strings.Lines(got.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestTheGateIsCounted(t *testing.T) {
	m := New()
	m.Verb("reserve", "ok", 3*time.Millisecond)
	m.Verb("reserve", "sold-out", time.Millisecond)
	m.Verb("reserve", "ok", 3*time.Second)
	m.Verb("reserve", "unavailable", 3*time.Second)
	for outcome, n := range map[string]string{"ok": "2", "sold-out": "1", "unavailable": "1", "failed": "0", "closed": "0"} {
		line := `holdfast_gate_verbs_total{outcome="` + outcome + `",verb="reserve"} `
		require.Equal(t, []string{line + n}, scrape(t, m, line))
	}
	require.Equal(t, []string{"holdfast_gate_seconds_count 4"}, scrape(t, m, "holdfast_gate_seconds_count"))
	require.Equal(t, []string{`holdfast_gate_seconds_bucket{le="0.005"} 2`}, scrape(t, m, `holdfast_gate_seconds_bucket{le="0.005"}`))

	m.Paid(time.Minute)
	require.Empty(t, scrape(t, m, "holdfast_hold_to_payment"), "a door confirms nothing")
	m.ForWorker()
	m.Paid(95 * time.Second)
	require.Equal(t, []string{"holdfast_hold_to_payment_seconds_sum 95"}, scrape(t, m, "holdfast_hold_to_payment_seconds_sum"))
}

type provider struct {
	sms.Sender
	err error
}

func (p provider) Send(context.Context, sms.Text) (sms.Receipt, error) {
	return sms.Receipt{ID: "SM1"}, p.err
}

func TestTextsAreCountedByWhatBecameOfThem(t *testing.T) {
	m := New()
	m.ForWorker()
	require.Len(t, scrape(t, m, "holdfast_texts_total"), len(TextOutcomes), "before the first")
	for _, err := range []error{
		nil, nil, &sms.Error{Class: sms.Later}, &sms.Error{Class: sms.Never}, &sms.Error{Class: sms.StopAll},
		errors.New("no answer"), &sms.Error{Class: "invented by the provider"},
	} {
		receipt, got := m.Sender(provider{err: err}).Send(t.Context(), sms.Text{})
		require.Equal(t, err, got, "nothing else changes")
		require.Equal(t, "SM1", receipt.ID)
	}
	require.Equal(t, []string{
		`holdfast_texts_total{outcome="accepted"} 2`,
		`holdfast_texts_total{outcome="failed"} 2`,
		`holdfast_texts_total{outcome="later"} 1`,
		`holdfast_texts_total{outcome="never"} 1`,
		`holdfast_texts_total{outcome="stop-all"} 1`,
	}, scrape(t, m, "holdfast_texts_total"))
}

// The SDK gives one metric now these tags, now those, and makes it from several
// goroutines.
func TestTheSDKsMetrics(t *testing.T) {
	m := New()
	h := m.Temporal()
	a := h.WithTags(map[string]string{"namespace": "shop", "operation": "StartWorkflowExecution", "workflow_type": "none", "client_name": "temporal_go"})
	b := a.WithTags(map[string]string{"status_code": "NOT_FOUND", "unheard_of": "x"})
	done := make(chan struct{})
	for range 4 {
		go func() {
			a.Counter("temporal_request").Inc(1)
			b.Counter("temporal_request").Inc(2)
			h.Counter("temporal_local_activity_total").Inc(1)
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	empty := `activity_type="",cause="",failure_reason="",namespace="shop",operation="StartWorkflowExecution",poller_type="",`
	require.Equal(t, []string{
		`temporal_request_total{` + empty + `status_code="",task_queue="",worker_type="",workflow_type=""} 4`,
		`temporal_request_total{` + empty + `status_code="NOT_FOUND",task_queue="",worker_type="",workflow_type=""} 8`,
	}, scrape(t, m, "temporal_request_total"))
	require.Len(t, scrape(t, m, "temporal_local_activity_total{"), 1)

	a.Gauge("temporal_num_pollers").Update(3)
	a.Gauge("temporal_num_pollers").Update(2)
	require.True(t, strings.HasSuffix(scrape(t, m, "temporal_num_pollers")[0], " 2"))
	a.Timer("temporal_request_latency").Record(1500 * time.Millisecond)
	require.True(t, strings.HasSuffix(scrape(t, m, "temporal_request_latency_seconds_sum")[0], " 1.5"))
}

func TestStatesOfTextsAreCounted(t *testing.T) {
	m := New()
	m.ForDoor()
	require.Len(t, scrape(t, m, "holdfast_text_states_total"), len(TextStates), "before the first")
	m.TextState(sms.StateDelivered)
	require.Contains(t, scrape(t, m, "holdfast_text_states_total"), `holdfast_text_states_total{state="delivered"} 1`)
	for _, state := range TextStates {
		form := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {string(state)}}
		_, err := sms.ParseStatus(form)
		require.NoError(t, err, "a state that a callback may tell")
	}
}

// What a pass has found counts until the next pass, or for a while: that may be
// another worker's.
func TestDriftCountsForAWhile(t *testing.T) {
	m := New()
	m.ForWorker()
	now := time.Now()
	m.drift.now = func() time.Time { return now }
	is := func(want string) {
		t.Helper()
		require.Equal(t, []string{"holdfast_drift_units " + want}, scrape(t, m, "holdfast_drift_units"))
	}
	is("0")
	m.Drift("CHAIR", 3)
	m.Drift("TEE", 2)
	is("5")
	m.Drift("CHAIR", 1)
	is("3")
	m.Drift("TEE", 0)
	is("1")
	now = now.Add(driftCounts)
	is("1")
	now = now.Add(time.Second)
	is("0")
}

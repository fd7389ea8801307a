package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// scraped is what one process says of itself.
type scraped struct {
	families []string          // of Holdfast and of Temporal's SDK
	samples  map[string]string // value by name and labels
}

func scrapeOf(t *testing.T, url string) scraped {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, string(raw))
	out := scraped{samples: map[string]string{}}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if family, ok := strings.CutPrefix(line, "# TYPE "); ok {
			family, _, _ = strings.Cut(family, " ")
			if strings.HasPrefix(family, "holdfast_") || strings.HasPrefix(family, "temporal_") {
				out.families = append(out.families, family)
			}
			continue
		}
		if i := strings.LastIndex(line, " "); i > 0 && !strings.HasPrefix(line, "#") {
			out.samples[line[:i]] = line[i+1:]
		}
	}
	return out
}

func (s scraped) own() []string {
	return slices.DeleteFunc(slices.Clone(s.families), func(f string) bool { return !strings.HasPrefix(f, "holdfast_") })
}

var runbookRow = regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)(?:\\{[a-z,]+\\})?` \\| (both|door|worker) \\|")

// A story with a sale, a text and money that came late; then the metrics of both
// processes are those of the runbook, and every one that an alert looks at exists.
func TestTheMetricsAreThoseOfTheRunbook(t *testing.T) {
	ctx := t.Context()
	const sku = "metered"
	env := newTexter(t, "").env() // texts that cost money have metrics of their own
	env["HOLDFAST_METRICS_SKUS"] = sku
	h := ownHouse(t, stack.Options{Env: env}, lease)
	h.opened(t, sku, 2)
	h.opened(t, "not-named", 1)

	sold, err := h.shop.Hold(ctx, sku, "pays")
	require.NoError(t, err)
	late, err := h.shop.Hold(ctx, sku, "comes late")
	require.NoError(t, err)
	refused, err := h.shop.AskHold(ctx, sku, "has no luck", shop.Token())
	require.NoError(t, err)
	require.Equal(t, "sold-out", refused.Code())
	answer, err := h.shop.Confirm(ctx, sold.HoldID, "pi_in_time")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.Status, answer)
	answer, err = h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+late.HoldID+"/release", map[string]any{})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.Status, answer)
	answer, err = h.shop.Confirm(ctx, late.HoldID, "pi_too_late")
	require.NoError(t, err)
	require.Equal(t, "hold-ended", answer.Code())
	_, err = h.inLine(ctx, h.shop, "not-named", phone(0))
	require.NoError(t, err)
	// What Temporal's SDK counts only when something is wrong.
	_, err = h.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "of-no-type", TaskQueue: contract.TaskQueue}, "NoSuchWorkflow")
	require.NoError(t, err)

	var door, worker scraped
	is := func(s scraped, sample, value string) error {
		if got := s.samples[sample]; got != value {
			return fmt.Errorf("%s is %q, not %q", sample, got, value)
		}
		return nil
	}
	has := func(s scraped, family string) error {
		if !slices.Contains(s.families, family) {
			return fmt.Errorf("there is no %s yet", family)
		}
		return nil
	}
	require.NoError(t, until(ctx, "the metrics tell the story", func() error {
		door, worker = scrapeOf(t, h.URL()), scrapeOf(t, h.WorkerOpsURL())
		return errors.Join(
			is(door, `holdfast_gate_verbs_total{outcome="sold-out",verb="reserve"}`, "1"),
			is(worker, `holdfast_gate_verbs_total{outcome="hold-ended",verb="confirm"}`, "1"),
			is(worker, "holdfast_hold_to_payment_seconds_count", "1"),
			is(door, "holdfast_refunds_open", "1"), is(door, "holdfast_events_late", "0"), is(door, "holdfast_events_parked", "0"),
			is(door, "holdfast_tripwire", "0"), is(worker, "holdfast_tripwire", "0"),
			is(door, `holdfast_units{part="sold",sku="metered"}`, "1"), is(worker, `holdfast_units{part="on_hand",sku="metered"}`, "1"),
			is(worker, `holdfast_texts_total{outcome="never"}`, "0"),
			has(worker, "temporal_workflow_task_execution_failed_total"),
		)
	}))
	// Requests count as failed when Temporal is away.
	h.Child(stack.Temporal).Kill()
	require.NoError(t, until(ctx, "Temporal's silence is counted", func() error {
		door, worker = scrapeOf(t, h.URL()), scrapeOf(t, h.WorkerOpsURL())
		return errors.Join(has(door, "temporal_request_failure_total"), has(worker, "temporal_long_request_failure_total"))
	}))
	for sample := range door.samples {
		if strings.HasPrefix(sample, "temporal_request_failure_total") {
			require.Contains(t, sample, `status_code="`)
		}
	}
	for sample := range door.samples {
		require.NotContains(t, sample, "not-named", "only named SKUs are labels")
	}

	book, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	want := map[string][]string{}
	for _, row := range runbookRow.FindAllStringSubmatch(string(book), -1) {
		for _, process := range []string{"door", "worker"} {
			if row[2] == "both" || row[2] == process {
				want[process] = append(want[process], row[1])
			}
		}
	}
	require.ElementsMatch(t, want["door"], door.own())
	require.ElementsMatch(t, want["worker"], worker.own())

	rules, err := os.ReadFile("../deploy/alerts.yml")
	require.NoError(t, err)
	all := append(door.families, worker.families...)
	for _, name := range regexp.MustCompile(`\b(?:holdfast|temporal)_[a-z_]+`).FindAllString(string(rules), -1) {
		require.Contains(t, all, strings.TrimSuffix(name, "_bucket"), "an alert looks at it")
	}
}

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nyaruka/phonenumbers"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/history"
	"holdfast/e2e/shop"
	"holdfast/internal/twiliostub"
)

const (
	mostEvents = 2000     // of any run of any workflow
	mostInput  = 64 << 10 // bytes of the book, however long the line
)

// restock is for trying other sizes: `go test -run ABigRestock ./e2e -restock 1000`.
var restock = flag.Int("restock", 0, "units of the big restock, for twice as many people; 0: as the form has it")

// A restock for half of a long line, through the stand-in of Twilio, with a worker that
// is killed twice in the middle. Who is told is the first half, in the order of their
// arrival, each once, and each window starts at its own text.
// B39, B106, B118.
func TestABigRestock(t *testing.T) {
	units, people := 300, 600
	if long() {
		units, people = 10_000, 20_000
	}
	if *restock > 0 {
		units, people = *restock, 2**restock
	}
	bigRestock(t, units, people)
}

func bigRestock(t *testing.T, units, people int) {
	const (
		sku           = "big-restock"
		window, grace = time.Hour, time.Minute
		soon          = 40 * time.Minute // of the large form on a busy machine
	)
	ctx := t.Context()
	provider := newTexter(t, "+12015550000") // nobody here
	h := ownHouse(t, stack.Options{Env: with(provider.env(),
		"HOLDFAST_OFFER_WINDOW", window.String(), "HOLDFAST_SMS_SENT_GRACE", grace.String(), "HOLDFAST_SMS_SEGMENTS_A_DAY", "0",
		"HOLDFAST_JOIN_MAX_BACKLOG", "1000000",
	)}, lease)
	h.opened(t, sku, 0)
	rung := make(chan error, 1)
	ringing, hush := context.WithCancel(ctx)
	defer hush()
	go func() { rung <- h.ring(ringing, sku) }()
	line := h.longLine(t, sku, people, soon)

	began := time.Now()
	require.NoError(t, h.shop.Restock(ctx, sku, int64(units)))
	for _, part := range []int{units / 3, 2 * units / 3} {
		require.NoError(t, within(ctx, soon, fmt.Sprintf("%d are told", part), provider.links(part)))
		h.Child(stack.Worker).Kill()
		told := provider.told()
		require.Less(t, told, units, "the worker is killed in the middle")
		t.Logf("killed with %d told, after %s", told, time.Since(began).Round(time.Second))
		require.NoError(t, h.Child(stack.Worker).Start(ctx))
	}
	require.NoError(t, within(ctx, soon, "all are told", provider.links(units)))
	hush()
	require.NoError(t, <-rung)
	took := time.Since(began)
	figure(t, "big_restock_to_all_told", took.Seconds(), "s")
	figure(t, "big_restock_texts", perSecond(units, took), "1/s")
	figure(t, "big_restock_worker_memory", peakMemory(t, h.Child(stack.Worker).PID()), "MiB")

	// The ledger offers to the first half in the order of their arrival, and the texts
	// went to the same people, one to each.
	f, err := h.check.Gate(ctx, sku)
	require.NoError(t, err)
	order := slices.SortedFunc(maps.Keys(f.Entries), func(a, b string) int { return int(f.Entries[a].Arrival - f.Entries[b].Arrival) })
	require.Len(t, order, people)
	var offered []string
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "offer" {
			offered = append(offered, l.Other)
		}
	}
	require.Len(t, offered, units)
	for i, id := range offered {
		require.Equal(t, order[i], id, "who got offer no. %d", i+1)
	}
	texts := provider.offers()
	require.Len(t, texts, units)
	for _, id := range order[:units] {
		require.Len(t, texts[line[id]], 1, "texts with a link to %s", id)
	}
	place := map[string]int{}
	for i, id := range order[:units] {
		place[id] = i
	}
	told := slices.SortedFunc(maps.Keys(place), func(a, b string) int {
		return texts[line[a]][0].CreatedAt.Compare(texts[line[b]][0].CreatedAt)
	})
	places := 0
	for i, id := range told {
		places = max(places, i-place[id], place[id]-i)
	}
	figure(t, "big_restock_text_out_of_place", float64(places), "places at most")

	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{int64(units), 0, int64(units), 0, int64(people - units)},
		[]int64{stock.OnHand, stock.Held, stock.Offered, stock.OpenToAll, stock.Waiting}, "on_hand, held, offered, open_to_all, waiting")

	// What a shopper sees is the gate's deadline without sent_grace. Only a text that was
	// on its way when the worker was killed is told of again.
	again := make([]bool, units)
	require.NoError(t, each(ctx, units, 32, func(ctx context.Context, i int) error {
		e, err := h.entryState(ctx, order[i], "offered")
		if err != nil {
			return err
		}
		accepted := texts[line[order[i]]][0].CreatedAt
		got := e.Offer.ExpiresAt.Add(grace).Sub(accepted)
		again[i] = got > window+grace
		if got < window+grace-10*time.Second || got > window+grace+90*time.Second {
			return fmt.Errorf("no. %d: its window and sent_grace, from its text on, are %s", i+1, got)
		}
		return nil
	}))
	late := 0
	for _, is := range again {
		if is {
			late++
		}
	}
	require.LessOrEqual(t, late, 200, "texts that were on their way in two kills, of at most 100 at once")
	t.Logf("%d windows were told again after their text", late)

	h.boundedHistories(t, sku, order, units)
	if long() {
		require.Empty(t, check.JudgeGate(f))
		alarms, err := h.shop.Alarms(ctx, sku)
		require.NoError(t, err)
		require.Empty(t, alarms)
		return
	}
	h.judge(t, sku)
}

// longLine lets people join, each with a number of their own, and waits until the
// workflows of all know. It answers who has which number.
func (h *house) longLine(t *testing.T, sku string, people int, soon time.Duration) map[string]string {
	t.Helper()
	ctx := t.Context()
	numbers := manyPhones(t, people)
	entries := make([]shop.Entry, people)
	crowd, _ := crowdOf(h.shop, 32)
	defer crowd.HTTP.CloseIdleConnections()
	began := time.Now()
	// A busy machine may answer 503, and a repeat gets the same place.
	require.NoError(t, each(ctx, people, 32, func(ctx context.Context, i int) error {
		return until(ctx, numbers[i]+" joins", func() error {
			a, err := crowd.AskJoin(ctx, sku, numbers[i])
			if err == nil && a.Status != http.StatusCreated && a.Status != http.StatusOK {
				err = errors.New(a.String())
			}
			if err == nil {
				entries[i], err = shop.ParseEntry(a)
			}
			return err
		})
	}))
	require.NoError(t, within(ctx, soon, "every entry is acknowledged", func() error {
		fresh, err := h.check.Unacknowledged(ctx, sku)
		if err == nil && fresh > 0 {
			err = fmt.Errorf("%d are not", fresh)
		}
		return err
	}))
	figure(t, "long_line_to_all_acknowledged", time.Since(began).Seconds(), "s")
	line := make(map[string]string, people)
	for i, e := range entries {
		line[e.EntryID] = numbers[i]
	}
	require.Len(t, line, people)
	return line
}

// manyPhones are numbers that belong to nobody: 555-0100 to 555-0199 of every area.
func manyPhones(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for area := 201; area < 1000 && len(out) < n; area++ {
		if p, err := phonenumbers.Parse(fmt.Sprintf("+1%d5550100", area), ""); err != nil || !phonenumbers.IsValidNumberForRegion(p, "US") {
			continue
		}
		for i := 0; i < 100 && len(out) < n; i++ {
			out = append(out, fmt.Sprintf("+1%d55501%02d", area, i))
		}
	}
	require.Len(t, out, n)
	return out
}

// offers are the texts with a reserve link, by number.
func (s *texter) offers() map[string][]twiliostub.Message {
	out := map[string][]twiliostub.Message{}
	for _, m := range s.Messages() {
		if m.Link("/r/") != "" {
			out[m.To] = append(out[m.To], m)
		}
	}
	return out
}

// ring wakes a SKU's book twenty times a second, far more often than the gate asks for
// it, until ctx ends.
func (h *house) ring(ctx context.Context, sku string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := h.temporal.SignalWorkflow(ctx, "stock."+sku, "", "settle", nil)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) { // a busy server may leave a ring out, never lose the book
			return err
		}
	}
}

// boundedHistories wants every run of the SKU's book, and every entry, short, and what
// the book carries from run to run small. The first of the entries were told.
func (h *house) boundedHistories(t *testing.T, sku string, entries []string, told int) {
	t.Helper()
	ctx := t.Context()
	longest, runs, wait := h.bookRuns(t, sku)
	require.Less(t, longest, mostEvents, "events of a run of the book")
	figure(t, "book_longest_run", float64(longest), "events")
	require.Greater(t, runs, 1, "the book is continued under way")
	figure(t, "book_runs", float64(runs), "")
	figure(t, "book_longest_wait", wait.Seconds(), "s")
	figure(t, "book_input", float64(h.bookInput(t, sku)), "bytes")
	require.Less(t, h.bookInput(t, sku), mostInput)
	events := make([]int, len(entries))
	require.NoError(t, each(ctx, len(entries), 32, func(ctx context.Context, i int) error {
		d, err := h.temporal.DescribeWorkflow(ctx, entries[i], "")
		if err == nil {
			events[i] = d.HistoryLength
		}
		return err
	}))
	figure(t, "entry_longest", float64(slices.Max(events)), "events")
	require.Less(t, slices.Max(events), mostEvents)
	figure(t, "idle_entry_longest", float64(slices.Max(events[told:])), "events")
	require.Less(t, slices.Max(events[told:]), 50, "events of an entry that only waits, of which a year adds its end")
}

// bookRuns answers the events of the longest run of a SKU's book, how many runs it had,
// and the longest wait of one of its tasks for a worker.
func (h *house) bookRuns(t *testing.T, sku string) (longest, runs int, wait time.Duration) {
	t.Helper()
	ctx := t.Context()
	var page []byte
	for {
		res, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowId = 'stock." + sku + "'", PageSize: 1000, NextPageToken: page,
		})
		require.NoError(t, err)
		for _, e := range res.GetExecutions() {
			run, err := history.Of(ctx, h.temporal, "stock."+sku, e.GetExecution().GetRunId())
			require.NoError(t, err)
			longest = max(longest, len(run.GetEvents()))
			runs++
			wait = max(wait, longestWait(run))
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return longest, runs, wait
		}
	}
}

// longestWait is the longest time between a workflow task and its worker. A task that
// timed out waited, too.
func longestWait(run *historypb.History) (longest time.Duration) {
	var since time.Time
	for _, e := range run.GetEvents() {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
			if since.IsZero() {
				since = e.GetEventTime().AsTime()
			}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			longest, since = max(longest, e.GetEventTime().AsTime().Sub(since)), time.Time{}
		}
	}
	return longest
}

// bookInput is the size of what the last run of a SKU's book began with.
func (h *house) bookInput(t *testing.T, sku string) int {
	t.Helper()
	events := h.temporal.GetWorkflowHistory(t.Context(), "stock."+sku, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(t, err)
	began := first.GetWorkflowExecutionStartedEventAttributes()
	require.EqualValues(t, 1, began.GetPriority().GetPriorityKey(), "a book that was continued goes before everything else")
	return began.GetInput().Size()
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory is the most memory that a process has had, in MiB.
func peakMemory(t *testing.T, pid int) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	m := highWater.FindSubmatch(raw)
	require.NotNil(t, m)
	kib, err := strconv.ParseFloat(string(m[1]), 64)
	require.NoError(t, err)
	return kib / 1024
}

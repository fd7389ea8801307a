package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/dev/stack"
)

var errNotYet = errors.New("not yet")

// pathsOfATroubledHouse need a part that is down, and are walked one by one in
// this order.
var pathsOfATroubledHouse = []path{
	{"redis is away", func(t *testing.T, p *play) {
		late := p.walkIn(t, p.shop, "late")
		sold := p.walkIn(t, p.shop, "sold-after-an-outage")
		redis := p.Child(stack.Redis)
		require.NoError(t, redis.Suspend())
		p.signal(t, late, "release", money{"reason": "shop"})
		p.signal(t, sold, "payment-succeeded", euros(payOf(sold, "1"), 500))
		p.happened(t, late, "the release waits for Redis", scheduled("ReleaseHold"))
		p.happened(t, sold, "the sale waits for Redis", scheduled("ConfirmHold"))
		p.signal(t, late, "payment-succeeded", euros(payOf(late, "late"), 500))
		require.NoError(t, redis.Resume())
		p.ended(t, "hold-late", late)
		p.ended(t, "hold-sold-after-an-outage", sold)
		p.settled(t, "payment-late", paymentID(late, payOf(late, "late")), "refund-pending")
	}},
	// What comes while no worker runs is one task when one does. This one asks a
	// shop for refunds and a provider for texts.
	{"the worker is away", func(t *testing.T, p *play) {
		twice := p.walkIn(t, p.shop, "paid-twice")
		inTime := p.walkIn(t, p.quick, "paid-in-time")
		require.NoError(t, p.Child(stack.Worker).Stop())
		p.signal(t, twice, "payment-succeeded", euros(payOf(twice, "1"), 500))
		p.signal(t, twice, "payment-succeeded", euros(payOf(twice, "2"), 500))
		p.signal(t, inTime, "payment-succeeded", euros(payOf(inTime, "1"), 500))
		p.happened(t, inTime, "the deadline", timerFired)

		provider := newTexter(t, phone(99))
		desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		t.Cleanup(desk.Close)
		env := []string{
			"HOLDFAST_PAYMENT_PROVIDER", "webhook", "HOLDFAST_PAYMENT_WEBHOOK_URL", desk.URL,
			"HOLDFAST_PAYMENT_WEBHOOK_SECRETS", "whsec_cmVmdW5kcy1vZi10aGUtc2hvcC1vZi10aGUtc3Rvcnk=", "HOLDFAST_GATE_REOPEN_WAIT", "5s",
		}
		for name, value := range provider.env() {
			env = append(env, name, value)
		}
		other := p.worker(t, env...)
		p.ended(t, "hold-paid-twice", twice)
		p.ended(t, "hold-paid-in-time", inTime)
		second := paymentID(twice, payOf(twice, "2"))
		p.status(t, second, "is with the shop", inState("refund-reported"))
		p.signal(t, second, "refund-settled", map[string]string{"reference": "re_1"})
		p.ended(t, "payment-second", second)

		require.NoError(t, p.shop.Open(t.Context(), "unreachable", "Chair"))
		e, err := p.shop.Join(t.Context(), "unreachable", phone(99))
		require.NoError(t, err)
		p.ended(t, "entry-unreachable", e.EntryID)
		require.NoError(t, other.Stop())
		require.NoError(t, p.Child(stack.Worker).Start(t.Context()))
	}},
	{"a night", aNight},
	{"redis restarts", func(t *testing.T, p *play) {
		ctx := t.Context()
		const kept, lost, unreadable = "kept", "lost", "unreadable"
		for _, sku := range []string{kept, lost, unreadable} {
			p.opened(t, sku, 1)
		}
		require.NoError(t, p.Child(stack.Redis).Stop())
		require.NoError(t, p.Child(stack.Redis).Start(ctx))
		require.NoError(t, p.redis.Del(ctx, "hf:{"+lost+"}:stock").Err())
		require.NoError(t, p.redis.HSet(ctx, "hf:{"+unreadable+"}:holds", "hold_x", "no record").Err())
		for _, sku := range []string{kept, lost, unreadable} {
			a, err := p.shop.AskHold(ctx, sku, "walk-in", sku)
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, a.Status, a)
		}
		for _, sku := range []string{kept, lost, unreadable} {
			var report struct {
				Opened      bool     `json:"opened"`
				Differences []string `json:"differences"`
			}
			require.NoError(t, until(ctx, sku+" is checked", func() error {
				return p.temporal.GetWorkflow(ctx, "reconcile."+sku, "").Get(ctx, &report)
			}))
			require.Equal(t, sku != unreadable, report.Opened, fmt.Sprint(report.Differences))
		}
		p.keep("reconcile-opened", "reconcile."+kept, "")
		p.keep("reconcile-rebuilt", "reconcile."+lost, "")
		p.keep("reconcile-closed", "reconcile."+unreadable, "")
	}},
}

// awake waits until the worker that was started last has woken every book, and each
// sleeps again: a worker that stops in the middle of that leaves tasks to time out.
func (p *play) awake(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, until(ctx, "all books are awake", func() error {
		log, err := os.ReadFile(filepath.Join(p.dir, "logs", "worker.log"))
		if err != nil {
			return err
		}
		begun := bytes.LastIndex(log, []byte(`"msg":"listening"`))
		if begun < 0 || !bytes.Contains(log[begun:], []byte(`"msg":"books woken"`)) {
			return errNotYet
		}
		res, err := p.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowType = 'Stock' AND ExecutionStatus = 'Running'", PageSize: 1000,
		})
		if err != nil {
			return err
		}
		for _, e := range res.GetExecutions() {
			d, err := p.temporal.DescribeWorkflow(ctx, e.GetExecution().GetWorkflowId(), "")
			if err != nil {
				return err
			}
			if raw := d.RawResponse; raw.GetPendingWorkflowTask() != nil || len(raw.GetPendingActivities()) > 0 {
				return errNotYet
			}
		}
		return nil
	}))
}

// aNight is one of at most two minutes, and so it is played when histories are
// made anew. A unit that comes back early in it goes past its sleeper; who is offered one
// right before the morning is told in it.
func aNight(t *testing.T, p *play) {
	if !*corpus && !long() {
		return
	}
	const maxWait = 20 * time.Second
	ctx := t.Context()
	p.awake(t)
	require.NoError(t, p.Child(stack.Worker).Stop())
	morning := time.Now().Add(time.Minute).Truncate(time.Minute).Add(time.Minute).UTC()
	other := p.worker(t, "HOLDFAST_QUIET_FROM", morning.Add(-2*time.Hour).Format("15:04"), "HOLDFAST_QUIET_TO", morning.Format("15:04"),
		"HOLDFAST_QUIET_ZONE", "UTC", "HOLDFAST_QUIET_MAX_WAIT", maxWait.String(), "HOLDFAST_GATE_REOPEN_WAIT", "5s")
	sleeper := p.joined(t, p.shop, "night-passed", 40)
	require.NoError(t, p.shop.Restock(ctx, "night-passed", 1))
	require.NoError(t, until(ctx, "the unit goes past its sleeper", func() error {
		if _, ok := p.lapse(t, "night-passed"); !ok {
			return errNotYet
		}
		return nil
	}))
	p.leave(t, sleeper)
	p.ended(t, "entry-passed-in-the-night", sleeper)

	early := p.joined(t, p.shop, "night-told", 41)
	require.NoError(t, within(ctx, 2*time.Minute, "it is nearly morning", func() error {
		if time.Until(morning) > maxWait-time.Second {
			return errNotYet
		}
		return nil
	}))
	require.NoError(t, p.shop.Restock(ctx, "night-told", 1))
	p.status(t, early, "has been told", func(s map[string]any) bool { return s["offer_sent"] == true })
	p.leave(t, early)
	p.ended(t, "entry-told-after-a-night", early)
	require.NoError(t, other.Stop())
	require.NoError(t, p.Child(stack.Worker).Start(ctx))
}

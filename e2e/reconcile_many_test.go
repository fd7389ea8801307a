package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/redis"
)

// Temporal has lost the workflows of nearly all holds of a SKU. A pass gives nothing
// back until a person agrees; then all of it goes back, first to the line and in its
// order, though the worker is killed meanwhile, in little memory, and without keeping
// those from their holds who shop elsewhere. A second run finds nothing.
func TestHoldsThatHaveLostTheirWorkflows(t *testing.T) {
	holds, owned, people, kills := 3_000, 30, 10, 1
	if long() {
		holds, owned, people, kills = 100_000, 1_000, 200, 2
	}
	const (
		sku, elsewhere = "lost-many", "elsewhere"
		soon           = 40 * time.Minute // of the large form on a busy machine
		mostMemory     = 256              // MiB
	)
	// A pass of the large form is longer than the usual window, and who lapses has missed a turn.
	h := ownHouse(t, stack.Options{Env: with(nil, "HOLDFAST_HOLD_TTL", "2h", "HOLDFAST_OFFER_WINDOW", "2h")}, 2*time.Second)
	ctx := t.Context()
	opts := redis.Options{
		Lease: h.check.Lease, RecordRetention: 24 * time.Hour, SaleRetention: 24 * time.Hour, OfferMaxAge: 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
	}
	gate, brief := redis.New(h.redis, opts), opts
	brief.RecordRetention = 10 * time.Second // or the shoppers elsewhere leave millions of records
	h.opened(t, sku, int64(holds))
	h.opened(t, elsewhere, 1_000_000)
	crowd, _ := crowdOf(h.shop, 16)
	defer crowd.HTTP.CloseIdleConnections()
	require.NoError(t, each(ctx, owned, 16, func(ctx context.Context, i int) error {
		return until(ctx, "a hold with its workflow", func() error {
			_, err := crowd.Hold(ctx, sku, fmt.Sprint("customer-", i))
			return err
		})
	}))
	lost := holds - owned
	h.withoutWorkflows(t, gate, sku, lost, soon)
	var line []string
	for i := range people {
		e, err := h.inLine(ctx, h.shop, sku, phone(i))
		require.NoError(t, err)
		line = append(line, e.EntryID)
	}

	braked := h.passWhenFree(t, sku, soon)
	require.True(t, braked.Braked)
	require.Len(t, braked.Alarms, 1, braked.Alarms)
	require.Contains(t, braked.Alarms[0], "--agree")
	require.Zero(t, braked.Repaired)
	held := func() int64 {
		c, _, err := gate.Snapshot(ctx, sku)
		require.NoError(t, err)
		return c.Held
	}
	require.Equal(t, int64(holds), held(), "nothing is given back")

	var rate *shoppers
	if long() {
		rate = shopping(t, redis.New(h.redis, brief), elsewhere)
		require.NoError(t, h.redis.ConfigSet(ctx, "slowlog-log-slower-than", "2000").Err())
		require.NoError(t, h.redis.ConfigSet(ctx, "slowlog-max-len", "100000").Err())
	}
	began := time.Now()
	agreed := make(chan passReport, 1)
	go func() { agreed <- h.passWhenFree(t, sku, soon, "--agree", "--yes") }()
	var memory float64
	for kill := 1; kill <= kills+1; kill++ {
		from := held()
		require.NoError(t, within(ctx, soon, "the pass goes on", func() error {
			if held() < from {
				return nil
			}
			return errors.New("it does not")
		}))
		until := int64(owned) + int64(lost)*int64(kills+1-kill)/int64(kills+1)
		rate.compare(t, h.Child(stack.Worker), func() bool { return held() > until })
		require.NoError(t, within(ctx, soon, fmt.Sprintf("%d are held", until), func() error {
			if now := held(); now > until {
				return fmt.Errorf("%d are", now)
			}
			return nil
		}))
		memory = max(memory, peakMemory(t, h.Child(stack.Worker).PID()))
		if kill > kills {
			break
		}
		h.Child(stack.Worker).Kill()
		require.Greater(t, held(), int64(owned), "the worker is killed in the middle")
		t.Logf("killed with %d held, after %s", held(), time.Since(began).Round(time.Second))
		require.NoError(t, h.Child(stack.Worker).Start(ctx))
	}
	report := <-agreed
	figure(t, "lost_owners_pass", time.Since(began).Seconds(), "s")
	figure(t, "lost_owners_worker_memory", memory, "MiB")
	require.Less(t, memory, float64(mostMemory))
	require.Empty(t, report.Alarms)
	require.Equal(t, report.Found, report.Repaired)
	require.NotZero(t, report.Repaired)
	if long() {
		rate.stop()
		without, during := rate.without.perSecond(), rate.during.perSecond()
		figure(t, "elsewhere_rate_without_pass", without, "1/s")
		figure(t, "elsewhere_rate_during_pass", during, "1/s")
		figure(t, "elsewhere_rate_kept", during/without, "")
		figure(t, "elsewhere_pairs", float64(rate.pairs), "")
		require.GreaterOrEqual(t, rate.pairs, 10)
		slow, runs := h.slowScripts(t)
		figure(t, "scripts_above_2_ms", float64(slow), "")
		figure(t, "scripts_run", float64(runs), "")
		require.GreaterOrEqual(t, during/without, 0.8)
		require.LessOrEqual(t, float64(slow), float64(runs)/1000, "99.9 % of the scripts stay below 2 ms")
	}

	require.NoError(t, within(ctx, soon, "the line is told", func() error {
		for _, id := range line {
			if _, err := h.entryState(ctx, id, "offered"); err != nil {
				return err
			}
		}
		return nil
	}))
	c, _, err := gate.Snapshot(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{int64(holds), int64(owned), int64(people), int64(lost - people), 0}, []int64{c.OnHand, c.Held, c.Offered, c.OpenToAll, c.Waiting})
	var offered []string
	givenBack := map[string]int{}
	for _, l := range h.ledger(t, sku) {
		switch {
		case l.Verb == "offer":
			offered = append(offered, l.Other)
		case l.Verb == "release" && l.Reason == contract.ReasonReconcile:
			givenBack[l.Ref]++
		}
	}
	require.Equal(t, line, offered, "offers go to the line in its order")
	require.Len(t, givenBack, lost)
	for id, times := range givenBack {
		require.Equal(t, 1, times, id)
	}

	again := h.passWhenFree(t, sku, soon)
	require.Zero(t, again.Found, again.Differences)
	require.Zero(t, again.Missing)
	require.Empty(t, again.Alarms)
	require.Equal(t, owned+people, again.Owners)
	details := h.details(t, contract.ReconcileWorkflowID(sku))
	require.Contains(t, details, "0 difference(s), 0 mended")
	alarms, err := h.shop.Alarms(ctx, sku)
	require.NoError(t, err)
	require.Empty(t, alarms)
	if long() { // the judge knows of no holds that began by a repair
		f, err := h.check.Gate(ctx, sku)
		require.NoError(t, err)
		require.Empty(t, check.JudgeGate(f))
	}
}

// withoutWorkflows puts holds into the gate that no workflow knows, old enough to be
// looked for: in the large form as a door does, in the small one, which has not the time
// to let them grow old, as Reconcile puts a lost record back.
func (h *house) withoutWorkflows(t *testing.T, gate *redis.Gate, sku string, n int, soon time.Duration) {
	t.Helper()
	ctx := t.Context()
	id := func(i int) string { return contract.HoldID(sku, fmt.Appendf(nil, "%011d", i)) }
	began := time.Now()
	require.NoError(t, each(ctx, n, 32, func(ctx context.Context, i int) error {
		if !long() {
			_, err := gate.RepairHold(ctx, sku, redis.LostHold{
				ID: id(i), Person: fmt.Sprint("lost-", i), Units: 1, CreatedAt: began.Add(-5 * time.Minute), ExpiresAt: began.Add(2 * time.Hour),
			})
			return err
		}
		return until(ctx, "a hold", func() error { // a lease may end on a busy machine: a shop repeats
			if _, err := gate.Reserve(ctx, redis.ReserveRequest{SKU: sku, HoldID: id(i), Units: 1, Person: fmt.Sprint("lost-", i)}); err != nil {
				return err
			}
			out, err := gate.AdoptHold(ctx, redis.AdoptHoldRequest{SKU: sku, HoldID: id(i), HoldFor: 2 * time.Hour})
			if err == nil && out.Verdict != redis.OK {
				err = fmt.Errorf("%s: %s", id(i), out.Verdict)
			}
			return err
		})
	}))
	if !long() {
		st, ok, err := gate.CompareCounters(ctx, sku)
		require.NoError(t, err)
		require.True(t, ok)
		base, err := gate.RepairCount(ctx, sku, redis.PartHeld, int64(n), st.Mended, "the holds of a story")
		require.NoError(t, err)
		require.Equal(t, redis.OK, base.Verdict)
		return
	}
	born := time.Now()
	require.NoError(t, within(ctx, soon, "the holds are old enough", func() error {
		now, err := h.redis.Time(ctx).Result()
		if err == nil && now.Sub(born) < h.check.Lease+time.Minute {
			err = errors.New("not yet")
		}
		return err
	}))
}

// passWhenFree runs a pass when no other one runs.
func (h *house) passWhenFree(t *testing.T, sku string, soon time.Duration, flags ...string) (report passReport) {
	t.Helper()
	require.NoError(t, within(t.Context(), soon, "a pass of "+sku, func() (err error) {
		report, err = h.tryReconcile(t, append([]string{sku}, flags...)...)
		if err != nil && !strings.Contains(err.Error(), "another pass") {
			t.Log(err)
		}
		return err
	}))
	return report
}

// shoppers take units of a SKU, a few at once and as fast as they can. Their leases end.
type shoppers struct {
	done            atomic.Int64
	without, during stretch // of time, with no worker at all and with one
	pairs           int     // of such stretches, one right after the other
	stop            func()
}

type stretch struct {
	done int64
	took time.Duration
}

func (s *stretch) perSecond() float64 { return perSecond(int(s.done), s.took) }

func shopping(t *testing.T, gate *redis.Gate, sku string) *shoppers {
	ctx, cancel := context.WithCancel(t.Context())
	s := &shoppers{}
	failed := make(chan error, 1)
	go func() {
		failed <- each(ctx, 4, 4, func(ctx context.Context, i int) error {
			for n := 0; ctx.Err() == nil; n++ {
				id := contract.HoldID(sku, fmt.Appendf(nil, "%d-%09d", i, n))
				out, err := gate.Reserve(ctx, redis.ReserveRequest{SKU: sku, HoldID: id, Units: 1, Person: fmt.Sprint("shopper-", i)})
				if ctx.Err() != nil {
					return nil
				}
				if errors.Is(err, redis.ErrUnavailable) || out.Verdict == redis.Again {
					continue // a machine that stood still for a moment; it does not count
				}
				if err == nil && out.Hold.State != contract.HoldProvisional {
					err = fmt.Errorf("a shopper heard %s", out.Verdict)
				}
				if err != nil {
					return err
				}
				s.done.Add(1)
			}
			return nil
		})
	}()
	s.stop = func() {
		cancel()
		require.NoError(t, <-failed)
	}
	return s
}

// over counts what they do within a stretch of time.
func (s *shoppers) over(t *testing.T, took time.Duration) stretch {
	t.Helper()
	began, from := time.Now(), s.done.Load()
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	return stretch{s.done.Load() - from, time.Since(began)}
}

// compare counts in pairs, while the pass has more to do: the worker that makes it stands
// still for a moment (its heartbeat allows that), and goes on for a while. Whatever else
// the machine does is the same in both.
func (s *shoppers) compare(t *testing.T, worker *stack.Child, more func() bool) {
	t.Helper()
	if s == nil {
		return
	}
	for more() {
		require.NoError(t, worker.Suspend())
		without := s.over(t, time.Second)
		require.NoError(t, worker.Resume())
		during := s.over(t, 4*time.Second)
		if !more() { // it did not work for all that time
			return
		}
		s.pairs++
		s.without.add(without)
		s.during.add(during)
	}
}

func (s *stretch) add(more stretch) {
	s.done += more.done
	s.took += more.took
}

// slowScripts answers how many scripts took Redis more than 2 ms since its log was set
// to that, and how many it has run since it began.
func (h *house) slowScripts(t *testing.T) (slow, runs int64) {
	t.Helper()
	lines, err := h.redis.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	for _, l := range lines {
		if len(l.Args) > 0 && strings.HasPrefix(strings.ToLower(l.Args[0]), "evalsha") {
			slow++
		}
	}
	stats, err := h.redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, line := range strings.Split(stats, "\r\n") {
		var n int64
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d", &n); err == nil {
			runs = n
		}
	}
	require.NotZero(t, runs)
	return slow, runs
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
)

const (
	chaosHolds = 100 // a run with fewer promised holds has shown nothing: it goes on
	chaosCalm  = 4 * time.Minute
	// These promised 158 holds in one round on two cores with much else to do; twenty
	// promised 165, and once so few that a second round was needed.
	chaosBuyers  = 32
	chaosWaiters = 6
)

// chaosSeed is the seed to play again, or a fresh one. It decides the strikes, not what
// they meet. Kept seeds are those of runs that found something:
//
//	14691019552885400970  after a rebuild the ledger had received 480 and the counters 460
func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	if given := os.Getenv("CHAOS_SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, "CHAOS_SEED")
		return seed
	}
	return rand.Uint64()
}

// A flash sale, walk-ins and a waitlist while worker, door, Temporal and Redis are killed,
// stopped, suspended, cut off and slowed at random. Afterwards the invariants hold, by
// records, ledger and workflows, and every client's log: each promise was kept, each
// payment is a sale or a refund that somebody owns.
func TestChaos(t *testing.T) {
	// One strike of each kind, and clocks that fit into a minute. The full form has four
	// of each, with the lease and the reopening that a shop has.
	rounds, lease, clocks := 1, 2*time.Second, []string{
		"HOLDFAST_GATE_REOPEN_WAIT", "2s", "HOLDFAST_HOLD_TTL", "8s",
		"HOLDFAST_HOLD_EXTENSION", "3s", "HOLDFAST_HOLD_GRACE", "2s", "HOLDFAST_OFFER_WINDOW", "8s",
	}
	if long() {
		rounds, lease, clocks = 4, 10*time.Second, []string{
			"HOLDFAST_GATE_REOPEN_WAIT", "0", "HOLDFAST_HOLD_TTL", "30s",
			"HOLDFAST_HOLD_EXTENSION", "10s", "HOLDFAST_HOLD_GRACE", "5s", "HOLDFAST_OFFER_WINDOW", "30s",
		}
	}
	seed := chaosSeed(t)
	t.Logf("CHAOS_SEED=%d plays this run again", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	a := newArena(t, lease, append(clocks, "HOLDFAST_SMS_SENT_GRACE", "1s")...)
	m := &mob{arena: a, customersLog: &customersLog{restocked: map[string]int64{}}, flash: "chaos-flash", line: "chaos-line"}
	t.Cleanup(func() { m.keep(t) })
	a.opened(t, m.flash, 400)
	a.opened(t, m.line, 0)
	m.restocked[m.flash] = 400

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var people sync.WaitGroup
	for who := range chaosBuyers {
		people.Go(func() { m.buyer(ctx, rand.New(rand.NewPCG(seed, 100+uint64(who))), who) })
	}
	for who := range chaosWaiters {
		people.Go(func() { m.waiter(ctx, rand.New(rand.NewPCG(seed, 200+uint64(who))), who) })
	}
	people.Go(func() { m.restocker(ctx, rand.New(rand.NewPCG(seed, 300))) })

	struck := map[string]int{}
	for done := 0; done < rounds || m.holds() < chaosHolds; done++ {
		a.storm(ctx, t, rnd, struck)
	}
	m.stop.Store(true)
	m.owned(ctx, t)
	m.deliver(ctx, m.line+"-last", m.line, 5*chaosWaiters) // also for those who missed a turn
	people.Wait()
	m.calm(ctx, t)
	m.account(ctx, t)
	processes, networks := a.strikes()
	kinds := slices.Concat(processes, networks)
	for _, s := range kinds {
		require.Positive(t, struck[s.kind], "a run without %s has shown nothing", s.kind)
	}
	require.GreaterOrEqual(t, len(m.promises), chaosHolds)
	figure(t, "chaos_strikes", float64(len(kinds)*struck["kill "+stack.Redis]), "strikes")
	figure(t, "chaos_holds", float64(len(m.promises)), "promised holds")
	figure(t, "chaos_joins", float64(len(m.joined)), "joins")
	a.judge(t, m.flash, m.line)
	for _, sku := range []string{m.flash, m.line} {
		m.silent(ctx, t, sku)
	}
}

// keep leaves what a run that found something has written, for whoever looks for the
// cause: ledgers and logs.
func (m *mob) keep(t *testing.T) {
	if !t.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "holdfast-chaos-")
	if err != nil {
		t.Log(err)
		return
	}
	t.Logf("ledgers and logs are kept in %s", dir)
	for _, sku := range []string{m.flash, m.line} {
		lines, err := m.check.Ledger(context.WithoutCancel(t.Context()), sku)
		if err != nil {
			t.Log(err)
		}
		var text strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&text, "%+v\n", l)
		}
		if err := os.WriteFile(filepath.Join(dir, sku+".ledger"), []byte(text.String()), 0o600); err != nil {
			t.Log(err)
		}
	}
	logs := map[string]string{"servers": filepath.Join(m.dir, "logs")}
	for name, p := range m.parts {
		logs[name] = filepath.Join(p.dir, "logs")
	}
	for name, from := range logs {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Log(err)
		}
	}
}

// owned judges both SKUs while people hold something, right after the storm: what had no
// owner by then, Reconcile has not mended yet. With the answer to a hold of each SKU the
// gate has opened again.
func (m *mob) owned(ctx context.Context, t *testing.T) {
	t.Helper()
	m.deliver(ctx, m.flash+"-last", m.flash, 5)
	var owned int
	for _, sku := range []string{m.flash, m.line} {
		_, ok := m.take(ctx, sku, "owned-"+sku)
		require.True(t, ok)
		found, live, err := m.check.CheckLive(ctx, sku)
		require.NoError(t, err)
		for _, v := range found {
			t.Error(v)
		}
		owned += live
	}
	require.Positive(t, owned, "nobody holds anything, so nothing was asked")
	figure(t, "chaos_owned", float64(owned), "live holds with an owner")
}

// calm waits until nothing is under way any more.
func (m *mob) calm(ctx context.Context, t *testing.T) {
	t.Helper()
	require.NoError(t, within(ctx, chaosCalm, "every hold has ended", func() error {
		for _, sku := range []string{m.flash, m.line} {
			facts, err := m.check.Gate(ctx, sku)
			if err != nil {
				return err
			}
			for id, h := range facts.Holds {
				if h.State == "offered" || h.State == "provisional" || h.State == "held" {
					return fmt.Errorf("%s of %s is %s", id, sku, h.State)
				}
			}
		}
		return nil
	}))
}

// account holds the clients' logs against what there is.
func (m *mob) account(ctx context.Context, t *testing.T) {
	t.Helper()
	require.Empty(t, m.faults)
	for _, sku := range []string{m.flash, m.line} {
		facts, err := m.check.Gate(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, m.restocked[sku], facts.Counters.Received, "units received of %s", sku)
		for _, v := range append(check.Mended(facts), check.JudgePromises(facts, m.promisesOf(facts))...) {
			t.Error(v)
		}
		for _, l := range facts.Ledger {
			if l.Verb == "repair" {
				t.Logf("mended at %s: %s %s %s, %s", sku, l.Kind, l.Ref, l.Other, l.Reason)
			}
		}
	}
	require.NoError(t, each(ctx, len(m.joined), 4, func(ctx context.Context, i int) error {
		entry, err := m.shop.ReadEntry(ctx, m.joined[i])
		if err == nil && (entry.State == "offered" || entry.State == "holding") {
			err = fmt.Errorf("%s is %s, and no hold is live", m.joined[i], entry.State)
		}
		return err
	}))
	require.NoError(t, each(ctx, len(m.promises), 4, func(ctx context.Context, i int) error { return m.kept(ctx, m.promises[i]) }))
}

// promisesOf are the promises whose holds are of a SKU. A hold that no SKU knows is found
// by kept.
func (m *mob) promisesOf(facts check.Facts) (of []check.Promise) {
	for _, p := range m.promises {
		if _, known := facts.Holds[p.holdID]; known {
			of = append(of, check.Promise{HoldID: p.holdID, Until: p.until, Released: p.released, Paid: len(p.paid) > 0})
		}
	}
	return of
}

// silent: nothing is left to mend, and no alarm is on.
func (m *mob) silent(ctx context.Context, t *testing.T, sku string) {
	t.Helper()
	require.NoError(t, until(ctx, "nothing is left to mend of "+sku, func() error {
		a, err := m.shop.Call(ctx, http.MethodPost, "/v1/stock/"+sku+"/reconcile", map[string]any{"dry_run": true})
		var report struct {
			Done        bool     `json:"done"`
			Found       int      `json:"found"`
			Differences []string `json:"differences"`
			Alarms      []string `json:"alarms"`
		}
		if err == nil {
			err = json.Unmarshal(a.Body, &report)
		}
		if err == nil && (!report.Done || report.Found > 0 || len(report.Alarms) > 0) {
			err = errors.New(a.String())
		}
		return err
	}))
	a, err := m.shop.Call(ctx, http.MethodGet, "/v1/stock/"+sku+"/tripwire", nil)
	require.NoError(t, err)
	require.Contains(t, string(a.Body), `"alarm":null`, "the tripwire of %s", sku)
}

// kept says how a promise was broken.
func (m *mob) kept(ctx context.Context, p *promise) error {
	hold, err := m.shop.ReadHold(ctx, p.holdID)
	if err != nil {
		return fmt.Errorf("a promised hold is not known any more: %w", err)
	}
	var errs []error
	if _, told := p.paid[hold.PaymentRef]; hold.State == "sold" && !told {
		errs = append(errs, fmt.Errorf("%s is sold by %q, of which nobody has told", p.holdID, hold.PaymentRef))
	}
	for ref, a := range p.paid {
		sold := hold.State == "sold" && hold.PaymentRef == ref
		if a.Status == http.StatusOK && !sold {
			errs = append(errs, fmt.Errorf("payment %s was answered as the sale of %s, which is %s by %q", ref, p.holdID, hold.State, hold.PaymentRef))
		}
		if !sold {
			errs = append(errs, m.refunded(ctx, p.holdID, ref, a))
		}
	}
	if hold.State == "refused" {
		errs = append(errs, fmt.Errorf("%s was promised and then refused", p.holdID))
	}
	return errors.Join(errs...)
}

// refunded says when money that made no sale has no owner who gives it back.
func (m *mob) refunded(ctx context.Context, holdID, ref string, said any) error {
	return until(ctx, "payment "+ref+" has an owner", func() error {
		a, err := m.shop.Confirm(ctx, holdID, ref) // a repeat answers what became of it
		if err != nil {
			return err
		}
		refund := a.Problem().Refund
		if a.Status != http.StatusConflict || refund == nil {
			return fmt.Errorf("payment %s of %s was answered %v, and now %s", ref, holdID, said, a)
		}
		if refund.State != "refund-pending" && refund.State != "refund-settled" {
			return fmt.Errorf("payment %s of %s is %s", ref, holdID, refund.State)
		}
		return nil
	})
}

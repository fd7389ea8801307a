package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
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
//	11342995219193420458  full: a worker that was told to stop had not ended after 20 s
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
	m.asPromised(ctx, t)
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

package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// shared is a client of the backend that the tests run on.
var shared goredis.UniversalClient

func TestMain(m *testing.M) {
	mutate()
	goredis.SetLogger(quietLog{}) // outages are on purpose here
	if err := openBackend(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = dialShared(nil)
	verbs := countVerbs(shared)
	go boundMemory()
	code := m.Run()
	verbs.report()
	closeBackend()
	os.Exit(code)
}

type quietLog struct{}

func (quietLog) Printf(context.Context, string, ...any) {}

// long asks for the large forms.
var long = os.Getenv("HOLDFAST_LONG") != ""

const testLease = 10 * time.Second

func testOptions() Options {
	return Options{
		Lease: testLease, RecordRetention: 30 * 24 * time.Hour, SaleRetention: 400 * 24 * time.Hour, OfferMaxAge: 48 * time.Hour, MissedKeep: 1,
		FenceOff: backendName() == standIn,
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// tester is a test, or one sequence of a property.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// fixture is one open SKU of its own. Every call fails the test on an error;
// after the test the parts must add up.
type fixture struct {
	t   tester
	g   *Gate
	sku string
	n   int
}

func newFixture(t *testing.T, rdb goredis.UniversalClient, units int64) *fixture {
	t.Helper()
	var tail [6]byte
	rand.Read(tail[:])
	opts := testOptions()
	opts.MissedKeep = 0 // a missed turn ends the entry; what parks one has tests of its own
	f := &fixture{t: t, g: New(rdb, opts), sku: fmt.Sprintf("T-%x", tail)}
	f.g.testClock = time.Now().UnixMicro()
	base, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, New: true})
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)
	if units > 0 {
		require.True(t, f.restock("first", units).Applied)
	}
	t.Cleanup(f.adds)
	return f
}

func open(t *testing.T, units int64) *fixture { return newFixture(t, shared, units) }

// adds asserts I1 and I2: counters agree with records, records with the ledger.
func (f *fixture) adds() {
	f.t.Helper()
	ctx := context.Background()
	in, err := f.g.Inspect(ctx, f.sku)
	require.NoError(f.t, err)
	require.Empty(f.t, in.Problems)
	c := in.Counters
	for _, part := range []int64{c.OnHand, c.Held, c.Offered, c.Sold} {
		require.GreaterOrEqual(f.t, part, int64(0))
	}
	lines, err := f.g.Ledger(ctx, f.sku, "", 100000)
	require.NoError(f.t, err)
	for i, l := range lines {
		require.Equal(f.t, lines[0].N+int64(i), l.N, "the ledger has no gap")
	}
	last := lines[len(lines)-1]
	require.Equal(f.t, [4]int64{c.OnHand, c.Held, c.Offered, c.Sold}, [4]int64{last.OnHand, last.Held, last.Offered, last.Sold})
}

// pass moves the fixture's clock, which otherwise stands still.
func (f *fixture) pass(d time.Duration) { f.g.testClock += d.Microseconds() }

func must[T any](f *fixture) func(T, error) T {
	return func(v T, err error) T {
		f.t.Helper()
		require.NoError(f.t, err)
		return v
	}
}

func (f *fixture) restock(event string, units int64) StockOutcome {
	f.t.Helper()
	return must[StockOutcome](f)(f.g.Stock(f.t.Context(), f.sku, contract.StockEvent{EventID: event, Kind: contract.StockRestock, Units: units}))
}

func (f *fixture) correct(event string, delta int64, shortfall bool) StockOutcome {
	f.t.Helper()
	return must[StockOutcome](f)(f.g.Stock(f.t.Context(), f.sku, contract.StockEvent{
		EventID: event, Kind: contract.StockCorrection, Delta: delta, AllowShortfall: shortfall,
	}))
}

// id builds a fresh id; its tail is a count, so that failures read well.
func (f *fixture) id(build func(string, []byte) string) string {
	f.n++
	return build(f.sku, fmt.Appendf(nil, "%011d", f.n))
}

func (f *fixture) reserve(id string, units int64) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Reserve(f.t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Units: units, Person: "p-" + id}))
}

func (f *fixture) press(id string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Reserve(f.t.Context(), ReserveRequest{SKU: f.sku, HoldID: id, Press: true, Actor: ActorShopper}))
}

func (f *fixture) adopt(id string, byWorkflow bool) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.AdoptHold(f.t.Context(), AdoptHoldRequest{
		SKU: f.sku, HoldID: id, HoldFor: 10 * time.Minute, ByWorkflow: byWorkflow, Units: 1, Person: "p-" + id,
	}))
}

// held takes one unit all the way to held.
func (f *fixture) held() string {
	f.t.Helper()
	id := f.id(contract.HoldID)
	require.Equal(f.t, OK, f.reserve(id, 1).Verdict)
	require.Equal(f.t, OK, f.adopt(id, false).Verdict)
	return id
}

func (f *fixture) confirm(id, ref string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Confirm(f.t.Context(), ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: ref}))
}

func (f *fixture) release(id, reason string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Release(f.t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: reason, Actor: "test"}))
}

// takeBack gives back a lease of the door's own.
func (f *fixture) takeBack(id string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Release(f.t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: contract.ReasonCompensation, Lease: true}))
}

func (f *fixture) lapse(id string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Lapse(f.t.Context(), LapseRequest{SKU: f.sku, HoldID: id}))
}

// lapseNotTold withdraws an offer that nobody was told of.
func (f *fixture) lapseNotTold(id string) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Lapse(f.t.Context(), LapseRequest{SKU: f.sku, HoldID: id, NotTold: true}))
}

func (f *fixture) joinAs(person string, units int64) JoinOutcome {
	f.t.Helper()
	return must[JoinOutcome](f)(f.g.Join(f.t.Context(), JoinRequest{
		SKU: f.sku, EntryID: f.id(contract.EntryID), Person: person, Units: units, Sealed: []byte("sealed\x00" + person),
	}))
}

// waits joins one person whose workflow has acknowledged.
func (f *fixture) waits(person string, units int64) string {
	f.t.Helper()
	out := f.joinAs(person, units)
	require.Equal(f.t, OK, out.Verdict)
	f.ack(out.Entry.ID)
	return out.Entry.ID
}

func (f *fixture) ack(entry string) EntryOutcome {
	f.t.Helper()
	return must[EntryOutcome](f)(f.g.AdoptEntry(f.t.Context(), f.sku, entry))
}

func (f *fixture) leave(entry string, state contract.EntryState) EntryOutcome {
	f.t.Helper()
	return must[EntryOutcome](f)(f.g.Leave(f.t.Context(), LeaveRequest{SKU: f.sku, EntryID: entry, State: state, Actor: ActorShopper}))
}

func (f *fixture) entry(id string) Entry {
	f.t.Helper()
	e, ok, err := f.g.ReadEntry(f.t.Context(), f.sku, id)
	require.NoError(f.t, err)
	require.True(f.t, ok)
	return e
}

func (f *fixture) hold(id string) Hold {
	f.t.Helper()
	h, ok, err := f.g.ReadHold(f.t.Context(), f.sku, id)
	require.NoError(f.t, err)
	require.True(f.t, ok)
	return h.Hold
}

func (f *fixture) counters() Counters {
	f.t.Helper()
	c, _, err := f.g.Snapshot(f.t.Context(), f.sku)
	require.NoError(f.t, err)
	return c
}

// parts are on_hand, held, offered, sold.
func (f *fixture) parts() [4]int64 {
	f.t.Helper()
	c := f.counters()
	return [4]int64{c.OnHand, c.Held, c.Offered, c.Sold}
}

func (f *fixture) told(id string, sent bool) HoldOutcome {
	f.t.Helper()
	return must[HoldOutcome](f)(f.g.Told(f.t.Context(), ToldRequest{
		SKU: f.sku, HoldID: id, Window: 15 * time.Minute, SentGrace: time.Minute, MaxAge: 48 * time.Hour, Sent: sent,
	}))
}

func (f *fixture) pause(paused bool) Base {
	f.t.Helper()
	return must[Base](f)(f.g.Settings(f.t.Context(), SettingsRequest{SKU: f.sku, Paused: &paused, Actor: "test"}))
}

func (f *fixture) drain() DrainOutcome {
	f.t.Helper()
	return must[DrainOutcome](f)(f.g.Drain(f.t.Context(), f.sku, 100))
}

// lines counts the ledger's lines.
func (f *fixture) lines() int {
	f.t.Helper()
	lines, err := f.g.Ledger(f.t.Context(), f.sku, "", 100000)
	require.NoError(f.t, err)
	return len(lines)
}

// Ledger reads at most limit lines after the stream id after.
func (g *Gate) Ledger(ctx context.Context, sku, after string, limit int64) ([]LedgerLine, error) {
	return g.LedgerLines(ctx, sku, LedgerQuery{After: after, Limit: limit})
}

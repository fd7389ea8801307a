package redis

import (
	"context"
	"net"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

// debuggable is a server that tells the digest of its whole data.
func debuggable(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return startServer(t, append([]string{"--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"}, args...)...)
}

func clientOf(t *testing.T, s *redistest.Server) *goredis.Client {
	t.Helper()
	rdb := s.Client()
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// closedToAll asserts that every verb is refused and that the data does not
// change by as much as a byte.
func closedToAll(t *testing.T, g *Gate, rdb *goredis.Client, sku string) *ClosedError {
	t.Helper()
	ctx := t.Context()
	digest := func() string {
		d, err := rdb.Do(ctx, "DEBUG", "DIGEST").Text()
		require.NoError(t, err)
		return d
	}
	hold, entry := contract.HoldID(sku, []byte("eleven bytes")), contract.EntryID(sku, []byte("eleven bytes"))
	before := digest()
	var shut *ClosedError
	for name, call := range map[string]func() error{
		"stock": func() error {
			_, err := g.Stock(ctx, sku, contract.StockEvent{EventID: "closed", Kind: contract.StockRestock, Units: 1})
			return err
		},
		"join": func() error {
			_, err := g.Join(ctx, JoinRequest{SKU: sku, EntryID: entry, Person: "p", Units: 1})
			return err
		},
		"leave": func() error {
			_, err := g.Leave(ctx, LeaveRequest{SKU: sku, EntryID: entry, State: contract.EntryLeft})
			return err
		},
		"reserve": func() error {
			_, err := g.Reserve(ctx, ReserveRequest{SKU: sku, HoldID: hold, Units: 1, Person: "p"})
			return err
		},
		"press": func() error {
			_, err := g.Reserve(ctx, ReserveRequest{SKU: sku, HoldID: hold, Press: true})
			return err
		},
		"adopt hold": func() error {
			_, err := g.AdoptHold(ctx, AdoptHoldRequest{SKU: sku, HoldID: hold, HoldFor: time.Minute, ByWorkflow: true, Units: 1, Person: "p"})
			return err
		},
		"adopt entry": func() error { _, err := g.AdoptEntry(ctx, sku, entry); return err },
		"adopt offer": func() error { _, err := g.AdoptOffer(ctx, sku, hold); return err },
		"told":        func() error { _, err := g.Told(ctx, ToldRequest{SKU: sku, HoldID: hold}); return err },
		"confirm": func() error {
			_, err := g.Confirm(ctx, ConfirmRequest{SKU: sku, HoldID: hold, PaymentRef: "pi", Retake: true})
			return err
		},
		"unconfirm": func() error { _, err := g.Unconfirm(ctx, sku, hold, "pi", "test"); return err },
		"release":   func() error { _, err := g.Release(ctx, ReleaseRequest{SKU: sku, HoldID: hold}); return err },
		"lapse":     func() error { _, err := g.Lapse(ctx, LapseRequest{SKU: sku, HoldID: hold}); return err },
		"refund":    func() error { _, err := g.Refund(ctx, sku, hold, "pi", "test"); return err },
		"snapshot":  func() error { _, _, err := g.Snapshot(ctx, sku); return err },
		"read hold": func() error { _, _, err := g.ReadHold(ctx, sku, hold); return err },
		"read entry": func() error {
			_, _, err := g.ReadEntry(ctx, sku, entry)
			return err
		},
		"why":   func() error { _, err := g.Why(ctx, sku, entry, 3); return err },
		"drain": func() error { _, err := g.Drain(ctx, sku, 10); return err },
		"settings": func() error {
			paused := true
			_, err := g.Settings(ctx, SettingsRequest{SKU: sku, Paused: &paused})
			return err
		},
	} {
		t.Log(name)
		shut = closedBy(t, call())
	}
	require.Equal(t, before, digest(), "a closed gate writes nothing")
	return shut
}

// reopens checks the SKU as Reconcile does and opens it.
func reopens(t *testing.T, g *Gate, sku string) {
	t.Helper()
	in, err := g.Inspect(t.Context(), sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems)
	base, err := g.Open(t.Context(), OpenRequest{SKU: sku, ReplID: in.ReplID})
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)
}

// replicate makes s follow master, and waits until it is in step.
func replicate(t *testing.T, s, master *goredis.Client, addr string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, s.ReplicaOf(t.Context(), host, port).Err())
	inStep(t, master)
}

// B97, B98: a promoted replica may lack the last writes; it is closed until it was checked.
func TestAPromotedReplicaAndAFailBackAreClosed(t *testing.T) {
	first := debuggable(t)
	second := debuggable(t)
	a, b := clientOf(t, first), clientOf(t, second)
	for _, rdb := range []*goredis.Client{a, b} {
		require.NoError(t, rdb.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	}
	replicate(t, b, a, first.Addr)
	f := newFixture(t, a, 2) // opened with the replica attached: a first replica changes the id
	f.held()
	inStep(t, a)

	promote(t, b)
	onB := New(b, testOptions())
	closedToAll(t, onB, b, f.sku)
	reopens(t, onB, f.sku)
	_, err := onB.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
	require.NoError(t, err)

	replicate(t, a, b, second.Addr)
	promote(t, a)
	f.g = New(a, testOptions())
	closedToAll(t, f.g, a, f.sku)
	reopens(t, f.g, f.sku)
	require.Equal(t, [4]int64{2, 2, 0, 0}, f.parts(), "what the second master did came along")
}

func promote(t *testing.T, rdb *goredis.Client) {
	t.Helper()
	require.NoError(t, rdb.ReplicaOf(t.Context(), "NO", "ONE").Err())
}

func TestFlushAllIsClosed(t *testing.T) {
	server := debuggable(t)
	rdb := clientOf(t, server)
	g := New(rdb, testOptions())
	base, err := g.Open(t.Context(), OpenRequest{SKU: "FLUSHED", New: true})
	require.NoError(t, err)
	require.Equal(t, OK, base.Verdict)
	require.NoError(t, rdb.FlushAll(t.Context()).Err())
	require.True(t, closedToAll(t, g, rdb, "FLUSHED").Missing)
	in, err := g.Inspect(t.Context(), "FLUSHED")
	require.NoError(t, err)
	require.True(t, in.Missing)
	_, err = g.Open(t.Context(), OpenRequest{SKU: "FLUSHED", ReplID: in.ReplID})
	require.True(t, closedBy(t, err).Missing, "nothing that was lost can be opened as it is")
}

func TestASecondRestartWhileOpeningStaysClosed(t *testing.T) {
	server := debuggable(t)
	rdb := clientOf(t, server)
	f := newFixture(t, rdb, 1)
	f.held()
	restart(t, server)
	in, err := f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	restart(t, server)
	base, err := f.g.Open(t.Context(), OpenRequest{SKU: f.sku, ReplID: in.ReplID})
	require.NoError(t, err)
	require.Equal(t, Moved, base.Verdict)
	closedToAll(t, f.g, rdb, f.sku)
	reopens(t, f.g, f.sku)
	require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
}

func restart(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Kill()
	require.NoError(t, server.Run())
}

// inStep waits until the one replica has everything.
func inStep(t *testing.T, master *goredis.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		acked, err := master.Wait(context.Background(), 1, time.Second).Result()
		return err == nil && acked == 1
	}, 30*time.Second, 50*time.Millisecond, "the replica is in step")
}

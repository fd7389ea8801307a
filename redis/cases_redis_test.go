package redis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/internal/redistest"
)

// B37: a rush of 600 people for 50 units, and Redis is killed twice in the middle
// of it. Who was told that they paid has a sale, there are 50 of them, nothing is
// left half done and everybody else keeps their place.
func TestRedisIsKilledInTheMiddleOfARush(t *testing.T) {
	server, err := redistest.Start("--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { rdb.Close() })
	f := newFixture(t, rdb, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var opening sync.Mutex
	reopen := func() {
		opening.Lock()
		defer opening.Unlock()
		var shut *ClosedError
		if _, _, err := f.g.Snapshot(ctx, f.sku); !errors.As(err, &shut) {
			return // somebody else has opened it
		}
		in, err := f.g.Inspect(ctx, f.sku)
		if len(in.Problems) > 0 {
			t.Errorf("after a restart: %s", in.Problems)
		}
		if err == nil {
			_, err = f.g.Open(ctx, OpenRequest{SKU: f.sku, ReplID: in.ReplID})
		}
		if err != nil && !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	}
	// asked repeats a call with the same ids until it is answered.
	asked := func(call func() error) {
		for ctx.Err() == nil {
			err := call()
			var shut *ClosedError
			switch {
			case err == nil:
				return
			case errors.As(err, &shut):
				reopen()
			case errors.Is(err, ErrUnavailable):
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			default:
				t.Error(err)
				return
			}
		}
		t.Error("never answered")
	}
	var steps, restarts atomic.Int64
	step := func(at int64) {
		if steps.Add(1) != at {
			return
		}
		server.Kill()
		if err := server.Run(); err != nil {
			t.Error(err)
		}
		restarts.Add(1)
	}

	const people, units, workers = 600, 50, 24
	entries := make([]string, people)
	for i := range entries {
		entries[i] = f.id(contract.EntryID)
	}
	// each gives every person to one of the workers.
	each := func(do func(person int)) {
		var next atomic.Int64
		atOnce(workers, func(int) {
			for i := next.Add(1) - 1; i < people; i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	each(func(i int) {
		asked(func() error {
			_, err := f.g.Join(ctx, JoinRequest{SKU: f.sku, EntryID: entries[i], Person: fmt.Sprint("p", i), Units: 1, Sealed: []byte("sealed")})
			return err
		})
		step(people / 2)
		asked(func() error { _, err := f.g.AdoptEntry(ctx, f.sku, entries[i]); return err })
	})
	asked(func() error {
		_, err := f.g.Stock(ctx, f.sku, contract.StockEvent{EventID: "rush", Kind: contract.StockRestock, Units: units})
		return err
	})
	for f.counters().Offered < units {
		f.drain()
	}
	steps.Store(0)
	var paid atomic.Int64
	each(func(i int) {
		var e Entry
		asked(func() (err error) { e, _, err = f.g.ReadEntry(ctx, f.sku, entries[i]); return err })
		if e.State != contract.EntryOffered {
			return
		}
		asked(func() error {
			_, err := f.g.Reserve(ctx, ReserveRequest{SKU: f.sku, HoldID: e.HoldID, Press: true})
			return err
		})
		asked(func() error {
			_, err := f.g.AdoptHold(ctx, AdoptHoldRequest{SKU: f.sku, HoldID: e.HoldID, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: e.Person})
			return err
		})
		step(units / 2)
		var out HoldOutcome
		asked(func() (err error) {
			out, err = f.g.Confirm(ctx, ConfirmRequest{SKU: f.sku, HoldID: e.HoldID, PaymentRef: "pi" + e.HoldID})
			return err
		})
		if out.Verdict != OK || out.Hold.State != contract.HoldSold {
			t.Errorf("person %d: %s, %s", i, out.Verdict, out.Hold.State)
		}
		paid.Add(1)
	})
	require.Equal(t, int64(2), restarts.Load())
	require.Equal(t, int64(units), paid.Load())
	require.Equal(t, [4]int64{0, 0, 0, units}, f.parts())
	require.Equal(t, int64(people-units), f.counters().Waiting)
	in, err := f.g.Inspect(ctx, f.sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems)
	require.Equal(t, int64(units), in.Counters.Sold)
	require.Len(t, in.Owned, people-units, "no hold is left, nobody has lost their place")
}

var calls = regexp.MustCompile(`redis\.call\(\s*'([A-Z]+)'(?:,\s*([^,)]+))?`)

// B91: every key that a script touches is one of the fixed keys of one SKU, all
// declared and all with its tag, so that a Cluster can run it; none is built
// inside. Where two keys change places they are called from and to.
//
// B90: a script reads the clock once, and no key of it ends by itself meanwhile.
func TestScriptsTouchTheDeclaredKeysOnly(t *testing.T) {
	for _, k := range keysOf("A-1") {
		require.True(t, strings.HasPrefix(k, "hf:{A-1}:"), k)
	}
	files, err := fs.Glob(luaFiles, "*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found, clocks := 0, 0
	for _, file := range files {
		text, err := luaFiles.ReadFile(file)
		require.NoError(t, err)
		for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
			found++
			switch call[1] {
			case "TIME":
				clocks++
			case "INFO":
			case "EXISTS":
				require.Regexp(t, `^(K_[A-Z]+|unpack\(KEYS)$`, call[2], "%s: %s", file, call[0])
			default:
				require.Regexp(t, `^(K_[A-Z]+|from|to)$`, call[2], "%s: %s", file, call[0])
			}
		}
		require.Equal(t, strings.Count(string(text), "redis.call("), len(calls.FindAllString(string(text), -1)), file)
		if file != "prelude.lua" && file != "records.lua" {
			require.NotContains(t, string(text), "KEYS[", file)
		}
	}
	require.Greater(t, found, 50)
	require.Equal(t, 1, clocks, "one clock, read in one place")
	prelude, err := luaFiles.ReadFile("prelude.lua")
	require.NoError(t, err)
	records, err := luaFiles.ReadFile("records.lua")
	require.NoError(t, err)
	for i := range keyNames {
		require.Contains(t, string(prelude)+string(records), fmt.Sprintf("KEYS[%d]", i+1))
	}
}

// B98: Redis comes back with a state of some time ago. Nothing is served from it,
// and what is missing is named to the id, so that no unit is sold twice.
func TestAServerRolledBackServesNothing(t *testing.T) {
	server, err := redistest.Start("--appendonly", "no")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { rdb.Close() })
	f := newFixture(t, rdb, 30)
	var all []string
	for range 10 {
		all = append(all, f.held())
	}
	require.NoError(t, rdb.Save(t.Context()).Err())
	for range 20 {
		all = append(all, f.held())
	}
	sold := all[15]
	require.Equal(t, OK, f.confirm(sold, "pi").Verdict)
	server.Kill()
	require.NoError(t, server.Run())

	lines := f.lines()
	for range 3 {
		_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: f.id(contract.HoldID), Units: 1, Person: "p"})
		closedBy(t, err)
		_, err = f.g.Confirm(t.Context(), ConfirmRequest{SKU: f.sku, HoldID: all[0], PaymentRef: "pi"})
		closedBy(t, err)
		_, _, err = f.g.Snapshot(t.Context(), f.sku)
		require.False(t, closedBy(t, err).Missing)
	}
	require.Equal(t, lines, f.lines())
	in, err := f.g.Inspect(t.Context(), f.sku)
	require.NoError(t, err)
	require.Empty(t, in.Problems, "it is whole, and old")
	require.ElementsMatch(t, all[:10], in.Owned)
	missing, err := f.g.InspectRecords(t.Context(), f.sku, all)
	require.NoError(t, err)
	require.Equal(t, all[10:], missing)
}

// B100: nothing is ever given back because a key vanished. No key of a SKU
// expires by itself; a held hold and an offer stand, however long after their
// deadline, until their own ending comes.
func TestNothingEndsByItself(t *testing.T) {
	f := open(t, 3)
	id := f.held()
	dead := f.id(contract.HoldID)
	f.reserve(dead, 1)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	offer := f.offered(entry)
	f.told(offer, true)
	for range 24 {
		f.pass(30 * 24 * time.Hour)
		f.drain()
		f.reserve(f.id(contract.HoldID), 9)
		for _, k := range keysOf(f.sku) {
			left, err := shared.PTTL(t.Context(), k).Result()
			require.NoError(t, err)
			require.Negative(t, left, "%s has a time to live", k)
		}
	}
	require.Equal(t, contract.HoldHeld, f.hold(id).State)
	require.Equal(t, contract.HoldOffered, f.hold(offer).State)
	require.Equal(t, contract.EntryOffered, f.entry(entry).State)
	require.Equal(t, [4]int64{4, 1, 1, 0}, f.parts(), "only the lease, which was never promised, has ended")
	require.Equal(t, OK, f.release(id, contract.ReasonExpired).Verdict)
	require.Equal(t, OK, f.lapse(offer).Verdict)
	require.Equal(t, [4]int64{4, 0, 0, 0}, f.parts())
}

package redis

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// Run one with, for example,
//
//	go test ./redis -run - -bench 'Verbs/waiting=100000/press' -benchtime 2000x
//
// HOLDFAST_LONG=1 adds the forms with a million waiting entries.

// measured is one verb in one state of its record: prepare makes n records to
// run it on.
type measured struct {
	name    string
	prepare func(f *fixture, n int) []string
	run     func(f *fixture, id string) Verdict
	want    Verdict
}

var eventNo atomic.Int64

func nextEvent() string { return fmt.Sprint("bench", eventNo.Add(1)) }

// none is for verbs that make their own record.
func none(_ *fixture, n int) []string { return make([]string, n) }

// drainSome drains as much in one call as the product does.
func (f *fixture) drainSome() {
	f.t.Helper()
	must[DrainOutcome](f)(f.g.Drain(context.Background(), f.sku, 20))
}

// offers makes n offers; the line is as long after it as before.
func offers(f *fixture, n int) []string {
	f.t.Helper()
	ctx := context.Background()
	f.fillLine(n)
	from, err := f.g.rdb.XRevRangeN(ctx, key(f.sku, "ledger"), "+", "-", 1).Result()
	require.NoError(f.t, err)
	f.restock(nextEvent(), int64(n))
	var ids []string
	for after := from[0].ID; len(ids) < n; {
		f.drainSome()
		lines, err := f.g.Ledger(ctx, f.sku, after, 10_000)
		require.NoError(f.t, err)
		for _, l := range lines {
			if after = l.ID; l.Verb == "offer" {
				ids = append(ids, l.RefID)
			}
		}
	}
	return ids[:n]
}

func then(prepare func(*fixture, int) []string, step func(f *fixture, id string) Verdict) func(*fixture, int) []string {
	return func(f *fixture, n int) []string {
		ids := prepare(f, n)
		for _, id := range ids {
			require.Equal(f.t, OK, step(f, id))
		}
		return ids
	}
}

func press(f *fixture, id string) Verdict { return f.press(id).Verdict }
func adopt(f *fixture, id string) Verdict { return f.adopt(id, false).Verdict }
func pay(f *fixture, id string) Verdict   { return f.confirm(id, "pi_1").Verdict }
func ack(f *fixture, id string) Verdict   { return f.ack(id).Verdict }
func give(f *fixture, id string) Verdict  { return f.release(id, contract.ReasonShop).Verdict }

// due tells of an offer with hardly a window, so that it may lapse.
func due(f *fixture, id string) Verdict {
	return must[HoldOutcome](f)(f.g.Told(f.t.Context(), ToldRequest{SKU: f.sku, HoldID: id, Window: time.Millisecond, MaxAge: time.Hour, Sent: true})).Verdict
}

func joins(f *fixture, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = f.joinAs(freshPerson(), 1).Entry.ID
	}
	return ids
}

func takes(f *fixture, n int) []string {
	f.restock(nextEvent(), int64(n))
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fresh(contract.HoldID, f.sku)
		require.Equal(f.t, OK, f.reserve(ids[i], 1).Verdict)
	}
	return ids
}

var (
	pressed  = then(offers, press)
	heldByUs = then(pressed, adopt)
	sold     = then(heldByUs, pay)
)

// overALine are the verbs while people wait.
var overALine = []measured{
	{"refusal", none, func(f *fixture, _ string) Verdict {
		return must[HoldOutcome](f)(f.g.Reserve(f.t.Context(), ReserveRequest{SKU: f.sku, HoldID: refused, Units: 1, Person: refused[4:26]})).Verdict
	}, ReservedForLine},
	{"restock", none, func(f *fixture, _ string) Verdict { return f.restock(nextEvent(), 1).Verdict }, OK},
	{"join", none, func(f *fixture, _ string) Verdict {
		return must[JoinOutcome](f)(f.g.Join(f.t.Context(), JoinRequest{
			SKU: f.sku, EntryID: fresh(contract.EntryID, f.sku), Person: freshPerson(), Units: 1, Sealed: make([]byte, 120),
		})).Verdict
	}, OK},
	{"adopt_entry", joins, ack, OK},
	{"leave", then(joins, ack), func(f *fixture, id string) Verdict { return f.leave(id, contract.EntryLeft).Verdict }, OK},
	{"adopt_offer", offers, func(f *fixture, id string) Verdict {
		return must[HoldOutcome](f)(f.g.AdoptOffer(f.t.Context(), f.sku, id)).Verdict
	}, OK},
	{"told", offers, func(f *fixture, id string) Verdict { return f.told(id, false).Verdict }, OK},
	{"press", offers, press, OK},
	{"adopt_hold", pressed, adopt, OK},
	{"confirm", heldByUs, pay, OK},
	{"unconfirm", sold, func(f *fixture, id string) Verdict {
		return must[HoldOutcome](f)(f.g.Unconfirm(f.t.Context(), f.sku, id, "pi_1", "bench")).Verdict
	}, OK},
	{"release", heldByUs, give, OK},
	{"lapse", then(offers, due), func(f *fixture, id string) Verdict {
		for {
			if v := f.lapse(id).Verdict; v != Early {
				return v
			}
		}
	}, OK},
	{"refund", sold, func(f *fixture, id string) Verdict {
		return must[HoldOutcome](f)(f.g.Refund(f.t.Context(), f.sku, id, "pi_2", "bench")).Verdict
	}, OK},
	{"read", joins, func(f *fixture, id string) Verdict {
		_, ok, err := f.g.ReadEntry(f.t.Context(), f.sku, id)
		require.True(f.t, ok && err == nil)
		return OK
	}, OK},
	{"snapshot", none, func(f *fixture, _ string) Verdict { f.counters(); return OK }, OK},
	{"settings", none, func(f *fixture, _ string) Verdict { return f.pause(false).Verdict }, OK},
	{"drain", none, func(f *fixture, _ string) Verdict {
		return must[DrainOutcome](f)(f.g.Drain(f.t.Context(), f.sku, 1)).Verdict
	}, OK},
}

const refused = "hold_aaaaaaaaaaaaaaaaaaaaaaaaaa"

// overHolds are the verbs of an ordinary checkout, with nobody in line.
var overHolds = []measured{
	{"win", func(f *fixture, n int) []string {
		f.restock(nextEvent(), int64(n))
		return none(f, n)
	}, func(f *fixture, _ string) Verdict {
		return f.reserve(fresh(contract.HoldID, f.sku), 1).Verdict
	}, OK},
	{"adopt_hold", takes, adopt, OK},
	{"confirm", then(takes, adopt), pay, OK},
	{"release", then(takes, adopt), give, OK},
}

func BenchmarkOneLine(b *testing.B) {
	one := oneLine(b, ownServer(b))
	for b.Loop() {
		one()
	}
}

// oneLine is the yardstick: the least that a script which writes can be.
func oneLine(tb testing.TB, rdb goredis.UniversalClient) func() {
	script := goredis.NewScript("return redis.call('INCR', KEYS[1])")
	require.NoError(tb, script.Load(tb.Context(), rdb).Err())
	return func() { require.NoError(tb, script.EvalSha(tb.Context(), rdb, []string{"{bench}:n"}).Err()) }
}

func BenchmarkVerbs(b *testing.B) {
	rdb := ownServer(b)
	sizes := []int{1_000, 100_000}
	if long {
		sizes = append(sizes, 1_000_000)
	}
	for _, waiting := range sizes {
		bench(b, fmt.Sprintf("waiting=%d", waiting), overALine, func(b *testing.B) *fixture {
			f := openSKU(b, rdb, fmt.Sprint("LINE-", waiting), 0)
			f.fillLine(waiting)
			return f
		})
	}
	for _, live := range []int{100, 1_000, 10_000, 100_000} {
		bench(b, fmt.Sprintf("holds=%d", live), overHolds, func(b *testing.B) *fixture {
			f := openSKU(b, rdb, fmt.Sprint("HOLDS-", live), 0)
			f.fillHolds(live, true)
			return f
		})
	}
}

// bench runs verbs over one population, which is made for the first that is
// asked for.
func bench(b *testing.B, name string, verbs []measured, populate func(b *testing.B) *fixture) {
	b.Run(name, func(b *testing.B) {
		f := populate(b)
		for _, v := range verbs {
			b.Run(v.name, func(b *testing.B) {
				f := &fixture{t: b, g: f.g, sku: f.sku}
				ids := v.prepare(f, b.N)
				took := make([]time.Duration, b.N)
				b.ResetTimer()
				for i, id := range ids {
					began := time.Now()
					verdict := v.run(f, id)
					took[i] = time.Since(began)
					if verdict != v.want {
						b.Fatalf("%s answered %s", v.name, verdict)
					}
				}
				b.StopTimer()
				b.ReportMetric(float64(median(took).Microseconds()), "µs-median")
			})
		}
	})
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

package limits_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/twiliostub"
	"holdfast/limits"
	"holdfast/redis"
	"holdfast/sms"
)

var server *redistest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = redistest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

func client(t *testing.T) *goredis.Client {
	t.Helper()
	rdb := server.Client()
	require.NoError(t, rdb.FlushAll(t.Context()).Err())
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	return rdb
}

func TestAllow(t *testing.T) {
	l := limits.New(client(t))
	for range 3 {
		wait, err := l.Allow(t.Context(), "phone:a", 3, time.Hour)
		require.NoError(t, err)
		require.Zero(t, wait)
	}
	wait, err := l.Allow(t.Context(), "phone:a", 3, time.Hour)
	require.NoError(t, err)
	require.InDelta(t, 20*time.Minute, wait, float64(time.Minute), "one comes back in a third of an hour")
	again, err := l.Allow(t.Context(), "phone:a", 3, time.Hour)
	require.NoError(t, err)
	require.LessOrEqual(t, again, wait, "a refusal counts nothing")
	wait, err = l.Allow(t.Context(), "phone:b", 3, time.Hour)
	require.NoError(t, err)
	require.Zero(t, wait, "each key for itself")

	wait, err = l.Allow(t.Context(), "quick", 1, 50*time.Millisecond)
	require.NoError(t, err)
	require.Zero(t, wait)
	require.Eventually(t, func() bool {
		wait, err := l.Allow(t.Context(), "quick", 1, 50*time.Millisecond)
		return err == nil && wait == 0
	}, 5*time.Second, 5*time.Millisecond, "what is used up comes back")
}

func TestSpendCountsADay(t *testing.T) {
	rdb := client(t)
	l := limits.New(rdb)
	for _, c := range []struct{ n, want int }{{2, 2}, {1, 3}, {-1, 2}, {2, 4}} {
		spent, err := l.Spend(t.Context(), c.n)
		require.NoError(t, err)
		require.Equal(t, int64(c.want), spent)
	}
	ttl, err := rdb.TTL(t.Context(), "hf:texts:"+time.Now().UTC().Format(time.DateOnly)).Result()
	require.NoError(t, err)
	require.Greater(t, ttl, 24*time.Hour, "no day is forgotten before it is over")
}

// Development without Redis runs on a stand-in.
func TestAStandInOfRedisWillDo(t *testing.T) {
	rdb := goredis.NewClient(&goredis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rdb.Close()
	l := limits.New(rdb)
	wait, err := l.Take(t.Context(), 2, 1)
	require.NoError(t, err)
	require.Zero(t, wait)
	wait, err = l.Take(t.Context(), 1, 1)
	require.NoError(t, err)
	require.InDelta(t, time.Second, wait, float64(200*time.Millisecond))
	spent, err := l.Spend(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, int64(2), spent)
}

func TestARedisThatIsAwayIsNoRefusal(t *testing.T) {
	rdb := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer rdb.Close()
	l := limits.New(rdb)
	_, err := l.Allow(t.Context(), "a", 1, time.Hour)
	require.ErrorIs(t, err, redis.ErrUnavailable)
	_, err = l.Take(t.Context(), 1, 1)
	require.ErrorIs(t, err, redis.ErrUnavailable)
	_, err = l.Spend(t.Context(), 1)
	require.ErrorIs(t, err, redis.ErrUnavailable)
}

const account, token = "AC00000000000000000000000000000001", "token1"

// limited is a worker's sender: its own connections, the same Redis and Twilio.
func limited(t *testing.T, stub *twiliostub.Server, perSecond float64, aDay int64, log *slog.Logger) *sms.Limited {
	t.Helper()
	rdb := server.Client()
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	sender, err := sms.NewTwilio(sms.TwilioAccount{AccountSID: account, AuthToken: token, From: "+12025550100", BaseURL: stub.URL})
	require.NoError(t, err)
	return &sms.Limited{Sender: sender, Meter: limits.New(rdb), PerSecond: perSecond, ADay: aDay, Log: log}
}

func standIn(t *testing.T) *twiliostub.Server {
	t.Helper()
	stub, err := twiliostub.Start(twiliostub.Options{AccountSID: account, AuthToken: token})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stub.Close()) })
	return stub
}

func text(segments int) sms.Text {
	return sms.Text{To: "+12025550101", Body: strings.Repeat("a", map[int]int{1: 100, 2: 200}[segments])}
}

// The rate is in segments and of all workers together, as Twilio's side sees it.
func TestRateAtTheStandIn(t *testing.T) {
	const perSecond, texts, burst = 40.0, 30, 2
	client(t)
	stub := standIn(t)
	var senders sync.WaitGroup
	began := time.Now()
	for range 2 {
		worker := limited(t, stub, perSecond, 0, nil)
		for i := range 5 {
			senders.Go(func() {
				for j := range texts / 10 {
					if _, err := worker.Send(context.WithoutCancel(t.Context()), text(1+(i+j)%2)); err != nil {
						t.Errorf("text not sent: %v", err)
					}
				}
			})
		}
	}
	senders.Wait()
	requests := stub.Requests()
	require.Len(t, requests, texts)
	total := 0
	for _, r := range requests {
		total += sms.Segments(r.Form.Get("Body"))
	}
	require.Greater(t, total, texts, "some cost two")
	took := requests[texts-1].At.Sub(began)
	require.GreaterOrEqual(t, took.Seconds(), float64(total-burst)/perSecond, "%d segments", total)
	// No more than that in any part of it, but for what the way there delays.
	const delay = 250 * time.Millisecond
	for i := range requests {
		sum := 0
		for j := i; j < len(requests); j++ {
			sum += sms.Segments(requests[j].Form.Get("Body"))
			span := requests[j].At.Sub(requests[i].At) + delay
			require.LessOrEqual(t, float64(sum-burst), perSecond*span.Seconds(), "%d segments in %s", sum, span-delay)
		}
	}
	t.Logf("%d texts of %d segments in %s: %.1f a second, %v allowed", texts, total, took.Round(time.Millisecond), float64(total)/took.Seconds(), perSecond)
}

func TestATurnFarAwayIsTriedAgain(t *testing.T) {
	client(t)
	stub := standIn(t)
	worker := limited(t, stub, 0.01, 0, nil)
	_, err := worker.Send(t.Context(), text(2))
	require.NoError(t, err)
	_, err = worker.Send(t.Context(), text(1))
	var refusal *sms.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, sms.Later, refusal.Class)
	require.InDelta(t, 100*time.Second, refusal.RetryAfter, float64(5*time.Second))
	require.Len(t, stub.Requests(), 1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := limited(t, stub, 0.2, 0, nil)
	_, err = slow.Send(ctx, text(1))
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, sms.Later, refusal.Class)
}

func TestTheBudgetStopsAllTexts(t *testing.T) {
	client(t)
	stub := standIn(t)
	var log strings.Builder
	worker := limited(t, stub, 10_000, 10, slog.New(slog.NewTextHandler(&log, nil)))
	send := func(segments int) *sms.Error {
		_, err := worker.Send(t.Context(), text(segments))
		if err == nil {
			return nil
		}
		var refusal *sms.Error
		require.ErrorAs(t, err, &refusal)
		return refusal
	}
	for range 3 {
		require.Nil(t, send(2))
	}
	require.Nil(t, send(1)) // 7
	require.NotContains(t, log.String(), "ERROR")
	require.Nil(t, send(2)) // 9
	require.Equal(t, 1, strings.Count(log.String(), "most of today's texts are sent"), log.String())
	require.Equal(t, sms.StopAll, send(2).Class)
	require.Nil(t, send(1), "10: what did not fit was not spent")
	require.Equal(t, sms.StopAll, send(1).Class)
	require.ErrorContains(t, send(1), "sms.segments_a_day")
	require.Equal(t, 1, strings.Count(log.String(), "most of today's texts are sent"), "once a day")
	require.Len(t, stub.Messages(), 6)

	other := limited(t, stub, 10_000, 10, slog.New(slog.DiscardHandler))
	_, err := other.Send(t.Context(), text(1))
	require.Error(t, err, "of all workers together")
}

func TestWhatTwilioDidNotTakeIsNotSpent(t *testing.T) {
	client(t)
	stub := standIn(t)
	worker := limited(t, stub, 10_000, 4, slog.New(slog.DiscardHandler))
	for range 5 {
		stub.Next(twiliostub.Fault{Status: 400, Code: 21211})
		_, err := worker.Send(t.Context(), text(2))
		require.ErrorContains(t, err, "21211")
	}
	for range 2 { // these may have been sent
		stub.Next(twiliostub.Fault{Kept: true, Drop: true})
		_, err := worker.Send(t.Context(), text(2))
		require.ErrorContains(t, err, "later")
	}
	_, err := worker.Send(t.Context(), text(1))
	require.ErrorContains(t, err, "stop-all")
}

package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// supervisorDir makes this test binary a supervisor that only waits to be
// killed; the value is the state folder.
const supervisorDir = "STACK_TEST_SUPERVISOR_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisorDir); dir != "" {
		s, err := stack.Start(context.Background(), onlyRedis(dir))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("addr", s.RedisAddr())
		select {}
	}
	os.Exit(m.Run())
}

// onlyRedis is the smallest stack with a real child.
func onlyRedis(dir string) stack.Options {
	return stack.Options{
		Dir: dir, External: stack.External{Temporal: "127.0.0.1:1"}, NoWorker: true, NoDoor: true,
		AppendFsync: "always",
	}
}

func start(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func redisOf(t *testing.T, s *stack.Stack) *goredis.Client {
	rdb := goredis.NewClient(&goredis.Options{Addr: s.RedisAddr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// spoken collects what a stack writes.
type spoken struct {
	mu    sync.Mutex
	lines []string
}

func (s *spoken) add(child, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, child+": "+line)
}

func (s *spoken) has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if strings.Contains(l, part) {
			return true
		}
	}
	return false
}

func TestAChildThatDiesIsReportedAndStartedAgain(t *testing.T) {
	var out spoken
	o := onlyRedis(t.TempDir())
	o.Supervise, o.Output = true, out.add
	s := start(t, o)
	rdb := redisOf(t, s)
	require.NoError(t, rdb.Set(t.Context(), "kept", "yes", 0).Err())
	first := s.Child(stack.Redis).PID()

	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))

	require.Eventually(t, func() bool { return out.has("dev: redis is back") }, 20*time.Second, 10*time.Millisecond)
	require.True(t, out.has("dev: redis died (signal: killed); it starts again in 250ms"))
	require.NotEqual(t, first, s.Child(stack.Redis).PID())
	require.Equal(t, "yes", rdb.Get(t.Context(), "kept").Val(), "the state is that of before")
}

func TestAChildThatDiesStaysDownWithoutSupervision(t *testing.T) {
	s := start(t, onlyRedis(t.TempDir()))
	c := s.Child(stack.Redis)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	require.Eventually(t, func() bool { return c.PID() == 0 }, 10*time.Second, 5*time.Millisecond)
	require.ErrorContains(t, c.Ready(t.Context()), "redis is down: signal: killed")
	require.NoError(t, c.Start(t.Context()))
}

func TestAChildThatWasKilledOnPurposeStaysDown(t *testing.T) {
	o := onlyRedis(t.TempDir())
	o.Supervise = true
	s := start(t, o)
	c, addr := s.Child(stack.Redis), s.RedisAddr()
	for _, end := range []func(){c.Kill, func() { require.NoError(t, c.Stop()) }, s.KillAll} {
		end()
		require.Zero(t, c.PID())
		require.Never(t, func() bool { return c.PID() != 0 }, time.Second, 50*time.Millisecond)
		require.NoError(t, c.Start(t.Context()))
		require.NotZero(t, c.PID())
		require.Equal(t, addr, s.RedisAddr(), "it keeps its address")
		require.NoError(t, redisOf(t, s).Ping(t.Context()).Err())
	}
}

func TestASuspendedChildAnswersNothingAndCanStillBeStopped(t *testing.T) {
	s := start(t, onlyRedis(t.TempDir()))
	c, rdb := s.Child(stack.Redis), redisOf(t, s)
	require.NoError(t, c.Suspend())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.Error(t, rdb.Ping(ctx).Err())
	require.NoError(t, c.Resume())
	require.NoError(t, rdb.Ping(t.Context()).Err())
	require.NoError(t, c.Suspend())
	require.NoError(t, c.Stop())
	require.Error(t, c.Suspend())
}

func TestAStackStartedAgainFindsItsState(t *testing.T) {
	dir := t.TempDir()
	s := start(t, onlyRedis(dir))
	require.NoError(t, redisOf(t, s).Set(t.Context(), "kept", "yes", 0).Err())
	s.KillAll()
	require.NoError(t, s.Close())

	again := start(t, onlyRedis(dir))
	require.Equal(t, "yes", redisOf(t, again).Get(t.Context(), "kept").Val())
}

func TestAKilledSupervisorLeavesNothingBehind(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), supervisorDir+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var addr string
	_, err = fmt.Fscanf(out, "addr %s\n", &addr)
	require.NoError(t, err)
	rdb := goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	require.NoError(t, rdb.Ping(t.Context()).Err())

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	require.Eventually(t, func() bool { return errors.Is(rdb.Ping(t.Context()).Err(), syscall.ECONNREFUSED) },
		10*time.Second, 10*time.Millisecond)
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	o := onlyRedis(t.TempDir())
	o.RedisAddr = l.Addr().String()

	_, err = stack.Start(t.Context(), o)

	var taken *stack.PortTakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, stack.PortTakenError{Child: stack.Redis, Addr: l.Addr().String()}, *taken)
}

func TestAChildThatCannotStartIsAnErrorAndStopsTheRest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := l.Addr().String()
	require.NoError(t, l.Close())
	o := onlyRedis(t.TempDir())
	o.RedisAddr, o.NoDoor, o.Supervise = free, false, true
	o.Holdfast = script(t, "echo config: shop.name is empty >&2; exit 3")

	_, err = stack.Start(t.Context(), o)

	require.ErrorContains(t, err, "door is down: exit status 3")
	require.ErrorContains(t, err, "config: shop.name is empty")
	_, err = net.Dial("tcp", free)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "redis was stopped")
}

func TestWorkerAndDoorGetTheOptionsAndNothingOfTheShell(t *testing.T) {
	t.Setenv("HOLDFAST_HOLD_TTL", "1h")
	t.Setenv("TEMPORAL_ADDRESS", "elsewhere:7233")
	dir := t.TempDir()
	o := onlyRedis(dir)
	o.External, o.RedisStandIn, o.NoDoor = stack.External{Temporal: "127.0.0.1:1"}, true, false
	o.Env = map[string]string{"HOLDFAST_SHOP_NAME": "Other"}
	o.Holdfast = script(t, "env; exit 3")

	_, err := stack.Start(t.Context(), o)

	require.ErrorContains(t, err, "door is down")
	env, err := os.ReadFile(dir + "/logs/door.log")
	require.NoError(t, err)
	require.Contains(t, string(env), "HOLDFAST_SHOP_NAME=Other\n")
	require.Contains(t, string(env), "HOLDFAST_MODE=dev\n")
	require.Contains(t, string(env), "HOLDFAST_GATE_FENCE=off\n")
	require.NotContains(t, string(env), "HOLDFAST_HOLD_TTL")
	require.NotContains(t, string(env), "TEMPORAL_ADDRESS=elsewhere")
}

func TestTheStandInForRedisAnswers(t *testing.T) {
	o := onlyRedis(t.TempDir())
	o.RedisStandIn = true
	s := start(t, o)
	require.Nil(t, s.Child(stack.Redis))
	require.NoError(t, redisOf(t, s).Ping(t.Context()).Err())
}

// script writes an executable that stands for a binary.
func script(t *testing.T, body string) string {
	path := t.TempDir() + "/binary"
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

package redis

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// checked answers what CheckServer says of a server started with args, and what
// it warns of.
func checked(t *testing.T, args ...string) (warnings string, err error) {
	t.Helper()
	server := startServer(t, args...)
	return checkedServer(t, server)
}

func startServer(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	server, err := redistest.Start(args...)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

func checkedServer(t *testing.T, server *redistest.Server) (warnings string, err error) {
	t.Helper()
	rdb := server.Client()
	t.Cleanup(func() { rdb.Close() })
	var log bytes.Buffer
	err = CheckServer(t.Context(), rdb, slog.New(slog.NewTextHandler(&log, nil)))
	return log.String(), err
}

func TestAServerThatKeepsItsWordIsTaken(t *testing.T) {
	warnings, err := checked(t, "--appendonly", "yes")
	require.NoError(t, err)
	require.Empty(t, warnings)
}

func TestWithoutAppendOnlyFileItWarns(t *testing.T) {
	warnings, err := checked(t, "--appendonly", "no")
	require.NoError(t, err)
	require.Contains(t, warnings, "Set appendonly yes")
}

func TestAServerThatEvictsIsRefused(t *testing.T) {
	_, err := checked(t, "--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	require.ErrorContains(t, err, `maxmemory-policy "allkeys-lru"`)
	require.NotErrorIs(t, err, ErrUnavailable)
}

func TestReplicas(t *testing.T) {
	master := startServer(t, "--appendonly", "yes")
	replica := replicaOf(t, master)
	_, err := checkedServer(t, replica)
	require.ErrorContains(t, err, "point redis.addrs at the master")

	warnings, err := checkedServer(t, master)
	require.NoError(t, err)
	require.Contains(t, warnings, "acknowledges writes that no replica has")
	rdb := master.Client()
	defer rdb.Close()
	require.NoError(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	warnings, err = checkedServer(t, master)
	require.NoError(t, err)
	require.Contains(t, warnings, "min_replicas_max_lag=10")
	require.NoError(t, rdb.ConfigSet(t.Context(), "min-replicas-max-lag", "5").Err())
	warnings, err = checkedServer(t, master)
	require.NoError(t, err)
	require.Empty(t, warnings)
}

func TestAnOldVersionIsRefused(t *testing.T) {
	err := checkNode(t.Context(), infoOf("redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\nrole:master\r\naof_enabled:1\r\ntcp_port:6379\r\n"), slog.Default())
	require.ErrorContains(t, err, `redis on port 6379 is version "6.2.14": the gate needs 7.0 or newer`)
}

func TestASilentServerIsUnavailable(t *testing.T) {
	server := startServer(t)
	server.Kill()
	_, err := checkedServer(t, server)
	require.ErrorIs(t, err, ErrUnavailable)
	var refused net.Error
	require.True(t, errors.As(err, &refused))
}

// replicaOf starts a replica that is in step with its master.
func replicaOf(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	replica := startServer(t, "--appendonly", "yes", "--replicaof", host+" "+port)
	rdb := master.Client()
	defer rdb.Close()
	require.NoError(t, rdb.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	inStep(t, rdb)
	return replica
}

// infoOf is a server that answers INFO with a text.
type infoOf string

func (i infoOf) Info(ctx context.Context, _ ...string) *goredis.StringCmd {
	cmd := goredis.NewStringCmd(ctx)
	cmd.SetVal(string(i))
	return cmd
}

func (infoOf) ConfigGet(ctx context.Context, _ string) *goredis.MapStringStringCmd {
	cmd := goredis.NewMapStringStringCmd(ctx)
	cmd.SetErr(errors.New("not allowed"))
	return cmd
}

package redis

import (
	"bytes"
	"errors"
	"io"
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
	for switchedOff, on := range map[string]string{"min-replicas-max-lag": "5", "min-replicas-to-write": "1"} {
		require.NoError(t, rdb.ConfigSet(t.Context(), switchedOff, "0").Err())
		warnings, err = checkedServer(t, master)
		require.NoError(t, err)
		require.Contains(t, warnings, "acknowledges writes that no replica has", switchedOff)
		require.NoError(t, rdb.ConfigSet(t.Context(), switchedOff, on).Err())
	}
}

func TestAnOldVersionIsRefused(t *testing.T) {
	server := startServer(t, "--appendonly", "yes")
	for major, refused := range map[string]bool{"6": true, "7": false, "9": false} {
		rdb := goredis.NewClient(&goredis.Options{Addr: claims(t, server, "redis_version:7", "redis_version:"+major)})
		t.Cleanup(func() { rdb.Close() })
		err := CheckServer(t.Context(), rdb, slog.New(slog.DiscardHandler))
		if !refused {
			require.NoError(t, err, major)
			continue
		}
		require.ErrorContains(t, err, `is version "6.`)
		require.ErrorContains(t, err, "the gate needs 7.0 or newer")
		require.NotErrorIs(t, err, ErrUnavailable)
	}
}

// claims is an address at which a server answers with other words of the same
// length.
func claims(t *testing.T, server *redistest.Server, word, other string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server.Addr)
			if err != nil {
				down.Close()
				return
			}
			go func() {
				io.Copy(up, down)
				up.Close()
			}()
			go func() {
				defer down.Close()
				for buf := make([]byte, 64<<10); ; {
					n, err := up.Read(buf)
					if err != nil {
						return
					}
					down.Write(bytes.ReplaceAll(buf[:n], []byte(word), []byte(other)))
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestEverythingThatIsWrongIsSaidAtOnce(t *testing.T) {
	replica := replicaOf(t, startServer(t, "--appendonly", "yes"))
	rdb := replica.Client()
	defer rdb.Close()
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err())
	require.NoError(t, rdb.ConfigSet(t.Context(), "appendonly", "no").Err())
	warnings, err := checkedServer(t, replica)
	require.ErrorContains(t, err, `maxmemory-policy "volatile-lru"`)
	require.ErrorContains(t, err, "point redis.addrs at the master")
	require.Contains(t, warnings, "Set appendonly yes")
}

// A user who may not read the settings gets a warning, not a refusal.
func TestReplicasWhoseTermsAreNotTold(t *testing.T) {
	master := startServer(t, "--appendonly", "yes", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "5")
	replicaOf(t, master)
	admin := master.Client()
	defer admin.Close()
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "gate", "on", "nopass", "~*", "&*", "+@all", "-config").Err())
	rdb := goredis.NewClient(&goredis.Options{Addr: master.Addr, Username: "gate", Password: "any"})
	defer rdb.Close()
	var log bytes.Buffer
	require.NoError(t, CheckServer(t.Context(), rdb, slog.New(slog.NewTextHandler(&log, nil))))
	require.Contains(t, log.String(), "does not say what it asks of its replicas")
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

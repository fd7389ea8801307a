package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--search-attribute Sku":        "is not Name=Type",
		"--search-attribute Sku=String": `"String" is no type of a search attribute`,
		"--retention 5m":                "--retention is 5m0s, the server wants at least 1h",
		"serve":                         `unexpected argument "serve"`,
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
}

// serve runs a server until the test or stop ends it, and returns when it has
// said that it is ready.
func serve(t *testing.T, o options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, o, w)
		_ = w.CloseWithError(err)
		done <- err
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready "+hostPort(o.ip, o.port)+"\n", line)
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func onFreePort(t *testing.T, db string, attrs attributes) options {
	ports, err := freePorts(1)
	require.NoError(t, err)
	return options{
		db: db, ip: "127.0.0.1", port: ports[0], namespace: "default", attributes: attrs,
		retention: 96 * time.Hour, logLevel: "fatal",
	}
}

func describe(t *testing.T, o options) (retention time.Duration, custom map[string]enumspb.IndexedValueType) {
	conn, err := grpc.NewClient(hostPort(o.ip, o.port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ns, err := workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: o.namespace})
	require.NoError(t, err)
	list, err := operatorservice.NewOperatorServiceClient(conn).ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: o.namespace})
	require.NoError(t, err)
	return ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), list.GetCustomAttributes()
}

func TestTheStoreSurvivesAndLearnsNewAttributes(t *testing.T) {
	db := filepath.Join(t.TempDir(), "a folder, with 100% odd name?")
	o := onFreePort(t, db, attributes{"Sku": enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST})
	stop := serve(t, o)
	retention, custom := describe(t, o)
	require.Equal(t, 96*time.Hour, retention)
	require.Equal(t, map[string]enumspb.IndexedValueType(o.attributes), custom)
	stop()

	o = onFreePort(t, db, attributes{"Sku": enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST, "State": enumspb.INDEXED_VALUE_TYPE_KEYWORD})
	o.retention = time.Hour
	stop = serve(t, o)
	retention, custom = describe(t, o)
	require.Equal(t, 96*time.Hour, retention, "only a new namespace takes it")
	require.Equal(t, map[string]enumspb.IndexedValueType(o.attributes), custom)
	stop()

	o = onFreePort(t, db, attributes{"Sku": enumspb.INDEXED_VALUE_TYPE_KEYWORD})
	require.ErrorContains(t, run(t.Context(), o, io.Discard), "search attribute Sku is a KeywordList in this store, not a Keyword")
}

func TestASetUpThatWasCutShortIsBegunAgain(t *testing.T) {
	db := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(db, "default.db"), []byte("half a file"), 0o600))
	serve(t, onFreePort(t, db, nil))()
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	o := onFreePort(t, "", nil)
	o.uiPort = l.Addr().(*net.TCPAddr).Port
	require.ErrorContains(t, run(t.Context(), o, io.Discard), l.Addr().String()+": bind: address already in use")
}

package connect

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"

	"holdfast/codec"
	"holdfast/config"
)

// noTemporalVariables makes the test independent of the machine's own.
func noTemporalVariables(t *testing.T) {
	t.Helper()
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_TLS", "TEMPORAL_API_KEY"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

func TestTemporalOptions(t *testing.T) {
	noTemporalVariables(t)
	opts, err := temporalOptions(devConfig(t))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7233", opts.HostPort)
	require.Equal(t, "default", opts.Namespace)

	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte("[profile.shop]\naddress = \"file.example:1\"\nnamespace = \"from-file\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
	t.Setenv("TEMPORAL_PROFILE", "shop")
	opts, err = temporalOptions(devConfig(t))
	require.NoError(t, err)
	require.Equal(t, "file.example:1", opts.HostPort)
	require.Equal(t, "from-file", opts.Namespace)

	t.Setenv("TEMPORAL_ADDRESS", "variable.example:2")
	t.Setenv("TEMPORAL_TLS", "true")
	opts, err = temporalOptions(devConfig(t))
	require.NoError(t, err)
	require.Equal(t, "variable.example:2", opts.HostPort)
	require.Equal(t, "from-file", opts.Namespace)
	require.NotNil(t, opts.ConnectionOptions.TLS)

	opts, err = temporalOptions(devConfig(t, "temporal.address=ours.example:3", "temporal.namespace=ours"))
	require.NoError(t, err)
	require.Equal(t, "ours.example:3", opts.HostPort)
	require.Equal(t, "ours", opts.Namespace)

	t.Setenv("TEMPORAL_PROFILE", "nowhere")
	_, err = temporalOptions(devConfig(t))
	require.ErrorContains(t, err, "TEMPORAL_*")
}

// frontend is as much of a Temporal server as a dial needs. It knows one
// namespace, and is not ready for the first calls.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	unready int
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(_ context.Context, req *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	if f.unready > 0 || req.GetNamespace() != "shop" {
		f.unready--
		return nil, serviceerror.NewNamespaceNotFound(req.GetNamespace()).(*serviceerror.NamespaceNotFound).Status().Err()
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func serve(t *testing.T, f *frontend) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}

func TestTemporalWaitsUntilTheServerIsReady(t *testing.T) {
	noTemporalVariables(t)
	t.Setenv("TEMPORAL_ADDRESS", serve(t, &frontend{unready: 2}))
	var out bytes.Buffer
	c, err := Temporal(t.Context(), devConfig(t, "temporal.namespace=shop"), slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	c.Close()
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("waiting for Temporal")))
}

func TestTemporalNamesWhatIsMissing(t *testing.T) {
	noTemporalVariables(t)
	log := slog.New(slog.DiscardHandler)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}

	address := serve(t, &frontend{})
	_, err := Temporal(short(), devConfig(t, "temporal.address="+address, "temporal.namespace=other"), log)
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "temporal operator namespace create --namespace other")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close()) // nobody listens here now
	began := time.Now()
	_, err = Temporal(short(), devConfig(t, "temporal.address="+l.Addr().String()), log)
	require.ErrorContains(t, err, "temporal at "+l.Addr().String())
	require.Less(t, time.Since(began), 10*time.Second, "bounded by the context")
}

// Every client of ours encrypts, and the worker's reads signals.
func TestTemporalIsToldInCipherWithAKey(t *testing.T) {
	noTemporalVariables(t)
	log := slog.New(slog.DiscardHandler)
	opts, err := clientOptions(devConfig(t, "secrets.payload_keys="+config.DevPayloadKey), log)
	require.NoError(t, err)
	p, err := opts.DataConverter.ToPayload("Ada")
	require.NoError(t, err)
	require.Equal(t, codec.Encoding, string(p.GetMetadata()["encoding"]))
	require.Equal(t, "Encoded failure", opts.FailureConverter.ErrorToFailure(errors.New("Ada")).GetMessage())
	require.Len(t, opts.Interceptors, 1)
	require.Implements(t, (*interceptor.WorkerInterceptor)(nil), opts.Interceptors[0])

	opts, err = clientOptions(devConfig(t), log)
	require.NoError(t, err)
	plain, err := opts.DataConverter.ToPayload("Ada")
	require.NoError(t, err)
	require.Equal(t, `"Ada"`, string(plain.GetData()))
	var unknown *codec.UnknownKeyError
	require.ErrorAs(t, opts.DataConverter.FromPayload(p, new(string)), &unknown, "keys that were taken away are missed, not guessed over")
}

func TestCodecNeverShowsAKey(t *testing.T) {
	for name, item := range map[string]string{"no id": "c2VjcmV0LWtleQ==", "short": "a:c2VjcmV0LWtleQ=="} {
		cfg := devConfig(t)
		cfg.Secrets.PayloadKeys = []string{item}
		_, err := Codec(cfg)
		require.ErrorContains(t, err, "secrets.payload_keys", name)
		require.NotContains(t, err.Error(), "c2VjcmV0", name)
	}
}

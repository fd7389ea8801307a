package e2e

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// meter stands between the product and Temporal and passes on what it is asked, or
// answers as a server does that is at its rate limit, but for one call in a few.
type meter struct {
	addr    string
	server  *grpc.ClientConn
	full    atomic.Bool
	calls   atomic.Int64 // while it was full
	refused atomic.Int64
}

const meterPasses = 20 // one call in so many

// bytesOnly is a codec that reads nothing of what it carries.
type bytesOnly struct{}

func (bytesOnly) Name() string { return "proto" }
func (bytesOnly) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesOnly) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func newMeter(t *testing.T, temporal string) *meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &meter{addr: l.Addr().String()}
	m.server, err = grpc.NewClient(temporal, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(
		grpc.ForceCodecV2(bytesOnly{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)),
		grpc.WithIdleTimeout(0))
	require.NoError(t, err)
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesOnly{}), grpc.UnknownServiceHandler(m.pass), grpc.MaxRecvMsgSize(64<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true})) // as Temporal's
	go func() {
		if err := server.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		server.Stop()
		m.server.Close()
	})
	return m
}

// pass passes one call on; all of Temporal's are a question and an answer.
func (m *meter) pass(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	var in, out []byte
	if err := s.RecvMsg(&in); err != nil {
		return err
	}
	if m.full.Load() && m.calls.Add(1)%meterPasses != 0 {
		m.refused.Add(1)
		return serviceerror.ToStatus(serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded")).Err()
	}
	ctx := s.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	if err := m.server.Invoke(ctx, method, &in, &out); err != nil {
		if status.Code(err) == codes.Unavailable { // as if nobody stood between
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
	return s.SendMsg(&out)
}

// newMetered is a house whose worker and door reach Temporal through a meter.
func newMetered(t *testing.T, lease time.Duration) (*house, *meter) {
	t.Helper()
	h := ownHouse(t, stack.Options{NoWorker: true, NoDoor: true}, lease)
	m := newMeter(t, h.TemporalAddr())
	dir := t.TempDir()
	app, err := stack.Start(t.Context(), stack.Options{
		Dir: dir, Holdfast: binary(t, "HOLDFAST_BIN"),
		External: stack.External{Redis: h.RedisAddr(), Temporal: m.addr},
		Env:      with(nil, "HOLDFAST_GATE_LEASE", lease.String(), "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "10000"),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Log(err)
		}
	})
	t.Cleanup(func() { (&house{dir: dir}).complain(t) })
	h.shop = shop.New(app.URL(), stack.APIKey, stack.InventorySecret)
	h.outbox = &shop.Outbox{Path: app.TextsFile()}
	return h, m
}

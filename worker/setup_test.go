package worker

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"holdfast/contract"
)

// newborn is a Temporal that answers only from the third question on, and
// notices what was made a question later, as a real one does.
type newborn struct {
	silent, blind int
	registered    []time.Duration
	attributes    attributesOf
	added         int
	refuses       error
}

func (n *newborn) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	switch {
	case n.silent > 0:
		n.silent--
		return nil, serviceerror.NewUnavailable("connection refused")
	case len(n.registered) == 0:
		return nil, serviceerror.NewNamespaceNotFound("shop")
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (n *newborn) RegisterNamespace(_ context.Context, in *workflowservice.RegisterNamespaceRequest, _ ...grpc.CallOption) (*workflowservice.RegisterNamespaceResponse, error) {
	if n.refuses != nil {
		return nil, n.refuses
	}
	n.registered = append(n.registered, in.GetWorkflowExecutionRetentionPeriod().AsDuration())
	return &workflowservice.RegisterNamespaceResponse{}, nil
}

func (n *newborn) ListSearchAttributes(ctx context.Context, in *operatorservice.ListSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	if n.blind > 0 {
		n.blind--
		return nil, serviceerror.NewNamespaceNotFound("shop")
	}
	return n.attributes.ListSearchAttributes(ctx, in)
}

func (n *newborn) AddSearchAttributes(_ context.Context, in *operatorservice.AddSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	n.added++
	for name, kind := range in.GetSearchAttributes() {
		n.attributes[name] = kind
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func (n *newborn) setUp(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), setUpWait)
	defer cancel()
	return setUp(ctx, n, n, "shop", 72*time.Hour, slog.New(slog.DiscardHandler))
}

func TestSetUpWaitsForANewTemporalAndMakesThingsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &newborn{silent: 3, blind: 2, attributes: attributesOf{}}
		require.NoError(t, n.setUp(t))
		require.NoError(t, n.setUp(t), "again")
		require.Equal(t, []time.Duration{72 * time.Hour}, n.registered)
		require.Equal(t, 1, n.added)
		require.Equal(t, attributesOf{
			contract.SKUAttribute:   enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
			contract.StateAttribute: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		}, n.attributes)
		require.NoError(t, checkSearchAttributes(t.Context(), n, "shop"), "what the worker asks for")
	})
}

func TestSetUpGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := (&newborn{silent: 1000}).setUp(t)
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "temporal.address")
		require.Equal(t, setUpWait, time.Since(began))

		began = time.Now()
		err = (&newborn{refuses: serviceerror.NewPermissionDenied("namespaces are made elsewhere", "")}).setUp(t)
		require.ErrorContains(t, err, "namespaces are made elsewhere")
		wrong := &newborn{attributes: attributesOf{contract.SKUAttribute: enumspb.INDEXED_VALUE_TYPE_KEYWORD}}
		require.ErrorContains(t, wrong.setUp(t), "HoldfastSku has type Keyword, it must be KeywordList")
		require.Zero(t, time.Since(began), "waiting would not help")
	})
}

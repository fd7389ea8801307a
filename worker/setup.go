package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"holdfast/config"
	"holdfast/connect"
)

const (
	// A stack that comes up for the first time makes its database meanwhile, and
	// a server sees a new namespace only after some seconds.
	setUpWait = 2 * time.Minute
	setUpPoll = time.Second
)

// namespaces is the part of Temporal's workflow service that the set-up needs.
type namespaces interface {
	DescribeNamespace(ctx context.Context, in *workflowservice.DescribeNamespaceRequest, opts ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error)
	RegisterNamespace(ctx context.Context, in *workflowservice.RegisterNamespaceRequest, opts ...grpc.CallOption) (*workflowservice.RegisterNamespaceResponse, error)
}

// attributeMaker is the part of Temporal's operator service that it needs.
type attributeMaker interface {
	operator
	AddSearchAttributes(ctx context.Context, in *operatorservice.AddSearchAttributesRequest, opts ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error)
}

// SetUp makes what Run wants to find in Temporal: the namespace, with retention
// for closed workflows, and the two search attributes. What is there already
// stays as it is. It waits at most two minutes for Temporal.
func SetUp(ctx context.Context, cfg *config.Config, retention time.Duration, log *slog.Logger) error {
	c, err := connect.LazyTemporal(cfg, log)
	if err != nil {
		return err
	}
	defer c.Close()
	namespace, err := connect.Namespace(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, setUpWait)
	defer cancel()
	return setUp(ctx, c.WorkflowService(), c.OperatorService(), namespace, retention, log)
}

func setUp(ctx context.Context, ns namespaces, op attributeMaker, namespace string, retention time.Duration, log *slog.Logger) error {
	var why error
	for {
		err := setUpOnce(ctx, ns, op, namespace, retention, log)
		if err == nil || hopeless(err) {
			return err
		}
		if why == nil {
			log.Warn("waiting for Temporal", "namespace", namespace, "error", err)
		}
		if why == nil || ctx.Err() == nil { // an attempt that the end of the wait cut off says nothing new
			why = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("set up namespace %q: %w; is Temporal running, and are temporal.address and TEMPORAL_ADDRESS right?", namespace, why)
		case <-time.After(setUpPoll):
		}
	}
}

// hopeless errors are those that waiting does not mend.
func hopeless(err error) bool {
	var denied *serviceerror.PermissionDenied
	var invalid *serviceerror.InvalidArgument
	var unknown *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &invalid) || errors.As(err, &unknown) || errors.Is(err, errWrongType)
}

func setUpOnce(ctx context.Context, ns namespaces, op attributeMaker, namespace string, retention time.Duration, log *slog.Logger) error {
	_, err := ns.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var missing *serviceerror.NamespaceNotFound
	var already *serviceerror.NamespaceAlreadyExists
	if errors.As(err, &missing) {
		_, err = ns.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		})
		if err == nil {
			log.Info("namespace made", "namespace", namespace, "retention", retention.String())
		}
	}
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("namespace %q: %w", namespace, err)
	}
	return makeAttributes(ctx, op, namespace, log)
}

// errNotSeen says that Temporal does not show yet what was made.
var errNotSeen = errors.New("the new search attributes are not to be seen yet")

// makeAttributes adds those of the two attributes that are missing, and then
// answers an error until Temporal shows them: a worker that starts now asks for
// them.
func makeAttributes(ctx context.Context, op attributeMaker, namespace string, log *slog.Logger) error {
	got, err := op.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %q: %w", namespace, err)
	}
	missing, err := attributesMissing(got.GetCustomAttributes())
	if err != nil || len(missing) == 0 {
		return err
	}
	add := map[string]enumspb.IndexedValueType{}
	for _, a := range missing {
		add[a.name] = a.kind
	}
	if _, err = op.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: add}); err != nil {
		return fmt.Errorf("add the search attributes of namespace %q: %w", namespace, err)
	}
	log.Info("search attributes made", "namespace", namespace, "names", len(add))
	return errNotSeen
}

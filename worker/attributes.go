package worker

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"google.golang.org/grpc"

	"holdfast/contract"
)

// operator is the part of Temporal's operator service that the check needs.
type operator interface {
	ListSearchAttributes(ctx context.Context, in *operatorservice.ListSearchAttributesRequest, opts ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error)
}

type attribute struct {
	name, cli string
	kind      enumspb.IndexedValueType
}

var attributes = []attribute{
	{contract.SKUAttribute, "KeywordList", enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST},
	{contract.StateAttribute, "Keyword", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
}

// checkSearchAttributes refuses a namespace without the two search attributes:
// every workflow task would fail for ever there, without a word to the code.
func checkSearchAttributes(ctx context.Context, op operator, namespace string) error {
	got, err := op.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %q: %w", namespace, err)
	}
	missing, err := attributesMissing(got.GetCustomAttributes())
	problems := []error{err}
	for _, a := range missing {
		problems = append(problems, fmt.Errorf("search attribute %s is missing; run `holdfast setup`, or add it with:\n  temporal operator search-attribute create --namespace %s --name %s --type %s", a.name, namespace, a.name, a.cli))
	}
	return errors.Join(problems...)
}

var errWrongType = errors.New("remove it and create it again")

// attributesMissing lists those of the two that are not among known. One of
// another type is an error.
func attributesMissing(known map[string]enumspb.IndexedValueType) ([]attribute, error) {
	var missing []attribute
	var problems []error
	for _, a := range attributes {
		switch kind, ok := known[a.name]; {
		case !ok:
			missing = append(missing, a)
		case kind != a.kind:
			problems = append(problems, fmt.Errorf("search attribute %s has type %s, it must be %s: %w", a.name, kind, a.cli, errWrongType))
		}
	}
	return missing, errors.Join(problems...)
}

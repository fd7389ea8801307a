package codec

import (
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Unreadable is the encoding of a signal's payload that names one of our keys
// and was not made by it. Its data is what came.
const Unreadable = "binary/holdfast-unreadable"

// Signals decrypts signals before the SDK does, which would drop one that it
// cannot decrypt, and with it a payment or a delivery. A signal under a key that
// is not listed fails the workflow task, so that it is read again and again until
// somebody lists the key. One that was altered reaches the workflow as Unreadable:
// where money may be in it a person gets to see it, elsewhere the SDK says so in
// its log and goes on. A client with this interceptor gives it to its workers.
func (c *Codec) Signals() interceptor.ClientInterceptor { return &signals{codec: c} }

type signals struct {
	interceptor.InterceptorBase
	codec *Codec
}

func (s *signals) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &signalsOfOne{codec: s.codec}
	in.Next = next
	return in
}

type signalsOfOne struct {
	interceptor.WorkflowInboundInterceptorBase
	codec *Codec
}

func (s *signalsOfOne) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if in.Arg == nil {
		return s.Next.HandleSignal(ctx, in)
	}
	// The history's own message stays as it is.
	read := &commonpb.Payloads{Payloads: make([]*commonpb.Payload, len(in.Arg.GetPayloads()))}
	for i, p := range in.Arg.GetPayloads() {
		plain, err := s.codec.open(p)
		switch {
		case errors.Is(err, ErrAltered):
			plain = &commonpb.Payload{
				Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Unreadable)}, Data: p.GetData(),
			}
		case err != nil:
			return err
		}
		read.Payloads[i] = plain
	}
	return s.Next.HandleSignal(ctx, &interceptor.HandleSignalInput{SignalName: in.SignalName, Arg: read})
}

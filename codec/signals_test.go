package codec

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// asSent leaves what a test sends as it is, and reads like the codec.
type asSent struct{ *Codec }

func (asSent) Encode(p []*commonpb.Payload) ([]*commonpb.Payload, error) { return p, nil }

type heard struct {
	Raw  []string // encoding and quoted data of each signal "raw"
	Said []string // each signal "said" that could be read
}

func shown(p *commonpb.Payload) string {
	return fmt.Sprintf("%s %+q", p.GetMetadata()[converter.MetadataEncoding], p.GetData())
}

// listen hears for a minute.
func listen(ctx workflow.Context) (heard, error) {
	var h heard
	if err := workflow.Sleep(ctx, time.Minute); err != nil {
		return h, err
	}
	for ch := workflow.GetSignalChannel(ctx, "raw"); ch.Len() > 0; {
		var raw converter.RawValue
		if ch.ReceiveAsync(&raw) {
			h.Raw = append(h.Raw, shown(raw.Payload()))
		}
	}
	for ch := workflow.GetSignalChannel(ctx, "said"); ch.Len() > 0; {
		var s string
		if ch.ReceiveAsync(&s) {
			h.Said = append(h.Said, s)
		}
	}
	return h, nil
}

// told runs listen and sends it payloads as both signals.
func told(t *testing.T, c *Codec, payloads ...*commonpb.Payload) (heard, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), asSent{c}))
	env.SetFailureConverter(c.FailureConverter())
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{c.Signals().(interceptor.WorkerInterceptor)}})
	env.RegisterDelayedCallback(func() {
		for _, p := range payloads {
			env.SignalWorkflow("raw", converter.NewRawValue(p))
			env.SignalWorkflow("said", converter.NewRawValue(p))
		}
	}, time.Second)
	env.ExecuteWorkflow(listen)
	var h heard
	if err := env.GetWorkflowError(); err != nil {
		return h, err
	}
	require.NoError(t, env.GetWorkflowResult(&h))
	return h, nil
}

func json(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	require.NoError(t, err)
	return p
}

func TestSignalsComeDecryptedOrPlain(t *testing.T) {
	c := codecOf(t, newer, older)
	h, err := told(t, c,
		encoded(t, c, json(t, "ours")),
		encoded(t, codecOf(t, older), json(t, "of an old door")),
		json(t, "a stranger's"),
	)
	require.NoError(t, err)
	require.Equal(t, []string{"ours", "of an old door", "a stranger's"}, h.Said)
	require.Equal(t, []string{shown(json(t, "ours")), shown(json(t, "of an old door")), shown(json(t, "a stranger's"))}, h.Raw)
}

// Raw readers get to see what nobody can read; the others skip it, and what comes
// after it is not lost.
func TestAnAlteredSignalReachesWhoReadsRaw(t *testing.T) {
	c := codecOf(t, newer)
	cut := encoded(t, c, json(t, "cut"))
	cut.Data = cut.Data[:len(cut.Data)-1]
	h, err := told(t, c, cut, json(t, "next"))
	require.NoError(t, err)
	require.Equal(t, []string{"next"}, h.Said)
	require.Equal(t, []string{fmt.Sprintf("%s %+q", Unreadable, cut.GetData()), shown(json(t, "next"))}, h.Raw)
}

// passed is what a signal looks like to the interceptor behind ours.
type passed struct {
	interceptor.WorkflowInboundInterceptorBase
	signals []*interceptor.HandleSignalInput
}

func (p *passed) HandleSignal(_ workflow.Context, in *interceptor.HandleSignalInput) error {
	p.signals = append(p.signals, in)
	return nil
}

func intercepted(c *Codec) (*signalsOfOne, *passed) {
	in, out := &signalsOfOne{codec: c}, &passed{}
	in.Next = out
	return in, out
}

func TestTheHistorysOwnPayloadStaysAsItIs(t *testing.T) {
	c := codecOf(t, newer)
	in, out := intercepted(c)
	sealed := &commonpb.Payloads{Payloads: []*commonpb.Payload{encoded(t, c, json(t, "x"))}}
	before := sealed.String()
	require.NoError(t, in.HandleSignal(nil, &interceptor.HandleSignalInput{SignalName: "said", Arg: sealed}))
	require.Equal(t, before, sealed.String())
	require.Equal(t, `"x"`, string(out.signals[0].Arg.GetPayloads()[0].GetData()))
	require.Equal(t, "said", out.signals[0].SignalName)

	require.NoError(t, in.HandleSignal(nil, &interceptor.HandleSignalInput{SignalName: "settle"}))
	require.Nil(t, out.signals[1].Arg, "a signal without payload passes")
}

func TestASignalUnderAnUnknownKeyIsNotSwallowed(t *testing.T) {
	in, out := intercepted(codecOf(t, newer))
	err := in.HandleSignal(nil, &interceptor.HandleSignalInput{
		SignalName: "said", Arg: &commonpb.Payloads{Payloads: []*commonpb.Payload{encoded(t, codecOf(t, older), json(t, "x"))}},
	})
	var unknown *UnknownKeyError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, older.Name(), unknown.Name)
	require.Empty(t, out.signals)
}

package workflows_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"holdfast/codec"
	"holdfast/contract"
)

// overheard is a codec that keeps what it was given to encrypt, and leaves alone
// what a test has encrypted, or left plain, itself.
type overheard struct {
	*codec.Codec
	asSent bool
	plain  *bytes.Buffer
}

func (o *overheard) Encode(p []*commonpb.Payload) ([]*commonpb.Payload, error) {
	for _, one := range p {
		o.plain.Write(one.GetData())
	}
	if o.asSent {
		return p, nil
	}
	return o.Codec.Encode(p)
}

// encrypted gives a world a codec, as the worker has it. send signals without
// encrypting.
func encrypted(t *testing.T, w *world) (o *overheard, send func(signal string, p *commonpb.Payload)) {
	t.Helper()
	c, err := codec.New(codec.Key{ID: "test", Secret: bytes.Repeat([]byte{7}, codec.KeyBytes)})
	require.NoError(t, err)
	o = &overheard{Codec: c, plain: &bytes.Buffer{}}
	w.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), o))
	w.SetFailureConverter(c.FailureConverter())
	w.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{c.Signals().(interceptor.WorkerInterceptor)}})
	return o, func(signal string, p *commonpb.Payload) {
		o.asSent = true
		w.SignalWorkflow(signal, converter.NewRawValue(p))
		o.asSent = false
	}
}

func jsonPayload(text string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text)}
}

func (o *overheard) sealed(t *testing.T, p *commonpb.Payload) *commonpb.Payload {
	t.Helper()
	out, err := o.Codec.Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	return out[0]
}

func TestHoldReadsPaymentsEncryptedAndPlain(t *testing.T) {
	t.Run("encrypted", func(t *testing.T) {
		w := reserved(t)
		encrypted(t, w)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
		require.Equal(t, "P1", w.runHold().PaymentRef)
		require.Empty(t, w.payments)
	})
	t.Run("a stranger's, plain", func(t *testing.T) {
		w := reserved(t)
		_, send := encrypted(t, w)
		w.at(time.Minute, func() {
			send(contract.SignalPaymentStarted, jsonPayload(`{"payment_ref":"P1","amount":500,"currency":"EUR"}`))
		})
		w.at(2*time.Minute, func() {
			send(contract.SignalPaymentSucceeded, jsonPayload(`{"payment_ref":"P1","amount":500,"currency":"EUR"}`))
		})
		require.Equal(t, "P1", w.runHold().PaymentRef)
		require.Equal(t, 5*time.Minute, w.hold.Deadline.Sub(began)-10*time.Minute, "the start of the payment was heard")
	})
}

// What cannot be read as a payment is parked as a person can read it, and is the
// same parked thing however often it comes, each time in another cipher.
func TestHoldParksThePlainTextOfWhatItCannotRead(t *testing.T) {
	const text = `{"ref": "pi_77", "note": "from the till"}`
	w := reserved(t)
	o, send := encrypted(t, w)
	for i := range 3 {
		w.at(time.Duration(i+1)*time.Minute, func() { send(contract.SignalPaymentSucceeded, o.sealed(t, jsonPayload(text))) })
	}
	w.at(5*time.Minute, func() { send(contract.SignalPaymentSucceeded, jsonPayload(text)) })
	altered := o.sealed(t, jsonPayload(text))
	altered.Data[30] ^= 1
	w.at(6*time.Minute, func() { send(contract.SignalPaymentSucceeded, altered) })
	require.Equal(t, contract.HoldExpired, w.runHold().State, "the hold goes on")
	raws := map[string]string{}
	for _, p := range w.payments {
		require.Equal(t, contract.CauseUndecodable, p.Cause)
		raws[p.PaymentID] = string(p.Raw)
	}
	require.ElementsMatch(t, []string{text, string(altered.GetData())}, slices.Collect(maps.Values(raws)))
}

// The UI shows summaries, details and answers; all of it goes through the codec.
func TestWhatTheUIShowsIsEncrypted(t *testing.T) {
	w := reserved(t)
	o, _ := encrypted(t, w)
	in := holdInput()
	in.Customer, in.OrderRef = "Ada Lovelace", "order-4711"
	w.at(time.Minute, func() {
		for _, query := range []string{"__temporal_workflow_metadata", contract.QueryStatus} {
			o.plain.Reset()
			_, err := w.QueryWorkflow(query)
			require.NoError(t, err)
			require.Contains(t, o.plain.String(), "Ada Lovelace", query)
		}
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.ExecuteWorkflow(contract.HoldWorkflow, in)
	require.NoError(t, w.GetWorkflowError())
}

func TestDetailsOfAPaymentShowWhatWasSaid(t *testing.T) {
	shown := func(raw []byte) string {
		w := withRecord(t, contract.HoldExpired, "")
		in := paymentOf("raw-1", contract.CauseUndecodable)
		in.Raw = raw
		var details string
		w.at(time.Minute, func() { details = w.currentDetails() })
		w.runPayment(in)
		return details
	}
	require.Contains(t, shown([]byte(`{"ref":"pi_77"}`)), "- **Said**: `{\"ref\":\"pi_77\"}`\n")
	require.Contains(t, shown([]byte(strings.Repeat("ä", 501))), "`"+strings.Repeat("ä", 500)+"`\n")
	require.Contains(t, shown([]byte{0xfe, 0xff}), "- **Said**: 2 bytes that are no text")
	require.NotContains(t, shown(nil), "Said")
}

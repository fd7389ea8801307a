package codec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

func key(id string, fill byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{fill}, KeyBytes)} }

var (
	older = key("2025", 'o')
	newer = key("2026", 'n')
)

func codecOf(t require.TestingT, keys ...Key) *Codec {
	c, err := New(keys...)
	require.NoError(t, err)
	return c
}

func payload(text string) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte("json/plain"), "note": []byte("of " + text)}, Data: []byte(text),
	}
}

func encoded(t require.TestingT, c *Codec, p *commonpb.Payload) *commonpb.Payload {
	out, err := c.Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func decoded(t require.TestingT, c *Codec, p *commonpb.Payload) *commonpb.Payload {
	out, err := c.Decode([]*commonpb.Payload{p})
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func TestAKeyNeedsAnIDAndItsBytes(t *testing.T) {
	for _, k := range []Key{{Secret: make([]byte, KeyBytes)}, {ID: "a", Secret: make([]byte, 16)}, {ID: "a", Secret: make([]byte, KeyBytes+1)}, {ID: "a"}} {
		_, err := New(newer, k)
		require.Error(t, err)
	}
}

func TestWhatIsEncryptedComesBackWhole(t *testing.T) {
	c := codecOf(t, newer, older)
	rapid.Check(t, func(t *rapid.T) {
		in := &commonpb.Payload{Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		if rapid.Bool().Draw(t, "metadata") {
			in.Metadata = rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Byte())).Draw(t, "metadata")
		}
		if string(in.GetMetadata()[converter.MetadataEncoding]) == Encoding {
			t.Skip("encrypted already")
		}
		before := proto.Clone(in)
		out := encoded(t, c, in)
		require.True(t, proto.Equal(before, in), "what was given is not touched")
		require.Equal(t, map[string][]byte{converter.MetadataEncoding: []byte(Encoding), KeyName: []byte(newer.Name())}, out.GetMetadata())
		require.True(t, proto.Equal(in, decoded(t, c, out)))
	})
}

func TestNothingOfThePayloadIsToBeSeen(t *testing.T) {
	c := codecOf(t, newer)
	in := payload("+12025550123 buys a chair")
	once, again := encoded(t, c, in), encoded(t, c, in)
	for _, plain := range []string{"12025550123", "buys", "json/plain", "note"} {
		require.NotContains(t, once.String(), plain)
	}
	require.NotEqual(t, once.GetData(), again.GetData(), "a fresh nonce each time")
	require.NotEqual(t, once.GetData()[:12], again.GetData()[:12])
}

func TestTheFirstKeyEncryptsAndEachDecrypts(t *testing.T) {
	in := payload("x")
	old := encoded(t, codecOf(t, older), in)
	turned := codecOf(t, newer, older)
	require.True(t, proto.Equal(in, decoded(t, turned, old)))
	require.Equal(t, newer.Name(), string(encoded(t, turned, in).GetMetadata()[KeyName]))
	// Step one of a change: the new key is known everywhere before anybody uses it.
	require.True(t, proto.Equal(in, decoded(t, codecOf(t, older, newer), encoded(t, turned, in))))
}

func TestAnUnknownKeyIsNamed(t *testing.T) {
	p := encoded(t, codecOf(t, older), payload("x"))
	for name, c := range map[string]struct {
		ring *Codec
		says []string
	}{
		"none":        {codecOf(t), []string{older.Name(), "none is listed", "list key 2025 behind the first"}},
		"others":      {codecOf(t, newer), []string{older.Name(), "listed are " + newer.Name(), "list key 2025 behind the first"}},
		"other bytes": {codecOf(t, newer, key("2025", 'x')), []string{older.Name(), "the id 2025 is listed with other bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.ring.Decode([]*commonpb.Payload{payload("y"), p})
			var unknown *UnknownKeyError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, older.Name(), unknown.Name)
			require.NotErrorIs(t, err, ErrAltered)
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			require.ErrorContains(t, err, "secrets.payload_keys")
			var again *converter.WorkflowTaskFailureError
			require.ErrorAs(t, err, &again, "the task is repeated, the workflow does not fail")
		})
	}
}

func TestAnAlteredPayloadDoesNotOpen(t *testing.T) {
	c := codecOf(t, newer, older)
	whole := encoded(t, c, payload("x"))
	refused := func(p *commonpb.Payload) {
		t.Helper()
		_, err := c.Decode([]*commonpb.Payload{p})
		require.ErrorIs(t, err, ErrAltered)
		require.ErrorContains(t, err, string(p.GetMetadata()[KeyName]))
		var again *converter.WorkflowTaskFailureError
		require.False(t, errors.As(err, &again), "no repetition would help")
	}
	for i := range whole.GetData() {
		p := proto.Clone(whole).(*commonpb.Payload)
		p.Data[i] ^= 1
		refused(p)
		refused(&commonpb.Payload{Metadata: whole.GetMetadata(), Data: whole.GetData()[:i]})
	}
	other := proto.Clone(whole).(*commonpb.Payload)
	other.Metadata[KeyName] = []byte(older.Name())
	refused(other)
}

func TestPlainPayloadsAreReadAsTheyAre(t *testing.T) {
	foreign := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte("binary/encrypted")}, Data: []byte("of another codec")}
	for _, p := range []*commonpb.Payload{payload("x"), foreign, {}, nil} {
		require.Same(t, p, decoded(t, codecOf(t, newer), p))
	}
	for _, ring := range []*Codec{codecOf(t), codecOf(t, newer)} {
		var got map[string]string
		p, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"a": "b"})
		require.NoError(t, err)
		require.NoError(t, ring.DataConverter().FromPayload(p, &got))
		require.Equal(t, map[string]string{"a": "b"}, got)
	}
}

func TestWithoutAKeyNothingIsEncrypted(t *testing.T) {
	c := codecOf(t)
	p := payload("x")
	require.False(t, c.Encrypts())
	require.Same(t, p, encoded(t, c, p))
	require.Equal(t, "the reason", c.FailureConverter().ErrorToFailure(errors.New("the reason")).GetMessage())
}

func TestFailuresAreEncryptedToTheirLastCause(t *testing.T) {
	c := codecOf(t, newer)
	cause := temporal.NewApplicationError("card of Ada Lovelace declined", "declined", "detail of Ada")
	failure := c.FailureConverter().ErrorToFailure(temporal.NewNonRetryableApplicationError("pay_42 failed", "outer", cause))
	require.NotContains(t, failure.String(), "Ada")
	require.NotContains(t, failure.String(), "pay_42")
	require.Equal(t, "Encoded failure", failure.GetMessage())
	require.Equal(t, "outer", failure.GetApplicationFailureInfo().GetType(), "types stay readable: retries go by them")
	require.Equal(t, "Encoded failure", failure.GetCause().GetMessage())

	var back *temporal.ApplicationError
	require.ErrorAs(t, c.FailureConverter().FailureToError(failure), &back)
	require.Equal(t, "pay_42 failed", back.Message())
	require.True(t, back.NonRetryable())
	require.ErrorAs(t, errors.Unwrap(back), &back)
	require.Equal(t, "card of Ada Lovelace declined", back.Message())
	var detail string
	require.NoError(t, back.Details(&detail))
	require.Equal(t, "detail of Ada", detail)

	// The same failure from a worker that had no key yet.
	plain := codecOf(t).FailureConverter().ErrorToFailure(errors.New("the reason"))
	require.EqualError(t, c.FailureConverter().FailureToError(plain), "the reason")
}

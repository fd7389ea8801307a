package leak

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const phone = "+12025550123"

func TestAValueIsFoundInEveryForm(t *testing.T) {
	f := New(map[string]string{"phone": phone, "name": "Zoë \"Z\" & Sons"})
	for _, before := range []string{"", "x", "xy", "xyz", "{\"phone\": \""} {
		for _, after := range []string{"", "x", "xy", "\"}"} {
			text := before + phone + after
			for form, raw := range map[string]string{
				"plain": text, "hex": hex.EncodeToString([]byte(text)), "query": url.QueryEscape(text),
				"base64": base64.StdEncoding.EncodeToString([]byte(text)), "url": base64.RawURLEncoding.EncodeToString([]byte(text)),
			} {
				require.Equal(t, []string{"phone"}, f.In([]byte("some "+raw+" more")), "%s of %q", form, text)
			}
		}
	}
	require.Equal(t, []string{"name"}, f.In([]byte(`{"name":"Zo`+"ë"+` \"Z\" \u0026 Sons"}`)), "as JSON writes it")
	require.Empty(t, f.In([]byte(strings.ReplaceAll(phone, "5", "6"))))
	require.Empty(t, f.In([]byte(base64.StdEncoding.EncodeToString([]byte("+12025550124")))))
}

func TestEveryCornerOfAMessageIsLookedAt(t *testing.T) {
	f := New(map[string]string{"phone": phone})
	payload := &commonpb.Payload{Data: []byte(`"` + phone + `"`)}
	for where, m := range map[string]proto.Message{
		"e.workflow_execution_signaled_event_attributes.input.payloads[1].data": &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{}, payload}},
			},
		}},
		"e.user_metadata.summary.data":          &historypb.HistoryEvent{UserMetadata: &sdkpb.UserMetadata{Summary: payload}},
		"e.cause.cause.message":                 &failurepb.Failure{Cause: &failurepb.Failure{Cause: &failurepb.Failure{Message: "no text to " + phone}}},
		"e.fields[customer].data":               &commonpb.Memo{Fields: map[string]*commonpb.Payload{"customer": payload}},
		"e.indexed_fields":                      &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{phone: {}}},
		"e.metadata[x]":                         &commonpb.Payload{Metadata: map[string][]byte{"x": []byte(phone)}},
		"e.(unknown fields)":                    unknown(),
		"e.identity":                            &historypb.WorkflowTaskCompletedEventAttributes{Identity: phone},
		"e.header.fields[trace].metadata[note]": &historypb.WorkflowExecutionStartedEventAttributes{Header: &commonpb.Header{Fields: map[string]*commonpb.Payload{"trace": {Metadata: map[string][]byte{"note": []byte(phone)}}}}},
	} {
		require.Equal(t, []Hit{{where, "phone"}}, f.Message("e", m))
	}
	var seen []string
	Payloads("e", &commonpb.Memo{Fields: map[string]*commonpb.Payload{"a": payload}}, func(where string, p *commonpb.Payload) {
		require.Equal(t, payload.GetData(), p.GetData())
		seen = append(seen, where)
	})
	require.Equal(t, []string{"e.fields[a]"}, seen)
}

// unknown is a message of a newer version, with a field that we do not know.
func unknown() proto.Message {
	m := &commonpb.Payload{}
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), phone))
	return m
}

func TestFilesAreReadToTheBottom(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	deep := filepath.Join(dir, "a", "b", "db")
	require.NoError(t, os.WriteFile(deep, []byte("\x00\x01"+phone+"\x00"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), []byte("nothing"), 0o600))
	hits, err := New(map[string]string{"phone": phone}).Files(dir)
	require.NoError(t, err)
	require.Equal(t, []Hit{{deep, "phone"}}, hits)
}

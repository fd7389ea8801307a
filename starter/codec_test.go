package starter

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/codec"
	"holdfast/config"
	"holdfast/redis"
)

const (
	uiOrigin = "http://127.0.0.1:8233"
	otherKey = "other:b3RoZXIga2V5IG9mIHRoZSB0ZXN0IG90aGVyIGtleSE="
)

func withCodec(cfg *config.Config, _ *redis.Options) {
	cfg.Secrets.PayloadKeys = []string{config.DevPayloadKey}
	cfg.Temporal.UIOrigins = []string{uiOrigin}
}

func body(t *testing.T, payloads ...*commonpb.Payload) string {
	t.Helper()
	raw, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	require.NoError(t, err)
	return string(raw)
}

func (a answer) payloads(t *testing.T) []*commonpb.Payload {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var out commonpb.Payloads
	require.NoError(t, protojson.Unmarshal([]byte(a.body), &out))
	return out.GetPayloads()
}

func plainPayload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	require.NoError(t, err)
	return p
}

func TestCodecThereAndBack(t *testing.T) {
	h := newHouse(t, 0, withCodec)
	in := []*commonpb.Payload{plainPayload(t, "Ada"), plainPayload(t, nil), {}}
	sealed := h.call("POST", "/codec/encode", body(t, in...)).payloads(t)
	require.Len(t, sealed, 3)
	for _, p := range sealed {
		require.Equal(t, codec.Encoding, string(p.GetMetadata()[converter.MetadataEncoding]))
		require.NotContains(t, string(p.GetData()), "Ada")
	}
	// A plain one among them is somebody else's; the query is the UI's own.
	back := h.call("POST", "/codec/decode?preserveStorageRefs=true", body(t, append(sealed, in[0])...)).payloads(t)
	require.Equal(t, body(t, append(in, in[0])...), body(t, back...))
	require.JSONEq(t, `{}`, h.call("POST", "/codec/decode", `{"payloads":[],"more":1}`).body)
}

func TestCodecWithoutAKeyLeavesPayloadsPlain(t *testing.T) {
	h := newHouse(t, 0)
	in := plainPayload(t, "Ada")
	for _, path := range []string{"/codec/encode", "/codec/decode"} {
		require.Equal(t, body(t, in), body(t, h.call("POST", path, body(t, in)).payloads(t)...))
	}
}

// It decrypts what people wrote: who asks must have a key, or be a page of the UI.
func TestWhoMayAskTheCodec(t *testing.T) {
	h := newHouse(t, 0, withCodec)
	raw := body(t, plainPayload(t, "Ada"))
	for name, c := range map[string]struct {
		header []string
		status int
		reads  string // the origin whose pages may read the answer
	}{
		"a key":              {nil, 200, ""},
		"a wrong key":        {[]string{"Authorization", "Bearer nobody's"}, 401, ""},
		"nothing":            {[]string{"Authorization", ""}, 401, ""},
		"the UI":             {[]string{"Authorization", "", "Origin", uiOrigin}, 200, uiOrigin},
		"the UI, logged in":  {[]string{"Authorization", "Bearer of-another-house", "Origin", uiOrigin}, 200, uiOrigin},
		"another page":       {[]string{"Authorization", "", "Origin", "https://evil.example"}, 401, ""},
		"the UI's neighbour": {[]string{"Authorization", "", "Origin", uiOrigin + "0"}, 401, ""},
		"a null origin":      {[]string{"Authorization", "", "Origin", "null"}, 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/codec/encode", "/codec/decode"} {
				a := h.call("POST", path, raw, append(c.header, "X-Namespace", "default")...)
				require.Equal(t, c.status, a.status, a.body)
				require.Equal(t, c.reads, a.header.Get("Access-Control-Allow-Origin"))
				require.Equal(t, "Origin", a.header.Get("Vary"))
				if c.status == 401 {
					exact(t, a, 401, unauthorized)
					require.NotContains(t, a.body, "QWRh")
				}
				ask := h.call("OPTIONS", path, nil, append(c.header, "Authorization", "", "Access-Control-Request-Method", "POST",
					"Access-Control-Request-Headers", "content-type,x-namespace")...)
				require.Equal(t, http.StatusNoContent, ask.status)
				require.Equal(t, c.reads, ask.header.Get("Access-Control-Allow-Origin"))
				require.Equal(t, c.reads != "", strings.Contains(ask.header.Get("Access-Control-Allow-Headers"), "X-Namespace"))
			}
		})
	}
	// No origin is configured: none is the UI's.
	closed := newHouse(t, 0)
	for _, origin := range []string{uiOrigin, "", "null"} {
		exact(t, closed.call("POST", "/codec/decode", raw, "Authorization", "", "Origin", origin), 401, unauthorized)
	}
}

// What is for operators is on their listener only, and nothing else is.
func TestTheOpsListenerIsTheOperators(t *testing.T) {
	theirs := regexp.MustCompile(` /(codec/\w+|healthz|readyz|metrics|docs|openapi\.json)$`)
	for _, r := range newHouse(t, 0).door.routes() {
		require.Equal(t, theirs.MatchString(r.pattern), r.on == ops, r.pattern)
		require.Equal(t, r.on == ops, r.on&ops != 0, r.pattern)
	}
}

func TestBadPayloads(t *testing.T) {
	h := newHouse(t, 0, withCodec)
	_, secret, ok := config.PayloadKey(otherKey)
	require.True(t, ok)
	other := codec.Key{ID: "other", Secret: secret}
	ring, err := codec.New(other)
	require.NoError(t, err)
	foreign, err := ring.Encode([]*commonpb.Payload{plainPayload(t, "Ada")})
	require.NoError(t, err)
	p := exact(t, h.call("POST", "/codec/decode", body(t, foreign...)), 422, validationFailed)
	require.Contains(t, p.Detail, `"`+other.Name()+`"`)
	require.Contains(t, p.Detail, "list key other behind the first")

	altered := h.call("POST", "/codec/encode", body(t, plainPayload(t, "Ada"))).payloads(t)
	altered[0].Data[20] ^= 1
	require.Contains(t, exact(t, h.call("POST", "/codec/decode", body(t, altered...)), 422, validationFailed).Detail, "cut or altered")

	for _, raw := range []string{"", "[]", "{", `{"payloads":{}}`, `{"payloads":[{"data":"not base64!"}]}`, `{"payloads":[1]}`} {
		exact(t, h.call("POST", "/codec/decode", raw), 400, malformedBody)
	}
	exact(t, h.call("POST", "/codec/decode", "{}", "Content-Type", "text/plain"), 415, unsupportedMediaType)
	exact(t, h.call("POST", "/codec/decode", strings.Repeat(" ", maxPayloads+1)), 413, bodyTooLarge)
	require.Equal(t, http.StatusMethodNotAllowed, h.call("GET", "/codec/decode", nil).status)
	require.NotContains(t, h.log.String(), "Ada")
}

// The form of the SDK's own remote codec, which is the CLI's.
func TestTheRemoteCodecOfTheSDKUnderstandsUs(t *testing.T) {
	h := newHouse(t, 0, withCodec)
	server := httptest.NewServer(h.door.all())
	defer server.Close()
	remote := func(auth string) converter.DataConverter {
		return converter.NewRemoteDataConverter(converter.GetDefaultDataConverter(), converter.RemoteDataConverterOptions{
			Endpoint: server.URL + "/codec",
			ModifyRequest: func(r *http.Request) error {
				r.Header.Set("Authorization", auth)
				r.Header.Set("X-Namespace", "default")
				return nil
			},
		})
	}
	p, err := remote("Bearer key-of-the-shop").ToPayload(map[string]string{"payment_ref": "pi_42"})
	require.NoError(t, err)
	require.Equal(t, codec.Encoding, string(p.GetMetadata()[converter.MetadataEncoding]))
	var back map[string]string
	require.NoError(t, remote("Bearer key-of-the-shop").FromPayload(p, &back))
	require.Equal(t, "pi_42", back["payment_ref"])
	require.Error(t, remote("").FromPayload(p, &back))
}

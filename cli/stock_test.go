package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"holdfast/config"
)

// fakeDoor answers every request alike and keeps the last one. What arrives
// signed must be signed rightly with secret.
type fakeDoor struct {
	t            *testing.T
	secret       string
	status       int
	answer       string
	calls        int
	method, path string
	bearer       string
	event        map[string]any
}

func (d *fakeDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.calls++
	d.method, d.path, d.bearer = r.Method, r.URL.Path, r.Header.Get("Authorization")
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		hook, hookErr := standardwebhooks.NewWebhook(d.secret)
		if err != nil || hookErr != nil || hook.Verify(body, r.Header) != nil || json.Unmarshal(body, &d.event) != nil {
			d.t.Errorf("not a rightly signed webhook: %s", body)
		}
		if d.event["event_id"] != r.Header.Get("webhook-id") {
			d.t.Errorf("webhook-id %q is not the event's id", r.Header.Get("webhook-id"))
		}
	}
	w.WriteHeader(d.status)
	_, _ = io.WriteString(w, d.answer)
}

func newFakeDoor(t *testing.T, status int, answer string) *fakeDoor {
	t.Helper()
	plain(t)
	d := &fakeDoor{t: t, secret: config.DevWebhookSecret, status: status, answer: answer}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL+"/")
	return d
}

const chair = `{"sku":"CHAIR","title":"Chair","state":"line","on_hand":1000000000,"held":1,"waiting":3}`

func TestStockGet(t *testing.T) {
	d := newFakeDoor(t, 200, chair)
	got := run(t, Services{}, "stock", "get", "CHAIR")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "GET", d.method)
	require.Equal(t, "/v1/stock/CHAIR", d.path)
	require.Equal(t, "Bearer "+config.DevAPIKey, d.bearer, "a door on this machine takes the published key")
	require.Regexp(t, `(?m)^on_hand +1000000000$`, got.out)
	require.Regexp(t, `(?m)^waiting +3$`, got.out)
	require.NotContains(t, got.out, "sold", "what the door left out is not shown as zero")

	t.Setenv("HOLDFAST_KEY", "another key")
	got = run(t, Services{}, "stock", "get", "CHAIR", "--json")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "Bearer another key", d.bearer)
	require.JSONEq(t, chair, got.out)
}

func TestStockRestock(t *testing.T) {
	d := newFakeDoor(t, 200, `{"event_id":"e","applied":true,"stock":`+chair+`}`)
	got := run(t, Services{}, "stock", "restock", "CHAIR", "4", "--reason", "the van came")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "POST", d.method)
	require.Equal(t, "/v1/webhooks/inventory", d.path)
	id := d.event["event_id"].(string)
	require.Equal(t, map[string]any{
		"event_id": id, "sku": "CHAIR", "kind": "restock", "units": 4.0, "reason": "the van came", "actor": "operator",
	}, d.event)
	require.Contains(t, got.err, "event id "+id)
	require.Contains(t, got.out, "CHAIR: 4 more")

	run(t, Services{}, "stock", "restock", "CHAIR", "4")
	require.NotEqual(t, id, d.event["event_id"], "another restock is another event")

	got = run(t, Services{}, "stock", "restock", "CHAIR", "4", "--event-id", id, "--json")
	require.Zero(t, got.code, got.err)
	require.Equal(t, id, d.event["event_id"])
	require.True(t, json.Valid([]byte(got.out)), "only the answer is on standard output")
}

func TestRestockOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		code   int
		says   string
	}{
		"recorded": {202, `{"event_id":"e"}`, 0, "recorded, not yet applied; to see the outcome, repeat with --event-id e1"},
		"refused":  {200, `{"event_id":"e","applied":false,"reason":"unknown-sku"}`, 1, "event e1 was refused: unknown-sku"},
		"problem": {
			422, `{"code":"validation-failed","title":"Not valid","detail":"see errors","errors":[{"pointer":"/units","detail":"too many"}]}`,
			1, "422 Unprocessable Entity: validation-failed: Not valid: see errors\n  /units: too many",
		},
		"unavailable": {503, `{"code":"unavailable"}`, 1, "503 Service Unavailable: unavailable\nTo try again without restocking twice, add --event-id e1"},
		"no problem":  {502, `<html>`, 1, "502 Bad Gateway"},
		"no JSON":     {200, `<html>`, 1, "event e1 cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			newFakeDoor(t, c.status, c.answer)
			got := run(t, Services{}, "stock", "restock", "CHAIR", "4", "--event-id", "e1")
			require.Equal(t, c.code, got.code, got.err)
			require.Contains(t, got.err, c.says)
		})
	}
}

func TestBadStockCommandsSendNothing(t *testing.T) {
	d := newFakeDoor(t, 200, `{}`)
	for _, args := range [][]string{
		{"get", "a/b"},
		{"get", ""},
		{"get", strings.Repeat("x", 65)},
		{"restock", "a b", "1"},
		{"restock", "CHAIR", "0"},
		{"restock", "CHAIR", "1.5"},
		{"restock", "CHAIR", "1e3"},
		{"restock", "CHAIR", "1000000001"},
		{"restock", "CHAIR", "99999999999999999999"},
		{"restock", "CHAIR", "four"},
		{"restock", "CHAIR", "--", "-4"},
	} {
		got := run(t, Services{}, append([]string{"stock"}, args...)...)
		require.Equal(t, exitUsage, got.code, "%v: %s", args, got.err)
	}
	require.Zero(t, d.calls)
}

func TestAccessIsNeverGuessedForAnotherMachine(t *testing.T) {
	const key, secret = "HOLDFAST_KEY", "HOLDFAST_WEBHOOK_SECRET"
	get, restock := []string{"stock", "get", "CHAIR"}, []string{"stock", "restock", "CHAIR", "1"}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		says string
	}{
		"no key":        {get, map[string]string{"HOLDFAST_URL": "https://door.example", secret: "x"}, "HOLDFAST_KEY is not set"},
		"no secret":     {restock, map[string]string{"HOLDFAST_URL": "https://door.example", key: "x"}, "HOLDFAST_WEBHOOK_SECRET is not set"},
		"empty key":     {get, map[string]string{key: ""}, "HOLDFAST_KEY is set, but to nothing"},
		"empty secret":  {restock, map[string]string{secret: ""}, "HOLDFAST_WEBHOOK_SECRET is set, but to nothing"},
		"no URL":        {get, map[string]string{"HOLDFAST_URL": ""}, `HOLDFAST_URL is ""`},
		"not a URL":     {get, map[string]string{"HOLDFAST_URL": "127.0.0.1:8080"}, "HOLDFAST_URL is"},
		"other scheme":  {get, map[string]string{"HOLDFAST_URL": "ftp://127.0.0.1"}, "HOLDFAST_URL is"},
		"near loopback": {get, map[string]string{"HOLDFAST_URL": "http://127.0.0.1.example"}, "HOLDFAST_KEY is not set"},
		"broken secret": {restock, map[string]string{secret: "whsec_!!!do-not-show"}, "not whsec_ and base64"},
	} {
		t.Run(name, func(t *testing.T) {
			plain(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got := run(t, Services{}, c.args...)
			require.Equal(t, exitUsage, got.code, got.err)
			require.Contains(t, got.err, c.says)
			require.NotContains(t, got.err, "do-not-show")
		})
	}
}

func TestADoorThatDoesNotAnswer(t *testing.T) {
	plain(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	t.Setenv("HOLDFAST_URL", server.URL)
	got := run(t, Services{}, "stock", "get", "CHAIR")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "the door at "+server.URL+" does not answer")
	got = run(t, Services{}, "stock", "restock", "CHAIR", "1", "--event-id", "e1")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "--event-id e1")
}

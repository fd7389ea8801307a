package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/codec"
	"holdfast/config"
	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/leak"
)

// Who plays in the story, and with which money.
var private = map[string]string{
	"phone of Ada": "+12025550147", "phone of Bob": "+12025550158", "phone of Eve": "+12025550169", "phone of Dan": "+12025550136",
	"digits of Ada": "2025550147", "digits of Eve": "2025550169",
	"name of Ada": "Adelheid Vanterpool", "name of Bob": "Bartholomeus Quist", "name of Dan": "Dankwart Ysbrandt",
	"the payment that sells": "pi_3PrivateSale0001", "the second payment": "pi_3PrivateSecond002",
	"the declined payment": "pi_3PrivateDeclined03", "the late payment": "pi_3PrivateLate00004", "the unreadable payment": "pi_3PrivateOdd000005",
}

// With a key no phone, name or payment reference stands in clear in Temporal or
// in Redis, nor in a file of either, nor in a log. Without one the same story
// shows each of them to the same look.
func TestPrivacy(t *testing.T) {
	t.Run("with a key", func(t *testing.T) {
		story := playPrivately(t, config.DevPayloadKey)
		temporal := story.temporalSays(t)
		require.Empty(t, temporal.hits)
		require.Empty(t, temporal.plain, "every payload but those of search attributes is encrypted")
		files, err := leak.New(private).Files(story.h.dir)
		require.NoError(t, err)
		require.Empty(t, files, "the databases, the append-only file and the logs")
		story.redisKeepsNothing(t)
		story.theUICanRead(t)
		story.theShopCanRead(t)
		story.h.judge(t, story.sku)
	})
	t.Run("without a key the look sees each of them", func(t *testing.T) {
		story := playPrivately(t, "")
		temporal := story.temporalSays(t)
		seen := map[string]bool{}
		for _, hit := range temporal.hits {
			seen[hit.What] = true
		}
		for name := range private {
			require.True(t, seen[name], "%s is not seen", name)
		}
		for _, place := range []string{
			"workflow_execution_started_event_attributes.input", "workflow_execution_signaled_event_attributes.input",
			"activity_task_scheduled_event_attributes.input", "marker_recorded_event_attributes.details",
			"workflow_execution_update_accepted_event_attributes.accepted_request.input",
			"workflow_execution_update_completed_event_attributes.outcome.success",
			"workflow_execution_completed_event_attributes.result", "workflow_execution_failed_event_attributes.failure.message",
			"user_metadata.summary", "described.execution_config.user_metadata.summary", "query status", "query __temporal_workflow_metadata", "refused update",
		} {
			require.True(t, temporal.hitIn(place), "nothing is seen in %s; places: %v", place, temporal.hits)
		}
		files, err := leak.New(private).Files(filepath.Join(story.h.dir, stack.Temporal))
		require.NoError(t, err)
		require.NotEmpty(t, files, "Temporal's database shows them to whoever has the file")
		story.redisKeepsNothing(t) // sealed with and without
		story.h.judge(t, story.sku)
	})
}

type privateStory struct {
	h     *house
	sku   string
	codec *codec.Codec
}

// playPrivately plays a story in which every kind of message is sent: a sale of
// an offer, a second payment that goes back, a leaver, a number that no text
// reaches, a declined and a late payment, one that nobody can read, a failure.
func playPrivately(t *testing.T, key string) privateStory {
	t.Helper()
	ctx := t.Context()
	provider := newTexter(t, private["phone of Eve"])
	box := newInbox(t)
	box.parrot = true
	env := box.env()
	maps.Copy(env, provider.env())
	s := privateStory{sku: "privacy"}
	var ring []codec.Key
	if key != "" {
		env["HOLDFAST_SECRETS_PAYLOAD_KEYS"] = key
		id, secret, ok := config.PayloadKey(key)
		require.True(t, ok)
		ring = append(ring, codec.Key{ID: id, Secret: secret})
	}
	var err error
	s.codec, err = codec.New(ring...)
	require.NoError(t, err)
	s.h = ownHouse(t, stack.Options{Env: env, UI: true}, lease)
	h := s.h
	h.check.Codec = s.codec
	h.check.Texts = func() ([]check.Text, error) { return nil, nil }
	own := s.client(t)

	h.opened(t, s.sku, 0)
	ada := s.join(t, "Ada")
	bob := s.join(t, "Bob")
	eve := s.join(t, "Eve")
	_, err = h.entryState(ctx, eve, "unreachable")
	require.NoError(t, err)
	left, err := h.shop.Call(ctx, http.MethodDelete, "/v1/waitlist/"+bob, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, left.Status, left)

	require.NoError(t, h.shop.Restock(ctx, s.sku, 1))
	page, err := h.shop.Visit(ctx, provider.link(t, private["phone of Ada"]))
	require.NoError(t, err)
	pressed, err := h.shop.Press(ctx, page, "/r/")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, pressed.Status, pressed.Text)
	entry, err := h.entryState(ctx, ada, "holding")
	require.NoError(t, err)
	hold := entry.HoldID
	started, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold+"/checkout", map[string]any{"payment_ref": private["the payment that sells"]})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, started.Status, started)
	require.NoError(t, own.SignalWorkflow(ctx, hold, "", "payment-succeeded", map[string]string{"ref": private["the unreadable payment"]}))
	confirmed(t, h, hold, private["the payment that sells"])
	s.refused(t, hold, "the second payment", "payment-conflict")
	second := paymentID(hold, private["the second payment"])
	require.NoError(t, own.SignalWorkflow(ctx, second, "", "refund-settled", map[string]string{"reference": "re of " + private["the second payment"], "actor": "ops"}))
	require.NoError(t, h.closed(ctx, second))

	// A walk-in whose shop calls customers by their names.
	require.NoError(t, h.shop.Restock(ctx, s.sku, 1))
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{
		"sku": s.sku, "quantity": 1, "customer": private["name of Dan"], "customer_phone": private["phone of Dan"], "order_ref": "for " + private["phone of Dan"],
	}, "Idempotency-Key", "dan")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	var dan struct {
		HoldID string `json:"hold_id"`
	}
	require.NoError(t, json.Unmarshal(a.Body, &dan))
	_, err = h.shop.Declined(ctx, dan.HoldID, private["the declined payment"])
	require.NoError(t, err)
	_, err = h.holdState(ctx, dan.HoldID, "released")
	require.NoError(t, err)
	s.refused(t, dan.HoldID, "the late payment", "hold-ended")

	// A workflow that fails, and says of whom.
	_, err = own.ExecuteWorkflow(ctx, onQueue("broken"), "Hold", map[string]any{"hold_id": private["name of Ada"], "lines": []any{}})
	require.NoError(t, err)
	for _, id := range []string{"broken", hold, dan.HoldID, ada, bob, eve} {
		require.NoError(t, h.closed(ctx, id))
	}
	// The shop is told of all of it, by an endpoint that refuses everything once
	// with its own words.
	require.NoError(t, box.has(ctx, 16))
	return s
}

// join joins with number and name, and waits until the workflow has acknowledged.
func (s privateStory) join(t *testing.T, who string) string {
	t.Helper()
	a, err := s.h.shop.Call(t.Context(), http.MethodPost, "/v1/waitlist", map[string]any{
		"sku": s.sku, "phone": private["phone of "+who], "name": private["name of "+who], "consent": true,
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	var entry struct {
		EntryID string `json:"entry_id"`
	}
	require.NoError(t, json.Unmarshal(a.Body, &entry))
	require.NoError(t, until(t.Context(), who+" is acknowledged", func() error {
		known, err := s.h.check.Acknowledged(t.Context(), s.sku, entry.EntryID)
		if err == nil && !known {
			err = errors.New("not yet")
		}
		return err
	}))
	return entry.EntryID
}

func (s privateStory) refused(t *testing.T, hold, payment, code string) {
	t.Helper()
	a, err := s.h.shop.Confirm(t.Context(), hold, private[payment])
	require.NoError(t, err)
	require.Equal(t, code, a.Code(), a)
	require.Equal(t, private[payment], a.Problem().Refund.PaymentRef, "the shop is told the real one")
}

// redisKeepsNothing looks at every key, value and byte of the append-only file.
// The look then finds what is planted before its eyes.
func (s privateStory) redisKeepsNothing(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	find := leak.New(private)
	holds := func(text string) bool { return len(find.In([]byte(text))) > 0 }
	keys, err := s.h.check.KeysWith(ctx, holds)
	require.NoError(t, err)
	require.Empty(t, keys)
	require.NoError(t, s.h.redis.Set(ctx, "end-of-story", "end-of-story", 0).Err())
	file := s.appendOnlyFile(t, "end-of-story")
	require.Contains(t, file, "hf:{"+s.sku+"}:ledger", "the whole story is in it")
	require.Contains(t, file, "confirm")
	require.Empty(t, find.In([]byte(file)))

	for name, value := range private {
		require.NoError(t, s.h.redis.HSet(ctx, "planted", "field", value).Err())
		require.NoError(t, s.h.redis.Set(ctx, "planted:"+value, name, 0).Err())
		keys, err := s.h.check.KeysWith(ctx, holds)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"planted", "planted:" + value}, keys, name)
		require.Contains(t, find.In([]byte(s.appendOnlyFile(t, value))), name)
		require.NoError(t, s.h.redis.Del(ctx, "planted", "planted:"+value).Err())
	}
}

// appendOnlyFile is the file when it has come to a mark.
func (s privateStory) appendOnlyFile(t *testing.T, mark string) string {
	t.Helper()
	var all []byte
	require.NoError(t, until(t.Context(), "the append-only file has "+mark, func() error {
		parts, err := filepath.Glob(filepath.Join(s.h.dir, stack.Redis, "appendonlydir", "*.aof"))
		all = nil
		for _, part := range parts {
			raw, rerr := os.ReadFile(part)
			err = errors.Join(err, rerr)
			all = append(all, raw...)
		}
		if err == nil && !bytes.Contains(all, []byte(mark)) {
			err = fmt.Errorf("not in %v", parts)
		}
		return err
	}))
	return string(all)
}

// theUICanRead asks as a page of the embedded UI does, where the UI was told to.
func (s privateStory) theUICanRead(t *testing.T) {
	t.Helper()
	var settings struct{ Codec struct{ Endpoint string } }
	require.NoError(t, getJSON(t.Context(), s.h.UIURL()+"/api/v1/settings", &settings))
	require.Equal(t, s.h.URL()+"/codec", settings.Codec.Endpoint)
	events := s.history(t, "broken")
	input := events[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
	raw, err := protojson.Marshal(input)
	require.NoError(t, err)
	for origin, status := range map[string]int{s.h.UIURL(): http.StatusOK, "https://evil.example": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, settings.Codec.Endpoint+"/decode?preserveStorageRefs=true", bytes.NewReader(raw))
		require.NoError(t, err)
		req.Header.Set("Origin", origin)
		req.Header.Set("X-Namespace", "default")
		req.Header.Set("Content-Type", "application/json")
		res, err := s.h.shop.HTTP.Do(req)
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = out.ReadFrom(res.Body)
		require.NoError(t, errors.Join(err, res.Body.Close()))
		require.Equal(t, status, res.StatusCode, out.String())
		if status != http.StatusOK {
			require.Empty(t, leak.New(private).In(out.Bytes()))
			continue
		}
		require.Equal(t, origin, res.Header.Get("Access-Control-Allow-Origin"))
		var plain commonpb.Payloads
		require.NoError(t, protojson.Unmarshal(out.Bytes(), &plain))
		require.Contains(t, string(plain.GetPayloads()[0].GetData()), private["name of Ada"])
	}
}

// theShopCanRead sees the real references in what the API answers.
func (s privateStory) theShopCanRead(t *testing.T) {
	t.Helper()
	a, err := s.h.shop.Call(t.Context(), http.MethodGet, "/v1/stock/"+s.sku+"/ledger?limit=200", nil)
	require.NoError(t, err)
	for _, name := range []string{"the payment that sells", "the second payment", "the late payment"} {
		require.Contains(t, string(a.Body), `"payment_ref":"`+private[name]+`"`, name)
	}
	require.NotContains(t, string(a.Body), "s1.")
}

func getJSON(ctx context.Context, url string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(out)
}

// temporalTold is all that Temporal can be asked for, looked through.
type temporalTold struct {
	hits  []leak.Hit
	plain []string // payloads in clear that are none of a search attribute
}

func (s temporalTold) hitIn(place string) bool {
	for _, hit := range s.hits {
		if strings.Contains(hit.Where, place) {
			return true
		}
	}
	return false
}

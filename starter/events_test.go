package starter

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// event makes an Event of the house, in state.
func (h *house) telling(nth, state string) contract.EventStatus {
	holdID := contract.HoldID(h.sku, []byte("eleven bytes"))
	s := contract.EventStatus{
		EventID: contract.EventID(holdID, contract.EventHoldCreated, nth), Type: contract.EventHoldCreated, Subject: holdID,
		Sequence: paidAt.UnixMicro(), At: paidAt, State: state,
	}
	if state == contract.EventParked {
		at := paidAt.Add(72 * time.Hour)
		s.ParkedAt, s.Reason = &at, "the endpoint answered 500"
	}
	h.becomes(s)
	return s
}

func (h *house) becomes(s contract.EventStatus) {
	h.wf.set(func() { h.wf.statuses[s.EventID] = s })
}

func TestEventsAreListedAsTheyAre(t *testing.T) {
	h := newHouse(t, 0)
	parked, sending, taken := h.telling("1", contract.EventParked), h.telling("2", contract.EventSending), h.telling("3", contract.EventDelivered)
	h.dir.events = []string{parked.EventID, sending.EventID, taken.EventID, "event_silent"}
	list := func(query string) (rows []map[string]any) {
		a := h.call("GET", "/v1/events"+query, nil)
		require.Equal(t, http.StatusOK, a.status, a.body)
		var page struct {
			Data []map[string]any `json:"data"`
			Next *string          `json:"next_cursor"`
		}
		a.into(t, &page)
		require.Equal(t, h.cursor(listOfEvents), *page.Next)
		return page.Data
	}
	first := map[string]any{
		"event_id": parked.EventID, "type": "hold.created", "subject": parked.Subject, "sequence": float64(parked.Sequence), "state": "parked",
		"reason": "the endpoint answered 500", "happened_at": "2026-01-31T12:00:00.000Z", "parked_at": "2026-02-03T12:00:00.000Z",
	}
	h.untouched(func() {
		require.Equal(t, []map[string]any{first, {"event_id": "event_silent", "state": "parked"}}, list("?state=parked&limit=7&cursor="+h.cursor(listOfEvents)),
			"visibility is behind; one that does not answer is listed all the same")
		require.Len(t, list(""), 3, "what the shop has taken is no more listed")
	})
	require.Equal(t, []string{`events "parked" 7 "next"`, `events "" 50 ""`}, h.dir.listed)

	for _, query := range []string{"?state=delivered", "?state=", "?limit=0", "?cursor=%21"} {
		a := h.call("GET", "/v1/events"+query, nil)
		if query == "?state=" {
			require.Equal(t, http.StatusOK, a.status)
			continue
		}
		require.Equal(t, validationFailed, a.problem(t).Code, query)
	}
}

func TestAnEventIsTriedAfresh(t *testing.T) {
	h := newHouse(t, 0)
	parked := h.telling("1", contract.EventParked)
	path := "/v1/events/" + parked.EventID + "/retry"
	h.wf.onAfresh = func(string) error {
		s := parked
		s.State = contract.EventSending
		h.becomes(s)
		return nil
	}
	a := h.call("POST", path, nil)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var v tellingView
	a.into(t, &v)
	require.Equal(t, contract.EventSending, v.State)
	caller, _, _ := strings.Cut(h.cfg.Secrets.APIKeys[0], ":")
	require.Equal(t, []sentSignal{{parked.EventID, contract.SignalRetry, contract.EventMove{Actor: caller}}}, h.wf.signals)

	// Refused again within the same moment: that is an answer too.
	h.becomes(parked)
	h.wf.onAfresh = func(string) error {
		s, at := parked, paidAt.Add(100*time.Hour)
		s.ParkedAt, s.Reason = &at, "the endpoint answered 410"
		h.becomes(s)
		return nil
	}
	a = h.call("POST", path, nil)
	require.Equal(t, http.StatusOK, a.status, a.body)
	a.into(t, &v)
	require.Equal(t, "the endpoint answered 410", v.Reason)

	// What the shop has is shown as it is, and nothing is sent.
	taken := h.telling("2", contract.EventDelivered)
	h.wf.onAfresh = func(string) error { return launch.ErrNoOwner }
	a = h.call("POST", "/v1/events/"+taken.EventID+"/retry", nil)
	require.Equal(t, http.StatusOK, a.status, a.body)
	a.into(t, &v)
	require.Equal(t, contract.EventDelivered, v.State)
}

func TestARetryThatIsNotSeen(t *testing.T) {
	h := newHouse(t, 0)
	parked := h.telling("1", contract.EventParked)
	h.wf.onAfresh = func(string) error { return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := h.door.retryEvent(ctx, parked.EventID, "shop")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, id := range []string{contract.EventID("nobody", "hold.created", ""), "event_1", parked.Subject} {
		a := h.call("POST", "/v1/events/"+id+"/retry", nil)
		require.Equal(t, http.StatusNotFound, a.status)
		require.Equal(t, unknownEvent, a.problem(t).Code)
	}
	a := h.call("POST", "/v1/events/"+parked.EventID+"/retry", map[string]any{"force": true})
	require.Equal(t, validationFailed, a.problem(t).Code)
}

var testBody = regexp.MustCompile(`^\{"type":"holdfast\.test","timestamp":"[0-9TZ:.-]+","sequence":[0-9]+,"data":\{"note":"[^"]+"\}\}$`)

// A test event tells what the endpoint says of it, and what to do.
func TestTheEndpointIsTested(t *testing.T) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of this very test"))
	verify, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	status := http.StatusOK
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verify.Verify(body, r.Header)
		}
		if err != nil {
			t.Error(err)
		}
		if !testBody.Match(body) {
			t.Errorf("unexpected body %s", body)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "who are you?")
	}))
	t.Cleanup(endpoint.Close)
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) {
		cfg.Events = config.Events{URL: endpoint.URL, Secrets: []string{secret}, Timeout: 5 * time.Second, Concurrency: 1}
	})
	test := func() (v testView) {
		a := h.call("POST", "/v1/events/test", nil)
		require.Equal(t, http.StatusOK, a.status, a.body)
		a.into(t, &v)
		require.True(t, contract.ValidEventID(v.EventID))
		v.EventID = ""
		return v
	}
	require.Equal(t, testView{Acknowledged: true}, test())
	status = http.StatusUnauthorized
	require.Equal(t, testView{
		Status: 401, Answer: "who are you?", Reason: "the endpoint answered 401", Do: "compare the endpoint's secrets here with what it verifies",
	}, test())
	endpoint.Close()
	v := test()
	require.False(t, v.Acknowledged)
	require.Contains(t, v.Reason, "no answer")

	a := newHouse(t, 0).call("POST", "/v1/events/test", nil)
	require.Equal(t, validationFailed, a.problem(t).Code)
	require.Contains(t, a.problem(t).Detail, "set events.url")
}

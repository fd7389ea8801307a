package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
)

var (
	eventOne = contract.EventID("hold_1", contract.EventHoldCreated, "")
	eventTwo = contract.EventID("hold_2", contract.EventHoldCreated, "")
)

// eventDoor has one parked event a page, and an answer for each event.
type eventDoor struct {
	rows    []string
	answers map[string]string // event id, or "test"
	refuse  string            // an event id that is not known
	asked   []string
}

func (d *eventDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.asked = append(d.asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/events"), "/")
	switch {
	case len(path) == 1:
		at := 0
		if r.URL.Query().Get("cursor") != "" {
			at = 1
		}
		next := "null"
		if at+1 < len(d.rows) {
			next = `"a cursor"`
		}
		_, _ = io.WriteString(w, `{"data":[`+strings.Join(d.rows[at:min(at+1, len(d.rows))], "")+`],"next_cursor":`+next+`}`)
	case path[1] == d.refuse:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"unknown-event"}`)
	default:
		_, _ = io.WriteString(w, d.answers[path[1]])
	}
}

func newEventDoor(t *testing.T, d *eventDoor) *eventDoor {
	t.Helper()
	plain(t)
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	return d
}

func TestEventsParked(t *testing.T) {
	one := `{"event_id":"` + eventOne + `","type":"hold.created","subject":"hold_1","sequence":9007199254740993,"state":"parked","reason":"it said\nno","happened_at":"2026-01-31T12:00:00.000Z","parked_at":"2026-02-03T12:00:00.000Z"}`
	two := `{"event_id":"` + eventTwo + `","state":"parked"}`
	d := newEventDoor(t, &eventDoor{rows: []string{one, two}})
	got := run(t, Services{}, "events", "parked")
	require.Zero(t, got.code, got.err)
	bearer := " Bearer " + config.DevAPIKey
	require.Equal(t, []string{"GET /v1/events?limit=200&state=parked" + bearer, "GET /v1/events?cursor=a+cursor&limit=200&state=parked" + bearer}, d.asked)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 3)
	for i, want := range []string{
		"event_id type subject happened_at parked_at reason",
		eventOne + " hold.created hold_1 2026-01-31T12:00:00.000Z 2026-02-03T12:00:00.000Z it said no",
		eventTwo + " - - - - -",
	} {
		require.Equal(t, want, strings.Join(strings.Fields(lines[i]), " "))
	}
	got = run(t, Services{}, "events", "parked", "--json")
	require.Zero(t, got.code, got.err)
	require.JSONEq(t, "["+one+","+two+"]", got.out)
	require.Contains(t, got.out, "9007199254740993", "numbers stay as they were written")
}

func TestEventsRetry(t *testing.T) {
	d := newEventDoor(t, &eventDoor{
		rows:    []string{`{"event_id":"` + eventOne + `"}`, `{"event_id":"` + eventTwo + `"}`},
		answers: map[string]string{eventOne: `{"event_id":"` + eventOne + `","state":"sending"}`, eventTwo: `{"event_id":"` + eventTwo + `","state":"delivered"}`},
	})
	got := run(t, Services{}, "events", "retry", eventOne)
	require.Equal(t, result{0, eventOne + " is sending\n", ""}, got)
	require.Equal(t, []string{"POST /v1/events/" + eventOne + "/retry Bearer " + config.DevAPIKey}, d.asked)

	got = run(t, Services{}, "events", "retry", "--all")
	require.Equal(t, result{0, eventOne + " is sending\n" + eventTwo + " is delivered\n", ""}, got)
	require.JSONEq(t, "["+d.answers[eventOne]+","+d.answers[eventTwo]+"]", run(t, Services{}, "events", "retry", "--all", "--json").out)

	// One that fails says nothing of the next.
	d.refuse = eventOne
	got = run(t, Services{}, "events", "retry", "--all")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, eventTwo+" is delivered\n", got.out)
	require.Contains(t, got.err, eventOne+": the door answered 404 Not Found: unknown-event")
	d.answers[eventTwo] = `{"event_id":"` + eventTwo + `","state":"parked","reason":"the endpoint answered 410"}`
	got = run(t, Services{}, "events", "retry", eventTwo)
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "is parked: the endpoint answered 410")

	// After an outage of the endpoint: what waits for its next attempt.
	d.answers[eventTwo], d.refuse, d.asked = `{"event_id":"`+eventTwo+`","state":"sending"}`, "", nil
	got = run(t, Services{}, "events", "retry", "--all", "--sending")
	require.Equal(t, result{0, eventOne + " is sending\n" + eventTwo + " is sending\n", ""}, got)
	require.Contains(t, d.asked[0], "GET /v1/events?limit=200&state=sending")
	require.Contains(t, d.asked[2], "POST /v1/events/"+eventOne+"/retry")

	d.rows, d.asked = nil, nil
	require.Equal(t, result{0, "", ""}, run(t, Services{}, "events", "retry", "--all"))
	require.Zero(t, run(t, Services{}, "events", "parked", "--sending").code)
	require.Contains(t, d.asked[0], "state=parked")
	require.Contains(t, d.asked[1], "state=sending")
}

func TestEventsTest(t *testing.T) {
	d := newEventDoor(t, &eventDoor{answers: map[string]string{"test": `{"event_id":"` + eventOne + `","acknowledged":true}`}})
	require.Equal(t, result{0, "the endpoint took " + eventOne + "\n", ""}, run(t, Services{}, "events", "test"))
	d.answers["test"] = `{"event_id":"` + eventOne + `","acknowledged":false,"status":401,"answer":"who?","reason":"the endpoint answered 401","do":"compare the secrets"}`
	got := run(t, Services{}, "events", "test")
	require.Equal(t, exitFailure, got.code)
	asJSON := run(t, Services{}, "events", "test", "--json")
	require.Equal(t, exitFailure, asJSON.code)
	require.JSONEq(t, d.answers["test"], asJSON.out)
	require.Equal(t, "holdfast: the endpoint did not take "+eventOne+": the endpoint answered 401\n  it said: \"who?\"\n  what to do: compare the secrets\n", got.err)
}

func TestBadEventCommandsSendNothing(t *testing.T) {
	d := newEventDoor(t, &eventDoor{answers: map[string]string{"test": `{}`}})
	for _, c := range []struct {
		says string
		args []string
	}{
		{"one more word", nil},
		{"burn", []string{"burn"}},
		{"name one event, or --all", []string{"retry"}},
		{"name one event, or --all", []string{"retry", eventOne, "--all"}},
		{"--sending goes with --all", []string{"retry", eventOne, "--sending"}},
		{"is no id of an event", []string{"retry", "event_1"}},
		{"is no id of an event", []string{"retry", contract.PaymentID("hold_1", "P1")}},
		{"unknown command", []string{"test", "now"}},
	} {
		got := run(t, Services{}, append([]string{"events"}, c.args...)...)
		require.Equal(t, exitUsage, got.code, "%v: %s", c.args, got.err)
		require.Contains(t, got.err, c.says)
	}
	require.Empty(t, d.asked)
	got := run(t, Services{}, "events", "test")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "is no test")
}

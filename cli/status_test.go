package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// onCallDoor answers paths as they were put; any other call is 503.
type onCallDoor struct {
	answers map[string]string // method, space, path
	mu      sync.Mutex
	asked   []string
	bodies  []string
}

func (d *onCallDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.asked, d.bodies = append(d.asked, r.Method+" "+r.URL.Path), append(d.bodies, string(body))
	d.mu.Unlock()
	said, ok := d.answers[r.Method+" "+r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		said = `{"code":"unavailable","detail":"not now"}`
	}
	_, _ = io.WriteString(w, said)
}

func newOnCallDoor(t *testing.T, answers map[string]string) *onCallDoor {
	t.Helper()
	plain(t)
	d := &onCallDoor{answers: answers}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	return d
}

const (
	wellDoor = `{"data":[],"redis":"open","temporal":"open"}`
	noRows   = `{"data":[],"next_cursor":null}`
	goodSKU  = `{"sku":"CHAIR","title":"Oak","state":"available","on_hand":9,"held":2,"offered":0,"available":7,"open_to_all":7,"sold":1,"returned":0,"waiting":0,"shortfall":0}`
	shortSKU = `{"sku":"SHORT","state":"sold_out","on_hand":1,"held":3,"offered":0,"available":-2,"open_to_all":0,"sold":1,"waiting":0,"shortfall":2,"rings":["shortfall"]}`
	bentSKU  = `{"sku":"BENT","state":"sold_out","on_hand":0,"held":-1,"offered":0,"available":1,"open_to_all":1,"sold":4,"waiting":0,"shortfall":0,"rings":["oversold","negative","ledger"]}`
	bothSKU  = `{"sku":"BOTH","state":"sold_out","on_hand":1,"held":3,"offered":0,"available":-2,"open_to_all":0,"sold":1,"waiting":0,"shortfall":2,"rings":["shortfall","ledger"]}`
	pauseSKU = `{"sku":"BENCH","state":"paused","on_hand":1,"held":0,"offered":0,"available":1,"open_to_all":0,"sold":0,"waiting":4,"shortfall":0}`
	shutSKU  = `{"sku":"VASE","state":"closed"}`
)

func rowsOf(rows ...string) string {
	return `{"data":[` + strings.Join(rows, ",") + `],"next_cursor":null}`
}

func TestStatusSaysHowEverythingIs(t *testing.T) {
	payment := func(members string) string {
		return `{"payment_id":"` + contract.PaymentID("hold_1", "pay_1") + `","created_at":"2026-01-31T12:00:00.000Z",` + members + `}`
	}
	for name, c := range map[string]struct {
		stock, refunds, events string
		exit                   int
		says                   []string
	}{
		"all is well":             {rowsOf(goodSKU), noRows, noRows, 0, []string{"all is well", "open refunds: 0", "parked events: 0", "SKUs: 1"}},
		"no SKU yet":              {noRows, noRows, noRows, 0, []string{"all is well", "SKUs: 0"}},
		"a pause is meant":        {rowsOf(goodSKU, pauseSKU), noRows, noRows, 0, []string{"all is well", "paused: holdfast resume"}},
		"a closed gate":           {rowsOf(goodSKU, shutSKU), noRows, noRows, 2, []string{"units or money are at stake", "! VASE: closed"}},
		"a shortfall":             {rowsOf(goodSKU, shortSKU), noRows, noRows, 2, []string{"! SHORT: shortfall: 2 promised"}},
		"other wires":             {rowsOf(goodSKU, bentSKU), noRows, noRows, 2, []string{"! BENT: oversold, negative, ledger: the books contradict each other; holdfast pause BENT, then holdfast statement BENT"}},
		"a shortfall and a wire":  {rowsOf(goodSKU, bothSKU), noRows, noRows, 2, []string{"! BOTH: shortfall: 2 promised that are not there; restock, or give holds back; ledger: the books"}},
		"a refund on its way":     {rowsOf(goodSKU), rowsOf(payment(`"state":"refund-pending","cause":"late"`)), noRows, 0, []string{"all is well", "open refunds: 1"}},
		"parked money":            {rowsOf(goodSKU), rowsOf(payment(`"state":"parked","cause":"unknown"`)), noRows, 1, []string{"is parked (unknown)", "holdfast refunds settle"}},
		"a refund by hand":        {rowsOf(goodSKU), rowsOf(payment(`"state":"refund-pending","by_hand":"too old"`)), noRows, 1, []string{"only a person can pay it back: too old"}},
		"money ended by hand":     {rowsOf(goodSKU), rowsOf(payment(`"state":"refund-pending","closed_at":"2026-01-31T12:00:00.000Z"`)), noRows, 1, []string{"ended by hand with the money still owed"}},
		"a parked event":          {rowsOf(goodSKU), noRows, rowsOf(`{"event_id":"` + eventOne + `"}`), 1, []string{"1 events were given up"}},
		"Temporal is away":        {rowsOf(goodSKU), "", "", 2, []string{"the open refunds are not known", "the parked events are not known", "open refunds: not known", "CHAIR"}},
		"the gate is away":        {"", noRows, noRows, 2, []string{"the SKUs are not known", "not now", "SKUs: not known"}},
		"what is no stock at all": {rowsOf(`7`), noRows, noRows, 2, []string{"is no stock"}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"GET /v1/attention": wellDoor}
			for path, said := range map[string]string{"GET /v1/stock": c.stock, "GET /v1/refunds": c.refunds, "GET /v1/events": c.events} {
				if said != "" {
					answers[path] = said
				}
			}
			newOnCallDoor(t, answers)
			got := run(t, Services{}, "status")
			require.Equal(t, c.exit, got.code, got.out+got.err)
			for _, said := range c.says {
				require.Contains(t, got.out, said)
			}
			require.Equal(t, c.exit != 0, strings.Contains(got.out, "\n! "), got.out)

			asJSON := run(t, Services{}, "status", "--json")
			require.Equal(t, c.exit, asJSON.code)
			var o struct {
				Exit      int
				Attention []string
				SKUs      []map[string]any
			}
			require.NoError(t, json.Unmarshal([]byte(asJSON.out), &o), asJSON.out)
			require.Equal(t, c.exit, o.Exit)
			require.Equal(t, c.exit != 0, len(o.Attention) > 0)
		})
	}
}

// Trouble comes first, and a screen has room for thirty.
func TestStatusPutsTroubleFirst(t *testing.T) {
	rows := []string{}
	for range 40 {
		rows = append(rows, goodSKU)
	}
	newOnCallDoor(t, map[string]string{"GET /v1/stock": rowsOf(append(rows, pauseSKU, shutSKU)...), "GET /v1/refunds": noRows, "GET /v1/events": noRows, "GET /v1/attention": wellDoor})
	got := run(t, Services{}, "status")
	_, table, _ := strings.Cut(got.out, "\n\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 1+screenful+1)
	require.Regexp(t, `^VASE +closed +- `, lines[1], "a closed gate has no numbers, not zeros")
	require.Regexp(t, `^BENCH +paused +1 `, lines[2])
	require.Equal(t, "and 12 more; --all shows them", lines[len(lines)-1])
	require.Equal(t, 42, strings.Count(run(t, Services{}, "status", "--all").out, "available")+2)
}

func TestStatusOfNoDoor(t *testing.T) {
	plain(t)
	t.Setenv("HOLDFAST_URL", "http://127.0.0.1:1")
	got := run(t, Services{}, "status")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.out, "! the SKUs are not known: the door does not answer (dial tcp 127.0.0.1:1: connect: connection refused): see whether it runs, and what HOLDFAST_URL says\n")
}

// What no list shows, the door says: the brake of a pass, a worker that stands still,
// money of another amount. Without its word nothing is well.
func TestStatusSaysWhatTheDoorSays(t *testing.T) {
	for name, c := range map[string]struct {
		looks string
		exit  int
		says  []string
	}{
		"the brake": {`{"data":[{"kind":"pass-alarm","grave":true,"sku":"TEE","says":"the pass of 13:44: more than 3 of 18 owners are missing","do":"see holdfast reconcile TEE --dry-run"}],"redis":"open","temporal":"open"}`, 2, []string{"units or money are at stake", "! TEE: the pass of 13:44: more than 3 of 18 owners are missing; see holdfast reconcile TEE --dry-run"}},
		"no worker": {`{"data":[{"kind":"no-worker","grave":true,"says":"no worker asks","do":"start one"}],"redis":"open","temporal":"open"}`, 2, []string{"! no worker asks; start one"}},
		"money":     {`{"data":[{"kind":"other-amount","sku":"TEE","id":"hold_1","says":"was paid another amount","do":"confirm it"}],"redis":"open","temporal":"open"}`, 1, []string{"a person should look", "! hold_1 was paid another amount; confirm it"}},
		"not told":  {``, 2, []string{"! what waits for a person is not known: the door answered 503"}},
		"no answer": {`{}`, 2, []string{"! what waits for a person is not known: the door's answer is no list"}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"GET /v1/stock": rowsOf(goodSKU), "GET /v1/refunds": noRows, "GET /v1/events": noRows}
			if c.looks != "" {
				answers["GET /v1/attention"] = c.looks
			}
			newOnCallDoor(t, answers)
			got := run(t, Services{}, "status")
			require.Equal(t, c.exit, got.code, got.out)
			for _, said := range c.says {
				require.Contains(t, got.out, said)
			}
			require.NotContains(t, got.out, "all is well")
		})
	}
}

// The line of a silent part names it, and not what the door says of any call.
func TestStatusNamesTheSilentPart(t *testing.T) {
	silent := func(redis, temporal string) string {
		return `{"data":[{"grave":true,"says":"a part is silent","do":"see the runbook"}],"redis":"` + redis + `","temporal":"` + temporal + `"}`
	}
	newOnCallDoor(t, map[string]string{"GET /v1/stock": rowsOf(goodSKU), "GET /v1/attention": silent("open", "unavailable")})
	got := run(t, Services{}, "status")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.out, "! a part is silent; see the runbook\n! the open refunds are not known: Temporal does not answer the door\n! the parked events are not known: Temporal does not answer the door\n")
	require.NotContains(t, got.out, "not now")

	newOnCallDoor(t, map[string]string{"GET /v1/refunds": noRows, "GET /v1/events": noRows, "GET /v1/attention": silent("unavailable", "open")})
	got = run(t, Services{}, "status")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.out, "! the SKUs are not known: Redis does not answer the door\n")
}

// A door that hangs costs one bound, not one for each call, and every line says so.
func TestStatusOfADoorThatHangs(t *testing.T) {
	plain(t)
	hangs := make(chan struct{})
	var asked sync.WaitGroup
	asked.Add(4)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Done()
		<-hangs
	}))
	t.Cleanup(func() { close(hangs); server.Close() })
	t.Setenv("HOLDFAST_URL", server.URL)
	d, err := newDoor()
	require.NoError(t, err)
	began := time.Now()
	o := readOverview(t.Context(), d, 500*time.Millisecond)
	require.Less(t, time.Since(began), doorTimeout, "its own bound, and not that of each call")
	asked.Wait() // all four side by side: none was answered
	require.Equal(t, statusGrave, o.Exit)
	require.Len(t, o.Attention, 4)
	for _, line := range o.Attention {
		require.Contains(t, line, "the door did not answer in 500ms: see its log")
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
)

const (
	owed    = `{"payment_id":"payment_x67zmfbi7te4sv3ertwta2nh7u","hold_id":"hold_1","payment_ref":"pay\n1","amount":9007199254740993,"currency":"EUR","cause":"late","state":"refund-pending","sku":"CHAIR","created_at":"2026-01-31T12:00:00.000Z"}`
	settled = `{"payment_id":"payment_y67zmfbi7te4sv3ertwta2nh7u","cause":"second","hold_id":"hold_2","payment_ref":"pay-2","state":"refund-settled","reference":"re_1","created_at":"2026-01-31T12:00:00.000Z","closed_at":"2026-01-31T13:00:00.000Z"}`
	silent  = `{"payment_id":"payment_z67zmfbi7te4sv3ertwta2nh7u","state":"parked","created_at":"2026-01-31T12:00:00.000Z"}`
)

// refundDoor gives one Payment a page and keeps what was asked.
type refundDoor struct {
	rows   []string
	asked  []string
	bearer string
}

func (d *refundDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.asked, d.bearer = append(d.asked, r.Method+" "+r.URL.String()), r.Header.Get("Authorization")
	at, next := len(d.asked)-1, "null"
	if at+1 < len(d.rows) {
		next = `"a cursor"`
	}
	_, _ = io.WriteString(w, `{"data":[`+strings.Join(d.rows[at:min(at+1, len(d.rows))], "")+`],"next_cursor":`+next+`}`)
}

func newRefundDoor(t *testing.T, rows ...string) *refundDoor {
	t.Helper()
	plain(t)
	d := &refundDoor{rows: rows}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	return d
}

func TestRefunds(t *testing.T) {
	d := newRefundDoor(t, owed, settled, silent)
	got := run(t, Services{}, "refunds", "--open", "--sku", "CHAIR")
	require.Zero(t, got.code, got.err)
	require.Equal(t, []string{
		"GET /v1/refunds?limit=200&open=true&sku=CHAIR",
		"GET /v1/refunds?cursor=a+cursor&limit=200&open=true&sku=CHAIR",
		"GET /v1/refunds?cursor=a+cursor&limit=200&open=true&sku=CHAIR",
	}, d.asked)
	require.Equal(t, "Bearer "+config.DevAPIKey, d.bearer)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{
		"payment_id state cause sku amount payment_ref hold_id reference created_at closed_at",
		"payment_x67zmfbi7te4sv3ertwta2nh7u refund-pending late CHAIR 9007199254740993 EUR pay 1 hold_1 - 2026-01-31T12:00:00.000Z -",
		"payment_y67zmfbi7te4sv3ertwta2nh7u refund-settled second - - pay-2 hold_2 re_1 2026-01-31T12:00:00.000Z 2026-01-31T13:00:00.000Z",
		"payment_z67zmfbi7te4sv3ertwta2nh7u parked - - - - - - 2026-01-31T12:00:00.000Z -",
	} {
		require.Equal(t, want, strings.Join(strings.Fields(lines[i]), " "))
	}

	d = newRefundDoor(t, owed, settled)
	t.Setenv("HOLDFAST_KEY", "another key")
	got = run(t, Services{}, "refunds", "--format", "json")
	require.Zero(t, got.code, got.err)
	require.JSONEq(t, "["+owed+","+settled+"]", got.out)
	require.Contains(t, got.out, "9007199254740993", "amounts stay as they were written")
	require.Equal(t, "GET /v1/refunds?limit=200", d.asked[0])
	require.Equal(t, "Bearer another key", d.bearer)

	newRefundDoor(t, owed, settled)
	require.Equal(t, got.out, run(t, Services{}, "refunds", "--json").out)
	require.Equal(t, exitUsage, run(t, Services{}, "refunds", "--json", "--format", "table").code)

	newRefundDoor(t)
	got = run(t, Services{}, "refunds", "--format", "json")
	require.Equal(t, result{0, "[]\n", ""}, got)
}

// settleDoor answers alike and keeps what it was told.
type settleDoor struct {
	t      *testing.T
	status int
	answer string
	told   []string
}

func (d *settleDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method == http.MethodPost && !json.Valid(body) {
		d.t.Errorf("not JSON: %s", body)
	}
	d.told = append(d.told, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}, " "))
	w.WriteHeader(d.status)
	_, _ = io.WriteString(w, d.answer)
}

func newSettleDoor(t *testing.T, status int, answer string) *settleDoor {
	t.Helper()
	plain(t)
	d := &settleDoor{t: t, status: status, answer: answer}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	return d
}

var paymentID = contract.PaymentID("hold_1", "pay-1")

func TestRefundsSettle(t *testing.T) {
	answer := `{"payment_id":"` + paymentID + `","state":"refund-settled","reference":"re_1"}`
	d := newSettleDoor(t, 200, answer)
	got := run(t, Services{}, "refunds", "settle", paymentID, "--ref", " re_1 ", "--yes")
	require.Equal(t, result{0, paymentID + " is refund-settled, reference re_1\n", ""}, got)
	require.Equal(t, []string{"POST /v1/refunds/" + paymentID + "/settle Bearer " + config.DevAPIKey + ` application/json {"reference":"re_1"}`}, d.told)

	got = run(t, Services{}, "refunds", "settle", paymentID, "--ref", "re_1", "--yes", "--json")
	require.Zero(t, got.code)
	require.JSONEq(t, answer, got.out)

	got = run(t, Services{}, "refunds", "settle", paymentID, "--ref", "re_2", "--yes")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "holdfast: "+paymentID+` was settled before, with reference "re_1"; "re_2" was not recorded`+"\n", got.err)
	require.Empty(t, got.out)
}

// A reference can never be changed: a person agrees to it, or a script says --yes.
func TestRefundsSettleAsks(t *testing.T) {
	d := newSettleDoor(t, 200, `{"payment_id":"`+paymentID+`","state":"refund-settled","reference":"re_1"}`)
	settle := func(typed string, terminal bool) result {
		var out, err bytes.Buffer
		code := Main(t.Context(), []string{"refunds", "settle", paymentID, "--ref", "re_1"}, Streams{Out: &out, Err: &err, In: strings.NewReader(typed), Terminal: terminal}, Services{})
		return result{code, out.String(), err.String()}
	}
	got := settle("yes\n", false)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "add --yes")
	got = settle("y\n", true)
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "nothing was changed")
	require.Empty(t, d.told)
	got = settle("yes\n", true)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, paymentID+` is settled for good, with reference "re_1". This cannot be undone. Type yes`)
	require.Len(t, d.told, 1)
}

func TestRefundsSettleFails(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		says   string
	}{
		"sold":      {409, `{"code":"hold-ended","title":"The hold has ended","detail":"it made the sale"}`, "hold-ended: The hold has ended: it made the sale"},
		"unknown":   {404, `{"code":"unknown-hold"}`, "unknown-hold"},
		"not yet":   {503, `{"code":"unavailable","detail":"repeat the request to see it settled"}`, "repeat the request"},
		"no refund": {200, `{}`, "the door's answer is no refund"},
		"no JSON":   {200, `<html>`, "the door's answer is no refund"},
	} {
		t.Run(name, func(t *testing.T) {
			newSettleDoor(t, c.status, c.answer)
			got := run(t, Services{}, "refunds", "settle", paymentID, "--ref", "re_1", "--yes")
			require.Equal(t, exitFailure, got.code)
			require.Contains(t, got.err, c.says)
			require.Empty(t, got.out)
		})
	}
	for _, answer := range []string{`{}`, `<html>`, `{"data":[{}]}`} {
		newSettleDoor(t, 200, answer)
		got := run(t, Services{}, "refunds")
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, got.err, "the door's answer is no")
	}
	newSettleDoor(t, 401, `{"code":"unauthorized"}`)
	got := run(t, Services{}, "refunds")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "unauthorized")
}

func TestRefundsRetry(t *testing.T) {
	answer := func(state, more string) string {
		return `{"payment_id":"` + paymentID + `","state":"` + state + `"` + more + `}`
	}
	for name, c := range map[string]struct {
		status int
		answer string
		code   int
		says   string
	}{
		"gone back":   {200, answer("refund-settled", `,"reference":"re_1"`), 0, "is refund-settled: the money has gone back, reference re_1"},
		"taken":       {200, answer("refund-reported", ``), 0, "is refund-reported: the provider has taken the request"},
		"silent":      {202, answer("refund-pending", `,"by_hand":"of the last time"`), 0, "has not answered yet; it is asked until it does"},
		"by hand":     {200, answer("refund-pending", `,"by_hand":"401: set the key"`), exitFailure, "is refund-pending: 401: set the key"},
		"parked":      {200, answer("parked", ``), exitFailure, "is parked: there is no refund to ask for"},
		"refused":     {422, `{"code":"validation-failed","detail":"it is parked"}`, exitFailure, "validation-failed: it is parked"},
		"made a sale": {409, `{"code":"hold-ended"}`, exitFailure, "hold-ended"},
		"no refund":   {200, `{}`, exitFailure, "the door's answer is no refund"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newSettleDoor(t, c.status, c.answer)
			got := run(t, Services{}, "refunds", "retry", paymentID)
			require.Equal(t, c.code, got.code, got.err)
			require.Contains(t, got.out+got.err, c.says)
			require.Equal(t, c.code == 0, got.err == "")
			require.Equal(t, []string{"POST /v1/refunds/" + paymentID + "/retry Bearer " + config.DevAPIKey + " application/json {}"}, d.told)
		})
	}
}

func TestBadRefundCommandsSendNothing(t *testing.T) {
	d := newSettleDoor(t, 200, `{}`)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"a/b", []string{"--sku", "a/b"}},
		{`""`, []string{"--sku", ""}},
		{"xml", []string{"--format", "xml"}},
		{"burn", []string{"burn"}},
		{"1 arg", []string{"settle"}},
		{"1 arg", []string{"retry"}},
		{"holdfast refunds --open", []string{"retry", "payment_1"}},
		{"--ref has 0 characters", []string{"settle", paymentID}},
		{"--ref has 0 characters", []string{"settle", paymentID, "--ref", "  "}},
		{"--ref has 201 characters", []string{"settle", paymentID, "--ref", strings.Repeat("é", 201)}},
		{"holdfast refunds --open", []string{"settle", "payment_1", "--ref", "re_1"}},
		{"holdfast refunds --open", []string{"settle", contract.HoldID("CHAIR", make([]byte, contract.IDTailBytes)), "--ref", "re_1"}},
	} {
		got := run(t, Services{}, append([]string{"refunds"}, c.args...)...)
		require.Equal(t, exitUsage, got.code, "%v: %s", c.args, got.err)
		require.Contains(t, got.err, c.says)
	}
	require.Empty(t, d.told)
	t.Setenv("HOLDFAST_URL", "https://door.example")
	got := run(t, Services{}, "refunds", "settle", paymentID, "--ref", "re_1", "--yes")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "HOLDFAST_KEY is not set")
}

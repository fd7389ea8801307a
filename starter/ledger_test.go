package starter

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cli"
	"holdfast/contract"
	"holdfast/redis"
)

// operator runs a command of the operator against a door that listens.
func (h *house) operator(args ...string) (code int, out, err string) {
	h.t.Helper()
	server := httptest.NewServer(h.door.all())
	defer server.Close()
	h.t.Setenv("HOLDFAST_URL", server.URL)
	h.t.Setenv("HOLDFAST_KEY", "key-of-the-shop")
	var o, e bytes.Buffer
	code = cli.Main(h.t.Context(), args, cli.Streams{Out: &o, Err: &e}, cli.Services{})
	return code, o.String(), e.String()
}

// busy is a house in which every counter has moved both ways.
func busy(t *testing.T) *house {
	h := newHouse(t, 300)
	ctx := t.Context()
	stock := func(ev contract.StockEvent) {
		t.Helper()
		out, err := h.gate.Stock(ctx, h.sku, ev)
		require.NoError(t, err)
		require.True(t, out.Applied, out.Reason)
	}
	for i := range 110 { // more lines than one page
		v := h.hold()
		switch i % 3 {
		case 0:
			_, err := h.gate.Confirm(ctx, redis.ConfirmRequest{SKU: h.sku, HoldID: v.HoldID, PaymentRef: "pi_" + v.HoldID, Amount: &contract.Money{Amount: 4900, Currency: "EUR"}})
			require.NoError(t, err)
			if i == 0 {
				stock(contract.StockEvent{EventID: "r", Kind: contract.StockReturn, ReturnID: "rma", HoldID: v.HoldID, Units: 1, Resell: true, Reason: `=HYPERLINK("x")`})
			}
		case 1:
			_, err := h.gate.Release(ctx, redis.ReleaseRequest{SKU: h.sku, HoldID: v.HoldID, Reason: contract.ReasonShop, Actor: "shop"})
			require.NoError(t, err)
		}
	}
	stock(contract.StockEvent{EventID: "c", Kind: contract.StockCorrection, Delta: -3, Reason: "moths, \"two\" lines\nof them"})
	for i, reason := range []string{"+1", "-1+2", "@SUM(A1)", "\t=1", "＝1"} {
		stock(contract.StockEvent{EventID: fmt.Sprint(reason, i), Kind: contract.StockRestock, Units: 1, Reason: reason, Actor: reason})
	}
	return h
}

// What `holdfast ledger --format csv` writes adds up in a spreadsheet.
func TestTheLedgerCSVAddsUp(t *testing.T) {
	h := busy(t)
	code, out, errs := h.operator("ledger", h.sku, "--format", "csv")
	require.Zero(t, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+len(h.ledger()))
	sums := map[string]int64{}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		for name, i := range column {
			// As a spreadsheet does: what reads as a number is one, what begins with one
			// of these signs and is no number is a formula, and the rest is text.
			n, err := strconv.ParseInt(row[i], 10, 64)
			require.False(t, err != nil && row[i] != "" && strings.Contains("=+-@", row[i][:1]), "%s is a formula: %q", name, row[i])
			if counter, ok := strings.CutSuffix(name, "_moves"); ok {
				require.NoError(t, err)
				sums[counter] += n
			}
		}
		for _, counter := range []string{"on_hand", "held", "offered", "sold"} {
			require.Equal(t, strconv.FormatInt(sums[counter], 10), row[column[counter]], "line %s", row[column["n"]])
		}
	}
	c := h.counters()
	require.Equal(t, map[string]int64{
		"on_hand": c.OnHand, "held": c.Held, "offered": c.Offered, "sold": c.Sold,
		"received": c.Received, "corrected": c.Corrected, "returned": c.Returned,
	}, sums)
	require.Equal(t, int64(-3), c.Corrected)
	for _, text := range []string{`'=HYPERLINK("x")`, "'+1", "'-1+2", "'@SUM(A1)", "'\t=1", "'＝1"} {
		require.True(t, slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(row, text) }), "%q is text", text)
	}
	require.Contains(t, out, "4900,EUR")
}

func TestLedgerCommand(t *testing.T) {
	h := busy(t)
	code, out, errs := h.operator("ledger", h.sku, "--format", "jsonl")
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := h.ledger()
	require.Len(t, lines, len(want))
	for i, line := range lines {
		var v ledgerView
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		require.Equal(t, ledgerOf(want[i]), v)
	}
	code, out, errs = h.operator("ledger", h.sku)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^at +seq +verb +kind +units`, out)
	require.Regexp(t, `(?m)^20.+ stock +correction +-3 .+ moths, "two" lines of them  `, out, "a line stays on its line")

	cut := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	code, out, errs = h.operator("ledger", h.sku, "--format", "jsonl", "--since", cut)
	require.Equal(t, []any{0, "", ""}, []any{code, out, errs})
	code, out, _ = h.operator("ledger", h.sku, "--json", "--since", "1h", "--until", cut)
	require.Zero(t, code)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), len(want))

	for _, query := range []string{"since=yesterday", "until=2026-02-30T00:00:00Z", "since=1969-01-01T00:00:00Z", "cursor=1-"} {
		exact(t, h.call("GET", "/v1/stock/"+h.sku+"/ledger?"+query, nil), 422, validationFailed)
	}
}

func TestStatement(t *testing.T) {
	h := busy(t)
	h.dir.payments = 2
	code, out, errs := h.operator("statement", h.sku)
	require.Zero(t, code, errs)
	for _, row := range []string{
		`received +305`, `corrected +-3`, `sold +36`, `returned +1`, `on hand +266`, `  held +36`, `  available +230`,
		`open refunds +2`, `drift +none`, `last pass +none that ended in the last hour is known`, `ledger +all \d+ lines checked, from 20\S+`, `alarms +0`,
	} {
		require.Regexp(t, `(?m)^`+row+`$`, out)
	}
	require.Equal(t, h.sku, h.dir.asked)

	// That owners are missing no look at Redis shows: the last pass has found it.
	h.dir.passes = []PassRun{{SKU: h.sku, RunID: "run", State: "alarm", Completed: true, ClosedAt: time.UnixMilli(0)}}
	h.wf.onReport = func(_ string, out *contract.ReconcileReport) error {
		*out = contract.ReconcileReport{SKU: h.sku, Checked: time.UnixMilli(0), Owners: 18, Missing: 8, Braked: true, DriftUnits: 8, Alarms: []string{"more than 3 of 18 owners are missing"}}
		return nil
	}
	code, out, errs = h.operator("statement", h.sku)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "1 alarms for "+h.sku)
	require.Regexp(t, `(?m)^last pass +1970-01-01T00:00:00.000Z: 0 differences, 0 mended, 8 of 18 owners missing, gate and owners 8 units apart$`, out)
	require.Contains(t, out, "the pass of 1970-01-01T00:00:00.000Z: more than 3 of 18 owners are missing")

	h.dir.err = errTemporalDown
	require.NoError(t, shared.HIncrBy(t.Context(), "hf:{"+h.sku+"}:stock", "held", 300).Err())
	code, out, errs = h.operator("statement", h.sku)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "alarms for "+h.sku)
	require.Regexp(t, `(?m)^open refunds +not known$`, out)
	require.Regexp(t, `(?m)^drift +held 336, by records 36; held 336, by ledger 36$`, out)
	require.Contains(t, out, "shortfall: 70 units are promised that are not there")
	require.Contains(t, out, "held is 336, but by records it should be 36")
	require.Contains(t, out, "held is 336, but by ledger it should be 36")

	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", "another server", "offered", -1).Err())
	var v statementView
	h.call("GET", "/v1/stock/"+h.sku+"/statement", nil).into(t, &v)
	require.Contains(t, v.Alarms, "offered is -1: a counter must never be negative", "also while the gate is closed")
	require.Contains(t, v.Alarms, "the gate of this SKU is closed: nothing is sold until it was checked")

	require.NoError(t, shared.Del(t.Context(), "hf:{"+h.sku+"}:stock").Err())
	exact(t, h.call("GET", "/v1/stock/"+h.sku+"/statement", nil), 503, unavailable)
	exact(t, h.call("GET", "/v1/stock/NOBODY/statement", nil), 404, unknownSKU)
	exact(t, h.call("GET", "/v1/stock/"+h.sku+"/statement", nil, "Authorization", ""), http.StatusUnauthorized, unauthorized)
}

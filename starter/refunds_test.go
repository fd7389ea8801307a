package starter

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/launch"
)

var paidAt = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// payment makes an open Payment of the house, in state.
func (h *house) payment(ref, state string) (PaymentRun, contract.PaymentStatus) {
	holdID := contract.HoldID(h.sku, []byte("eleven bytes"))
	id := contract.PaymentID(holdID, ref)
	amount := int64(4900)
	s := contract.PaymentStatus{
		PaymentID: id, HoldID: holdID, PaymentRef: ref, Amount: &amount, Currency: "EUR", Cause: contract.CauseLate, State: state,
		Raw: []byte("never shown"),
	}
	run := PaymentRun{ID: id, RunID: "run of " + ref, SKU: h.sku, State: state, StartedAt: paidAt}
	h.wf.set(func() { h.wf.statuses[id] = s })
	h.dir.lasts(run)
	return run, s
}

// closes ends a run of a Payment, by itself or terminated.
func (h *house) closes(run PaymentRun, s contract.PaymentStatus, completed bool) PaymentRun {
	run.ClosedAt, run.Completed, run.State = paidAt.Add(time.Hour), completed, s.State
	h.wf.set(func() {
		h.wf.statuses[run.ID] = s
		if completed {
			h.wf.results[run.RunID] = s
		}
	})
	h.dir.lasts(run)
	return run
}

func (h *house) refunds(query string) (rows []map[string]any) {
	h.t.Helper()
	a := h.call("GET", "/v1/refunds"+query, nil)
	require.Equal(h.t, http.StatusOK, a.status, a.body)
	var list struct {
		Data []map[string]any `json:"data"`
		Next *string          `json:"next_cursor"`
	}
	a.into(h.t, &list)
	require.NotNil(h.t, list.Data)
	require.Equal(h.t, h.cursor(listOfRefunds), *list.Next)
	return list.Data
}

func (h *house) settle(id, reference string, header ...string) answer {
	h.t.Helper()
	return h.call("POST", "/v1/refunds/"+id+"/settle", map[string]any{"reference": reference}, header...)
}

func TestRefunds(t *testing.T) {
	h := newHouse(t, 0)
	open, _ := h.payment("pay-1", contract.PaymentRefundPending)
	done, s := h.payment("pay-2", contract.PaymentRefundSettled)
	s.Amount, s.Currency, s.Reference = nil, "", "re_1"
	done = h.closes(done, s, true)
	h.dir.runs = []PaymentRun{open, done}

	holdID := contract.HoldID(h.sku, []byte("eleven bytes"))
	first := map[string]any{
		"payment_id": open.ID, "hold_id": holdID, "payment_ref": "pay-1", "amount": 4900.0, "currency": "EUR", "cause": "late",
		"state": "refund-pending", "sku": h.sku, "created_at": "2026-01-31T12:00:00.000Z",
	}
	second := map[string]any{
		"payment_id": done.ID, "hold_id": holdID, "payment_ref": "pay-2", "cause": "late", "state": "refund-settled", "reference": "re_1",
		"sku": h.sku, "created_at": "2026-01-31T12:00:00.000Z", "closed_at": "2026-01-31T13:00:00.000Z",
	}
	h.untouched(func() {
		require.Equal(t, []map[string]any{first, second}, h.refunds(""))
		require.Equal(t, 1, h.wf.called("Status"), "what has a result is asked for it, which needs no worker")
		h.refunds("?open=true&sku=" + h.sku + "&limit=7&cursor=" + h.cursor(listOfRefunds))
		h.refunds("?open=false")
	})
	require.Equal(t, []string{`all "" 50 ""`, `open=true "` + h.sku + `" 7 "next"`, `open=false "" 50 ""`}, h.dir.listed)
}

// Visibility is behind: a Payment that was settled since is not open.
func TestOpenRefundsAreShownAsTheyAre(t *testing.T) {
	h := newHouse(t, 0)
	for _, state := range []string{
		contract.PaymentDeciding, contract.PaymentRefundPending, contract.PaymentRefundReported, contract.PaymentParked,
		contract.PaymentSold, contract.PaymentRefundSettled,
	} {
		run, _ := h.payment("pay-"+state, state)
		run.State = contract.PaymentRefundPending
		h.dir.runs = append(h.dir.runs, run)
	}
	states := func(query string) (out []any) {
		for _, row := range h.refunds(query) {
			out = append(out, row["state"])
		}
		return out
	}
	require.Equal(t, []any{"deciding", "refund-pending", "refund-reported", "parked"}, states("?open=true"))
	require.Len(t, states(""), 6)
}

// A Payment is listed once, by its last run; one that was terminated with the
// money still owed is open.
func TestRefundsOfClosedRuns(t *testing.T) {
	h := newHouse(t, 0)
	run, s := h.payment("pay-1", contract.PaymentParked)
	gone := h.closes(run, s, false)
	h.dir.runs = []PaymentRun{gone}
	rows := h.refunds("?open=true")
	require.Len(t, rows, 1)
	require.Equal(t, []any{"parked", "pay-1", "2026-01-31T13:00:00.000Z"}, []any{rows[0]["state"], rows[0]["payment_ref"], rows[0]["closed_at"]})

	again := run
	again.RunID = "another run"
	h.dir.lasts(again)
	h.dir.runs = []PaymentRun{again, gone}
	rows = h.refunds("")
	require.Len(t, rows, 1)
	require.NotContains(t, rows[0], "closed_at")
}

// Money is listed also when its workflow does not answer.
func TestRefundsWithoutAWorker(t *testing.T) {
	h := newHouse(t, 0)
	run, _ := h.payment("pay-1", contract.PaymentRefundPending)
	h.dir.runs = []PaymentRun{run}
	h.wf.fail["Status"] = context.DeadlineExceeded
	require.Equal(t, []map[string]any{{
		"payment_id": run.ID, "state": "refund-pending", "sku": h.sku, "created_at": "2026-01-31T12:00:00.000Z",
	}}, h.refunds("?open=true"))
	require.Contains(t, h.log.String(), "a payment did not say what it is")
}

func TestBadRefundQueries(t *testing.T) {
	h := newHouse(t, 0)
	for _, query := range []string{
		"open=yes", "open=TRUE", "open=1", "sku=a/b", "limit=0", "limit=201", "limit=x", "cursor=%21", "cursor=" + strings.Repeat("a", 2049),
	} {
		p := exact(t, h.call("GET", "/v1/refunds?"+query, nil), 422, validationFailed)
		name, _, _ := strings.Cut(query, "=")
		require.Contains(t, p.Detail, name)
	}
	exact(t, h.call("GET", "/v1/refunds", nil, "Authorization", ""), 401, unauthorized)
	require.Empty(t, h.dir.listed)
	h.dir.err = errTemporalDown
	exact(t, h.call("GET", "/v1/refunds", nil), 503, unavailable)
}

func TestSettle(t *testing.T) {
	for _, state := range []string{contract.PaymentDeciding, contract.PaymentRefundPending, contract.PaymentRefundReported, contract.PaymentParked} {
		t.Run(state, func(t *testing.T) {
			h := newHouse(t, 0)
			run, s := h.payment("pay-1", state)
			h.wf.onSettle = func(id string, told contract.RefundSettled) error {
				require.Equal(t, run.ID, id)
				s.State, s.Reference = contract.PaymentRefundSettled, told.Reference
				h.closes(run, s, true)
				return nil
			}
			h.untouched(func() {
				a := h.settle(run.ID, " re_1 ", "Authorization", "Bearer key-of-the-till")
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.JSONEq(t, `{"payment_id":"`+run.ID+`","hold_id":"`+s.HoldID+`","payment_ref":"pay-1","amount":4900,"currency":"EUR",
					"cause":"late","state":"refund-settled","reference":"re_1","sku":"`+h.sku+`",
					"created_at":"2026-01-31T12:00:00.000Z","closed_at":"2026-01-31T13:00:00.000Z"}`, a.body)
				till, _, _ := strings.Cut(h.cfg.Secrets.APIKeys[1], ":")
				told := sentSignal{run.ID, contract.SignalRefundSettled, contract.RefundSettled{Reference: "re_1", Actor: till}}
				require.Equal(t, []sentSignal{told}, h.wf.sent())

				// A repeat, and one with another reference, find it settled.
				for _, ref := range []string{"re_1", "re_2"} {
					again := h.settle(run.ID, ref)
					require.Equal(t, []any{a.status, a.body}, []any{again.status, again.body})
				}
				require.Len(t, h.wf.sent(), 1)
			})
		})
	}
}

// It was settled between the look and the signal, or turned out to be the sale
// after it was told.
func TestSettleRaces(t *testing.T) {
	h := newHouse(t, 0)
	run, s := h.payment("pay-1", contract.PaymentRefundPending)
	h.wf.onSettle = func(string, contract.RefundSettled) error {
		s.State, s.Reference = contract.PaymentRefundSettled, "re_other"
		h.closes(run, s, true)
		return launch.ErrNoOwner
	}
	a := h.settle(run.ID, "re_1")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"reference":"re_other"`)

	run, s = h.payment("pay-2", contract.PaymentDeciding)
	h.wf.onSettle = func(string, contract.RefundSettled) error {
		s.State = contract.PaymentSold
		h.closes(run, s, true)
		return nil
	}
	exact(t, h.settle(run.ID, "re_1"), 409, holdEnded)

	// It closes while it is asked: the answer is what a repeat gets.
	run, s = h.payment("pay-4", contract.PaymentRefundPending)
	h.wf.onSettle = func(string, contract.RefundSettled) error {
		s.State, s.Reference = contract.PaymentRefundSettled, "re_1"
		closed := h.closes(run, s, true)
		h.dir.lasts(run)
		h.dir.later = map[string]PaymentRun{run.ID: closed}
		return nil
	}
	a = h.settle(run.ID, "re_1")
	require.Contains(t, a.body, `"closed_at":"2026-01-31T13:00:00.000Z"`)
	require.Equal(t, a.body, h.settle(run.ID, "re_1").body)

	// Terminated, and started anew, between the look and the signal.
	run, _ = h.payment("pay-3", contract.PaymentParked)
	h.wf.onSettle = func(string, contract.RefundSettled) error { return launch.ErrNoOwner }
	p := exact(t, h.settle(run.ID, "re_1"), 503, unavailable)
	require.Contains(t, p.Detail, "repeat the request as it was")
}

func TestSettleRefusals(t *testing.T) {
	h := newHouse(t, 0)
	run, s := h.payment("pay-1", contract.PaymentSold)
	sold := h.closes(run, s, true)
	p := exact(t, h.settle(sold.ID, "re_1"), 409, holdEnded)
	require.Contains(t, p.Detail, "made the sale")

	// A workflow of another kind is not asked, whatever it would say.
	for _, id := range []string{"payment_x", s.HoldID, contract.StockWorkflowID(h.sku)} {
		h.dir.lasts(PaymentRun{ID: id, StartedAt: paidAt})
		h.wf.set(func() { h.wf.statuses[id] = contract.PaymentStatus{State: contract.PaymentParked} })
	}
	unknown := contract.PaymentID(s.HoldID, "never seen")
	for _, id := range []string{unknown, "payment_x", s.HoldID, contract.StockWorkflowID(h.sku), strings.Repeat("a", 5000)} {
		exact(t, h.settle(id, "re_1"), 404, unknownHold)
	}
	open, _ := h.payment("pay-2", contract.PaymentRefundPending)
	path := "/v1/refunds/" + open.ID + "/settle"
	for body, pointers := range map[string][]string{
		`{}`:                 {"/reference"},
		`{"reference":null}`: {"/reference"},
		`{"reference":""}`:   {"/reference"},
		`{"reference":"  "}`: {"/reference"},
		`{"reference":7}`:    {"/reference"},
		`{"reference":"` + strings.Repeat("é", 201) + `"}`: {"/reference"},
		`{"reference":"a\u0000"}`:                          {"/reference"},
		`{"reference":"re_1","actor":"me"}`:                {"/actor"},
	} {
		exact(t, h.call("POST", path, body), 422, validationFailed, pointers...)
	}
	exact(t, h.call("POST", path, nil), 415, unsupportedMediaType)
	exact(t, h.call("POST", path, `{"reference"`), 400, malformedBody)
	exact(t, h.call("POST", path, `{"reference":"`+strings.Repeat("x", 64<<10)+`"}`), 413, bodyTooLarge)
	exact(t, h.settle(open.ID, "re_1", "Authorization", "Bearer wrong"), 401, unauthorized)

	// Whatever cannot be asked is not told.
	h.wf.fail["Status"] = errTemporalDown
	exact(t, h.settle(open.ID, "re_1"), 503, unavailable)
	h.wf.set(func() { delete(h.wf.fail, "Status") })
	h.dir.err = errTemporalDown
	exact(t, h.settle(open.ID, "re_1"), 503, unavailable)
	h.dir.err = nil
	require.Zero(t, h.wf.called("Signal"))

	h.wf.fail["Signal"] = errTemporalDown
	exact(t, h.settle(open.ID, "re_1"), 503, unavailable)
}

// A Payment that was terminated can be told nothing; the answer says how its
// money gets an owner again.
func TestSettleOfATerminatedPayment(t *testing.T) {
	h := newHouse(t, 0)
	run, s := h.payment("pay-1", contract.PaymentRefundPending)
	h.closes(run, s, false)
	h.wf.onSettle = func(string, contract.RefundSettled) error { return launch.ErrNoOwner }
	p := exact(t, h.settle(run.ID, "re_1"), 409, holdEnded)
	require.Contains(t, p.Detail, `confirm payment "pay-1" of `+s.HoldID+" again")
}

// A Payment that was told and does not move is no success. It is told also when
// the client has gone.
func TestSettleThatStaysOpen(t *testing.T) {
	h := newHouse(t, 0)
	run, _ := h.payment("pay-1", contract.PaymentRefundPending)
	h.wf.onSettle = func(string, contract.RefundSettled) error { return nil }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a := h.send(h.request("POST", "/v1/refunds/"+run.ID+"/settle", map[string]any{"reference": "re_1"}).WithContext(gone))
	p := exact(t, a, 503, unavailable)
	require.Contains(t, p.Detail, "was told and is still refund-pending")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Len(t, h.wf.sent(), 1)
}

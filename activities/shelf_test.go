package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/internal/redistest"
	"holdfast/redis"
)

// shelf is a SKU at a real gate, with a Temporal that a test makes up.
type shelf struct {
	*owning
	t           *testing.T
	rdb         *goredis.Client
	gate        *redis.Gate
	sku         string
	n           int
	ledgerFault func(sku string, has bool)
	drift       int64
	auditAge    time.Duration
	awoken      int
}

func newShelf(t *testing.T, units int64) *shelf {
	server, err := redistest.Start("--appendonly", "no")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	s := &shelf{t: t, rdb: server.Client(), sku: "CHAIR", auditAge: 10 * time.Minute, owning: &owning{t: t, flows: map[string]*flow{}}}
	t.Cleanup(func() { s.rdb.Close() })
	s.gate = redis.New(s.rdb, redis.Options{
		Lease: 2 * time.Second, RecordRetention: time.Hour, SaleRetention: time.Hour, OfferMaxAge: time.Hour, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	_, err = s.gate.Open(t.Context(), redis.OpenRequest{SKU: s.sku, New: true})
	require.NoError(t, err)
	s.book = contract.StockBook{SKU: s.sku, Opened: true}
	if units > 0 {
		s.restock(units)
	}
	return s
}

func (s *shelf) restock(units int64) {
	s.n++
	ev := contract.StockEvent{EventID: fmt.Sprint("e", s.n), Kind: contract.StockRestock, Units: units}
	out, err := s.gate.Stock(s.t.Context(), s.sku, ev)
	require.NoError(s.t, err)
	s.book.Received += units
	s.book.Events = append(s.book.Events, contract.BookEvent{EventID: ev.EventID, Kind: ev.Kind, Applied: true, Delta: units})
	s.book.DecidedN, s.book.Generation = out.N, out.Counters.Generation
}

func (s *shelf) id(build func(string, []byte) string) string {
	s.n++
	return build(s.sku, fmt.Appendf(nil, "%011d", s.n))
}

// held is a held hold with its open workflow, of two minutes ago.
func (s *shelf) held() string {
	id := s.id(contract.HoldID)
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	out, err := s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: 10 * time.Minute})
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, out.Verdict)
	s.age(id)
	s.opens(id, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: id, State: contract.HoldHeld, Person: "p-" + id, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}},
		CreatedAt: out.Hold.CreatedAt.Add(-2 * time.Minute), ExpiresAt: out.Hold.Deadline,
	}
	return id
}

// waits is an entry in the line with its open workflow, of two minutes ago.
func (s *shelf) waits(person string) string {
	id := s.id(contract.EntryID)
	out, err := s.gate.Join(s.t.Context(), redis.JoinRequest{SKU: s.sku, EntryID: id, Person: person, Units: 1, Sealed: []byte("x")})
	require.NoError(s.t, err)
	require.True(s.t, out.Created)
	_, err = s.gate.AdoptEntry(s.t.Context(), s.sku, id)
	require.NoError(s.t, err)
	s.age(id)
	f := s.opens(id, contract.WaitlistEntryWorkflow)
	f.state, f.status = "waiting", contract.EntryStatus{
		EntryID: id, SKU: s.sku, State: contract.EntryWaiting, Quantity: 1, Person: person, JoinedAt: out.Entry.JoinedAt.Add(-2 * time.Minute),
	}
	return id
}

// age makes a record two minutes older than it is.
func (s *shelf) age(id string) {
	name, place := "holds", 5
	if strings.HasPrefix(id, contract.EntryPrefix) {
		name, place = "entries", 3
	}
	raw, err := s.rdb.HGet(s.t.Context(), s.key(name), id).Result()
	require.NoError(s.t, err)
	var record []any
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	require.NoError(s.t, d.Decode(&record))
	if name == "holds" {
		created, err := record[place].(json.Number).Int64()
		require.NoError(s.t, err)
		record[place] = created - 120_000
	} else {
		arrival, err := strconv.ParseInt(record[place].(string), 10, 64)
		require.NoError(s.t, err)
		record[place] = fmt.Sprint(arrival - 120_000_000)
		require.NoError(s.t, s.rdb.ZAddXX(s.t.Context(), s.key("line"), goredis.Z{Score: float64(arrival - 120_000_000), Member: id}).Err())
	}
	older, err := json.Marshal(record)
	require.NoError(s.t, err)
	require.NoError(s.t, s.rdb.HSet(s.t.Context(), s.key(name), id, older).Err())
}

func (s *shelf) key(name string) string { return "hf:{" + s.sku + "}:" + name }

func (s *shelf) Wake(context.Context, string) error { s.awoken++; return nil }

func (s *shelf) Reconcile(context.Context, contract.ReconcileInput) error { return nil }

// Decide is a Payment that sells what is still held.
func (s *shelf) Decide(ctx context.Context, in contract.PaymentInput) (contract.PaymentDecision, error) {
	if s.undecided != nil {
		return contract.PaymentDecision{}, s.undecided
	}
	s.opens(in.PaymentID, contract.PaymentWorkflow)
	s.paid = append(s.paid, in.PaymentRef)
	_, err := s.gate.Confirm(ctx, redis.ConfirmRequest{SKU: s.sku, HoldID: in.HoldID, PaymentRef: in.PaymentRef, Retake: true})
	return contract.PaymentDecision{}, err
}

func (s *shelf) passes() (*testsuite.TestActivityEnvironment, *Passes) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	passes := &Passes{
		Guard: Guard{Waker: s}, Gate: s.gate, Books: s, Owners: s, Payments: s, Payloads: plain(s.t), Lease: 2 * time.Second, Grace: time.Minute,
		Closed: func(replID string) RebuildGate { return s.gate.Rebuilding(replID) }, Epochs: s,
		Drift: func(_ string, units int64) { s.drift = units }, LedgerFault: s.ledgerFault,
		AuditAge: s.auditAge, Names: func(s contract.HoldStatus) []string { return []string{"print of " + s.OrderRef} },
	}
	env.RegisterActivity(passes)
	return env, passes
}

func (s *shelf) tryPass(in contract.ReconcileInput) (contract.ReconcileReport, error) {
	env, passes := s.passes()
	in.SKU, in.Pass = s.sku, true
	out, err := env.ExecuteActivity(passes.LookThrough, in)
	if err != nil {
		return contract.ReconcileReport{}, err
	}
	var report contract.ReconcileReport
	require.NoError(s.t, out.Get(&report))
	return report, nil
}

func (s *shelf) pass(in contract.ReconcileInput) contract.ReconcileReport {
	s.t.Helper()
	report, err := s.tryPass(in)
	require.NoError(s.t, err)
	return report
}

// nothingLeft: a second run finds nothing, and the books add up.
func (s *shelf) nothingLeft() {
	s.t.Helper()
	report := s.pass(contract.ReconcileInput{})
	require.Zero(s.t, report.Found, report.Differences)
	require.Empty(s.t, report.Alarms)
	require.Zero(s.t, s.drift)
	in, err := s.gate.Inspect(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	require.Empty(s.t, in.Problems)
}

// parts are on_hand, held, offered, sold.
func (s *shelf) parts() [4]int64 {
	s.t.Helper()
	c, _, err := s.gate.Snapshot(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	return [4]int64{c.OnHand, c.Held, c.Offered, c.Sold}
}

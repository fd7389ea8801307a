// Package starter is the door: the HTTP service that asks the gate first and
// starts workflows only for winners. It serves the API, the pages and the
// inventory webhook.
package starter

import (
	"context"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// Gate is what the door needs of the gate; *redis.Gate is one.
type Gate interface {
	EventOutcome(ctx context.Context, sku, eventID string) (redis.StockOutcome, bool, error)
	Join(ctx context.Context, req redis.JoinRequest) (redis.JoinOutcome, error)
	Leave(ctx context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error)
	Reserve(ctx context.Context, req redis.ReserveRequest) (redis.HoldOutcome, error)
	AdoptHold(ctx context.Context, req redis.AdoptHoldRequest) (redis.HoldOutcome, error)
	Release(ctx context.Context, req redis.ReleaseRequest) (redis.HoldOutcome, error)
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	Tripwire(ctx context.Context, sku string) (redis.Counters, []contract.Ring, error)
	Rings(ctx context.Context, c redis.Counters) ([]contract.Ring, error)
	Policy(ctx context.Context, sku string) (contract.PolicyOf, error)
	ReadHold(ctx context.Context, sku, holdID string) (redis.HoldOutcome, bool, error)
	ReadEntry(ctx context.Context, sku, entryID string) (redis.Entry, bool, error)
	Why(ctx context.Context, sku, entryID string, heads int) (redis.Standing, error)
	ReadWaiting(ctx context.Context, sku string, after time.Time, limit int) (waiting []redis.Waiter, next time.Time, err error)
	ReadPlace(ctx context.Context, sku, person string) (redis.Entry, bool, error)
	LedgerLines(ctx context.Context, sku string, q redis.LedgerQuery) ([]redis.LedgerLine, error)
	FindLines(ctx context.Context, sku string, since time.Time, most int, match func(redis.LedgerLine) bool) (lines []redis.LedgerLine, whole bool, err error)
	OutcomesOf(ctx context.Context, eventID string, skus []string) (map[string]redis.StockOutcome, error)
	Claimed(ctx context.Context, keys []string) (map[string]bool, error)
	LiveEntries(ctx context.Context, person string, skus []string) (map[string]string, error)
	HoldOfPayment(ctx context.Context, paymentRef string) (holdID string, err error)
	NoteHold(ctx context.Context, holdID string, prints ...string) error
	NotePaying(ctx context.Context, holdID, print string) error
	HoldsNamed(ctx context.Context, print string) ([]string, error)
	NoteOtherAmount(ctx context.Context, holdID string) error
	OtherAmounts(ctx context.Context, most int) ([]string, error)
	ForgetOtherAmount(ctx context.Context, holdID string) error
	ReadStatement(ctx context.Context, sku string) (redis.Statement, bool, error)
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
	LookupSKU(ctx context.Context, number string) (sku string, whole bool, err error)
	MarkMapWhole(ctx context.Context) error
	SKUs(ctx context.Context) ([]string, error)
	ClaimKey(ctx context.Context, key string, claim redis.Claim, keep time.Duration) (redis.Claim, error)
	KeepClaim(ctx context.Context, key string, keep time.Duration) error
}

// Launcher is what the door needs of the workflows; *launch.Launcher is one.
type Launcher interface {
	Hold(ctx context.Context, in contract.HoldInput) (launch.Started, error)
	Entry(ctx context.Context, in contract.EntryInput) (launch.Started, error)
	Said(ctx context.Context, person string, said contract.Said) error
	OptedOut(ctx context.Context, person string) (bool, error)
	Wake(ctx context.Context, sku string) error
	StockEvent(ctx context.Context, sku string, ev contract.StockEvent) error
	Policy(ctx context.Context, sku, updateID string, req contract.PolicyRequest) (contract.PolicyResult, error)
	Pause(ctx context.Context, sku, updateID string, req contract.PauseRequest) (contract.PauseResult, error)
	Decide(ctx context.Context, in contract.PaymentInput) (contract.PaymentDecision, error)
	Payment(ctx context.Context, in contract.PaymentInput) error
	Confirm(ctx context.Context, holdID, updateID string, req contract.ConfirmRequest) (contract.ConfirmResult, error)
	RetryRefund(ctx context.Context, paymentID string, req contract.RefundRetry) (out contract.PaymentStatus, answered bool, err error)
	Signal(ctx context.Context, workflowID, signal string, arg any) error
	Status(ctx context.Context, workflowID string, out any) error
	OpenStatus(ctx context.Context, workflowID string, out any) error
	Next(ctx context.Context, workflowID string) (string, error)
	Result(ctx context.Context, workflowID, runID string, out any) error
	Reconcile(ctx context.Context, in contract.ReconcileInput) error
	NewPass(ctx context.Context, in contract.ReconcileInput) (runID string, err error)
}

// Directory lists and counts workflows by Temporal's visibility, which is a
// little behind the truth.
type Directory interface {
	// OpenSKUs lists the SKUs that have an open Stock.
	OpenSKUs(ctx context.Context) ([]string, error)
	// Holds lists ids of Holds, newest first; sku and state may be empty.
	Holds(ctx context.Context, sku string, state contract.HoldState, limit int, cursor []byte) (ids []string, next []byte, err error)
	// OpenPayments counts the Payments that run, of a SKU or with "" of all: money
	// not yet sold or refunded.
	OpenPayments(ctx context.Context, sku string) (int64, error)
	// Payments lists runs of Payments, newest first; sku may be empty. With open set
	// only those that have not completed, or only those that have.
	Payments(ctx context.Context, sku string, open *bool, limit int, cursor []byte) (runs []PaymentRun, next []byte, err error)
	// Payment is the last run of a Payment, which is no part of visibility and never
	// behind; ok is false when Temporal knows none.
	Payment(ctx context.Context, id string) (run PaymentRun, ok bool, err error)
	// Offered lists ids of open entries of a SKU that have an offer, newest first.
	Offered(ctx context.Context, sku string, limit int) (ids []string, err error)
	// TextQueue says how the queue of texts stands.
	TextQueue(ctx context.Context) (TextQueue, error)
	// Queues says how every queue of the workers stands.
	Queues(ctx context.Context) ([]Queue, error)
	// Passes lists Reconciles, and the runs over all SKUs, that closed since an instant
	// and took at least that long, newest first; sku may be empty.
	Passes(ctx context.Context, sku string, since time.Time, least time.Duration) ([]PassRun, error)
	// Events lists ids of events that the shop has not taken, newest first; state
	// may be empty.
	Events(ctx context.Context, state string, limit int, cursor []byte) (ids []string, next []byte, err error)
}

// TextQueue is the queue of texts that Temporal hands to workers, as fast as they may
// be sent.
type TextQueue struct {
	Waiting int64 // texts, about
	Polled  bool  // a worker asks for them
}

// Queue is a queue of tasks that Temporal hands to workers.
type Queue struct {
	Name    string
	Kind    string        // workflow or activity
	Waiting int64         // tasks, about
	Oldest  time.Duration // how long the first of them has waited
	Polled  bool          // a worker asks for them
}

// PassRun is a Reconcile that has closed; without a SKU it was the run over all.
type PassRun struct {
	SKU, RunID string
	State      string // what it came to, see setState of workflow Reconcile
	Completed  bool   // with a report
	ClosedAt   time.Time
}

// PaymentRun is what Temporal itself knows of a run of a Payment.
type PaymentRun struct {
	ID, RunID string
	SKU       string // empty when nobody knows it
	State     string // empty before its first step when a stranger started it
	StartedAt time.Time
	ClosedAt  time.Time // zero while it runs
	Completed bool      // by itself: sold or settled
}

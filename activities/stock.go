package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// StockGate is the gate as a SKU's book uses it.
type StockGate interface {
	RegisterSKU(ctx context.Context, sku string) (owner string, err error)
	Open(ctx context.Context, req redis.OpenRequest) (redis.Base, error)
	Settings(ctx context.Context, req redis.SettingsRequest) (redis.Base, error)
	Policy(ctx context.Context, sku string) (contract.PolicyOf, error)
	Stock(ctx context.Context, sku string, ev contract.StockEvent) (redis.StockOutcome, error)
	Drain(ctx context.Context, sku string, limit int) (redis.DrainOutcome, error)
	TrimLedger(ctx context.Context, sku string) (dropped int64, more bool, err error)
	Leave(ctx context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error)
	AdoptEntry(ctx context.Context, sku, entryID string) (redis.EntryOutcome, error)
	TripwireAndLedger(ctx context.Context, sku string) (redis.Counters, []contract.Ring, error)
}

// EntryLauncher starts and signals the workflows of entries.
type EntryLauncher interface {
	Entry(ctx context.Context, in contract.EntryInput) (launch.Started, error)
	Signal(ctx context.Context, workflowID, signal string, arg any) error
}

// Unsealer opens the sealed input of an entry.
type Unsealer interface {
	Unseal(entryID string, sealed []byte) (contract.EntryInput, error)
}

// Stock are the activities of a SKU's book.
type Stock struct {
	Guard
	Gate    StockGate
	Entries EntryLauncher
	Keys    Unsealer
	// PauseOnTrip pauses a SKU whose tripwire begins to ring.
	PauseOnTrip bool
}

// SKURef names a SKU.
type SKURef struct {
	SKU   string `json:"sku"`
	Epoch int64  `json:"epoch,omitempty"`
}

// Woken says whether the outbox has something due.
type Woken struct {
	Wake bool `json:"wake,omitempty"`
}

// OpenSKU makes the gate's key of a SKU that the book has never opened. A key
// that is there stays as it is.
func (a *Stock) OpenSKU(ctx context.Context, in SKURef) (Woken, error) {
	owner, err := a.Gate.RegisterSKU(ctx, in.SKU)
	if err != nil {
		return Woken{}, a.gateError(ctx, in.SKU, "register", err)
	}
	if owner != in.SKU {
		return Woken{}, temporal.NewApplicationErrorWithOptions(
			fmt.Sprintf("SKU %q cannot be opened: its number %s belongs to %q; choose another SKU", in.SKU, contract.SKUNumber(in.SKU), owner),
			contract.ErrBadRequest, temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
	}
	base, err := a.Gate.Open(ctx, redis.OpenRequest{SKU: in.SKU, New: true, Epoch: in.Epoch})
	if err != nil {
		return Woken{}, a.gateError(ctx, in.SKU, "open", err)
	}
	return Woken{Wake: base.Wake}, nil
}

// SettingsInput tells the gate what it needs of a SKU. What is nil stays.
type SettingsInput struct {
	SKU     string           `json:"sku"`
	About   *contract.About  `json:"about,omitempty"`
	Policy  *contract.Policy `json:"policy,omitempty"`
	Version int64            `json:"version,omitempty"`
	Paused  *bool            `json:"paused,omitempty"`
	Actor   string           `json:"actor,omitempty"`
}

// StoreSettings stores what the shop says of a SKU, and its policy.
func (a *Stock) StoreSettings(ctx context.Context, in SettingsInput) (Woken, error) {
	base, err := a.Gate.Settings(ctx, redis.SettingsRequest{
		SKU: in.SKU, About: in.About, Policy: in.Policy, Version: in.Version, Paused: in.Paused, Actor: in.Actor,
	})
	if err != nil {
		return Woken{}, a.gateError(ctx, in.SKU, "store settings of", err)
	}
	return Woken{Wake: base.Wake}, nil
}

// ApplyStockInput is one stock event of a SKU.
type ApplyStockInput struct {
	SKU   string              `json:"sku"`
	Event contract.StockEvent `json:"event"`
}

// ApplyStockResult is the gate's decision on a stock event.
type ApplyStockResult struct {
	Applied bool   `json:"applied"`
	Delta   int64  `json:"delta"`
	Reason  string `json:"reason,omitempty"`
	N       int64  `json:"n"` // the ledger's number when it was decided; a repeat keeps it
	Wake    bool   `json:"wake,omitempty"`
	// Generation of the SKU right after.
	Generation int64 `json:"generation,omitempty"`
	// Stock is the SKU right after, when the shop has an endpoint for events.
	Stock *StockNow `json:"stock,omitempty"`
	// Rings says that the counters right after trip a wire.
	Rings bool `json:"rings,omitempty"`
}

// StockNow are a SKU's counters at an instant of the gate's clock.
type StockNow struct {
	contract.StockCounts
	At time.Time `json:"at"`
}

func stockNow(c redis.Counters) *StockNow {
	return &StockNow{At: c.AsOf, StockCounts: contract.StockCounts{
		State: c.State, OnHand: c.OnHand, Held: c.Held, Offered: c.Offered, Available: c.Available, OpenToAll: c.OpenToAll,
		Sold: c.Sold, Returned: c.Returned, Waiting: c.Waiting, Shortfall: c.Shortfall, Generation: c.Generation,
		AsOf: contract.Instant(c.AsOf),
	}}
}

// ApplyStock applies a stock event once by its id. The book, which asks, drains
// the outbox itself: no wake is sent.
func (a *Stock) ApplyStock(ctx context.Context, in ApplyStockInput) (ApplyStockResult, error) {
	out, err := a.Gate.Stock(ctx, in.SKU, in.Event)
	if err != nil {
		return ApplyStockResult{}, a.gateError(ctx, in.SKU, "apply "+in.Event.EventID+" to", err)
	}
	result := ApplyStockResult{
		Applied: out.Applied, Delta: out.Delta, Reason: out.Reason, N: out.N, Wake: out.Wake,
		Generation: out.Counters.Generation, Rings: len(out.Counters.Rings()) > 0,
	}
	if a.Tell {
		result.Stock = stockNow(out.Counters)
	}
	return result, nil
}

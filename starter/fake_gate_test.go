package starter

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// faulty is the real gate with steps that break.
type faulty struct {
	*redis.Gate
	mu    sync.Mutex
	fail  map[string]error // method → its error, before the verb
	after map[string]error // method → its error, after the verb was done
	calls []string
	only  string   // SKU whose calls break; "" for all
	freed []string // SKUs in the order in which they were given back
	again int      // Reserve answers Again so often
	wake  string   // method whose outcome asks for a wake
}

func (f *faulty) step(method string) (before, after error) { return f.stepOn(method, "") }

func (f *faulty) stepOn(method, sku string) (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
	if f.only != "" && f.only != sku {
		return nil, nil
	}
	return f.fail[method], f.after[method]
}

func (f *faulty) break_(method string, before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.after = map[string]error{method: before}, map[string]error{method: after}
}

func (f *faulty) Reserve(ctx context.Context, req redis.ReserveRequest) (redis.HoldOutcome, error) {
	before, after := f.stepOn("Reserve", req.SKU)
	if before != nil {
		return redis.HoldOutcome{}, before
	}
	f.mu.Lock()
	again := f.again > 0
	f.again--
	f.mu.Unlock()
	if again {
		return redis.HoldOutcome{Base: redis.Base{Verdict: redis.Again}}, nil
	}
	out, err := f.Gate.Reserve(ctx, req)
	out.Wake = out.Wake || f.wake == "Reserve"
	return out, errors.Join(err, after)
}

func (f *faulty) AdoptHold(ctx context.Context, req redis.AdoptHoldRequest) (redis.HoldOutcome, error) {
	before, after := f.stepOn("AdoptHold", req.SKU)
	if before != nil {
		return redis.HoldOutcome{}, before
	}
	out, err := f.Gate.AdoptHold(ctx, req)
	out.Wake = out.Wake || f.wake == "AdoptHold"
	return out, errors.Join(err, after)
}

func (f *faulty) Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error) {
	f.mu.Lock()
	before := f.fail["Snapshot"]
	f.mu.Unlock()
	if before != nil {
		return redis.Counters{}, contract.About{}, before
	}
	return f.Gate.Snapshot(ctx, sku)
}

// Tripwire fails with Snapshot, which it begins with.
func (f *faulty) Tripwire(ctx context.Context, sku string) (redis.Counters, []contract.Ring, error) {
	if _, _, err := f.Snapshot(ctx, sku); err != nil {
		return redis.Counters{}, nil, err
	}
	return f.Gate.Tripwire(ctx, sku)
}

func (f *faulty) Release(ctx context.Context, req redis.ReleaseRequest) (redis.HoldOutcome, error) {
	before, after := f.stepOn("Release", req.SKU)
	if before != nil {
		return redis.HoldOutcome{}, before
	}
	f.mu.Lock()
	f.freed = append(f.freed, req.SKU)
	f.mu.Unlock()
	out, err := f.Gate.Release(ctx, req)
	out.Wake = out.Wake || f.wake == "Release"
	return out, errors.Join(err, after)
}

func (f *faulty) Leave(ctx context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error) {
	out, err := f.Gate.Leave(ctx, req)
	out.Wake = out.Wake || f.wake == "Leave"
	return out, err
}

func (f *faulty) Join(ctx context.Context, req redis.JoinRequest) (redis.JoinOutcome, error) {
	out, err := f.Gate.Join(ctx, req)
	out.Wake = f.wake == "Join"
	return out, err
}

func (f *faulty) Policy(ctx context.Context, sku string) (contract.PolicyOf, error) {
	if before, _ := f.step("Policy"); before != nil {
		return contract.PolicyOf{}, before
	}
	return f.Gate.Policy(ctx, sku)
}

func (f *faulty) ClaimKey(ctx context.Context, key string, claim redis.Claim, keep time.Duration) (redis.Claim, error) {
	if before, _ := f.step("ClaimKey"); before != nil {
		return redis.Claim{}, before
	}
	return f.Gate.ClaimKey(ctx, key, claim, keep)
}

func (f *faulty) EventOutcome(ctx context.Context, sku, id string) (redis.StockOutcome, bool, error) {
	if before, _ := f.step("EventOutcome"); before != nil {
		return redis.StockOutcome{}, false, before
	}
	return f.Gate.EventOutcome(ctx, sku, id)
}

func (f *faulty) LookupSKU(ctx context.Context, number string) (string, bool, error) {
	if before, _ := f.step("LookupSKU"); before != nil {
		return "", false, before
	}
	return f.Gate.LookupSKU(ctx, number)
}

package workflows_test

import (
	"context"
	"slices"

	"holdfast/contract"
	"holdfast/redis"
)

// The half of the gate that a book uses.

func (w *world) RegisterSKU(_ context.Context, sku string) (string, error) {
	if w.owner != "" {
		return w.owner, nil
	}
	return sku, nil
}

func (w *world) Open(context.Context, redis.OpenRequest) (redis.Base, error) {
	return w.verb("open", func() redis.Verdict { return redis.OK })
}

func (w *world) Settings(_ context.Context, req redis.SettingsRequest) (redis.Base, error) {
	return w.verb("settings", func() redis.Verdict {
		w.settings = append(w.settings, req)
		w.outdated = false
		if req.Version > 0 {
			w.version = req.Version
		}
		if req.Paused != nil {
			w.paused = *req.Paused
		}
		return redis.OK
	})
}

func (w *world) Policy(context.Context, string) (contract.PolicyOf, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outdated {
		return contract.PolicyOf{}, nil
	}
	return contract.PolicyOf{Policy: w.policy, Version: w.version, Paused: w.paused}, nil
}

// Stock applies every event once by its id, and a return by its return id.
func (w *world) Stock(_ context.Context, _ string, ev contract.StockEvent) (redis.StockOutcome, error) {
	out := redis.StockOutcome{EventID: ev.EventID}
	var err error
	name := ev.EventID
	if ev.ReturnID != "" {
		name = ev.ReturnID
	}
	out.Base, err = w.verb("stock "+ev.EventID, func() redis.Verdict {
		out.N = w.applied[name]
		if out.N == 0 {
			out.N = int64(len(w.applied)) + 1
		}
		switch ev.Kind {
		case contract.StockRestock:
			out.Delta = ev.Units
		case contract.StockReturn:
			if ev.Resell {
				out.Delta = ev.Units
			}
		case contract.StockLevel:
			out.Delta = ev.Units - w.free
		default:
			out.Delta = ev.Delta
		}
		if w.free+out.Delta < 0 && !ev.AllowShortfall {
			out.Delta, out.Reason = 0, string(redis.WouldOversell)
			out.N = int64(len(w.applied)) // a refusal has no line of its own
			return redis.WouldOversell
		}
		out.Applied = true
		if w.applied[name] != 0 {
			return redis.Existing
		}
		w.applied[name] = out.N
		w.free += out.Delta
		return redis.OK
	})
	out.Wake = w.wakes
	out.Counters = redis.Counters{State: contract.SKUAvailable, OnHand: w.free, Available: w.free, OpenToAll: w.free, Shortfall: max(0, -w.free), AsOf: w.Now()}
	out.Counters.Corrected = w.free
	return out, err
}

// TripwireAndLedger answers what a test has made ring, and a shortfall.
func (w *world) TripwireAndLedger(context.Context, string) (redis.Counters, []contract.Ring, error) {
	c := redis.Counters{State: contract.SKUAvailable, OnHand: w.free, Available: w.free, OpenToAll: w.free, Corrected: w.free, Shortfall: max(0, -w.free), AsOf: w.Now()}
	_, err := w.verb("tripwire", func() redis.Verdict { return redis.OK })
	rings := w.rings
	if c.Shortfall > 0 {
		rings = append(slices.Clone(rings), contract.Ring{Wire: contract.WireShortfall, Says: "more is promised"})
	}
	return c, rings, err
}

func (w *world) TrimLedger(context.Context, string) (int64, bool, error) { return 0, false, nil }

func (w *world) Drain(context.Context, string, int) (redis.DrainOutcome, error) {
	var out redis.DrainOutcome
	var err error
	out.Base, err = w.verb("drain", func() redis.Verdict {
		if w.drain != nil {
			out = w.drain()
		}
		return redis.OK
	})
	return out, err
}

package workflows_test

import (
	"context"

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
		return redis.OK
	})
}

// Stock applies every event once by its id.
func (w *world) Stock(_ context.Context, _ string, ev contract.StockEvent) (redis.StockOutcome, error) {
	out := redis.StockOutcome{EventID: ev.EventID}
	var err error
	out.Base, err = w.verb("stock "+ev.EventID, func() redis.Verdict {
		out.N = w.applied[ev.EventID]
		if out.N == 0 {
			out.N = int64(len(w.applied)) + 1
		}
		switch {
		case ev.Kind == contract.StockRestock:
			out.Applied, out.Delta = true, ev.Units
		case w.free+ev.Delta < 0:
			out.Reason = string(redis.WouldOversell)
			return redis.WouldOversell
		default:
			out.Applied, out.Delta = true, ev.Delta
		}
		if w.applied[ev.EventID] != 0 {
			return redis.Existing
		}
		w.applied[ev.EventID] = out.N
		w.free += out.Delta
		return redis.OK
	})
	out.Wake = w.wakes
	return out, err
}

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

package starter

import (
	"context"

	"holdfast/contract"
	"holdfast/redis"
)

// said is a word as Temporal got it.
type said struct {
	Person string
	contract.Said
}

func (w *workflows) Said(ctx context.Context, person string, s contract.Said) error {
	if err := w.enter("Said"); err != nil {
		return err
	}
	w.set(func() {
		w.words = append(w.words, said{person, s})
		w.optedOut[person] = s.Word == contract.SaidStop
	})
	if s.Word != contract.SaidStop {
		return nil
	}
	skus, err := w.gate.SKUs(ctx)
	if err != nil {
		return err
	}
	places, err := w.gate.LiveEntries(ctx, person, skus)
	for sku, id := range places {
		if _, err := w.gate.Leave(ctx, redis.LeaveRequest{SKU: sku, EntryID: id, State: contract.EntryOptedOut, Actor: "optout"}); err != nil {
			return err
		}
	}
	return err
}

func (w *workflows) OptedOut(ctx context.Context, person string) (bool, error) {
	if err := w.enter("OptedOut"); err != nil {
		return false, err
	}
	w.mu.Lock()
	slow, out := w.slowLook, w.optedOut[person]
	w.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return out, nil
}

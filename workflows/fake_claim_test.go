package workflows_test

import (
	"context"

	"holdfast/redis"
)

// ClaimPayment gives a payment to the first hold that it is told for.
func (w *world) ClaimPayment(_ context.Context, holdID, ref string) (redis.PaymentOwner, error) {
	return w.claim("claim", holdID, ref, func(*redis.PaymentOwner) {})
}

func (w *world) SettlePayment(_ context.Context, holdID, ref, reference string) (redis.PaymentOwner, error) {
	return w.claim("settle", holdID, ref, func(o *redis.PaymentOwner) { o.Settled, o.Reference = true, reference })
}

func (w *world) ReopenPayment(_ context.Context, holdID, ref string) (redis.PaymentOwner, error) {
	return w.claim("reopen", holdID, ref, func(o *redis.PaymentOwner) { o.Settled, o.Reference = false, "" })
}

func (w *world) claim(verb, holdID, ref string, move func(*redis.PaymentOwner)) (redis.PaymentOwner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		if err := w.down(verb); err != nil {
			return redis.PaymentOwner{}, err
		}
	}
	owner, ok := w.owners[ref]
	if !ok {
		owner = redis.PaymentOwner{HoldID: holdID}
	}
	if owner.HoldID == holdID {
		move(&owner)
	}
	if w.owners == nil {
		w.owners = map[string]redis.PaymentOwner{}
	}
	w.owners[ref] = owner
	return owner, nil
}

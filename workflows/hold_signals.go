package workflows

import (
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
	"holdfast/redis"
)

func (h *hold) onStarted(raw converter.RawValue) error {
	var m contract.PaymentStarted
	err := decode(raw, &m)
	var money *contract.Money
	if err == nil {
		money, err = newMoney(m.Amount, m.Currency)
	}
	if err != nil {
		return h.park(contract.SignalPaymentStarted, raw, err)
	}
	h.begun(m.PaymentRef)
	if h.status.State.Ended() || h.apart() {
		return nil
	}
	news := money != nil && (h.named == nil || *money != *h.named)
	if money != nil {
		h.named, h.namedBy[m.PaymentRef] = money, money
	}
	h.tries[m.PaymentRef] = true
	if !h.giving() && (!h.paying || news) { // a Payment that comes later knows only what the gate was told
		h.paying = true
		if err := h.adopt(); err != nil {
			return err
		}
	}
	return h.putRight()
}

func (h *hold) onSucceeded(raw converter.RawValue) error {
	var m contract.PaymentSucceeded
	err := decode(raw, &m)
	var p payment
	if err == nil {
		p, err = newPayment(m.PaymentRef, m.Amount, m.Currency)
	}
	if err != nil {
		return h.park(contract.SignalPaymentSucceeded, raw, err)
	}
	_, err = h.pay(p)
	return err
}

func (h *hold) onFailed(raw converter.RawValue) error {
	var m contract.PaymentFailed
	if err := decode(raw, &m); err != nil {
		return h.park(contract.SignalPaymentFailed, raw, err)
	}
	switch {
	case h.status.State.Ended():
		return nil
	case m.Final && !(m.AttemptOnly && h.begunAfter(m.PaymentRef)):
		return h.giveBack(contract.ReasonPaymentFailed, "checkout")
	case h.paying && !h.apart() && !h.giving() && h.lastTry(m.PaymentRef):
		// The shopper may try again within the deadline; the extension stays.
		h.paying = false
		h.arm()
		h.show()
	}
	return nil
}

// lastTry ends a payment that has started, all of them when it has no name, and says
// whether none is left: what is said of one keeps the grace of another.
func (h *hold) lastTry(ref string) bool {
	if ref == "" {
		clear(h.tries)
	}
	delete(h.tries, ref)
	delete(h.tries, "")
	return len(h.tries) == 0
}

func (h *hold) onRelease(r contract.Release) error {
	if h.status.State.Ended() {
		return nil
	}
	actor := "shop"
	switch {
	case r.Reason == contract.ReasonShopper:
		actor = redis.ActorShopper
	case r.Reason == contract.ReasonExpired, !isWord(r.Reason): // only the timer expires a hold
		r.Reason = contract.ReasonShop
	}
	return h.giveBack(r.Reason, actor)
}

package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

// Steps of the model test: holds and their payments.

func (r *run) stepReserve(rt *rapid.T) {
	id, person := r.id(contract.HoldID), r.person(rt)
	if rapid.IntRange(0, 2).Draw(rt, "repeat") == 0 {
		id = r.pick(rt, r.holds, contract.HoldID)
	}
	r.takes(rt, id, person)
}

func (r *run) takes(rt *rapid.T, id, person string) Verdict {
	out := must[HoldOutcome](r.fixture)(r.g.Reserve(context.Background(), ReserveRequest{SKU: r.sku, HoldID: id, Units: 1, Person: person}))
	r.m.sweep()
	r.settles(rt)
	want := r.m.reserve(id, person, 1, false)
	switch want {
	case OK:
		r.holds = append(r.holds, id)
	case ReservedForLine, SoldOut:
		require.Equal(rt, int64(len(r.m.line)), out.Waiting, "how many wait")
	}
	r.did(rt, "reserve", out.Verdict, want)
	return want
}

func (r *run) stepPress(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.press(id)
	r.m.sweep()
	r.did(rt, "press", out.Verdict, r.m.reserve(id, "", 0, true))
}

func (r *run) stepAdopt(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldProvisional, contract.HoldSwept)
	if rapid.IntRange(0, 3).Draw(rt, "door") == 0 {
		out := r.adopt(id, false)
		r.m.sweep()
		r.did(rt, "adopt door", out.Verdict, r.m.adopt(id, "", false, 0))
		return
	}
	by := rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(rt, "extend")
	person := r.person(rt)
	req := AdoptHoldRequest{SKU: r.sku, HoldID: id, HoldFor: 10 * time.Minute, ByWorkflow: true, Units: 1, Person: person}
	if by > 0 {
		req.Extend = &Extension{By: by}
	}
	out := must[HoldOutcome](r.fixture)(r.g.AdoptHold(context.Background(), req))
	r.m.sweep()
	r.settles(rt)
	if r.m.holds[id] == nil {
		r.holds = append(r.holds, id)
	}
	r.did(rt, "adopt workflow", out.Verdict, r.m.adopt(id, person, true, by))
}

func (r *run) ref(rt *rapid.T) string {
	return fmt.Sprint("pi", rapid.IntRange(0, 2).Draw(rt, "ref"))
}

func (r *run) stepConfirm(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldHeld, contract.HoldSold, contract.HoldExpired), r.ref(rt)
	retake := rapid.Bool().Draw(rt, "retake")
	out := must[HoldOutcome](r.fixture)(r.g.Confirm(context.Background(), ConfirmRequest{SKU: r.sku, HoldID: id, PaymentRef: ref, Retake: retake}))
	r.m.sweep()
	if r.m.retakes(id, retake) {
		r.settles(rt)
	}
	want := r.m.confirm(id, ref, retake)
	if want == OK && r.m.holds[id].retaken {
		r.reached["confirm retaken"]++
	}
	r.did(rt, "confirm", out.Verdict, want)
}

func (r *run) stepUnconfirm(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldSold), r.ref(rt)
	if h := r.m.holds[id]; h != nil && h.ref != "" && rapid.IntRange(0, 3).Draw(rt, "of the sale") > 0 {
		ref = h.ref
	}
	out := must[HoldOutcome](r.fixture)(r.g.Unconfirm(context.Background(), r.sku, id, ref, "test"))
	r.m.sweep()
	r.did(rt, "unconfirm", out.Verdict, r.m.unconfirm(id, ref))
}

// stepAtTheLimit leaves somebody in the line who already has as much as one may,
// and a lease that nobody adopts: its unit is a walk-in's. Then what they have may
// end, and they are next.
func (r *run) stepAtTheLimit(rt *rapid.T) {
	limit, person := int64(1), r.person(rt)
	r.settings(rt, SettingsRequest{Limit: &limit})
	mine := r.id(contract.HoldID)
	if r.takes(rt, mine, person) == OK {
		out := r.adopt(mine, false)
		r.m.sweep()
		r.did(rt, "adopt door", out.Verdict, r.m.adopt(mine, "", false, 0))
		r.takes(rt, r.id(contract.HoldID), r.person(rt))
	}
	if free := r.m.free(); free > 0 {
		r.n++
		r.stockEvent(rt, contract.StockEvent{EventID: fmt.Sprint("s", r.n), Kind: contract.StockCorrection, Delta: -free})
	}
	entry := r.id(contract.EntryID)
	r.join(rt, entry, person, 1)
	r.acks(rt, entry)
	r.move(testLease)
	r.takes(rt, r.id(contract.HoldID), r.person(rt))
	if rapid.Bool().Draw(rt, "theirs ends") && r.m.holds[mine] != nil {
		out := r.release(mine, contract.ReasonPaymentFailed)
		r.m.sweep()
		r.did(rt, "release", out.Verdict, r.m.release(mine, contract.ReasonPaymentFailed))
	}
	limit = 0
	r.settings(rt, SettingsRequest{Limit: &limit})
}

// stepRetake pays for a hold that has just expired.
func (r *run) stepRetake(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldHeld)
	if h := r.m.holds[id]; h != nil && h.state == contract.HoldHeld {
		r.move(time.Duration(max(0, h.deadline-r.m.ms())) * time.Millisecond)
	}
	out := r.release(id, contract.ReasonExpired)
	r.m.sweep()
	r.did(rt, "release", out.Verdict, r.m.release(id, contract.ReasonExpired))
	ref := r.ref(rt)
	sale := must[HoldOutcome](r.fixture)(r.g.Confirm(context.Background(), ConfirmRequest{SKU: r.sku, HoldID: id, PaymentRef: ref, Retake: true}))
	r.m.sweep()
	if r.m.retakes(id, true) {
		r.settles(rt)
	}
	want := r.m.confirm(id, ref, true)
	if want == OK && r.m.holds[id].retaken {
		r.reached["confirm retaken"]++
	}
	r.did(rt, "confirm", sale.Verdict, want)
}

func (r *run) stepRelease(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldHeld, contract.HoldOffered)
	reason := rapid.SampledFrom([]string{contract.ReasonExpired, contract.ReasonExpired, contract.ReasonShopper, contract.ReasonPaymentFailed}).Draw(rt, "reason")
	if rapid.IntRange(0, 1).Draw(rt, "ask only") == 0 {
		out := must[HoldOutcome](r.fixture)(r.g.Release(context.Background(), ReleaseRequest{SKU: r.sku, HoldID: id, Reason: reason, AskOnly: true}))
		r.m.sweep()
		r.did(rt, "release asked", out.Verdict, r.m.wouldRelease(id, reason))
		return
	}
	out := r.release(id, reason)
	r.m.sweep()
	r.did(rt, "release", out.Verdict, r.m.release(id, reason))
}

// stepDeadPress presses an offer twice shortly before its deadline, and nobody
// adopts it: the deadline moves the first time only.
func (r *run) stepDeadPress(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldOffered)
	out := r.told(id, true)
	r.m.sweep()
	r.did(rt, "told", out.Verdict, r.m.told(id, true))
	if h := r.m.holds[id]; h != nil && h.state == contract.HoldOffered {
		r.move(time.Duration(max(0, h.deadline-r.m.ms()-1)) * time.Millisecond)
	}
	for range 2 {
		out = r.press(id)
		r.m.sweep()
		r.did(rt, "press", out.Verdict, r.m.reserve(id, "", 0, true))
		r.move(testLease)
		r.stepDrain(rt)
	}
}

func (r *run) stepShortfall(rt *rapid.T) {
	if r.m.onHand > 0 {
		r.n++
		r.stockEvent(rt, contract.StockEvent{
			EventID: fmt.Sprint("s", r.n), Kind: contract.StockCorrection, Delta: -r.m.onHand, AllowShortfall: true,
		})
	}
	r.stepConfirm(rt)
}

func (r *run) stepRefund(rt *rapid.T) {
	id, ref := r.pickHold(rt, contract.HoldSold, contract.HoldExpired), r.ref(rt)
	if h := r.m.holds[id]; h != nil && h.ref != "" && rapid.Bool().Draw(rt, "of the sale") {
		ref = h.ref
	}
	out := must[HoldOutcome](r.fixture)(r.g.Refund(context.Background(), r.sku, id, ref, "test"))
	r.m.sweep()
	r.did(rt, "refund", out.Verdict, r.m.refund(id, ref))
}

func (r *run) stepTakeBack(rt *rapid.T) {
	r.stepReserve(rt) // a lease lasts for a few steps only
	id := r.pickHold(rt, contract.HoldProvisional, contract.HoldHeld)
	out := r.takeBack(id)
	r.m.sweep()
	r.did(rt, "take back", out.Verdict, r.m.takeBack(id))
}

// stepGone looks for the owner of any record, and ends the record by what it saw then.
func (r *run) stepGone(rt *rapid.T) {
	id := r.pickHold(rt, contract.HoldHeld)
	if rapid.Bool().Draw(rt, "an entry") {
		id = r.pick(rt, r.entries, contract.EntryID)
	}
	var version int64
	if h, ok, err := r.g.ReadHold(context.Background(), r.sku, id); err == nil && ok {
		version = h.Hold.Version
	} else if e, ok, err := r.g.ReadEntry(context.Background(), r.sku, id); err == nil && ok {
		version = e.Version
	}
	moved := rapid.IntRange(0, 3).Draw(rt, "moved meanwhile") == 0
	if moved {
		version++
	}
	verdict := r.gone(id, version)
	var was contract.EntryState
	if e := r.m.entries[id]; e != nil {
		was = e.state
	}
	r.m.sweep()
	if e := r.m.entries[id]; e != nil && e.state != was {
		moved = true // by the end of its lease, in this very call
	}
	r.did(rt, "gone", verdict, r.m.gone(id, moved))
}

package starter

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// A hold of several lines has a record in each of its SKUs. The door shows and
// moves it as one hold: whole.

const (
	maxItems        = 200 // of lines, which may name a SKU more than once
	takeBackTimeout = 5 * time.Second
)

// readLines reads sku and quantity, or lines. It answers them merged, with the
// pointer to the first item that names each SKU.
func readLines(f *fields) ([]contract.Line, map[string]string) {
	if !f.has("lines") {
		return []contract.Line{{SKU: f.sku("sku"), Quantity: f.quantity("quantity", false)}}, nil
	}
	for _, name := range []string{"sku", "quantity"} {
		if f.has(name) {
			f.complain(name, "must not stand beside lines; send one or the other")
		}
	}
	items := f.objects("lines", maxItems)
	lines, pointers := make([]contract.Line, len(items)), map[string]string{}
	for i, item := range items {
		lines[i] = contract.Line{SKU: item.sku("sku"), Quantity: item.quantity("quantity", false)}
		item.unknown()
		if _, known := pointers[lines[i].SKU]; !known {
			pointers[lines[i].SKU] = item.at
		}
	}
	if len(*f.errs) > 0 {
		return nil, nil
	}
	merged, err := contract.MergeLines(lines)
	var bad *contract.LineError
	switch {
	case !errors.As(err, &bad):
	case bad.Index < 0:
		f.complain("lines", "%s", bad.Detail)
	default:
		items[bad.Index].complain("quantity", "%s", bad.Detail)
	}
	return merged, pointers
}

// named adds to a refusal which of the request's lines it is about.
func (r holdRequest) named(err error) error {
	var p *Problem
	if errors.As(err, &p) && p.SKU != "" {
		p.Pointer = r.pointers[p.SKU]
	}
	return err
}

// walkIns are the reservations of a hold's lines. The first one names the cart.
func walkIns(in contract.HoldInput, actor string) []redis.ReserveRequest {
	reqs := make([]redis.ReserveRequest, len(in.Lines))
	for i, line := range in.Lines {
		reqs[i] = redis.ReserveRequest{SKU: line.SKU, HoldID: in.HoldID, Units: line.Quantity, Person: in.Person, Actor: actor}
	}
	if len(reqs) > 1 {
		reqs[0].Cart = in.Lines
	}
	return reqs
}

// takeBack ends the leases of the lines before one that was refused, the last first.
// What it cannot reach ends by itself; what has its owner by now stays.
func (d *Door) takeBack(ctx context.Context, lines []redis.ReserveRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	for _, req := range slices.Backward(lines) {
		out, err := d.gate.Release(ctx, redis.ReleaseRequest{
			SKU: req.SKU, HoldID: req.HoldID, Reason: contract.ReasonCompensation, Actor: req.Actor, Lease: true,
		})
		if err != nil {
			d.log.Warn("the lease of a refused cart's line ends by itself", "sku", req.SKU, "error", err)
			continue
		}
		d.wakeIf(req.SKU, out.Base)
	}
}

// linesOf are the lines of a hold.
func linesOf(h redis.Hold) []contract.Line {
	if h.Cart != nil {
		return h.Cart
	}
	return []contract.Line{{SKU: h.SKU, Quantity: h.Units}}
}

// readWhole reads a hold by the SKU of its first line; ok is false when that is not
// on record.
func (d *Door) readWhole(ctx context.Context, sku, id string) (redis.HoldOutcome, bool, error) {
	first, ok, err := d.gate.ReadHold(ctx, sku, id)
	if err != nil || !ok || first.Hold.Cart == nil {
		return first, ok, err
	}
	outs := []redis.HoldOutcome{first}
	for _, line := range first.Hold.Cart[1:] {
		out, ok, err := d.gate.ReadHold(ctx, line.SKU, id)
		switch {
		case err != nil:
			return first, true, err
		case ok:
			outs = append(outs, out)
		case first.Hold.State.Ended() && time.Since(first.Hold.EndedAt) >= d.cfg.Gate.RecordRetention:
			// Its record was purged a little before the first line's.
		default:
			out.Hold.State, out.Hold.Deadline = contract.HoldSwept, first.Hold.Deadline
			outs = append(outs, out)
		}
	}
	return whole(outs), true, nil
}

// whole is a hold of several lines as one: live until the last of them has ended,
// held until the earliest deadline. The first line says what is told of the cart.
func whole(lines []redis.HoldOutcome) redis.HoldOutcome {
	out := lines[0]
	h := &out.Hold
	states, back := make([]contract.HoldState, len(lines)), make([]bool, len(lines))
	for i, line := range lines {
		states[i], back[i] = line.Hold.State, line.Hold.Returned >= line.Hold.Units
		if line.Hold.Deadline.Before(h.Deadline) {
			h.Deadline, out.Left, out.Now = line.Hold.Deadline, line.Left, line.Now
		}
		h.Extended = h.Extended && line.Hold.Extended
		if line.Hold.EndedAt.After(h.EndedAt) {
			h.EndedAt = line.Hold.EndedAt
		}
	}
	if h.State = contract.CartStateOf(states, back); h.State == contract.HoldSold {
		return out
	}
	h.PaymentRef, h.Reason = "", ""
	if !h.State.Ended() {
		h.EndedAt = time.Time{}
		return out
	}
	if i := slices.Index(states, h.State); i >= 0 {
		h.Reason = lines[i].Hold.Reason
	}
	return out
}

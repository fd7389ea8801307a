package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

const running = "ExecutionStatus = 'Running'"

// holds puts in what open Holds hold, and how those ended that are about to close.
func (r *rebuild) holds(ctx context.Context) error {
	return r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, running), func(page []listedFlow) error {
		return r.asHoldsSay(ctx, idsOf(page, func(w listedFlow) bool {
			state := r.Holds[w.id].State
			return state != contract.HoldHeld && state != contract.HoldSold
		}), true)
	})
}

// asHoldsSay merges the records of Holds, open or closed, with their status. Of a Hold
// that has ended without a sale and has no record only an entry has to learn: ended
// says that one does.
func (r *rebuild) asHoldsSay(ctx context.Context, ids []string, ended bool) error {
	all, err := ask[contract.HoldStatus](ctx, r.Books, ids)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := r.merge(ctx, s, ended, false); err != nil {
			return err
		}
	}
	return nil
}

// merge writes the record of a hold that its workflow, or a Payment, has brought
// further than the gate knows.
func (r *rebuild) merge(ctx context.Context, s contract.HoldStatus, ended, retaken bool) error {
	i := slices.IndexFunc(s.Lines, func(l contract.Line) bool { return l.SKU == r.sku })
	was := r.Holds[s.HoldID]
	s.State = s.Of(r.sku)
	asks := s.State == contract.HoldProvisional
	switch {
	case i < 0 || was.State == contract.HoldSold || was.State == s.State && !asks,
		was.State == contract.HoldSwept && s.State.Ended() && s.State != contract.HoldSold,
		was.State == "" && s.State.Ended() && s.State != contract.HoldSold && !ended,
		asks && (s.EntryID != "" || was.State != "" && was.State != contract.HoldProvisional && was.State != contract.HoldSwept):
		return nil // of a pressed offer that was not adopted the offer stands
	}
	if s.Person == "" {
		return fmt.Errorf("the worker of %s is too old to say whose it is: run newer workers", s.HoldID)
	}
	h := redis.RebuiltHold{
		LostHold: redis.LostHold{
			ID: s.HoldID, Person: s.Person, EntryID: s.EntryID, Units: s.Lines[i].Quantity, Generation: s.Generation,
			CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, Extended: s.Extended,
		},
		Version: was.Version, State: s.State, Reason: s.EndReason, PaymentRef: s.PaymentRef, Retaken: retaken, Refunded: r.refunded[s.HoldID],
	}
	if h.ExpiresAt.IsZero() {
		h.ExpiresAt = h.CreatedAt
	}
	if i == 0 && len(s.Lines) > 1 {
		h.Cart = s.Lines
	}
	if asks {
		r.asking = append(r.asking, h)
		return nil
	}
	if s.State.Ended() {
		if h.EndedAt = s.LineSoldAt(i); h.EndedAt.IsZero() {
			h.EndedAt = time.Now()
		}
	}
	if s.State == contract.HoldSold {
		h.Reason = ""
		// A record and the counters are of one instant. Of a record that is missing the
		// sale was counted unless it came later.
		h.Uncounted = was.State != "" || h.EndedAt.Truncate(time.Millisecond).Add(time.Millisecond).After(r.until)
		if err := r.gate.RestorePayment(ctx, s.HoldID, s.PaymentRef); err != nil {
			return err
		}
	}
	if r.Names != nil {
		if err := r.gate.NoteHold(ctx, s.HoldID, r.Names(s)...); err != nil {
			return err
		}
	}
	return r.write(ctx, h, was)
}

// leases takes units for holds that their workflows have yet to adopt, the oldest first: the
// door may have promised them. They get what is free, and no more: the lease of one may
// have ended long ago, and its units may be somebody else's.
func (r *rebuild) leases(ctx context.Context, t redis.Totals) (redis.Totals, error) {
	slices.SortFunc(r.asking, func(a, b redis.RebuiltHold) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, h := range r.asking {
		was := r.Holds[h.ID]
		if was.State == contract.HoldProvisional {
			t.Held -= was.Units
		}
		if t.Held+t.Offered+h.Units <= t.OnHand {
			if err := r.write(ctx, h, was); err != nil {
				return t, err
			}
			was = r.Holds[h.ID]
		}
		if was.State == contract.HoldProvisional {
			t.Held += was.Units
		}
	}
	return t, nil
}

func (r *rebuild) write(ctx context.Context, h redis.RebuiltHold, was redis.Hold) error {
	known := string(was.State)
	if known == "" {
		known = "nothing"
	}
	if was.State != h.State {
		r.differ("%s is %s with %d, the gate knew %s", h.ID, h.State, h.Units, known)
	}
	r.gen = max(r.gen, h.Generation)
	base, err := r.gate.RebuildHold(ctx, r.sku, h)
	if err == nil && base.Verdict != redis.OK {
		err = fmt.Errorf("%s has moved while its gate was closed: %s", h.ID, base.Verdict)
	}
	if err == nil {
		now := was
		now.ID, now.State, now.Units, now.Version = h.ID, h.State, h.Units, was.Version+1
		r.Holds[h.ID] = now
	}
	return err
}

// as is the record that stands.
func as(h redis.Hold) redis.RebuiltHold {
	return redis.RebuiltHold{
		LostHold: redis.LostHold{
			ID: h.ID, Person: h.Person, EntryID: h.EntryID, Units: h.Units, Generation: h.Generation, CreatedAt: h.CreatedAt, ExpiresAt: h.Deadline,
			Extended: h.Extended, Cart: h.Cart,
		},
		Version: h.Version, State: h.State, EndedAt: h.EndedAt, Reason: h.Reason,
	}
}

// closedHolds looks after live records whose Hold the list has not got.
func (r *rebuild) closedHolds(ctx context.Context) error {
	open := map[string]bool{}
	err := r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, running), func(page []listedFlow) error {
		for _, w := range page {
			open[w.id] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.Holds)) {
		h := r.Holds[id]
		if h.State != contract.HoldHeld && h.State != contract.HoldProvisional || open[id] {
			continue
		}
		if err := r.withoutOwner(ctx, id, h.Version, true); err != nil {
			return err
		}
	}
	return nil
}

// withoutOwner looks for the workflow of a live record that the list has not got.
func (r *rebuild) withoutOwner(ctx context.Context, id string, version int64, hold bool) error {
	d := pass{Passes: r.Passes}
	open, run, err := d.owner(ctx, id)
	switch {
	case err != nil || open && !hold:
		return err
	case run == "" && r.Holds[id].State == contract.HoldProvisional:
		return nil // its lease ends by itself
	case run == "":
		r.missing = append(r.missing, gone{id: id, owned: redis.Owned{Version: version}})
		return nil
	case hold:
		return r.asHoldsSay(ctx, []string{id}, false)
	}
	r.differ("%s was live in the gate, and its workflow has closed", id)
	_, err = r.gate.RepairGone(ctx, r.sku, id, version)
	return err
}

package activities

import (
	"context"
	"maps"
	"slices"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// entries puts in open entries and their offers.
func (r *rebuild) entries(ctx context.Context) error {
	open := map[string]bool{}
	err := r.listed(ctx, skuQuery(r.sku, contract.WaitlistEntryWorkflow, running), func(page []listedFlow) error {
		all, err := ask[contract.EntryStatus](ctx, r.Books, idsOf(page, func(w listedFlow) bool {
			open[w.id] = true
			e, known := r.Entries[w.id]
			h := r.Holds[e.HoldID]
			return !known || string(e.State) != w.state || e.State == contract.EntryOffered && (h.State == "" || h.ToldAt.IsZero())
		}))
		if err != nil {
			return err
		}
		var pressed []string // or ended: their Holds say
		for _, s := range all {
			if s.State.Live() && s.State != contract.EntryWaiting && r.Holds[s.HoldID].State == "" {
				pressed = append(pressed, s.HoldID)
			}
		}
		if err := r.asHoldsSay(ctx, pressed, true); err != nil {
			return err
		}
		for _, s := range all {
			if err := r.entry(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.Entries)) {
		e := r.Entries[id]
		if !e.State.Live() || !e.Acknowledged || e.Leaving || open[id] {
			continue
		}
		if err := r.withoutOwner(ctx, id, e.Version, false); err != nil {
			return err
		}
	}
	return nil
}

// entry puts in one open entry. An offer that nobody has pressed is known to its entry
// alone.
func (r *rebuild) entry(ctx context.Context, s contract.EntryStatus) error {
	if !s.State.Live() {
		return nil
	}
	r.gen = max(r.gen, s.Generation)
	if _, known := r.Entries[s.EntryID]; !known {
		r.differ("%s waits since %s, the gate knew nothing", s.EntryID, s.JoinedAt.Format(time.RFC3339))
		if _, err := r.gate.RepairEntry(ctx, r.sku, lostEntry(s)); err != nil {
			return err
		}
	}
	was := r.Holds[s.HoldID]
	if missedSince(r.Entries[s.EntryID], s) && was.State == contract.HoldOffered && !was.ToldAt.IsZero() {
		missed := as(was)
		missed.State, missed.EndedAt, missed.Reason = contract.HoldLapsed, r.report.Checked, string(contract.HoldLapsed)
		return r.write(ctx, missed, was)
	}
	if lostTelling(was, s) {
		r.differ("%s was told of the offer %s, the gate did not know", s.EntryID, s.HoldID)
		told := as(was)
		told.ToldAt, told.ExpiresAt = r.report.Checked, *s.OfferUntil
		return r.write(ctx, told, was)
	}
	if s.State != contract.EntryOffered || was.State != "" {
		return nil
	}
	h := redis.RebuiltHold{State: contract.HoldOffered, Refunded: r.refunded[s.HoldID], LostHold: redis.LostHold{
		ID: s.HoldID, Person: s.Person, EntryID: s.EntryID, Units: s.Quantity, Generation: s.Generation,
		CreatedAt: r.report.Checked, ExpiresAt: s.JoinedAt.Add(time.Hour),
	}}
	if s.OfferUntil != nil {
		h.ExpiresAt = *s.OfferUntil
	}
	if s.OfferSent {
		h.ToldAt = h.CreatedAt
	}
	return r.write(ctx, h, was)
}

// lostTelling says that the text of an offer went out, and that its record is of before.
func lostTelling(h redis.Hold, s contract.EntryStatus) bool {
	return s.State == contract.EntryOffered && h.State == contract.HoldOffered && h.ToldAt.IsZero() && s.OfferSent && s.OfferUntil != nil
}

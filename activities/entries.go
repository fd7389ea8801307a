package activities

import (
	"context"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// EntryGate is the gate as a waitlist entry uses it.
type EntryGate interface {
	AdoptEntry(ctx context.Context, sku, entryID string) (redis.EntryOutcome, error)
	AdoptOffer(ctx context.Context, sku, holdID string) (redis.HoldOutcome, error)
	Policy(ctx context.Context, sku string) (contract.PolicyOf, error)
	Told(ctx context.Context, req redis.ToldRequest) (redis.HoldOutcome, error)
	Lapse(ctx context.Context, req redis.LapseRequest) (redis.HoldOutcome, error)
	Leave(ctx context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error)
}

// Entries are the activities of WaitlistEntry.
type Entries struct {
	Guard
	Gate EntryGate
}

// EntryRef names an entry. None of the gate's inputs carries a phone number.
type EntryRef struct {
	SKU     string `json:"sku"`
	EntryID string `json:"entry_id"`
}

// EntryOutcome is an entry's record as the gate has it now.
type EntryOutcome struct {
	Verdict    redis.Verdict       `json:"verdict"`
	State      contract.EntryState `json:"state,omitempty"`
	HoldID     string              `json:"hold_id,omitempty"`
	Generation int64               `json:"generation,omitempty"`
	Missed     int64               `json:"missed,omitempty"`
	Leaving    bool                `json:"leaving,omitempty"`
	Position   int64               `json:"position,omitempty"`
	EndedAt    time.Time           `json:"ended_at,omitzero"`
	Tell       bool                `json:"tell,omitempty"` // the shop has an endpoint for events
}

// AdoptEntry says that the entry's workflow runs, and on an ended entry that it
// knows of the end.
func (a *Entries) AdoptEntry(ctx context.Context, in EntryRef) (EntryOutcome, error) {
	out, err := a.Gate.AdoptEntry(ctx, in.SKU, in.EntryID)
	return a.entryDone(ctx, in.SKU, "adopt entry of", out, err)
}

// LeaveEntryInput ends an entry on behalf of its own workflow.
type LeaveEntryInput struct {
	EntryRef
	State contract.EntryState `json:"state"`
	Actor string              `json:"actor"`
}

// LeaveEntry ends an entry; one that holds a unit runs on.
func (a *Entries) LeaveEntry(ctx context.Context, in LeaveEntryInput) (EntryOutcome, error) {
	out, err := a.Gate.Leave(ctx, redis.LeaveRequest{
		SKU: in.SKU, EntryID: in.EntryID, State: in.State, Actor: in.Actor, Owner: true,
	})
	return a.entryDone(ctx, in.SKU, "leave entry of", out, err)
}

func (a *Entries) entryDone(ctx context.Context, sku, verb string, out redis.EntryOutcome, err error) (EntryOutcome, error) {
	if err != nil {
		return EntryOutcome{}, a.gateError(ctx, sku, verb, err)
	}
	a.wake(ctx, sku, out.Base)
	e := out.Entry
	return EntryOutcome{
		Verdict: out.Verdict, State: e.State, HoldID: e.HoldID, Generation: e.Generation,
		Missed: e.Missed, Leaving: e.Leaving, Position: e.Position, EndedAt: e.EndedAt, Tell: a.Tell,
	}, nil
}

// OfferRef names an offer.
type OfferRef struct {
	SKU    string `json:"sku"`
	HoldID string `json:"hold_id"`
}

// KnownOffer is an offer as its owner learns of it, with the SKU's policy by then:
// the offer's own from now on.
type KnownOffer struct {
	HoldOutcome
	Policy contract.Policy `json:"policy,omitzero"`
}

// AdoptOffer says that the entry's workflow knows of the offer.
func (a *Entries) AdoptOffer(ctx context.Context, in OfferRef) (KnownOffer, error) {
	policy, err := a.Gate.Policy(ctx, in.SKU)
	if err != nil {
		return KnownOffer{}, a.gateError(ctx, in.SKU, "read the policy of", err)
	}
	out, err := a.Gate.AdoptOffer(ctx, in.SKU, in.HoldID)
	hold, err := a.offerDone(ctx, in.SKU, "adopt offer of", out, err)
	return KnownOffer{HoldOutcome: hold, Policy: policy.Policy}, err
}

// ToldInput names an offer and the clocks of telling it.
type ToldInput struct {
	OfferRef
	Settings contract.EntrySettings `json:"settings"`
}

func (in ToldInput) request(sent bool) redis.ToldRequest {
	return redis.ToldRequest{
		SKU:       in.SKU,
		HoldID:    in.HoldID,
		Window:    seconds(in.Settings.WindowSeconds),
		SentGrace: seconds(in.Settings.SentGraceSeconds),
		MaxAge:    seconds(in.Settings.MaxAgeSeconds),
		Sent:      sent,
	}
}

// OfferSent starts the offer's window: the provider has sent the text.
func (a *Entries) OfferSent(ctx context.Context, in ToldInput) (HoldOutcome, error) {
	out, err := a.Gate.Told(ctx, in.request(true))
	return a.offerDone(ctx, in.SKU, "told offer of", out, err)
}

// LapseOfferInput names an offer to end. NotTold says that its person was not told
// of it: that costs no turn. NotDelivered says that nobody knows of its text that it
// arrived, which is for the report alone.
type LapseOfferInput struct {
	OfferRef
	NotTold      bool `json:"not_told,omitempty"`
	NotDelivered bool `json:"not_delivered,omitempty"`
}

// LapseOffer ends an offer that nobody pressed in time, or that nobody was told of.
func (a *Entries) LapseOffer(ctx context.Context, in LapseOfferInput) (HoldOutcome, error) {
	out, err := a.Gate.Lapse(ctx, redis.LapseRequest{SKU: in.SKU, HoldID: in.HoldID, NotTold: in.NotTold, NotDelivered: in.NotDelivered})
	done, err := a.offerDone(ctx, in.SKU, "lapse offer of", out, err)
	done.Untold = err == nil && out.Verdict == redis.Early && out.Hold.ToldAt.IsZero()
	return done, err
}

func (a *Entries) offerDone(ctx context.Context, sku, verb string, out redis.HoldOutcome, err error) (HoldOutcome, error) {
	if err != nil {
		return HoldOutcome{}, a.gateError(ctx, sku, verb, err)
	}
	a.wake(ctx, sku, out.Base)
	return a.holdOutcome(out), nil
}

package activities

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"

	"holdfast/contract"
	"holdfast/redis"
)

// OptOutGate is the gate as an OptOut uses it.
type OptOutGate interface {
	SKUs(ctx context.Context) ([]string, error)
	LiveEntries(ctx context.Context, person string, skus []string) (map[string]string, error)
	Leave(ctx context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error)
}

// OptOuts are the activities of OptOut.
type OptOuts struct {
	Guard
	Gate OptOutGate
}

// PersonRef names a person.
type PersonRef struct {
	Person string `json:"person"`
}

// PlacesEnded says how many places a call has ended.
type PlacesEnded struct {
	Ended int `json:"ended"`
}

// ActorOptOut is the actor of the ledger lines of a STOP.
const ActorOptOut = "optout"

// EndPlaces ends every place of a person, and with it an offer that they have not
// pressed; a hold runs on. A SKU whose gate cannot be asked keeps no other waiting,
// and is an error in the end: a repeat finds only what is left.
func (a *OptOuts) EndPlaces(ctx context.Context, in PersonRef) (PlacesEnded, error) {
	defer beating(ctx)()
	var done PlacesEnded
	skus, err := a.Gate.SKUs(ctx)
	if err != nil {
		return done, a.gateError(ctx, "", "list the SKUs for an opt-out", err)
	}
	slices.Sort(skus)
	places, err := a.Gate.LiveEntries(ctx, in.Person, skus)
	if err != nil {
		return done, a.gateError(ctx, "", "look for the places of an opt-out", err)
	}
	var failed error
	for _, sku := range skus {
		id, has := places[sku]
		if !has {
			continue
		}
		out, err := a.Gate.Leave(ctx, redis.LeaveRequest{SKU: sku, EntryID: id, State: contract.EntryOptedOut, Actor: ActorOptOut})
		if err != nil {
			activity.GetLogger(ctx).Warn("a place could not be ended yet", "sku", sku, "entry", id, "error", err)
			failed = a.gateError(ctx, sku, "leave entry of", err)
			continue
		}
		a.wake(ctx, sku, out.Base)
		done.Ended++
	}
	return done, failed
}

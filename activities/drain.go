package activities

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const (
	drainBatch    = 20  // items of one call of the gate: well below 2 ms of its time
	drainParallel = 16  // entries started at once
	drainRounds   = 100 // batches of one activity: 2,000 items, well within its timeout
	trimRounds    = 50  // bites of one activity: 5,000 lines of the ledger
	drainAlarm    = 20  // handings after which an item needs a person's eye
)

// DrainReport says what a drain did. More says that it stopped at its bound;
// NextMillis is how long until something more is due, 0 when nothing is.
type DrainReport struct {
	Started    int   `json:"started"`
	Told       int   `json:"told"`
	Failed     int   `json:"failed"`
	More       bool  `json:"more,omitempty"`
	NextMillis int64 `json:"next_ms"`
}

// DrainOutbox hands what is due in the outbox to the workflows of the entries.
// An item that fails stays in the outbox and is due again in 30 s: it holds up
// nobody else. Then the ledger loses what is past every retention: each SKU is
// drained now and then, at least when a door or a worker starts.
func (a *Stock) DrainOutbox(ctx context.Context, in SKURef) (DrainReport, error) {
	d := drain{Stock: a, sku: in.SKU}
	for range drainRounds {
		out, err := a.Gate.Drain(ctx, in.SKU, drainBatch)
		if err != nil {
			return d.report, a.gateError(ctx, in.SKU, "drain", err)
		}
		freed := d.deliver(ctx, out.Items)
		if err := ctx.Err(); err != nil {
			return d.report, a.gateError(ctx, in.SKU, "drain", err)
		}
		if len(out.Items) < drainBatch && !freed && !out.AtOnce {
			d.report.NextMillis = (out.Next + time.Millisecond - 1).Milliseconds()
			return d.report, d.trim(ctx)
		}
	}
	d.report.More = true
	return d.report, nil
}

func (d *drain) trim(ctx context.Context) error {
	for range trimRounds {
		_, more, err := d.Gate.TrimLedger(ctx, d.sku)
		if err != nil {
			return d.gateError(ctx, d.sku, "trim the ledger of", err)
		}
		if !more {
			return nil
		}
		activity.RecordHeartbeat(ctx)
	}
	d.report.More = true
	return nil
}

type drain struct {
	*Stock
	sku    string
	report DrainReport
}

// deliver hands out one batch: starts side by side, then offers and ends in
// their order. It answers whether an entry was ended on the way, whose unit
// then makes another offer.
func (d *drain) deliver(ctx context.Context, items []redis.Item) (freed bool) {
	var ended atomic.Bool
	var started, failed atomic.Int64
	var starts errgroup.Group
	starts.SetLimit(drainParallel)
	for _, item := range items {
		if item.Handed >= drainAlarm {
			activity.GetLogger(ctx).Error("outbox item handed out again and again", "sku", d.sku, "kind", item.Kind, "entry", item.EntryID, "hold", item.HoldID, "handed", item.Handed)
		}
		if item.Kind != redis.ItemStart {
			continue
		}
		starts.Go(func() error {
			gone, err := d.start(ctx, item)
			activity.RecordHeartbeat(ctx)
			if err != nil {
				failed.Add(1)
				activity.GetLogger(ctx).Error("entry not started", "sku", d.sku, "entry", item.EntryID, "error", err)
				return nil
			}
			started.Add(1)
			if gone {
				ended.Store(true)
			}
			return nil
		})
	}
	_ = starts.Wait() // no start answers an error: each is logged and counted
	d.report.Started += int(started.Load())
	d.report.Failed += int(failed.Load())

	for _, item := range items {
		if item.Kind == redis.ItemStart {
			continue
		}
		gone, err := d.tell(ctx, item)
		activity.RecordHeartbeat(ctx)
		if err != nil {
			d.report.Failed++
			activity.GetLogger(ctx).Error("entry not told", "sku", d.sku, "kind", item.Kind, "entry", item.EntryID, "error", err)
			continue
		}
		d.report.Told++
		if gone {
			ended.Store(true)
		}
	}
	return ended.Load()
}

// start starts an entry's workflow. One that has closed will never acknowledge:
// its entry ends.
func (d *drain) start(ctx context.Context, item redis.Item) (gone bool, err error) {
	in, err := d.Keys.Unseal(item.EntryID, item.Sealed)
	if err != nil {
		return false, err
	}
	found, err := d.Entries.Entry(ctx, in)
	if err != nil || found != launch.StartedClosed {
		return false, err
	}
	return true, d.remove(ctx, item.EntryID)
}

// tell signals an entry's workflow. Without one an offer passes on, and of an
// end there is nobody to tell.
func (d *drain) tell(ctx context.Context, item redis.Item) (gone bool, err error) {
	signal, arg := message(item)
	err = d.Entries.Signal(ctx, item.EntryID, signal, arg)
	if !errors.Is(err, launch.ErrNoOwner) {
		return false, err
	}
	if item.Kind == redis.ItemOffer {
		return true, d.remove(ctx, item.EntryID)
	}
	_, err = d.Gate.AdoptEntry(ctx, d.sku, item.EntryID)
	return false, err
}

func (d *drain) remove(ctx context.Context, entryID string) error {
	activity.GetLogger(ctx).Error("entry has no open workflow: removed from the line", "sku", d.sku, "entry", entryID)
	_, err := d.Gate.Leave(ctx, redis.LeaveRequest{
		SKU: d.sku, EntryID: entryID, State: contract.EntryRemoved, Actor: redis.ActorSettle, Owner: true,
	})
	return err
}

func message(item redis.Item) (signal string, arg any) {
	switch {
	case item.Kind == redis.ItemOffer && item.Hold != nil:
		return contract.SignalOffered, contract.Offered{
			HoldID: item.HoldID, Units: item.Hold.Units, Generation: item.Hold.Generation, OfferedAt: item.Hold.OfferedAt,
		}
	case item.Kind == redis.ItemOffer:
		return contract.SignalOffered, contract.Offered{HoldID: item.HoldID}
	case item.Hold != nil:
		return contract.SignalHoldEnded, contract.HoldEnded{
			HoldID: item.HoldID, HoldState: item.Hold.State, EntryState: item.Entry.State, EndedAt: item.Hold.EndedAt,
		}
	default:
		return contract.SignalEnded, contract.EntryEnded{State: item.Entry.State}
	}
}

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
	drainBatch    = 20          // items of one call of the gate: well below 2 ms of its time
	drainParallel = 16          // entries started or told at once
	drainItems    = 2000        // of one activity
	drainTime     = time.Minute // of one activity, or a little more
	trimRounds    = 50          // bites of one activity: 5,000 lines of the ledger
	drainAlarm    = 20          // handings after which an item needs a person's eye
	// stay is the longest pause for which a drain does not end: each costs the book's
	// history some ten events.
	stay = time.Second
)

// DrainReport says what a drain did. More says that it stopped at its bound;
// NextMillis is how long until something more is due, 0 when nothing is.
type DrainReport struct {
	// SettingsLost says that the gate's settings are older than the book's, or that they are
	// the same and it is paused while the book is not, or the other way: nothing was handed
	// out.
	SettingsLost bool `json:"settings_lost,omitempty"`

	Started    int   `json:"started"`
	Told       int   `json:"told"`
	Failed     int   `json:"failed"`
	More       bool  `json:"more,omitempty"`
	NextMillis int64 `json:"next_ms"`
}

// DrainInput names a SKU and what its book has of the settings: their version, and
// whether it is paused, which has none. Older workers do not say that.
type DrainInput struct {
	SKU     string `json:"sku"`
	Version int64  `json:"version"`
	Paused  *bool  `json:"paused,omitempty"`
}

// DrainOutbox hands what is due in the outbox to the workflows of the entries.
// An item that fails stays in the outbox and is due again in 30 s: it holds up
// nobody else. Then the ledger loses what is past every retention: each SKU is
// drained now and then, at least when a door or a worker starts.
//
// The gate hands out no more offers than their owners can be expected to take note
// of before they are due again, and says so; the drain then waits with it.
func (a *Stock) DrainOutbox(ctx context.Context, in DrainInput) (DrainReport, error) {
	defer beating(ctx)()
	d := drain{Stock: a, sku: in.SKU}
	own, err := a.Gate.Policy(ctx, in.SKU)
	if err != nil {
		return d.report, a.gateError(ctx, in.SKU, "read the policy of", err)
	}
	if own.Version < in.Version || in.Paused != nil && own.Version == in.Version && own.Paused != *in.Paused {
		d.report.SettingsLost = true
		return d.report, nil
	}
	began := time.Now()
	for handed := 0; handed < drainItems && time.Since(began) < drainTime; {
		out, err := a.Gate.Drain(ctx, in.SKU, drainBatch)
		if err != nil {
			return d.report, a.gateError(ctx, in.SKU, "drain", err)
		}
		freed := d.deliver(ctx, out.Items)
		if err := ctx.Err(); err != nil {
			return d.report, a.gateError(ctx, in.SKU, "drain", err)
		}
		handed += len(out.Items)
		switch {
		case len(out.Items) == drainBatch || freed || out.AtOnce:
		case out.Next == 0 || out.Next > stay:
			d.report.NextMillis = (out.Next + time.Millisecond - 1).Milliseconds()
			return d.report, d.trim(ctx)
		default:
			select {
			case <-time.After(out.Next):
			case <-ctx.Done():
			}
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
	}
	d.report.More = true
	return nil
}

type drain struct {
	*Stock
	sku    string
	report DrainReport
}

// deliver hands out one batch, side by side: what an entry has to learn it reads at
// the gate, whatever comes first. It answers whether an entry was ended on the way,
// whose unit then makes another offer.
func (d *drain) deliver(ctx context.Context, items []redis.Item) (freed bool) {
	var ended atomic.Bool
	var started, told, failed atomic.Int64
	var group errgroup.Group
	group.SetLimit(drainParallel)
	for _, item := range items {
		if item.Handed >= drainAlarm {
			activity.GetLogger(ctx).Error("outbox item handed out again and again", "sku", d.sku, "kind", item.Kind, "entry", item.EntryID, "hold", item.HoldID, "handed", item.Handed)
		}
		do, done := d.tell, &told
		if item.Kind == redis.ItemStart {
			do, done = d.start, &started
		}
		group.Go(func() error {
			gone, err := do(ctx, item)
			if err != nil {
				failed.Add(1)
				activity.GetLogger(ctx).Error("entry does not know", "sku", d.sku, "kind", item.Kind, "entry", item.EntryID, "error", err)
				return nil
			}
			done.Add(1)
			if gone {
				ended.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // none answers an error: each is logged and counted
	d.report.Started += int(started.Load())
	d.report.Told += int(told.Load())
	d.report.Failed += int(failed.Load())
	return ended.Load()
}

// start starts an entry's workflow. One that has closed will never acknowledge:
// its entry ends. One that is open and was handed out before has acknowledged, if the
// gate has lost that: it is asked to do so again.
func (d *drain) start(ctx context.Context, item redis.Item) (gone bool, err error) {
	in, err := d.Keys.Unseal(item.EntryID, item.Sealed)
	if err != nil {
		return false, err
	}
	found, err := d.Entries.Entry(ctx, in)
	if err == nil && found == launch.StartedOpen && item.Handed > 0 {
		err = d.Entries.Signal(ctx, item.EntryID, contract.SignalEnded, contract.EntryEnded{State: contract.EntryWaiting})
	}
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

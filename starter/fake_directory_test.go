package starter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/contract"
)

// directory stands for Temporal's visibility.
type directory struct {
	skus     []string
	holdIDs  []string
	payments int64
	asked    string // the SKU whose payments were counted last
	err      error
	silent   bool          // nothing answers
	gate     chan struct{} // OpenSKUs waits for it

	mu      sync.Mutex
	runs    []PaymentRun          // what Payments lists
	latest  map[string]PaymentRun // Payment id → its last run
	later   map[string]PaymentRun // and from the second look on
	listed  []string              // what Payments and Events were asked
	offers  []string              // ids of entries
	events  []string              // ids
	texts   TextQueue
	queues  []Queue
	passes  []PassRun     // of any SKU, as visibility would list them
	long    []PassRun     // those that took long
	passAge time.Duration // how long ago the last one ended
}

func (d *directory) Queues(context.Context) ([]Queue, error) { return d.queues, d.err }

func (d *directory) Passes(_ context.Context, sku string, since time.Time, least time.Duration) (runs []PassRun, err error) {
	from := d.passes
	if time.Since(since) < d.passAge {
		return nil, d.err
	}
	if least > 0 {
		from = d.long
	}
	for _, run := range from {
		if sku == "" || run.SKU == sku {
			runs = append(runs, run)
		}
	}
	return runs, d.err
}

func (d *directory) TextQueue(context.Context) (TextQueue, error) { return d.texts, d.err }

func (d *directory) Events(_ context.Context, state string, limit int, cursor []byte) ([]string, []byte, error) {
	d.listed = append(d.listed, fmt.Sprintf("events %q %d %q", state, limit, cursor))
	return d.events, []byte("next"), d.err
}

func (d *directory) Offered(context.Context, string, int) ([]string, error) { return d.offers, d.err }

func (d *directory) OpenSKUs(ctx context.Context) ([]string, error) {
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return d.skus, d.err
}

func (d *directory) Holds(context.Context, string, contract.HoldState, int, []byte) ([]string, []byte, error) {
	return d.holdIDs, nil, d.err
}

func (d *directory) OpenPayments(ctx context.Context, sku string) (int64, error) {
	if d.silent {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	d.asked = sku
	return d.payments, d.err
}

func (d *directory) Payments(_ context.Context, sku string, open *bool, limit int, cursor []byte) ([]PaymentRun, []byte, error) {
	asked := "all"
	if open != nil {
		asked = fmt.Sprintf("open=%t", *open)
	}
	d.listed = append(d.listed, fmt.Sprintf("%s %q %d %q", asked, sku, limit, cursor))
	return d.runs, []byte("next"), d.err
}

func (d *directory) Payment(ctx context.Context, id string) (PaymentRun, bool, error) {
	if d.silent {
		<-ctx.Done()
		return PaymentRun{}, false, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	run, ok := d.latest[id]
	if later, closes := d.later[id]; closes {
		d.latest[id] = later
		delete(d.later, id)
	}
	return run, ok, d.err
}

// lasts makes run the last one of its Payment.
func (d *directory) lasts(run PaymentRun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latest == nil {
		d.latest = map[string]PaymentRun{}
	}
	d.latest[run.ID] = run
}

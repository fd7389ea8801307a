package starter

import (
	"context"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	startTimeout = 10 * time.Second
	shedFor      = time.Second // joins of a SKU are refused after a full backlog was seen
)

// joining is one wish for a place in the line.
type joining struct {
	SKU      string
	Phone    string // E.164
	Quantity int64
	Name     string
	Locale   string
	Consent  contract.Consent // At is set by join
}

// join writes the place into the gate and hands the start of the entry's
// workflow to the pool. It never waits for Temporal: what the pool has no room
// for stays in the outbox, with its input sealed.
func (d *Door) join(ctx context.Context, j joining) (redis.JoinOutcome, error) {
	if !d.backlog.admits(j.SKU) {
		p := problem(tooManyRequests, "more people are joining than can be written down right now; nothing was recorded, try again in a moment")
		p.retryAfter = shedFor
		return redis.JoinOutcome{}, p
	}
	policy, err := d.effective(ctx, j.SKU)
	if err != nil {
		return redis.JoinOutcome{}, err
	}
	j.Consent.At = time.Now().UTC()
	in := contract.EntryInput{
		EntryID: d.keys.NewEntryID(j.SKU), SKU: j.SKU, Quantity: j.Quantity, Person: d.keys.PersonOfPhone(j.Phone),
		Phone: j.Phone, Name: j.Name, Locale: j.Locale, Consent: &j.Consent, JoinedAt: j.Consent.At,
		// The offers' clocks are the configuration's: each offer asks for the policy.
		Settings: contract.EntrySettings{
			TTLSeconds:       *policy.WaitlistTTLSeconds,
			WindowSeconds:    int64(d.cfg.Offer.Window / time.Second),
			SentGraceSeconds: int64(d.cfg.SMS.SentGrace / time.Second),
			MaxAgeSeconds:    int64(d.cfg.Offer.MaxAge / time.Second),
		},
	}
	if d.optOuts.knows(ctx, in.Person) {
		return redis.JoinOutcome{}, d.refuseOptedOut(ctx, j.SKU)
	}
	sealed, err := d.keys.Seal(in)
	if err != nil {
		return redis.JoinOutcome{}, err
	}
	out, err := d.gate.Join(ctx, redis.JoinRequest{SKU: j.SKU, EntryID: in.EntryID, Person: in.Person, Units: j.Quantity, Sealed: sealed, Language: d.pages.named(j.Locale)})
	if err != nil {
		return out, err
	}
	d.backlog.saw(j.SKU, out.Backlog)
	switch out.Verdict {
	case redis.OK, redis.Existing:
	case redis.Ended:
		return out, errSaleEnded(j.SKU)
	default:
		d.log.Error("a verdict that nobody expected", "verb", "join", "verdict", out.Verdict)
		return out, tryLater(retrySoon, "the outcome is not known; repeat the request as it was")
	}
	d.wakeIf(j.SKU, out.Base)
	if out.Created {
		in.JoinedAt, in.Position = out.Entry.JoinedAt, out.Entry.Position
		d.startEntry(in)
	}
	return out, nil
}

func errSaleEnded(sku string) error { return problem(saleEnded, "the sale of SKU %s has ended", sku) }

// startEntry starts an entry's workflow in the background, or has the outbox
// drained when there is no room or Temporal does not take it.
func (d *Door) startEntry(in contract.EntryInput) {
	started := d.starts.try(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if _, err := d.launcher.Entry(ctx, in); err != nil {
			d.log.Warn("an entry's workflow could not be started; the outbox has it", "sku", in.SKU, "error", err)
			d.wake(in.SKU)
		}
	})
	if !started {
		d.wake(in.SKU)
	}
}

// backlog refuses joins of a SKU while too many entries wait for their
// workflows. The gate tells the backlog with each join, so after a pause one
// join in a while finds out whether it has shrunk.
type backlog struct {
	most int64
	mu   sync.Mutex
	full map[string]time.Time // SKU → until when joins are refused
}

func newBacklog(most int) *backlog {
	return &backlog{most: int64(most), full: map[string]time.Time{}}
}

func (b *backlog) admits(sku string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !time.Now().Before(b.full[sku])
}

func (b *backlog) saw(sku string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.most {
		b.full[sku] = time.Now().Add(shedFor)
	} else {
		delete(b.full, sku)
	}
}

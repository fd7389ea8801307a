package workflows_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"holdfast/contract"
	"holdfast/redis"
)

func (w *world) OptedOut(context.Context, string) (bool, error) { return w.optedOut, nil }

func (w *world) Said(context.Context, string, contract.Said) error { return nil }

// deaf takes the words of texts to their entries; the tests say them.
type deaf struct{}

func (deaf) Signal(context.Context, string, string, any) error { return nil }

func (w *world) PersonOfPhone(string) string { return "p1" }

// places are the live entries of one person, as the gate has them.
type places struct {
	mu     sync.Mutex
	live   map[string]string // SKU → entry
	closed string            // the gate of this SKU
	left   []string          // entries that ended, in order
	asked  int
	onAsk  func()
}

func (p *places) SKUs(context.Context) ([]string, error) { return []string{"B", "A", "C"}, nil }

func (p *places) LiveEntries(_ context.Context, person string, skus []string) (map[string]string, error) {
	if p.onAsk != nil {
		p.onAsk()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	found := map[string]string{}
	for sku, id := range p.live {
		if person == "p1" && slices.Contains(skus, sku) {
			found[sku] = id
		}
	}
	return found, nil
}

func (p *places) Leave(_ context.Context, req redis.LeaveRequest) (redis.EntryOutcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case req.SKU == p.closed:
		return redis.EntryOutcome{}, &redis.ClosedError{SKU: req.SKU}
	case req.State != contract.EntryOptedOut || req.Owner:
		return redis.EntryOutcome{}, errors.New("not as a STOP ends an entry")
	}
	p.left = append(p.left, req.EntryID)
	delete(p.live, req.SKU)
	return redis.EntryOutcome{Base: redis.Base{Verdict: redis.OK}}, nil
}

func (p *places) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

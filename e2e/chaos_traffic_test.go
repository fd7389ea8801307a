package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/e2e/shop"
)

// promise is a hold that a client was given, in a complete answer, and the payments
// that it told of, with their final answers.
type promise struct {
	holdID   string
	until    time.Time // the latest deadline that it was told; zero when it was told none
	released bool      // it asked for its end
	paid     map[string]shop.Answer
}

// told takes a deadline out of an answer about a live hold.
func (p *promise) told(hold shop.Hold) {
	if hold.State == "held" && hold.ExpiresAt.After(p.until) {
		p.until = hold.ExpiresAt
	}
}

// customersLog is what the clients know: the other side of the judge.
type customersLog struct {
	mu        sync.Mutex
	promises  []*promise
	joined    []string         // entries whose join was answered
	restocked map[string]int64 // SKU → units of restocks that were answered as applied
	faults    []string
}

func (l *customersLog) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// holds is how many holds have been promised so far.
func (l *customersLog) holds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.promises)
}

func (l *customersLog) promised(holdID string) *promise {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &promise{holdID: holdID, paid: map[string]shop.Answer{}}
	l.promises = append(l.promises, p)
	return p
}

// mob is the traffic of a chaos run: a flash sale, walk-ins and people in line.
type mob struct {
	*arena
	*customersLog
	flash, line string
	stop        atomic.Bool
}

// definite repeats a call as it was until its answer is one: nothing that is lost or
// "not now" says what became of it.
func (m *mob) definite(ctx context.Context, what string, call func() (shop.Answer, error)) (shop.Answer, bool) {
	for ctx.Err() == nil {
		a, err := call()
		switch {
		case err != nil || a.Status == http.StatusTooManyRequests:
		case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		case a.Status >= 500:
			m.fault("%s was answered %s", what, a)
		default:
			return a, true
		}
		if wait(ctx, 100*time.Millisecond) != nil {
			break
		}
	}
	m.fault("%s has no definite answer", what)
	return shop.Answer{}, false
}

// buyer takes units of a SKU and does with them what people do.
func (m *mob) buyer(ctx context.Context, rnd *rand.Rand, who int) {
	for n := 0; !m.stop.Load() && ctx.Err() == nil; n++ {
		sku := m.flash
		if rnd.IntN(4) == 0 {
			sku = m.line // a walk-in, against the line
		}
		key := fmt.Sprintf("chaos-%d-%d", who, n)
		p, ok := m.take(ctx, sku, key)
		switch {
		case !ok:
			return
		case p != nil:
			m.spend(ctx, rnd, p)
		case wait(ctx, time.Duration(rnd.IntN(300))*time.Millisecond) != nil:
			return
		}
	}
}

// take asks for a hold until it is answered, with a promise, or nil for a refusal. ok is
// false when the story is over.
func (m *mob) take(ctx context.Context, sku, key string) (p *promise, ok bool) {
	a, ok := m.definite(ctx, "hold "+key, func() (shop.Answer, error) { return m.shop.AskHold(ctx, sku, key, key) })
	switch {
	case !ok || a.Status == http.StatusConflict:
		return nil, ok
	case a.Status != http.StatusCreated && a.Status != http.StatusOK:
		m.fault("hold %s was answered %s", key, a)
		return nil, true
	}
	hold, err := shop.ParseHold(a)
	if err != nil {
		m.fault("hold %s: %v", key, err)
		return nil, true
	}
	p = m.promised(hold.HoldID)
	p.told(hold)
	return p, true
}

// spend is what becomes of a promised hold.
func (m *mob) spend(ctx context.Context, rnd *rand.Rand, p *promise) {
	ref := "pay_" + p.holdID
	switch rnd.IntN(6) {
	case 0, 1:
		m.pay(ctx, p, ref)
	case 2:
		a, _ := m.definite(ctx, "checkout of "+p.holdID, func() (shop.Answer, error) {
			return m.shop.Call(ctx, http.MethodPost, "/v1/holds/"+p.holdID+"/checkout", map[string]any{"payment_ref": ref})
		})
		m.deadline(p, a)
		m.pay(ctx, p, ref)
	case 3: // two payments in the same moment, and each twice
		var both sync.WaitGroup
		for _, ref := range []string{ref + "_a", ref + "_b", ref + "_a"} {
			both.Go(func() { m.pay(ctx, p, ref) })
		}
		both.Wait()
	case 4:
		p.released = true
		m.definite(ctx, "release of "+p.holdID, func() (shop.Answer, error) {
			return m.shop.Call(ctx, http.MethodPost, "/v1/holds/"+p.holdID+"/release", map[string]any{})
		})
		if rnd.IntN(2) == 0 {
			m.pay(ctx, p, ref) // too late
		}
	case 5: // walks away
	}
}

// deadline notes what an answer about a hold promises.
func (m *mob) deadline(p *promise, a shop.Answer) {
	if a.Status != http.StatusOK {
		return
	}
	hold, err := shop.ParseHold(a)
	if err != nil {
		m.fault("hold %s: %v", p.holdID, err)
		return
	}
	p.told(hold)
}

func (m *mob) pay(ctx context.Context, p *promise, ref string) {
	a, ok := m.definite(ctx, "payment "+ref, func() (shop.Answer, error) { return m.shop.Confirm(ctx, p.holdID, ref) })
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, told := p.paid[ref]; told && was.Status == http.StatusOK && a.Status != http.StatusOK {
		m.faults = append(m.faults, fmt.Sprintf("payment %s was answered %s, then %s", ref, was, a))
	}
	p.paid[ref] = a
}

// waiter stands in line for one unit after the other, under numbers of their own.
func (m *mob) waiter(ctx context.Context, rnd *rand.Rand, who int) {
	for n := 0; n < 40 && !m.stop.Load() && ctx.Err() == nil; n++ {
		number := phone(who*40 + n)
		a, ok := m.definite(ctx, "join of "+number, func() (shop.Answer, error) { return m.shop.AskJoin(ctx, m.line, number) })
		if !ok {
			return
		}
		e, err := shop.ParseEntry(a)
		if err != nil {
			m.fault("join of %s: %v", number, err)
			continue
		}
		m.mu.Lock()
		m.joined = append(m.joined, e.EntryID)
		m.mu.Unlock()
		m.waits(ctx, rnd, e.EntryID)
	}
}

// waits is one turn in the line: until a text came and was answered. Who still waits
// when the storm is over waits for what comes then.
func (m *mob) waits(ctx context.Context, rnd *rand.Rand, entryID string) {
	if rnd.IntN(8) == 0 {
		m.definite(ctx, "leaving of "+entryID, func() (shop.Answer, error) {
			return m.shop.Call(ctx, http.MethodDelete, "/v1/waitlist/"+entryID, nil, "Authorization", "")
		})
		return
	}
	for ctx.Err() == nil {
		text, told, err := m.outbox.OfferTo(entryID)
		if err != nil {
			m.fault("texts: %v", err)
			return
		}
		if told {
			m.follow(ctx, rnd, text)
			return
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	m.fault("%s waits in vain", entryID)
}

// follow presses the link of a text; some let it lapse.
func (m *mob) follow(ctx context.Context, rnd *rand.Rand, text shop.Text) {
	if rnd.IntN(5) == 0 {
		return
	}
	a, ok := m.definite(ctx, "press for "+text.EntryID, func() (shop.Answer, error) {
		at := strings.Index(text.Link(), "/r/")
		return m.shop.Call(ctx, http.MethodPost, text.Link()[at:], []byte{}, "Content-Type", "application/x-www-form-urlencoded", "Authorization", "")
	})
	if !ok || a.Status != http.StatusSeeOther {
		return
	}
	p := m.promised(text.HoldID)
	a, _ = m.definite(ctx, "reading of "+p.holdID, func() (shop.Answer, error) {
		return m.shop.Call(ctx, http.MethodGet, "/v1/holds/"+p.holdID, nil)
	})
	m.deadline(p, a)
	m.spend(ctx, rnd, p)
}

// restocker brings units now and then, each delivery until it is known to have counted.
func (m *mob) restocker(ctx context.Context, rnd *rand.Rand) {
	for n := 0; !m.stop.Load() && ctx.Err() == nil; n++ {
		sku, units := m.line, int64(1+rnd.IntN(6))
		if n%3 == 0 {
			sku, units = m.flash, 20
		}
		m.deliver(ctx, fmt.Sprintf("%s-delivery-%d", sku, n), sku, units)
		if wait(ctx, time.Duration(rnd.IntN(1500))*time.Millisecond) != nil {
			return
		}
	}
}

// deliver brings units, and repeats it until it is known to have counted.
func (m *mob) deliver(ctx context.Context, id, sku string, units int64) {
	for ctx.Err() == nil {
		a, ok := m.definite(ctx, "delivery "+id, func() (shop.Answer, error) {
			return m.shop.Inventory(ctx, map[string]any{"event_id": id, "sku": sku, "kind": "restock", "units": units})
		})
		if ok && a.Status == http.StatusOK {
			m.mu.Lock()
			m.restocked[sku] += units
			m.mu.Unlock()
			return
		}
		if wait(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
}

package starter

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	healthFor     = time.Second // one look serves all that ask within this time
	healthTimeout = 2 * time.Second
	// Temporal decides nothing here: a balancer that waits two seconds gets its answer
	// while Temporal gives none.
	temporalTimeout = time.Second
	healthMost      = 50 // SKUs looked at each time, in turn
	healthRings     = 20 // SKUs whose tripwire is told of
)

// Words of readiness.
const (
	gateStarting    = "starting"
	gateOpen        = "open"
	gateClosed      = "closed"
	gateUnavailable = "unavailable"
)

type readiness struct {
	Status      string `json:"status"` // ready, starting, draining or not-ready
	Gate        string `json:"gate"`
	SKUsOpen    int    `json:"skus_open"`
	SKUsClosed  int    `json:"skus_closed"`
	Temporal    string `json:"temporal"`               // open or unavailable
	OpenRefunds *int64 `json:"open_refunds,omitempty"` // unknown while Temporal is unavailable
	// Tripwire names SKUs whose tripwire rings, with its wires; at most 20 of them.
	// Rings is how many there are. An alarm is no reason to take the door away.
	Rings    int                 `json:"tripwire_rings"`
	Tripwire map[string][]string `json:"tripwire,omitempty"`
	Now      string              `json:"now"`
}

type healthCache struct {
	mu   sync.Mutex
	at   time.Time
	last readiness

	next   int             // where the next look begins
	closed map[string]bool // SKUs that were closed when they were looked at last
	rings  map[string][]string
}

func (d *Door) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

// getReady says whether this door should get requests. It is red while it
// starts, drains, or the gate does not answer or is closed for every SKU. A
// silent Temporal is named and leaves it green: joins and pages go on without.
func (d *Door) getReady(w http.ResponseWriter, r *http.Request) error {
	look := d.look(r.Context())
	status := http.StatusOK
	switch {
	case d.draining.Load():
		look.Status, status = "draining", http.StatusServiceUnavailable
	case look.Gate == gateStarting:
		look.Status, status = gateStarting, http.StatusServiceUnavailable
	case look.Gate != gateOpen && look.SKUsOpen == 0:
		look.Status, status = "not-ready", http.StatusServiceUnavailable
	default:
		look.Status = "ready"
	}
	return writeJSON(w, status, look)
}

func (d *Door) look(ctx context.Context) readiness {
	d.health.mu.Lock()
	defer d.health.mu.Unlock()
	if time.Since(d.health.at) < healthFor {
		return d.health.last
	}
	ctx = context.WithoutCancel(ctx) // the look is for all that ask
	out := readiness{Now: stamp(time.Now())}
	var both sync.WaitGroup
	both.Go(func() { out.Temporal, out.OpenRefunds = d.lookAtTemporal(ctx) })
	both.Go(func() { d.lookAtGate(ctx, &out) })
	both.Wait()
	d.health.at, d.health.last = time.Now(), out
	return out
}

func (d *Door) lookAtTemporal(ctx context.Context) (is string, openRefunds *int64) {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	n, err := d.directory.OpenPayments(ctx, "")
	if err != nil {
		d.log.Warn("Temporal does not answer", "error", err)
		return gateUnavailable, nil
	}
	return gateOpen, &n
}

func (d *Door) lookAtGate(ctx context.Context, out *readiness) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	// Without the whole map nobody knows which SKUs there are: Redis is new, or
	// has forgotten them.
	_, whole, err := d.gate.LookupSKU(ctx, contract.SKUNumber(""))
	if err == nil && !whole {
		d.fill()
		out.Gate = gateStarting
		return
	}
	var skus []string
	if err == nil {
		skus, err = d.skus.all(ctx)
	}
	if err != nil {
		d.log.Warn("the gate does not answer", "error", err)
		out.Gate = gateUnavailable
		return
	}
	if d.health.closed == nil {
		d.health.closed, d.health.rings = map[string]bool{}, map[string][]string{}
	}
	for range min(len(skus), healthMost) {
		d.health.next = (d.health.next + 1) % len(skus)
		sku := skus[d.health.next]
		_, rings, err := d.gate.Tripwire(ctx, sku)
		var closed *redis.ClosedError
		switch {
		case errors.As(err, &closed):
			d.metClosed(closed)
			d.health.closed[sku] = true
			delete(d.health.rings, sku)
		case err != nil:
			d.log.Warn("the gate does not answer", "sku", sku, "error", err)
			out.Gate = gateUnavailable
			return
		default:
			delete(d.health.closed, sku)
			d.health.ring(sku, rings)
		}
	}
	out.Rings, out.Tripwire = len(d.health.rings), map[string][]string{}
	for _, sku := range slices.Sorted(maps.Keys(d.health.rings)) {
		if len(out.Tripwire) < healthRings {
			out.Tripwire[sku] = d.health.rings[sku]
		}
	}
	out.SKUsClosed = len(d.health.closed)
	out.SKUsOpen = len(skus) - out.SKUsClosed
	out.Gate = gateOpen
	if out.SKUsClosed > 0 {
		out.Gate = gateClosed
	}
}

// ring keeps which wires of a SKU ring.
func (c *healthCache) ring(sku string, rings []contract.Ring) {
	delete(c.rings, sku)
	if len(rings) > 0 {
		c.rings[sku] = contract.WiresOf(rings)
	}
}

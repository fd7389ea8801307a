package starter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// routing finds the SKU of an id or a path. The map from number to SKU never
// changes, so what was found once is kept.
type routing struct {
	gate  Gate
	known sync.Map // number → SKU
	fill  func()   // asks for the map to be filled from the Stock workflows
}

// ofNumber answers the SKU of a number; "" when there is none, for sure.
func (s *routing) ofNumber(ctx context.Context, number string) (string, error) {
	if v, ok := s.known.Load(number); ok {
		return v.(string), nil
	}
	sku, whole, err := s.gate.LookupSKU(ctx, number)
	switch {
	case err != nil:
		return "", err
	case sku != "":
		s.known.Store(number, sku)
		return sku, nil
	case !whole:
		s.fill()
		return "", tryLater(retrySoon, "the list of SKUs is being read; it is not known yet whether this one exists")
	}
	return "", nil
}

// all answers every SKU by name, once the map has been read whole.
func (s *routing) all(ctx context.Context) ([]string, error) {
	_, whole, err := s.gate.LookupSKU(ctx, contract.SKUNumber(""))
	if err != nil {
		return nil, err
	}
	if !whole {
		s.fill()
		return nil, tryLater(retrySoon, "the list of SKUs is being read; it is not known yet which there are")
	}
	skus, err := s.gate.SKUs(ctx)
	slices.Sort(skus)
	return skus, err
}

// bySKU checks that a SKU named in a path or body exists.
func (s *routing) bySKU(ctx context.Context, sku string) (string, error) {
	if contract.ValidSKU(sku) {
		found, err := s.ofNumber(ctx, contract.SKUNumber(sku))
		if err != nil {
			return "", err
		}
		if found == sku {
			return sku, nil
		}
	}
	p := problem(unknownSKU, "there is no SKU %.80q; PUT /v1/stock/{sku} opens one", sku)
	if contract.ValidSKU(sku) {
		p.SKU = sku
	}
	return "", p
}

// byHold answers the SKU of a hold's id.
func (s *routing) byHold(ctx context.Context, id string) (string, error) {
	return s.byID(ctx, id, contract.HoldNumber, problem(unknownHold, "there is no hold %.80q", id))
}

// byEntry answers the SKU of an entry's id.
func (s *routing) byEntry(ctx context.Context, id string) (string, error) {
	return s.byID(ctx, id, contract.EntryNumber, problem(unknownEntry, "there is no waitlist entry %.80q", id))
}

func (s *routing) byID(ctx context.Context, id string, number func(string) (string, error), unknown *Problem) (string, error) {
	n, err := number(id)
	if err != nil {
		return "", unknown
	}
	sku, err := s.ofNumber(ctx, n)
	if err != nil {
		return "", err
	}
	if sku == "" {
		return "", unknown
	}
	return sku, nil
}

// fillMap writes every SKU that has a Stock workflow into the map and wakes
// each: after a restart somebody may wait for what no request brings up.
func (d *Door) fillMap(ctx context.Context) error {
	skus, err := d.directory.OpenSKUs(ctx)
	if err != nil {
		return fmt.Errorf("list the open Stock workflows: %w", err)
	}
	for _, sku := range skus {
		owner, err := d.gate.RegisterSKU(ctx, sku)
		if err != nil {
			return fmt.Errorf("register SKU %s: %w", sku, err)
		}
		if owner != sku {
			d.log.Error("two SKUs share a number; the second cannot be served", "sku", sku, "owner", owner)
		}
	}
	if err := d.gate.MarkMapWhole(ctx); err != nil {
		return fmt.Errorf("mark the map of SKUs as whole: %w", err)
	}
	for _, sku := range skus {
		d.wake(sku)
	}
	return nil
}

func (d *Door) fill() { d.chores.do("fill the map of SKUs", d.fillMap) }

func (d *Door) wake(sku string) {
	d.chores.do("wake "+sku, func(ctx context.Context) error { return d.launcher.Wake(ctx, sku) })
}

// reconcilePause keeps a crowd at a closed gate from asking Temporal each time.
const reconcilePause = time.Second

// metClosed has the closed gate of a SKU checked.
func (d *Door) metClosed(closed *redis.ClosedError) {
	in := contract.ReconcileInput{SKU: closed.SKU, ReopenSeconds: int64(d.reopenWait() / time.Second)}
	started := d.chores.do("reconcile "+closed.SKU, func(ctx context.Context) error {
		if err := d.launcher.Reconcile(ctx, in); err != nil {
			return err
		}
		return pause(ctx, reconcilePause)
	})
	if started { // once for a crowd that meets it together
		d.log.Warn("gate closed", "sku", closed.SKU, "missing", closed.Missing)
	}
}

func (d *Door) reopenWait() time.Duration {
	if w := d.cfg.Gate.ReopenWait; w > 0 {
		return w
	}
	return d.cfg.Gate.Lease + 10*time.Second
}

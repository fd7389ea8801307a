package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

// carts is I1, I3 and I8 over the lines of a cart: each is on record for what the
// first one names, and a cart that nobody moves any more is sold whole, by one
// payment, or not at all.
func (r *report) carts(f Facts) {
	for _, id := range sorted(f.Carts) {
		cart, lines := f.Holds[id].Cart, f.Carts[id]
		order := slices.IsSortedFunc(cart, func(a, b Part) int {
			if a.SKU < b.SKU {
				return -1
			}
			return 1
		})
		if len(cart) < 2 || len(cart) > 20 || cart[0].SKU != f.SKU || !order {
			r.add("I8", id, "2 to 20 lines in the order of their SKUs, this one first", "%v", cart)
			continue
		}
		first := lines[f.SKU]
		ended := !f.open(id)
		for _, part := range cart {
			l, known := lines[part.SKU]
			switch {
			case !known:
				r.add("I8", id, "a record of its line "+part.SKU, "none")
			case l.Units != part.Units || l.Person != first.Person || l.Entry != "":
				r.add("I4", id, fmt.Sprintf("%d units of %s for %s", part.Units, part.SKU, first.Person), "%d for %s, entry %q", l.Units, l.Person, l.Entry)
			case ended && (live(l.State) || (l.State == "sold") != (first.State == "sold") || l.PaymentRef != first.PaymentRef):
				r.add("I3", id, fmt.Sprintf("its line %s ended as the first, %s by %q", part.SKU, first.State, first.PaymentRef), "%s by %q", l.State, l.PaymentRef)
			}
		}
		if w := f.Workflows[id]; w.Status == "Completed" && w.Result != cartState(cart, lines) && !(first.Retaken && w.Result == "expired") {
			r.add("I8", id, "a workflow that closed as its lines, "+cartState(cart, lines), "closed as %q", w.Result)
		}
	}
}

// cartState is the state of a cart at rest.
func cartState(cart []Part, lines map[string]Hold) string {
	for _, part := range cart {
		if lines[part.SKU].State == "refused" {
			return "refused"
		}
	}
	return lines[cart[0].SKU].State
}

// readCarts reads the other lines of the carts that begin with this SKU. A cart of
// which nothing was promised yet, or which was swept, is none.
func readCarts(ctx context.Context, rdb goredis.UniversalClient, f *Facts) error {
	f.Carts = map[string]map[string]Hold{}
	for id, h := range f.Holds {
		if len(h.Cart) == 0 || h.State == "provisional" || h.State == "swept" {
			continue
		}
		f.Carts[id] = map[string]Hold{}
		for _, part := range h.Cart {
			raw, err := rdb.HGet(ctx, key(part.SKU, "holds"), id).Result()
			if errors.Is(err, goredis.Nil) {
				continue
			}
			if err != nil {
				return fmt.Errorf("line %s of %s: %w", part.SKU, id, err)
			}
			if f.Carts[id][part.SKU], err = decodeHold(raw); err != nil {
				return fmt.Errorf("line %s of %s: %w", part.SKU, id, err)
			}
		}
	}
	return nil
}

package activities

import (
	"context"
	"errors"

	"holdfast/contract"
	"holdfast/redis"
)

// noSuchSKU says that err comes of a SKU which was never opened: the gate has no
// stock of it, and the map of all SKUs, which was read whole, has not got it. A SKU
// whose stock Redis has lost is in the map, or the map was lost with it.
func (a *Holds) noSuchSKU(ctx context.Context, sku string, err error) bool {
	var closed *redis.ClosedError
	if !errors.As(err, &closed) || !closed.Missing {
		return false
	}
	owner, whole, err := a.Gate.LookupSKU(ctx, contract.SKUNumber(sku))
	return err == nil && whole && owner != sku
}

package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/contract"
)

// The map of SKU numbers and the door's idempotency records: plain keys, no
// counters.

// RegisterSKU writes a SKU's number into the map. It answers the SKU that owns
// the number: another one than sku means that sku must be refused.
func (g *Gate) RegisterSKU(ctx context.Context, sku string) (owner string, err error) {
	number := contract.SKUNumber(sku)
	added, err := g.rdb.HSetNX(ctx, keySKUs, number, sku).Result()
	if err == nil && added {
		return sku, nil
	}
	if err == nil {
		owner, err = g.rdb.HGet(ctx, keySKUs, number).Result()
	}
	if err != nil {
		return "", fmt.Errorf("%w: register %s: %w", ErrUnavailable, sku, err)
	}
	return owner, nil
}

// LookupSKU answers the SKU of a number, "" when the map has none. whole says
// whether the map has been read whole since Redis was last empty: only then is
// an unknown number unknown.
func (g *Gate) LookupSKU(ctx context.Context, number string) (sku string, whole bool, err error) {
	v, err := g.rdb.HMGet(ctx, keySKUs, number, mapWhole).Result()
	if err != nil {
		return "", false, fmt.Errorf("%w: look up sku number %s: %w", ErrUnavailable, number, err)
	}
	sku, _ = v[0].(string)
	return sku, v[1] != nil, nil
}

// MarkMapWhole says that every SKU of the Stock workflows has been registered.
func (g *Gate) MarkMapWhole(ctx context.Context) error {
	if err := g.rdb.HSet(ctx, keySKUs, mapWhole, "1").Err(); err != nil {
		return fmt.Errorf("%w: mark the sku map: %w", ErrUnavailable, err)
	}
	return nil
}

// SKUs lists the registered SKUs, in no order.
func (g *Gate) SKUs(ctx context.Context) ([]string, error) {
	all, err := g.rdb.HGetAll(ctx, keySKUs).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: list skus: %w", ErrUnavailable, err)
	}
	skus := make([]string, 0, len(all))
	for number, sku := range all {
		if number != mapWhole {
			skus = append(skus, sku)
		}
	}
	return skus, nil
}

// Claim is the idempotency record of one call of one caller.
type Claim struct {
	BodyHash string
	HoldID   string
}

// ClaimKey stores claim under key unless one is there, and answers what is
// stored: the caller compares BodyHash.
func (g *Gate) ClaimKey(ctx context.Context, key string, claim Claim, keep time.Duration) (Claim, error) {
	value := claim.BodyHash + " " + claim.HoldID
	set, err := g.rdb.SetNX(ctx, keyIdem+key, value, keep).Result()
	if err == nil && set {
		return claim, nil
	}
	if err == nil {
		value, err = g.rdb.Get(ctx, keyIdem+key).Result()
	}
	if err != nil {
		return Claim{}, fmt.Errorf("%w: idempotency record: %w", ErrUnavailable, err)
	}
	hash, hold, _ := strings.Cut(value, " ")
	return Claim{BodyHash: hash, HoldID: hold}, nil
}

// KeepClaim keeps what stands under key for so long from now. ErrUnavailable.
func (g *Gate) KeepClaim(ctx context.Context, key string, keep time.Duration) error {
	if err := g.rdb.PExpire(ctx, keyIdem+key, keep).Err(); err != nil {
		return fmt.Errorf("%w: idempotency record: %w", ErrUnavailable, err)
	}
	return nil
}

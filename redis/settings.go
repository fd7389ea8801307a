package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"holdfast/contract"
)

// Settings stores what the shop says of a SKU: its policy, whether it is paused,
// when its sale ends and how much one person may have. What that frees is offered.
func (g *Gate) Settings(ctx context.Context, req SettingsRequest) (Base, error) {
	if err := badSettings(req); err != nil {
		return Base{}, err
	}
	var about, policy, maxAge, missedKeep string
	if req.About != nil {
		raw, err := json.Marshal(req.About)
		if err != nil {
			return Base{}, err
		}
		about = string(raw)
	}
	if p := req.Policy; p != nil {
		raw, err := json.Marshal(p)
		if err != nil {
			return Base{}, err
		}
		policy = string(raw)
		if s := p.OfferMaxAgeSeconds; s != nil {
			maxAge = strconv.FormatInt(*s*1000, 10)
		}
		if n := p.MissedKeep; n != nil {
			missedKeep = strconv.FormatInt(*n, 10)
		}
		req.Limit, req.Ends = new(int64), &time.Time{}
		if p.LimitPerPerson != nil {
			req.Limit = p.LimitPerPerson
		}
		if p.EndsAt != nil {
			req.Ends = p.EndsAt
		}
	}
	var paused, limit, ends string
	if req.Paused != nil {
		paused = strconv.Itoa(bit(*req.Paused))
	}
	if req.Limit != nil {
		limit = strconv.FormatInt(*req.Limit, 10)
	}
	if req.Ends != nil {
		ends = "0"
		if !req.Ends.IsZero() {
			ends = strconv.FormatInt(req.Ends.UnixMilli(), 10)
		}
	}
	r, err := g.decide(ctx, verbSettings, req.SKU, about, req.Version, paused, req.Actor, limit, ends, policy, maxAge, missedKeep, g.rebuilding)
	if err != nil {
		return Base{}, err
	}
	return r.base(), nil
}

// Policy reads a SKU's policy, the zero one when the shop has set none or the SKU is
// not open, and whether it is paused. It is a plain read, whatever the fence says: what
// is then done with it asks the gate.
func (g *Gate) Policy(ctx context.Context, sku string) (contract.PolicyOf, error) {
	var out contract.PolicyOf
	v, err := g.rdb.HMGet(ctx, key(sku, "stock"), "policy", "version", "paused").Result()
	if err != nil {
		return out, fmt.Errorf("%w: read the policy of %s: %w", ErrUnavailable, sku, err)
	}
	if raw, ok := v[0].(string); ok {
		if err := json.Unmarshal([]byte(raw), &out.Policy); err != nil {
			return out, fmt.Errorf("policy of %s does not parse: %w", sku, err)
		}
	}
	if raw, ok := v[1].(string); ok {
		if out.Version, err = strconv.ParseInt(raw, 10, 64); err != nil {
			return out, fmt.Errorf("policy of %s: version %q is no number", sku, raw)
		}
	}
	out.Paused = v[2] == "1"
	return out, nil
}

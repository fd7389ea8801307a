package starter

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"holdfast/redis"
)

// Limiter is what the door needs to count joins; *limits.Limits is one.
type Limiter interface {
	// Allow counts one more of key and answers 0, or how long to wait.
	Allow(ctx context.Context, key string, most int, per time.Duration) (wait time.Duration, err error)
}

const (
	phonePer   = 24 * time.Hour
	addressPer = time.Hour
)

// admit refuses who joins too often: each join costs a text, and there are people
// who earn by texts to their own numbers. Callers with a key answer for their
// addresses themselves. The answer does not say which limit was met: it would tell
// what others did with a number.
func (d *Door) admit(r *http.Request, phone string, trusted bool) error {
	if !trusted && d.cfg.Join.PerAddress > 0 {
		if address, known := d.addressOf(r); known {
			// A keyed print: addresses are people's, and need not stand in Redis.
			if err := d.allow(r.Context(), "address:"+d.keys.Fingerprint(address), d.cfg.Join.PerAddress, addressPer); err != nil {
				return err
			}
		}
	}
	if d.cfg.Join.PerPhone == 0 {
		return nil
	}
	return d.allow(r.Context(), "phone:"+d.keys.PersonOfPhone(phone), d.cfg.Join.PerPhone, phonePer)
}

func (d *Door) allow(ctx context.Context, key string, most int, per time.Duration) error {
	wait, err := d.limits.Allow(ctx, key, most, per)
	switch {
	case err != nil:
		return fmt.Errorf("%w: limits of joins: %w", redis.ErrUnavailable, err)
	case wait > 0:
		p := problem(tooManyRequests, "this number or this address has joined too often; nothing was recorded, try again later")
		p.retryAfter = wait
		return p
	}
	return nil
}

// addressOf is the address that a request came from, as far as it is known: the
// last one in X-Forwarded-For that is no proxy of ours. What stands before it
// anybody can write. An IPv6 address counts with its whole /64, which is one
// household. Without configured proxies an address of a private network is taken
// for a proxy: to count all shoppers as one would refuse them all.
func (d *Door) addressOf(r *http.Request) (address string, known bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "", false
	}
	hop := at.Addr().Unmap()
	if len(d.proxies) == 0 {
		return network(hop), !hop.IsPrivate() && !hop.IsLoopback()
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; d.isProxy(hop); i-- {
		if i < 0 {
			return "", false
		}
		if hop, err = forwardedAddr(strings.TrimSpace(forwarded[i])); err != nil {
			return "", false
		}
	}
	return network(hop), true
}

// forwardedAddr reads an item of X-Forwarded-For. Some proxies write the port of
// the connection too, and IPv6 then in brackets.
func forwardedAddr(item string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(item); err == nil {
		return at.Addr().Unmap(), nil
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(item, "["), "]"))
	return a.Unmap(), err
}

func (d *Door) isProxy(a netip.Addr) bool {
	for _, p := range d.proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func network(a netip.Addr) string {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(a.WithZone(""), bits).Masked().String()
}

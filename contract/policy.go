package contract

import (
	"fmt"
	"time"
)

// Policy is what a shop wants otherwise for one SKU than the configuration has it.
// What is nil is as the configuration says. It counts for offers and holds made
// after it; a promise already made keeps its clocks.
type Policy struct {
	HoldSeconds        *int64 `json:"hold_seconds,omitempty"`
	ExtensionSeconds   *int64 `json:"extension_seconds,omitempty"`
	GraceSeconds       *int64 `json:"grace_seconds,omitempty"`
	OfferWindowSeconds *int64 `json:"offer_window_seconds,omitempty"`
	OfferMaxAgeSeconds *int64 `json:"offer_max_age_seconds,omitempty"`
	WaitlistTTLSeconds *int64 `json:"waitlist_ttl_seconds,omitempty"` // of entries that join after it
	MissedKeep         *int64 `json:"missed_keep,omitempty"`
	LimitPerPerson     *int64 `json:"limit_per_person,omitempty"` // units of a person, live and sold; nil: none
	// EndsAt is when the sale ends, in whole milliseconds; nil: never.
	EndsAt *time.Time `json:"ends_at,omitempty"`
}

// PolicyNumber is one whole number of a Policy, with the least and the most it may
// be. Key is the configuration's, empty when it has none.
type PolicyNumber struct {
	Name, Key   string
	Least, Most int64
	In          func(p *Policy) **int64
}

const aDay = 24 * 60 * 60

// PolicyNumbers are all of them, in the order in which they are shown.
var PolicyNumbers = []PolicyNumber{
	{"hold_seconds", "hold.ttl", 5, 2 * 60 * 60, func(p *Policy) **int64 { return &p.HoldSeconds }},
	{"extension_seconds", "hold.extension", 0, 2 * 60 * 60, func(p *Policy) **int64 { return &p.ExtensionSeconds }},
	{"grace_seconds", "hold.grace", 0, 10 * 60, func(p *Policy) **int64 { return &p.GraceSeconds }},
	{"offer_window_seconds", "offer.window", 5, 7 * aDay, func(p *Policy) **int64 { return &p.OfferWindowSeconds }},
	{"offer_max_age_seconds", "offer.max_age", 5, 30 * aDay, func(p *Policy) **int64 { return &p.OfferMaxAgeSeconds }},
	{"waitlist_ttl_seconds", "waitlist.ttl", 5, 400 * aDay, func(p *Policy) **int64 { return &p.WaitlistTTLSeconds }},
	{"missed_keep", "missed.keep", 0, 100, func(p *Policy) **int64 { return &p.MissedKeep }},
	{"limit_per_person", "", 1, 1_000_000_000, func(p *Policy) **int64 { return &p.LimitPerPerson }},
}

// LastEnd is the latest instant at which a sale may end.
var LastEnd = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Validate says what is wrong with a policy that any client of Temporal may have
// sent.
func (p Policy) Validate() error {
	for _, n := range PolicyNumbers {
		if v := *n.In(&p); v != nil && (*v < n.Least || *v > n.Most) {
			return fmt.Errorf("%s is %d, it must be from %d to %d", n.Name, *v, n.Least, n.Most)
		}
	}
	if p.OfferWindowSeconds != nil && p.OfferMaxAgeSeconds != nil && *p.OfferWindowSeconds > *p.OfferMaxAgeSeconds {
		return fmt.Errorf("offer_window_seconds is %d, more than offer_max_age_seconds, which is %d", *p.OfferWindowSeconds, *p.OfferMaxAgeSeconds)
	}
	if p.EndsAt != nil && (p.EndsAt.UnixMilli() < 1 || p.EndsAt.After(LastEnd)) {
		return fmt.Errorf("ends_at is %s, it must be after 1970 and before the year 10000", p.EndsAt)
	}
	return nil
}

// Same says whether two policies want the same.
func (p Policy) Same(q Policy) bool {
	for _, n := range PolicyNumbers {
		a, b := *n.In(&p), *n.In(&q)
		if (a == nil) != (b == nil) || a != nil && *a != *b {
			return false
		}
	}
	if p.EndsAt == nil || q.EndsAt == nil {
		return p.EndsAt == q.EndsAt
	}
	return p.EndsAt.Equal(*q.EndsAt)
}

// Over answers p, with what it leaves open taken from below.
func (p Policy) Over(below Policy) Policy {
	for _, n := range PolicyNumbers {
		if v := n.In(&p); *v == nil {
			*v = *n.In(&below)
		}
	}
	if p.EndsAt == nil {
		p.EndsAt = below.EndsAt
	}
	return p
}

// PolicyOf has the policy of a SKU with its version, which every change of what the
// shop says of the SKU raises.
type PolicyOf struct {
	Policy  Policy
	Version int64
	Paused  bool
}

// Under answers the clocks of an entry's next offer: the policy's, and the entry's
// where it has none.
func (s EntrySettings) Under(p Policy) EntrySettings {
	if p.OfferWindowSeconds != nil {
		s.WindowSeconds = *p.OfferWindowSeconds
	}
	if p.OfferMaxAgeSeconds != nil {
		s.MaxAgeSeconds = *p.OfferMaxAgeSeconds
	}
	return s
}

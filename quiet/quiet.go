// Package quiet says when a shop's quiet hours hold and when they end.
package quiet

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a bare container knows no time zones
)

const (
	day = 24 * time.Hour
	// A change of the clocks leaves out an hour, in one place two. What is left of a
	// day must be more, or nobody would be texted on it.
	longest = 21 * time.Hour
)

// Hours are the hours of each day in which nobody is texted, in one time zone.
// The clock on the wall decides: it is quiet from when it first shows From until it
// last shows To. So clocks that are put back lengthen a night and do not wake
// anybody in the middle of it, and times that a change leaves out are as if they
// had passed. The zero value is never quiet.
type Hours struct {
	from, to time.Duration // since midnight as the clock shows it
	zone     *time.Location
}

// New reads quiet hours: from and to as HH:MM from 00:00 to 23:59, zone as an
// IANA name. With to before from they span midnight, and are 21 hours at most;
// equal, there are none, and zone may be empty.
func New(from, to, zone string) (Hours, error) {
	var h Hours
	var err error
	if h.from, err = Clock(from); err != nil {
		return Hours{}, fmt.Errorf("quiet hours begin: %w", err)
	}
	if h.to, err = Clock(to); err != nil {
		return Hours{}, fmt.Errorf("quiet hours end: %w", err)
	}
	if h.from == h.to {
		return Hours{}, nil
	}
	if ahead(h.from, h.to) > longest {
		return Hours{}, fmt.Errorf("quiet hours from %s to %s leave less than 3 hours of a day", from, to)
	}
	if h.zone, err = Zone(zone); err != nil {
		return Hours{}, fmt.Errorf("quiet hours: %w", err)
	}
	return h, nil
}

// Clock reads HH:MM as the time since midnight.
func Clock(s string) (time.Duration, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, fmt.Errorf("%q is no time of day: 00:00 to 23:59", s)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// Zone finds a time zone by its IANA name: Area/Place, or UTC. Abbreviations such
// as EST are refused: most know no summer time. So is the machine's own zone,
// which in a container is UTC.
func Zone(name string) (*time.Location, error) {
	if strings.Contains(name, "/") || name == "UTC" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("%q is no time zone: an IANA name such as America/New_York, or UTC", name)
}

// On says whether there are quiet hours at all.
func (h Hours) On() bool { return h.zone != nil }

// Until says whether it is quiet at now, and the instant (UTC) at which it is
// then quiet no more: after now, by less than a day and what the clocks change by.
func (h Hours) Until(now time.Time) (until time.Time, quiet bool) {
	if !h.On() {
		return time.Time{}, false
	}
	for at := now; ; quiet = true {
		next, still := h.step(at)
		switch {
		case still:
			at = next
		case quiet:
			return at.UTC(), true
		default:
			return time.Time{}, false
		}
	}
}

// step says whether it is quiet at an instant, and up to which later one it is for
// the same reason.
func (h Hours) step(at time.Time) (next time.Time, quiet bool) {
	shown := h.shown(at)
	began, change := at.In(h.zone).ZoneBounds()
	if h.covers(shown) {
		// Up to the next change the clock runs evenly; after it, it may show anything.
		end := at.Add(ahead(shown, h.to))
		if !change.IsZero() && change.Before(end) {
			return change, true
		}
		return end, true
	}
	// It is quiet before the clocks go back and soon after, not in between.
	if h.putBack(began) && h.covers(h.before(began)) && !h.covers(h.shown(began)) {
		if again := began.Add(ahead(h.shown(began), h.from)); at.Before(again) {
			return again, true
		}
	}
	if h.putBack(change) && h.covers(h.shown(change)) && !h.covers(h.before(change)) {
		if pause := change.Add(-ahead(h.to, h.before(change)) - 1); !at.Before(pause) {
			return change, true
		}
	}
	return time.Time{}, false
}

// putBack says whether the clocks go back at a change; the zero time is none.
func (h Hours) putBack(change time.Time) bool {
	if change.IsZero() {
		return false
	}
	_, was := change.Add(-1).In(h.zone).Zone()
	_, is := change.In(h.zone).Zone()
	return is < was
}

// before is what the clock shows a nanosecond before a change.
func (h Hours) before(change time.Time) time.Duration { return h.shown(change.Add(-1)) }

// ahead is how long a clock takes from one time of day to another.
func ahead(from, to time.Duration) time.Duration { return (to - from + day) % day }

// shown is what the clock on the wall shows, since midnight.
func (h Hours) shown(at time.Time) time.Duration {
	local := at.In(h.zone)
	hour, minute, second := local.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(local.Nanosecond())
}

func (h Hours) covers(shown time.Duration) bool {
	if h.from < h.to {
		return h.from <= shown && shown < h.to
	}
	return h.from <= shown || shown < h.to
}

// Package advice says from a SKU's ledger how long its holds should be: long enough for
// those who pay, and no longer, for a unit in an abandoned cart is sold to nobody.
package advice

import (
	"slices"
	"time"

	"holdfast/contract"
)

// Line is what a line of a ledger says of a hold.
type Line struct {
	At     time.Time
	Verb   string
	Kind   string
	Units  int64
	HoldID string
}

// Cart is one hold that was held, from the moment when its shopper could pay.
type Cart struct {
	Units int64
	// Needed is how long the shopper needed the hold: until the payment started, or
	// until it was seen, where nobody said that it started.
	Needed time.Duration
	Paid   bool // also a payment that came too late to make the sale
	// Kept is how long the units of an unpaid hold were kept.
	Kept     time.Duration
	GivenUp  bool // before its deadline, so that a longer hold would not have kept it
	Ended    bool
	heldAt   time.Time
	startsAt time.Time
}

// Carts reads holds from the lines of a ledger, oldest first. A hold whose beginning is
// not among the lines is left out.
func Carts(lines []Line) []Cart {
	carts := map[string]*Cart{}
	var order []string
	for _, l := range lines {
		c := carts[l.HoldID]
		if l.Verb == "adopt" && l.Kind == string(contract.HoldHeld) && c == nil {
			carts[l.HoldID] = &Cart{Units: l.Units, heldAt: l.At}
			order = append(order, l.HoldID)
			continue
		}
		if c != nil {
			c.take(l)
		}
	}
	out := make([]Cart, 0, len(order))
	for _, id := range order {
		out = append(out, *carts[id])
	}
	return out
}

func (c *Cart) take(l Line) {
	switch l.Verb + " " + l.Kind {
	case "adopt extended":
		c.startsAt = l.At
	case "confirm sold", "confirm retaken", "refund marked":
		if c.Paid {
			return // a second payment says nothing of how long one takes
		}
		c.Paid, c.Ended, c.Needed = true, true, l.At.Sub(c.heldAt)
		if !c.startsAt.IsZero() {
			c.Needed = c.startsAt.Sub(c.heldAt)
		}
	case "release expired":
		c.Ended, c.Kept = true, l.At.Sub(c.heldAt)
	case "release released":
		c.Ended, c.Kept, c.GivenUp = true, l.At.Sub(c.heldAt), true
	}
}

// Row is what one hold time would have meant.
type Row struct {
	Hold time.Duration
	// Cut is how many who paid had needed longer.
	Cut int
	// Idle is the time units would have spent in carts that nobody paid, summed up.
	Idle time.Duration
}

// Advice is what the carts of a SKU say.
type Advice struct {
	Paying    int
	Abandoned int
	Open      int // neither paid nor ended yet: they say nothing
	Rows      []Row
	// Suggested is the shortest of the rows that cuts off no more than the share that
	// was allowed; 0 when there are fewer than Enough paying buyers, or none does.
	Suggested time.Duration
	needed    []time.Duration // sorted
}

// Enough is how many paying buyers must have been seen before there is advice: with
// fewer, the slowest of a hundred was most likely not among them.
const Enough = 100

// Times are the hold times that are compared: within what a policy may say.
var Times = []time.Duration{
	30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute,
	8 * time.Minute, 10 * time.Minute, 12 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	45 * time.Minute, time.Hour, 90 * time.Minute, 2 * time.Hour,
}

// Of compares hold times for carts. allowed is the share of paying buyers, 0 to 1, that
// may be cut off.
func Of(carts []Cart, allowed float64) Advice {
	var a Advice
	for _, c := range carts {
		switch {
		case c.Paid:
			a.Paying++
			a.needed = append(a.needed, c.Needed)
		case c.Ended:
			a.Abandoned++
		default:
			a.Open++
		}
	}
	slices.Sort(a.needed)
	for _, hold := range Times {
		row := Row{Hold: hold, Cut: a.Paying - within(a.needed, hold)}
		for _, c := range carts {
			if !c.Paid && c.Ended {
				row.Idle += time.Duration(c.Units) * c.keptUnder(hold)
			}
		}
		a.Rows = append(a.Rows, row)
		if a.Suggested == 0 && a.Paying >= Enough && float64(row.Cut) <= allowed*float64(a.Paying) {
			a.Suggested = hold
		}
	}
	return a
}

// keptUnder is how long an unpaid cart would have kept its units: to the end, unless its
// shopper gave them back before.
func (c Cart) keptUnder(hold time.Duration) time.Duration {
	if c.GivenUp {
		return min(hold, c.Kept)
	}
	return hold
}

// within is how many of sorted times are at most d.
func within(sorted []time.Duration, d time.Duration) int {
	n, _ := slices.BinarySearch(sorted, d+1)
	return n
}

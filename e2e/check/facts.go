// Package check judges one SKU from outside: from the gate's records, the
// ledger, the workflows and the texts. It shares no code with the product and
// spells every wire name out, so that a mistake in the gate cannot hide in its
// own judge.
package check

import (
	"fmt"
	"time"
)

// Facts is all that is known of one SKU at one instant. The part from Redis is
// read in one transaction.
type Facts struct {
	SKU      string
	Now      time.Time
	Lease    time.Duration // how long a joined entry that nobody acknowledged keeps its turn
	Counters Counters
	Paused   bool
	Ends     time.Time // of the sale; zero when it has no end
	Holds    map[string]Hold
	Entries  map[string]Entry
	People   map[string]string // person → live entry
	Line     map[string]int64  // acknowledged entries that wait, by arrival
	Fresh    map[string]int64  // those not yet acknowledged
	Parked   map[string]int64  // those that wait and are passed over
	Leases   map[string]int64  // provisional holds by the end of their lease, ms
	Outbox   map[string]int64  // "s:entry", "o:hold", "e:entry"
	Parcels  map[string]bool   // what of the outbox carries a sealed input
	Ledger   []Line
	// Opening is the balance that stands for lines which were trimmed, its Ledger
	// the number of the last one; nil when all are there.
	Opening   *Counters
	Workflows map[string]Workflow
	Texts     []Text
	// Carts are the records of all lines of the carts whose first line is of this
	// SKU, by hold and SKU. A line that is not on record is missing.
	Carts map[string]map[string]Hold
}

// Counters are the fields of the stock hash.
type Counters struct {
	OnHand, Held, Offered, Sold           int64
	Received, Corrected, Returned, Ledger int64
}

// Hold is a hold's record.
type Hold struct {
	State      string
	Units      int64
	Person     string
	Entry      string // "" of a walk-in
	Deadline   time.Time
	Ended      time.Time
	PaymentRef string   // of a sale
	Refunded   []string // payments marked for refund
	Returned   int64    // units that came back after the sale
	Retaken    bool     // sold after it had expired
	Cart       []Part   // all lines of a cart, on its first line's record
}

// Part is one line of a cart.
type Part struct {
	SKU   string
	Units int64
}

// Entry is an entry's record. Arrival is its place and, in microseconds, the
// time of joining.
type Entry struct {
	State        string
	Person       string
	Arrival      int64
	Acknowledged bool
	Hold         string
	Ended        time.Time
}

// Line is one line of the ledger with the counters after it.
type Line struct {
	ID                            string // of the stream
	At                            time.Time
	Epoch, N                      int64
	Verb, Kind                    string
	State                         string // what a hold came to by it; "" in a line of anything else
	Units                         int64
	Ref                           string // hold, entry or event
	Other                         string // of a hold its entry, of a return its event
	Person, Actor, Payment        string
	Reason                        string
	OnHand, Held, Offered, SoldTo int64
}

// event is the id of a stock event.
func (l Line) event() string {
	if l.Other != "" {
		return l.Other
	}
	return l.Ref
}

// Workflow is the last run of a workflow id.
type Workflow struct {
	Type    string
	Status  string // "Running", "Completed", …
	Started time.Time
	// Knew is when the history first shows that the workflow had spoken with
	// the gate; zero when it does not show it.
	Knew   time.Time
	Phone  string // of an entry
	Person string // of a Hold
	Lines  []Part // of a Hold, as it was asked for them
	Result string // the state that a closed Hold answered
	Events int64
}

// Text is one text that was sent.
type Text struct {
	To, Body, Entry, Hold string
}

// Violation is one broken invariant.
type Violation struct {
	Rule     string // "I1" … "I8", "order", "texts", "promise"
	SKU      string
	ID       string // hold, entry, event or ledger line
	Expected string
	Found    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at sku %s, %s: expected %s, found %s", v.Rule, v.SKU, v.ID, v.Expected, v.Found)
}

// key is what makes a violation the same one in a second look.
func (v Violation) key() string { return v.Rule + " " + v.ID + " " + v.Expected }

func live(holdState string) bool {
	return holdState == "offered" || holdState == "provisional" || holdState == "held"
}

func entryLive(state string) bool {
	return state == "waiting" || state == "offered" || state == "holding"
}

// report collects the violations of one SKU.
type report struct {
	sku   string
	found []Violation
}

func (r *report) add(rule, id, expected, found string, args ...any) {
	r.found = append(r.found, Violation{Rule: rule, SKU: r.sku, ID: id, Expected: expected, Found: fmt.Sprintf(found, args...)})
}

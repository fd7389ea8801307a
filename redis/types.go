package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"holdfast/contract"
)

// ErrUnavailable says that the outcome is unknown: Redis did not answer, or not
// in time. Repeat the verb with the same ids. An expected refusal is a Verdict,
// never an error.
var ErrUnavailable = errors.New("gate unavailable")

// ClosedError says that the fence of a SKU is down: Redis restarted, was
// promoted or lost the SKU. Nothing was written.
type ClosedError struct {
	SKU string
	// ReplID is the server's present replication id; an opening must name it.
	ReplID string
	// Missing is true when the SKU has no stock key at all: it was never opened,
	// or Redis lost it. Only the Stock book can tell the two apart.
	Missing bool
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("gate closed for sku %q", e.SKU)
}

// LayoutError says that a SKU's keys are laid out for other scripts than those of
// this build. Nothing was read or written. It is ErrUnavailable as well: the same
// call succeeds in a build that knows the layout.
type LayoutError struct {
	SKU   string
	Found int64 // 0 for a SKU that was opened before layouts had numbers
	Ours  int64
}

func (e *LayoutError) Error() string {
	do := "run a build that knows it, or move the SKU (docs/gate.md, Layout)"
	if e.Found > e.Ours {
		do = "run the newer build that moved it"
	}
	return fmt.Sprintf("sku %q is stored in layout %d and this build knows layout %d; nothing was changed: %s", e.SKU, e.Found, e.Ours, do)
}

// Unwrap answers ErrUnavailable.
func (e *LayoutError) Unwrap() error { return ErrUnavailable }

// otherLayout is the *LayoutError of a stock hash that was read by plain commands.
func otherLayout(sku string, stock map[string]string) error {
	if found, err := strconv.ParseInt(stock["layout"], 10, 64); err != nil || found != layout {
		return &LayoutError{SKU: sku, Found: found, Ours: layout}
	}
	return nil
}

// Verdict is the outcome of a verb in one word.
type Verdict string

// Verdicts. OK is what was asked for, done now or by an earlier call with the
// same ids; every other one changed nothing.
const (
	OK              Verdict = "ok"
	Existing        Verdict = "existing"          // reserve: the record as it is, live or ended; see Hold.State
	Again           Verdict = "again"             // reserve: a bound was met before what is free was known
	SoldOut         Verdict = "sold-out"          // reserve, adopt
	ReservedForLine Verdict = "reserved-for-line" // reserve
	Paused          Verdict = "paused"            // reserve, told
	Ended           Verdict = "sale-ended"        // reserve, told
	Unknown         Verdict = "unknown"           // no such record
	Gone            Verdict = "gone"              // adopt by the door, told: no longer live
	Early           Verdict = "early"             // lapse, release(expired): before the deadline; see Left
	Claimed         Verdict = "claimed"           // lapse: pressed meanwhile; see Left
	HoldEnded       Verdict = "hold-ended"        // confirm: the record has ended, or its lease has
	Conflict        Verdict = "payment-conflict"  // confirm: another payment made the sale
	Refunded        Verdict = "refunded"          // confirm: this payment is marked for refund
	Shortfall       Verdict = "shortfall"         // confirm: on_hand would fall below 0
	MadeSale        Verdict = "made-sale"         // refund: this payment made the sale
	AmountMismatch  Verdict = "amount-mismatch"   // confirm: not what payment-started named
	LimitReached    Verdict = "limit-reached"     // reserve: the person has as much as one may
	OtherHold       Verdict = "other-hold"        // claim of a payment: it is another hold's
	Settled         Verdict = "settled"           // claim of a payment: its money went back
	Returned        Verdict = "returned"          // unconfirm: units of the sale have come back
	WouldOversell   Verdict = "would-oversell"    // correction: live claims exceed what would be left
	Moved           Verdict = "moved"             // open, renew: the server changed since it was read
	Changed         Verdict = "changed"           // repair: what was to be mended is not as it was seen
	Young           Verdict = "young"             // repair: what was to be mended may still be on its way
)

// Counters are a SKU's counters and settings at one instant. A lease that has
// ended counts as free.
type Counters struct {
	SKU           string
	OnHand        int64
	Held          int64
	Offered       int64
	Available     int64
	OpenToAll     int64
	Sold          int64
	Returned      int64
	Received      int64 // sum of restocks
	Corrected     int64 // sum of corrections, may be negative
	Waiting       int64 // live entries in the line
	Shortfall     int64
	Generation    int64
	Epoch         int64
	Paused        bool
	Ended         bool
	PolicyVersion int64
	Limit         int64 // most units of a person, 0 for none
	LevelVersion  int64 // of the last level
	State         contract.SKUState
	AsOf          time.Time
}

// Hold is a hold's record.
type Hold struct {
	ID         string
	SKU        string
	State      contract.HoldState
	Units      int64
	Person     string
	EntryID    string
	Generation int64
	CreatedAt  time.Time
	// Deadline is when the lease ends (provisional), the offer may lapse
	// (offered) or the hold may expire (held). A deadline permits an ending; only
	// the ending ends: whichever of a payment and an expiry, or of a press and a
	// lapse, reaches the gate first wins.
	Deadline   time.Time
	OfferedAt  time.Time
	ToldAt     time.Time
	SentAt     time.Time
	Extended   bool
	EndedAt    time.Time
	Reason     string
	PaymentRef string
	Amount     *contract.Money // named by payment-started
	Refunded   []string        // payment refs marked for refund
	Returned   int64           // units that came back after the sale
	Retaken    bool            // sold after it had expired
	// Cart is all lines of a cart, on the record of its first line; nil on every
	// other record.
	Cart    []contract.Line
	Version int64
}

// Entry is an entry's record with its place.
type Entry struct {
	ID           string
	SKU          string
	State        contract.EntryState
	Units        int64
	Person       string
	HoldID       string
	Generation   int64 // of the last offer
	JoinedAt     time.Time
	EndedAt      time.Time
	Acknowledged bool
	Missed       int64  // turns
	Leaving      bool   // left while its hold ran on
	Language     string // of its pages; "" when that is left to their reader
	Position     int64  // from 1; 0 when it is not in the line
	Version      int64
}

// Item is one thing of the outbox that an entry's workflow has to learn.
type Item struct {
	Kind    ItemKind
	EntryID string
	HoldID  string
	Sealed  []byte // starts only: the entry's input, AES-GCM
	Entry   Entry
	Hold    *Hold // offers, and ends that came with a hold
	Handed  int64 // how often this item was handed out before
}

// ItemKind is what an outbox item asks for.
type ItemKind string

// Kinds of outbox items.
const (
	ItemStart ItemKind = "start" // start the entry's workflow
	ItemOffer ItemKind = "offer" // tell it of an offer
	ItemEnd   ItemKind = "end"   // tell it that its hold or its record ended
)

// LedgerLine is one line of a SKU's ledger.
type LedgerLine struct {
	ID         string // of the stream
	At         time.Time
	Epoch      int64
	N          int64 // gapless within an epoch
	Verb       string
	Kind       string
	Units      int64
	RefID      string // hold, entry or event id
	OtherID    string // of a hold its entry, of a return its event
	Person     string
	Actor      string
	Reason     string
	Generation int64 // of the hold; of the SKU where there is none, and after a stock event
	PaymentRef string
	Amount     int64
	Currency   string
	OnHand     int64 // counters after the line
	Held       int64
	Offered    int64
	Sold       int64
	Balance    Movement // of an opening balance only
}

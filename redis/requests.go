package redis

import (
	"time"

	"holdfast/contract"
)

// Actors of ledger lines that the product itself writes.
const (
	ActorHoldTimer  = "hold timer"
	ActorOfferTimer = "offer timer"
	ActorShopper    = "shopper"
	ActorLease      = "lease"
	ActorSettle     = "settle"
)

// Base is part of every outcome.
type Base struct {
	Verdict Verdict
	// Wake asks the caller to signal Stock settle: the outbox has something due.
	Wake bool
}

// StockOutcome answers Stock.
type StockOutcome struct {
	Base
	EventID  string
	Applied  bool
	Reason   string // why not applied
	Delta    int64  // what on_hand moved by
	N        int64  // the ledger's number when it was decided; a repeat keeps it
	Movement string // contract.StockEvent.Movement of the event that was decided
	Counters Counters
}

// JoinRequest asks for a place in the line. EntryID is fresh; a person with a
// live entry gets that one back and EntryID is not used.
type JoinRequest struct {
	SKU     string
	EntryID string
	Person  string
	Units   int64
	Sealed  []byte
	// Language is that of the entry's pages, a tag such as "de"; "" leaves it to
	// their reader.
	Language string
}

// JoinOutcome answers Join. Backlog is the number of entries not yet
// acknowledged.
type JoinOutcome struct {
	Base
	Entry   Entry
	Created bool
	Backlog int64
}

// LeaveRequest ends an entry. State is one of EntryLeft, EntryExpired (only
// from waiting), EntryOptedOut, EntryUnreachable, EntryRemoved. Owner is true
// when the entry's workflow itself asks, which then needs no word of it.
type LeaveRequest struct {
	SKU     string
	EntryID string
	State   contract.EntryState
	Actor   string
	Owner   bool
}

// EntryOutcome answers Leave and AdoptEntry.
type EntryOutcome struct {
	Base
	Entry Entry
}

// ReserveRequest takes units under a lease. A press names an existing offer and
// leaves Units, Person empty.
type ReserveRequest struct {
	SKU    string
	HoldID string
	Units  int64
	Person string
	Press  bool
	Actor  string
	Cart   []contract.Line // all lines, with the first line of a cart only
}

// HoldOutcome answers the verbs on a hold. Left is what remains until Deadline
// by the gate's clock, never negative.
type HoldOutcome struct {
	Base
	Hold    Hold
	Left    time.Duration
	Now     time.Time // the gate's clock
	Waiting int64     // reserve refused as reserved-for-line
}

// AdoptHoldRequest says that an owner knows of a hold. The Hold workflow fills
// Units and Person so that a swept record can be tried afresh; the door leaves
// ByWorkflow false and gets Gone for a swept record.
type AdoptHoldRequest struct {
	SKU        string
	HoldID     string
	HoldFor    time.Duration
	ByWorkflow bool
	Units      int64
	Person     string
	Extend     *Extension
	Cart       []contract.Line // as in ReserveRequest; by the workflow only
}

// Extension moves the deadline of a held hold once. Amount, when it is set, is what
// the payment of the hold must be; the last one counts.
type Extension struct {
	By     time.Duration // 0 for the amount alone
	Amount *contract.Money
}

// ToldRequest is made right before each attempt to send an offer's text, and
// once more with Sent when the provider has sent it.
type ToldRequest struct {
	SKU       string
	HoldID    string
	Window    time.Duration
	SentGrace time.Duration
	MaxAge    time.Duration
	Sent      bool
}

// LapseRequest ends an offer. NotTold says that its person was not told of it: that
// costs no turn, the record's reason is contract.ReasonNotTold, and before the
// provider has sent a text it is not refused as Early. NotDelivered says that its text
// went out and that nobody has said that it arrived: contract.ReasonNotDelivered, and a
// turn like any other.
type LapseRequest struct {
	SKU          string
	HoldID       string
	NotTold      bool
	NotDelivered bool
}

// ConfirmRequest turns a hold into a sale.
type ConfirmRequest struct {
	SKU        string
	HoldID     string
	PaymentRef string
	Amount     *contract.Money
	Actor      string
	Retake     bool // an expired hold, from what is open to all
	// SameAmount refuses an Amount other than the one that payment-started named.
	SameAmount bool
}

// ReleaseRequest ends a live hold. With Reason contract.ReasonExpired it is
// refused as Early before Deadline, the deadline that the caller knows, or the
// record's when that is later. With Lease it only takes back a lease: the record
// is swept and can be tried afresh; a held one answers Existing and stays. With
// AskOnly nothing ends: OK says that it would.
type ReleaseRequest struct {
	SKU      string
	HoldID   string
	Reason   string
	Actor    string
	Deadline time.Time
	Lease    bool
	AskOnly  bool
}

// DrainOutcome answers Drain. Next is how long until something more is due, 0
// when nothing is.
type DrainOutcome struct {
	Base
	Items []Item
	Next  time.Duration
	// AtOnce says that the call stopped at a bound of its own.
	AtOnce bool
}

// OpenRequest sets the fence. New opens a SKU that has no stock key; otherwise
// ReplID must still be the server's.
type OpenRequest struct {
	SKU    string
	ReplID string
	New    bool
	Epoch  int64
}

// SettingsRequest changes what the gate needs to know of a SKU. What is nil stays.
type SettingsRequest struct {
	SKU     string
	About   *contract.About
	Policy  *contract.Policy // sets Limit and Ends as well
	Version int64            // of About and Policy; an older one changes nothing
	Paused  *bool
	Limit   *int64     // most units of a person, live and sold; 0 for none
	Ends    *time.Time // the sale; the zero time for never
	Actor   string
}

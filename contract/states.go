package contract

// HoldState is the state of a hold's record in the gate and of the hold in the
// API.
type HoldState string

// States of a hold. The first three are live, HoldSold is a sale, the rest are
// ends in which the units went back.
const (
	HoldOffered     HoldState = "offered"     // told or about to be, not pressed
	HoldProvisional HoldState = "provisional" // just taken, under lease
	HoldHeld        HoldState = "held"        // its workflow knows of it
	HoldSold        HoldState = "sold"
	HoldLapsed      HoldState = "lapsed"   // an offer that nobody pressed in time
	HoldReleased    HoldState = "released" // given back before its deadline
	HoldExpired     HoldState = "expired"  // its deadline passed unpaid
	HoldRefused     HoldState = "refused"  // its workflow found no unit; the id is spent

	// HoldSwept is a provisional hold whose lease ended before its workflow
	// knew of it. It was never promised, is no outcome and is never shown: a
	// repeat tries afresh.
	HoldSwept HoldState = "swept"
)

// Live says whether the hold still claims its units.
func (s HoldState) Live() bool {
	return s == HoldOffered || s == HoldProvisional || s == HoldHeld
}

// Ended says whether the hold has come to its one end.
func (s HoldState) Ended() bool {
	return s == HoldSold || s == HoldLapsed || s == HoldReleased || s == HoldExpired || s == HoldRefused
}

// EntryState is the state of a waitlist entry.
type EntryState string

// States of an entry. The first three are live.
const (
	EntryWaiting     EntryState = "waiting"
	EntryOffered     EntryState = "offered"
	EntryHolding     EntryState = "holding"
	EntryBought      EntryState = "bought"
	EntryLeft        EntryState = "left"
	EntryLapsed      EntryState = "lapsed"
	EntryExpired     EntryState = "expired"
	EntryOptedOut    EntryState = "opted_out"
	EntryUnreachable EntryState = "unreachable"
	EntryRemoved     EntryState = "removed"
)

// Live says whether the entry still has a place, an offer or a hold.
func (s EntryState) Live() bool {
	return s == EntryWaiting || s == EntryOffered || s == EntryHolding
}

// SKUState is what a shopper can expect of a SKU this instant.
type SKUState string

// States of a SKU.
const (
	SKUAvailable SKUState = "available" // a walk-in can take a unit
	SKULine      SKUState = "line"      // people wait or hold offers; joining is the way
	SKUSoldOut   SKUState = "sold_out"
	SKUPaused    SKUState = "paused"
	SKUEnded     SKUState = "ended"
	SKUClosed    SKUState = "closed" // the gate's fence is down
)

// Reasons of a release. A shop may send any other word of its own.
const (
	ReasonExpired       = "expired"        // the hold's timer
	ReasonShopper       = "shopper"        // given back on the hold's page
	ReasonShop          = "shop"           // released by the shop's server or an operator
	ReasonPaymentFailed = "payment-failed" // the card was declined for good
	ReasonCancelled     = "cancelled"      // the workflow was cancelled
	ReasonCompensation  = "compensation"   // another line of the cart was refused
	ReasonReconcile     = "reconcile"      // its owner was gone, and Reconcile has given it back
	ReasonLeft          = "left"           // the entry left with an offer open
	ReasonNotTold       = "not-told"       // the offer lapsed before its person was told of it
	ReasonNotDelivered  = "not-delivered"  // the offer lapsed, and nobody has said that its text arrived
)

// Kinds of stock events.
const (
	StockRestock    = "restock"
	StockCorrection = "correction"
	StockReturn     = "return"
	StockLevel      = "level"
)

// MaxLevelVersion is the greatest version of a level: the gate's scripts, and
// the JSON of many languages, count exactly no further.
const MaxLevelVersion = 1<<53 - 1

// Why money did not become a sale of the hold that it names.
const (
	CauseLate        = "late"        // the hold had ended
	CauseSecond      = "second"      // another payment had made the sale
	CauseMismatched  = "mismatched"  // not the amount that payment-started named
	CauseUndecodable = "undecodable" // the payload could not be read
	CauseUnknown     = "unknown"     // no such hold
	CauseOtherHold   = "other-hold"  // the payment is another hold's
)

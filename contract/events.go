package contract

import (
	"encoding/json"
	"time"
)

// Types of the events that the shop is told of. refund.requested is sent by the
// payment adapter and not by an Event: its owner is the Payment.
const (
	EventHoldCreated       = "hold.created"
	EventHoldExtended      = "hold.extended"
	EventHoldConfirmed     = "hold.confirmed"
	EventHoldReleased      = "hold.released"
	EventHoldExpired       = "hold.expired"
	EventRefundRequested   = "refund.requested"
	EventRefundSettled     = "refund.settled"
	EventPaymentUnmatched  = "payment.unmatched"
	EventPaymentUnresolved = "payment.unresolved"
	EventWaitlistJoined    = "waitlist.joined"
	EventWaitlistOffered   = "waitlist.offered"
	EventWaitlistClaimed   = "waitlist.claimed"
	EventWaitlistLapsed    = "waitlist.lapsed"
	EventWaitlistLeft      = "waitlist.left"
	EventWaitlistExpired   = "waitlist.expired"
	EventStockChanged      = "stock.changed"
	EventStockRejected     = "stock.rejected"
	EventStockShortfall    = "stock.shortfall"

	// EventTest is sent by `holdfast events test` and by nothing else.
	EventTest = "holdfast.test"
)

// States of an Event.
const (
	EventSending   = "sending"
	EventParked    = "parked"    // given up until a person says retry or discard
	EventDelivered = "delivered" // closed
	EventDiscarded = "discarded" // closed by a person
)

// EventInput starts an Event, the owner of one delivery. Data is what the shop is
// told, a JSON object.
type EventInput struct {
	EventID  string          `json:"event_id"`
	Type     string          `json:"type"`
	Subject  string          `json:"subject"` // id of the hold, entry or payment, or the SKU
	SKUs     []string        `json:"skus,omitempty"`
	At       time.Time       `json:"at"`
	Sequence int64           `json:"sequence"`
	Data     json.RawMessage `json:"data"`
}

// EventMove is the payload of the signals retry and discard.
type EventMove struct {
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// EventStatus answers the query status of an Event and is its result. It has none
// of the event's data.
type EventStatus struct {
	EventID  string     `json:"event_id"`
	Type     string     `json:"type"`
	Subject  string     `json:"subject"`
	Sequence int64      `json:"sequence"`
	At       time.Time  `json:"at"`
	State    string     `json:"state"`
	ParkedAt *time.Time `json:"parked_at,omitempty"`
	Reason   string     `json:"reason,omitempty"` // why it was parked last, or discarded
}

// Instant writes an instant as the API and the events do: RFC 3339 in UTC with
// milliseconds.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// HoldEvent is the data of hold.*: the hold as the API shows it, without links.
// What only the Hold knows (customer, order_ref, price, entry_id) is missing from
// a hold.confirmed that a Payment tells.
type HoldEvent struct {
	HoldID     string    `json:"hold_id"`
	State      HoldState `json:"state"`
	Lines      []Line    `json:"lines,omitempty"`
	Customer   string    `json:"customer,omitempty"`
	OrderRef   string    `json:"order_ref,omitempty"`
	Price      *Money    `json:"price,omitempty"`
	EntryID    string    `json:"entry_id,omitempty"`
	Generation int64     `json:"generation,omitempty"`
	PaymentRef string    `json:"payment_ref,omitempty"`
	CreatedAt  string    `json:"created_at,omitempty"`
	ExpiresAt  string    `json:"expires_at,omitempty"`
	Extended   bool      `json:"extended"`
	EndedAt    string    `json:"ended_at,omitempty"`
	EndReason  string    `json:"end_reason,omitempty"`
}

// EntryEvent is the data of waitlist.*: the entry without number and name.
type EntryEvent struct {
	EntryID    string     `json:"entry_id"`
	SKU        string     `json:"sku"`
	State      EntryState `json:"state"`
	Quantity   int64      `json:"quantity"`
	HoldID     string     `json:"hold_id,omitempty"` // of its last offer
	Generation int64      `json:"generation,omitempty"`
	JoinedAt   string     `json:"joined_at,omitempty"`  // missing from waitlist.claimed
	ExpiresAt  string     `json:"expires_at,omitempty"` // the place in line; missing from waitlist.claimed
}

// PaymentEvent is the data of refund.settled, payment.unmatched and
// payment.unresolved. Reason says for people what is not known.
type PaymentEvent struct {
	PaymentID  string `json:"payment_id,omitempty"` // missing from payment.unresolved
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Cause      string `json:"cause,omitempty"`
	Reference  string `json:"reference,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// StockDecision is the data of stock.*: what the gate decided on a stock event,
// and the SKU right after.
type StockDecision struct {
	SKU     string      `json:"sku"`
	EventID string      `json:"event_id"` // of the stock event
	Kind    string      `json:"kind"`
	Applied bool        `json:"applied"`
	Delta   int64       `json:"delta"` // what on_hand moved by
	Reason  string      `json:"reason,omitempty"`
	Stock   StockCounts `json:"stock"`
}

// StockCounts are a SKU's counters, as GET /v1/stock/{sku} names them.
type StockCounts struct {
	State      SKUState `json:"state"`
	OnHand     int64    `json:"on_hand"`
	Held       int64    `json:"held"`
	Offered    int64    `json:"offered"`
	Available  int64    `json:"available"`
	OpenToAll  int64    `json:"open_to_all"`
	Sold       int64    `json:"sold"`
	Returned   int64    `json:"returned"`
	Waiting    int64    `json:"waiting"`
	Shortfall  int64    `json:"shortfall"`
	Generation int64    `json:"generation"`
	AsOf       string   `json:"as_of"`
}

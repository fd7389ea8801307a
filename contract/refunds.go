package contract

import "time"

// RefundFailed says that a refund which the provider had taken did not go
// through: the money is with the shop again.
type RefundFailed struct {
	Reference string `json:"reference,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// RefundRetry is the payload of the update retry-refund.
type RefundRetry struct {
	Actor string `json:"actor,omitempty"`
}

// PaymentInput starts a Payment, the owner of money that met no live hold, and
// is the payload of the update decide.
type PaymentInput struct {
	PaymentID  string `json:"payment_id"`
	HoldID     string `json:"hold_id"`
	SKU        string `json:"sku,omitempty"` // of the hold; empty when its number is unknown
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Cause      string `json:"cause"`
	Raw        []byte `json:"raw,omitempty"` // an undecodable payload, as it came
	// Reopened says that a refund which was settled has failed after all.
	Reopened bool `json:"reopened,omitempty"`
	// Tell says that the shop has an endpoint for events.
	Tell bool `json:"tell,omitempty"`
}

// States of a Payment.
const (
	PaymentDeciding       = "deciding"
	PaymentSold           = "sold"            // this reference made the sale
	PaymentRefundPending  = "refund-pending"  // marked for refund, waits for the money to go back
	PaymentRefundSettled  = "refund-settled"  // closed
	PaymentParked         = "parked"          // a person must decide; alarmed
	PaymentRefundReported = "refund-reported" // the adapter acknowledged the request
)

// PaymentDecision answers the update decide.
type PaymentDecision struct {
	State   string `json:"state"`
	Outcome string `json:"outcome"` // one of the Confirm outcomes
}

// RefundSettled says that the money went back. Reference is the provider's.
type RefundSettled struct {
	Reference string `json:"reference,omitempty"`
	Actor     string `json:"actor,omitempty"`
}

// PaymentStatus answers the query status of a Payment.
type PaymentStatus struct {
	PaymentID  string `json:"payment_id"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Cause      string `json:"cause"`
	State      string `json:"state"`
	Reference  string `json:"reference,omitempty"`
	ByHand     string `json:"by_hand,omitempty"` // why no machine can make the refund, and what to do
	Raw        []byte `json:"raw,omitempty"`     // an undecodable payload, as it came
	// Sale is what the money bought, with the state sold.
	Sale *PaymentSale `json:"sale,omitempty"`
}

// PaymentSale is a sale as the gate told it to its Payment: enough to write its record
// again when the Hold is forgotten.
type PaymentSale struct {
	Person     string      `json:"person"`
	EntryID    string      `json:"entry_id,omitempty"`
	Generation int64       `json:"generation,omitempty"`
	CreatedAt  time.Time   `json:"created_at"`
	Retaken    bool        `json:"retaken,omitempty"` // after it had expired
	Lines      []Line      `json:"lines"`
	SoldAt     []time.Time `json:"sold_at"` // of each line, by the clocks of their gates
}

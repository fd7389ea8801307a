package contract

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// Line is a quantity of one SKU. Quantity is 1 to 10^9.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Money is an amount in integer minor units with its ISO 4217 currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// HoldInput starts a Hold. Lines are what MergeLines makes of them; HoldID begins
// with the number of the first line's SKU.
type HoldInput struct {
	HoldID     string       `json:"hold_id"`
	Lines      []Line       `json:"lines"`
	Customer   string       `json:"customer"` // the shop's reference, or the entry id for a link
	Person     string       `json:"person"`
	EntryID    string       `json:"entry_id,omitempty"`
	Generation int64        `json:"generation,omitempty"`
	OrderRef   string       `json:"order_ref,omitempty"`
	Price      *Money       `json:"price,omitempty"`
	Settings   HoldSettings `json:"settings"`
}

// HoldSettings are the clocks of one hold, in whole seconds. They travel with
// the hold: a change of the configuration never moves a promise already made.
type HoldSettings struct {
	HoldSeconds      int64 `json:"hold_seconds"`
	ExtensionSeconds int64 `json:"extension_seconds"`
	GraceSeconds     int64 `json:"grace_seconds"`
	// AsksProvider: the payment provider can be asked about payments that were
	// begun for the hold, and can end them.
	AsksProvider bool `json:"asks_provider,omitempty"`
}

// HoldResult is how a Hold ended.
type HoldResult struct {
	HoldID     string    `json:"hold_id"`
	State      HoldState `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	PaymentRef string    `json:"payment_ref,omitempty"`
}

// PaymentStarted says that the shopper is paying. It extends the hold once.
type PaymentStarted struct {
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
}

// PaymentSucceeded says that money arrived for a hold.
type PaymentSucceeded struct {
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
}

// PaymentFailed says that a payment did not go through. Only a final failure
// gives the units back; after another the shopper may try again.
type PaymentFailed struct {
	PaymentRef string `json:"payment_ref,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Final      bool   `json:"final"`
	// AttemptOnly: said of this attempt alone, as a provider does whose word may
	// be late. It is not final when another was begun after it.
	AttemptOnly bool `json:"attempt_only,omitempty"`
}

// Release asks a Hold to give its units back. Reason is one of the Reason
// constants or a word of the shop.
type Release struct {
	Reason string `json:"reason,omitempty"`
}

// ConfirmRequest is the payload of the update confirm.
type ConfirmRequest struct {
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
}

// Outcomes of a confirm. All but ConfirmSold name the problem of the API.
const (
	ConfirmSold           = "sold"
	ConfirmHoldEnded      = "hold-ended"
	ConfirmConflict       = "payment-conflict"
	ConfirmAmountMismatch = "amount-mismatch"
)

// ConfirmResult answers a confirm. Refund is set when the money of this
// request goes back.
type ConfirmResult struct {
	Outcome string      `json:"outcome"`
	Status  HoldStatus  `json:"status"`
	Refund  *RefundInfo `json:"refund,omitempty"`
}

// RefundInfo names the Payment that owns money that made no sale.
type RefundInfo struct {
	PaymentID  string `json:"payment_id"`
	PaymentRef string `json:"payment_ref"`
	State      string `json:"state"`
}

// LineSoldAt is when line i of a sale was sold.
func (s HoldStatus) LineSoldAt(i int) time.Time {
	switch {
	case i < len(s.SoldAt):
		return s.SoldAt[i]
	case s.EndedAt != nil:
		return *s.EndedAt
	}
	return time.Time{}
}

// EntryInput starts a WaitlistEntry. It is the only place where the phone
// number stands in clear; Redis holds this struct sealed until the workflow
// has acknowledged.
type EntryInput struct {
	EntryID  string        `json:"entry_id"`
	SKU      string        `json:"sku"`
	Quantity int64         `json:"quantity"`
	Person   string        `json:"person"`
	Phone    string        `json:"phone"` // E.164
	Name     string        `json:"name,omitempty"`
	Locale   string        `json:"locale,omitempty"`
	Consent  *Consent      `json:"consent,omitempty"`
	JoinedAt time.Time     `json:"joined_at"`
	Position int64         `json:"position"` // in the line when it joined, from 1; 0 when the outbox started it
	Settings EntrySettings `json:"settings"`
}

// Consent is what a person has agreed to. TextVersion names the words they saw;
// it is empty when whoever showed them did not say. Source is "form", "public",
// "again", or "api:" and the caller.
type Consent struct {
	TextVersion string    `json:"text_version,omitempty"`
	Source      string    `json:"source"`
	At          time.Time `json:"at"`
}

// EntrySettings are the clocks of one entry, in whole seconds.
type EntrySettings struct {
	TTLSeconds       int64 `json:"ttl_seconds"`
	WindowSeconds    int64 `json:"window_seconds"`
	SentGraceSeconds int64 `json:"sent_grace_seconds"`
	MaxAgeSeconds    int64 `json:"max_age_seconds"`
}

// EntryResult is how an entry ended.
type EntryResult struct {
	EntryID string     `json:"entry_id"`
	State   EntryState `json:"state"`
	HoldID  string     `json:"hold_id,omitempty"`
}

// Offered tells an entry that a unit is kept for it.
type Offered struct {
	HoldID     string    `json:"hold_id"`
	Units      int64     `json:"units"`
	Generation int64     `json:"generation"`
	OfferedAt  time.Time `json:"offered_at"`
}

// Claimed tells an entry that its offer was pressed and that the Hold lives.
type Claimed struct {
	HoldID    string    `json:"hold_id"`
	ExpiresAt time.Time `json:"expires_at"` // unless the shopper goes to pay
}

// HoldEnded tells an entry how its hold ended and what became of the entry.
type HoldEnded struct {
	HoldID     string     `json:"hold_id"`
	HoldState  HoldState  `json:"hold_state"`
	EntryState EntryState `json:"entry_state"`
	EndedAt    time.Time  `json:"ended_at,omitzero"`
}

// EntryEnded tells an entry that its record ended without a hold.
type EntryEnded struct {
	State EntryState `json:"state"`
}

// TextStatus is a provider's word on a text. HoldID is that of an offer's text,
// empty of a joined one. Class says what the error of a lost text means: never,
// later or stop-all.
type TextStatus struct {
	TextID    string `json:"text_id"`
	HoldID    string `json:"hold_id,omitempty"`
	Status    string `json:"status"`
	ErrorCode int    `json:"error_code,omitempty"`
	Class     string `json:"class,omitempty"`
	OptedOut  bool   `json:"opted_out,omitempty"`
}

// TextRefusal is the detail of the errors of a text. MaybeSent says that the
// outcome of the send is not known.
type TextRefusal struct {
	Code      int  `json:"code,omitempty"` // the provider's
	OptedOut  bool `json:"opted_out,omitempty"`
	MaybeSent bool `json:"maybe_sent,omitempty"`
}

// Leave asks an entry to leave the line.
type Leave struct {
	Reason string `json:"reason,omitempty"`
}

// EntryStatus answers the query status of a WaitlistEntry.
type EntryStatus struct {
	EntryID    string     `json:"entry_id"`
	SKU        string     `json:"sku"`
	State      EntryState `json:"state"`
	Quantity   int64      `json:"quantity"`
	Person     string     `json:"person"`
	Name       string     `json:"name,omitempty"`
	Phone      string     `json:"phone"`
	Locale     string     `json:"locale,omitempty"`
	Consent    *Consent   `json:"consent,omitempty"`
	JoinedAt   time.Time  `json:"joined_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	HoldID     string     `json:"hold_id,omitempty"`
	Generation int64      `json:"generation,omitempty"`
	OfferUntil *time.Time `json:"offer_until,omitempty"`
	OfferSent  bool       `json:"offer_sent,omitempty"`
	Missed     int64      `json:"missed,omitempty"`     // turns
	Leaving    bool       `json:"leaving,omitempty"`    // left while its hold runs on
	TextWaits  *TextWait  `json:"text_waits,omitempty"` // what keeps the text of the present offer
}

// StockEvent is one movement of physical stock. Units is 1 to 10^9 for a
// restock and a return, 0 to 10^9 for a level; Delta is not 0 and at most 10^9
// either way for a correction.
type StockEvent struct {
	EventID        string     `json:"event_id"`
	Kind           string     `json:"kind"`
	Units          int64      `json:"units,omitempty"`
	Delta          int64      `json:"delta,omitempty"`
	ReturnID       string     `json:"return_id,omitempty"`   // return: counts once, whatever event brings it
	HoldID         string     `json:"hold_id,omitempty"`     // return: the sale
	Resell         bool       `json:"resell,omitempty"`      // return: the units can be sold again
	Version        int64      `json:"version,omitempty"`     // level: 1 to MaxLevelVersion, grows with each count
	CountsSold     int64      `json:"counts_sold,omitempty"` // level: how many of our sales the count has in it
	AllowShortfall bool       `json:"allow_shortfall,omitempty"`
	Reason         string     `json:"reason,omitempty"`
	Actor          string     `json:"actor,omitempty"`
	OccurredAt     *time.Time `json:"occurred_at,omitempty"`
}

// Movement is a print of what ev moves: two events with the same one move the
// same. Its id, and what only describes it (reason, actor, time), are not in it.
func (ev StockEvent) Movement() string {
	ev.EventID, ev.Reason, ev.Actor, ev.OccurredAt = "", "", "", nil
	raw, err := json.Marshal(ev)
	if err != nil {
		panic(err) // texts, numbers and bools only
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// StockInput starts or continues a Stock. A start by stock-event carries only
// the SKU.
type StockInput struct {
	SKU  string    `json:"sku"`
	Book StockBook `json:"book"`
}

// MaxPendingEvents is how many stock events of one SKU may wait for its gate before
// senders are asked to slow down.
const MaxPendingEvents = 1000

// StockBook is the durable book of a SKU and answers the query status.
type StockBook struct {
	SKU       string       `json:"sku"`
	Opened    bool         `json:"opened"` // a PUT has opened the SKU
	About     About        `json:"about"`
	Policy    Policy       `json:"policy,omitzero"`
	Version   int64        `json:"version"` // raised by each change of About or Policy
	Paused    bool         `json:"paused"`
	Epoch     int64        `json:"epoch"`
	Received  int64        `json:"received"`           // sum of restocks
	Returned  int64        `json:"returned,omitempty"` // units that came back to be sold again
	Corrected int64        `json:"corrected"`          // sum of corrections and levels, may be negative
	Events    []BookEvent  `json:"events,omitempty"`   // the last 500 with the gate's answer
	Pending   []StockEvent `json:"pending,omitempty"`  // recorded, not yet decided by the gate
	Refused   int64        `json:"refused"`
	// DecidedN is the gate's ledger number of the last event counted here. An
	// event that the gate decided before it is a repeat and counts no second time.
	DecidedN int64 `json:"decided_n"`
	// Generation and Level are the last that the gate has told with a stock event: how
	// often units came, and the version of the last level.
	Generation int64 `json:"generation,omitempty"`
	Level      int64 `json:"level,omitempty"`
	// Audit is what was sold when somebody last looked.
	Audit StockAudit `json:"audit,omitzero"`
	// Told is the sequence of the last event that the shop was told of.
	Told int64 `json:"told,omitempty"`
	// Alarm is set while the tripwire rings. AlarmEvent is what the shop was told of it
	// last, also when it is over; empty without an endpoint.
	Alarm      *StockAlarm `json:"alarm,omitempty"`
	AlarmEvent string      `json:"alarm_event,omitempty"`
	// Rung is what others have seen ring and the book has not yet looked at, and
	// LookedAt when it last did, by the gate's clock.
	Rung     []Ring    `json:"rung,omitempty"`
	LookedAt time.Time `json:"looked_at,omitzero"`
	// Look says that a run was continued before it could look at the tripwire.
	Look bool `json:"look,omitempty"`
}

// BookEvent is one decided stock event.
type BookEvent struct {
	EventID string `json:"event_id"`
	Kind    string `json:"kind"`
	Applied bool   `json:"applied"`
	Delta   int64  `json:"delta"`
	Reason  string `json:"reason,omitempty"`
}

// About is what the shop says of a SKU.
type About struct {
	Title       string `json:"title"`
	CheckoutURL string `json:"checkout_url"`
	ImageURL    string `json:"image_url,omitempty"`
	Price       *Money `json:"price,omitempty"`
}

// PolicyRequest changes what a Stock knows of its SKU: About, which also opens it,
// or the Policy of an opened one.
type PolicyRequest struct {
	About  *About  `json:"about,omitempty"`
	Policy *Policy `json:"policy,omitempty"`
	// Versions are those from which the change is wanted; none for whatever
	// stands. What stands as it is wanted is no change.
	Versions []int64 `json:"versions,omitempty"`
	Actor    string  `json:"actor,omitempty"`
}

// PolicyResult answers a PolicyRequest. Created is true when this request
// opened the SKU, Outdated when nothing was changed because the version, which is
// the present one, is none of those named.
type PolicyResult struct {
	Version  int64 `json:"version"`
	Created  bool  `json:"created"`
	Outdated bool  `json:"outdated,omitempty"`
}

// PauseRequest pauses or resumes a SKU.
type PauseRequest struct {
	Paused bool   `json:"paused"`
	Actor  string `json:"actor,omitempty"`
}

// PauseResult answers a PauseRequest.
type PauseResult struct {
	Paused bool `json:"paused"`
}

package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

// errNoRecord is raised for a record that must exist: it is retried until
// Reconcile has brought the record back.
const errNoRecord = "gate-record-missing"

// HoldGate is the gate as a hold and a payment use it.
type HoldGate interface {
	AdoptHold(ctx context.Context, req redis.AdoptHoldRequest) (redis.HoldOutcome, error)
	Confirm(ctx context.Context, req redis.ConfirmRequest) (redis.HoldOutcome, error)
	Unconfirm(ctx context.Context, sku, holdID, paymentRef, actor string) (redis.HoldOutcome, error)
	Release(ctx context.Context, req redis.ReleaseRequest) (redis.HoldOutcome, error)
	Refund(ctx context.Context, sku, holdID, paymentRef, actor string) (redis.HoldOutcome, error)
	ClaimPayment(ctx context.Context, holdID, paymentRef string) (redis.PaymentOwner, error)
	SettlePayment(ctx context.Context, holdID, paymentRef, reference string) (redis.PaymentOwner, error)
	ReopenPayment(ctx context.Context, holdID, paymentRef string) (redis.PaymentOwner, error)
	LookupSKU(ctx context.Context, number string) (sku string, whole bool, err error)
}

// PaymentStarter starts the owner of money that makes no sale.
type PaymentStarter interface {
	Payment(ctx context.Context, in contract.PaymentInput) error
}

// Holds are the activities of Hold and Payment.
type Holds struct {
	Guard
	Gate     HoldGate
	Payments PaymentStarter
}

// HoldOutcome is the gate's answer to a verb on a hold. LeftMillis is what
// remains until Deadline by the gate's clock, never negative.
type HoldOutcome struct {
	Verdict    redis.Verdict      `json:"verdict"`
	State      contract.HoldState `json:"state,omitempty"`
	LeftMillis int64              `json:"left_ms"`
	CreatedAt  time.Time          `json:"created_at"`
	Deadline   time.Time          `json:"deadline"`
	OfferedAt  time.Time          `json:"offered_at"`
	EndedAt    time.Time          `json:"ended_at"`
	Extended   bool               `json:"extended,omitempty"`
	Generation int64              `json:"generation,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	PaymentRef string             `json:"payment_ref,omitempty"`
	Retaken    bool               `json:"retaken,omitempty"`
	Returned   int64              `json:"returned,omitempty"` // units that came back after the sale
	Cart       []contract.Line    `json:"cart,omitempty"`     // all lines of a cart, from its first line's record
	Tell       bool               `json:"tell,omitempty"`     // the shop has an endpoint for events
	Untold     bool               `json:"untold,omitempty"`   // a lapse is early, of an offer that was never told
	// Units, Person and EntryID are told to a Payment only.
	Units   int64  `json:"units,omitempty"`
	Person  string `json:"person,omitempty"`
	EntryID string `json:"entry_id,omitempty"`
}

// Left is how long the gate would refuse to end the hold.
func (o HoldOutcome) Left() time.Duration { return time.Duration(o.LeftMillis) * time.Millisecond }

func (g Guard) holdOutcome(out redis.HoldOutcome) HoldOutcome {
	h := out.Hold
	return HoldOutcome{
		Tell:    g.Tell,
		Verdict: out.Verdict,
		State:   h.State,
		// Rounded up: a timer that fires a fraction early is refused as early.
		LeftMillis: (out.Left + time.Millisecond - 1).Milliseconds(),
		CreatedAt:  h.CreatedAt,
		Deadline:   h.Deadline,
		OfferedAt:  h.OfferedAt,
		EndedAt:    h.EndedAt,
		Extended:   h.Extended,
		Generation: h.Generation,
		Reason:     h.Reason,
		PaymentRef: h.PaymentRef,
		Retaken:    h.Retaken,
		Returned:   h.Returned,
		Cart:       h.Cart,
	}
}

// AdoptHoldInput says that the hold's workflow knows of it. ExtendSeconds is 0
// for no extension; Amount is what its payment must be, nil for what it was.
type AdoptHoldInput struct {
	SKU           string          `json:"sku"`
	HoldID        string          `json:"hold_id"`
	Units         int64           `json:"units"`
	Person        string          `json:"person"`
	HoldSeconds   int64           `json:"hold_seconds"`
	ExtendSeconds int64           `json:"extend_seconds,omitempty"`
	Amount        *contract.Money `json:"amount,omitempty"`
	Cart          []contract.Line `json:"cart,omitempty"` // all lines, with the first line of a cart only
}

// AdoptHold makes a provisional hold held, or extends a held one.
func (a *Holds) AdoptHold(ctx context.Context, in AdoptHoldInput) (HoldOutcome, error) {
	req := redis.AdoptHoldRequest{
		SKU:        in.SKU,
		HoldID:     in.HoldID,
		HoldFor:    seconds(in.HoldSeconds),
		ByWorkflow: true,
		Units:      in.Units,
		Person:     in.Person,
		Cart:       in.Cart,
	}
	if in.ExtendSeconds > 0 || in.Amount != nil {
		req.Extend = &redis.Extension{By: seconds(in.ExtendSeconds), Amount: in.Amount}
	}
	out, err := a.Gate.AdoptHold(ctx, req)
	return a.holdDone(ctx, in.SKU, "adopt hold of", out, err)
}

// ConfirmHoldInput turns a hold into a sale. MustExist is set by a living Hold:
// an unknown record is then an error to be mended, not an answer.
type ConfirmHoldInput struct {
	SKU        string          `json:"sku"`
	HoldID     string          `json:"hold_id"`
	PaymentRef string          `json:"payment_ref"`
	Amount     *contract.Money `json:"amount,omitempty"`
	Actor      string          `json:"actor"`
	MustExist  bool            `json:"must_exist,omitempty"`
	// SameAmount is set where nobody has compared the amount with the announced
	// one yet.
	SameAmount bool `json:"same_amount,omitempty"`
	// Retake sells an expired hold from what is open to all.
	Retake bool `json:"retake,omitempty"`
}

// ConfirmHold makes the sale if the hold still lives and the payment is its own.
func (a *Holds) ConfirmHold(ctx context.Context, in ConfirmHoldInput) (HoldOutcome, error) {
	if out, own, err := a.claim(ctx, in.SKU, in.HoldID, in.PaymentRef); err != nil || !own {
		return out, err
	}
	out, err := a.Gate.Confirm(ctx, redis.ConfirmRequest{
		SKU: in.SKU, HoldID: in.HoldID, PaymentRef: in.PaymentRef, Amount: in.Amount, Actor: in.Actor,
		SameAmount: in.SameAmount, Retake: in.Retake,
	})
	if err != nil && in.MustExist { // its SKU was there
		return HoldOutcome{}, a.gateError(ctx, in.SKU, "confirm hold of", err)
	}
	if err == nil && out.Verdict == redis.Unknown && in.MustExist {
		return HoldOutcome{}, temporal.NewApplicationErrorWithOptions(
			"the gate has no record of "+in.HoldID+", whose workflow lives: a payment waits for Reconcile to bring it back",
			errNoRecord, temporal.ApplicationErrorOptions{})
	}
	done, err := a.holdDone(ctx, in.SKU, "confirm hold of", out, err)
	if in.Retake {
		done = done.withBuyer(out.Hold)
	}
	return done, err
}

// withBuyer adds what a Payment tells of a sale.
func (o HoldOutcome) withBuyer(h redis.Hold) HoldOutcome {
	o.Units, o.Person, o.EntryID = h.Units, h.Person, h.EntryID
	return o
}

// UnconfirmHoldInput undoes the sale of one line of a cart.
type UnconfirmHoldInput struct {
	SKU        string `json:"sku"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Actor      string `json:"actor"`
}

// UnconfirmHold takes a line's sale back and marks the payment, which no repeat
// sells by again.
func (a *Holds) UnconfirmHold(ctx context.Context, in UnconfirmHoldInput) (HoldOutcome, error) {
	out, err := a.Gate.Unconfirm(ctx, in.SKU, in.HoldID, in.PaymentRef, in.Actor)
	return a.holdDone(ctx, in.SKU, "unconfirm hold of", out, err)
}

// ReleaseHoldInput gives a hold's units back. Deadline counts for the reason
// expired only. With AskOnly nothing ends: ok says that it would.
type ReleaseHoldInput struct {
	SKU      string    `json:"sku"`
	HoldID   string    `json:"hold_id"`
	Reason   string    `json:"reason"`
	Actor    string    `json:"actor"`
	Deadline time.Time `json:"deadline"`
	AskOnly  bool      `json:"ask_only,omitempty"`
	// Unheard is how a Hold that its shopper or the shop ends would adopt a line that it
	// has not heard of yet.
	Unheard *AdoptHoldInput `json:"unheard,omitempty"`
}

// ReleaseHold ends a live hold. One that was promised, and that Redis has forgotten
// before its Hold had heard of it, is taken afresh first: what has ended has a record.
func (a *Holds) ReleaseHold(ctx context.Context, in ReleaseHoldInput) (HoldOutcome, error) {
	req := redis.ReleaseRequest{
		SKU: in.SKU, HoldID: in.HoldID, Reason: in.Reason, Actor: in.Actor, Deadline: in.Deadline, AskOnly: in.AskOnly,
	}
	out, err := a.Gate.Release(ctx, req)
	if err == nil && out.Verdict == redis.Unknown && in.Unheard != nil {
		var adopted HoldOutcome
		if adopted, err = a.AdoptHold(ctx, *in.Unheard); err != nil || adopted.Verdict != redis.OK {
			return adopted, err
		}
		out, err = a.Gate.Release(ctx, req)
	}
	return a.holdDone(ctx, in.SKU, "release hold of", out, err)
}

// MarkRefundInput names the payment that must never make a sale.
type MarkRefundInput struct {
	SKU        string `json:"sku"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Actor      string `json:"actor"`
}

// MarkRefund marks a payment reference on the hold's record.
func (a *Holds) MarkRefund(ctx context.Context, in MarkRefundInput) (HoldOutcome, error) {
	if out, own, err := a.claim(ctx, in.SKU, in.HoldID, in.PaymentRef); err != nil || !own {
		return out, err
	}
	out, err := a.Gate.Refund(ctx, in.SKU, in.HoldID, in.PaymentRef, in.Actor)
	return a.holdDone(ctx, in.SKU, "mark refund at hold of", out, err)
}

// claim answers whether the payment is this hold's to sell by or to refund; if not,
// OtherHold with that hold in Reason, or Settled with the refund's reference.
func (a *Holds) claim(ctx context.Context, sku, holdID, paymentRef string) (out HoldOutcome, own bool, err error) {
	owner, err := a.Gate.ClaimPayment(ctx, holdID, paymentRef)
	switch {
	case err != nil:
		return HoldOutcome{}, false, a.gateError(ctx, sku, "claim a payment for hold of", err)
	case owner.HoldID != holdID:
		return HoldOutcome{Verdict: redis.OtherHold, Reason: owner.HoldID, Tell: a.Tell}, false, nil
	case owner.Settled:
		return HoldOutcome{Verdict: redis.Settled, Reason: owner.Reference, Tell: a.Tell}, false, nil
	}
	return HoldOutcome{}, true, nil
}

// SettlePaymentInput says that the money of a payment went back, or, with Reopen,
// that it did not after all. Reference is the provider's.
type SettlePaymentInput struct {
	SKU        string `json:"sku"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Reference  string `json:"reference,omitempty"`
	Reopen     bool   `json:"reopen,omitempty"`
}

// SettlePayment keeps it at the gate, where it outlives the Payment.
func (a *Holds) SettlePayment(ctx context.Context, in SettlePaymentInput) (HoldOutcome, error) {
	var err error
	if in.Reopen {
		_, err = a.Gate.ReopenPayment(ctx, in.HoldID, in.PaymentRef)
	} else {
		_, err = a.Gate.SettlePayment(ctx, in.HoldID, in.PaymentRef, in.Reference)
	}
	if err != nil {
		return HoldOutcome{}, a.gateError(ctx, in.SKU, "settle a payment of hold of", err)
	}
	return HoldOutcome{Verdict: redis.OK, Tell: a.Tell}, nil
}

// StartPayment gives money to its Payment; one that is open goes on.
func (a *Holds) StartPayment(ctx context.Context, in contract.PaymentInput) error {
	in.Tell = a.Tell
	if err := a.Payments.Payment(ctx, in); err != nil {
		return temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
	}
	return nil
}

func (a *Holds) holdDone(ctx context.Context, sku, verb string, out redis.HoldOutcome, err error) (HoldOutcome, error) {
	if a.noSuchSKU(ctx, sku, err) { // nor has it a record of any hold, and asking again brings none
		return HoldOutcome{Verdict: redis.Unknown, Tell: a.Tell}, nil
	}
	if err != nil {
		return HoldOutcome{}, a.gateError(ctx, sku, verb, err)
	}
	a.wake(ctx, sku, out.Base)
	return a.holdOutcome(out), nil
}

func seconds(s int64) time.Duration { return time.Duration(s) * time.Second }

package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	stripego "github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/webhook"

	"holdfast/contract"
	"holdfast/payment"
)

// Kind is what an event of Stripe means for a hold or a Payment.
type Kind string

// Kinds of happenings.
const (
	// Ignored is nothing of ours; Reason says why.
	Ignored Kind = "ignored"
	// Started: the shopper is paying. Ref may be a Checkout Session while there
	// is no PaymentIntent.
	Started Kind = "started"
	// Succeeded: the money is there.
	Succeeded Kind = "succeeded"
	// Failed: an attempt did not go through. Final says that the shopper has
	// given up or cannot try again, so the units may go on.
	Failed Kind = "failed"
	// RefundSettled: the money has gone back. Money is what this refund moved.
	RefundSettled Kind = "refund-settled"
	// RefundFailed: it came back to the shop; a person must act. It may follow
	// RefundSettled by days.
	RefundFailed Kind = "refund-failed"
	// Unmatched is money that names no hold, or none that can be. Answer 200 and
	// list it: Stripe cannot mend it by sending it again.
	Unmatched Kind = "unmatched"
)

// Happening is one event of Stripe in our words.
type Happening struct {
	EventID string // for the log; Stripe may send one happening under two ids
	Type    string // Stripe's
	Kind    Kind
	HoldID  string // valid, unless Kind is Unmatched or Ignored
	// PaymentID is contract.PaymentID of HoldID and Ref, for the two refund kinds.
	// HoldID is empty when the payment names none.
	PaymentID string
	Ref       string // the PaymentIntent
	Session   string // the Checkout Session, when the event is of one
	Reference string // the refund
	Money     *contract.Money
	Final     bool
	Reason    string // for people
}

// Tolerance is how old a signature may be.
const Tolerance = webhook.DefaultTolerance

// Errors of Receive beside *payment.Error, which asks for the event again.
var (
	// ErrSignature: no secret of ours signed this body lately. Answer 401.
	ErrSignature = errors.New("the Stripe-Signature is not right")
	// ErrBody: signed, and no event all the same. Answer 400.
	ErrBody = errors.New("the body is no event of Stripe")
)

// Receive checks the signature of a webhook (the header Stripe-Signature) and
// says what happened. It keeps nothing: a repeat or an older event gives what
// it always gave, and what it says stays true. Refunds alone change their mind,
// so of those it asks Stripe what they are now.
func (a *Adapter) Receive(ctx context.Context, body []byte, signature string) (Happening, error) {
	if err := a.verify(body, signature); err != nil {
		return Happening{}, err
	}
	var e stripego.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Happening{}, fmt.Errorf("%w: %w", ErrBody, err)
	}
	if e.Object != "event" || e.Data == nil || len(e.Data.Raw) == 0 {
		return Happening{}, fmt.Errorf("%w: object is %.40q (only snapshot events are read, no thin ones)", ErrBody, e.Object)
	}
	h := Happening{EventID: e.ID, Type: string(e.Type), Kind: Ignored}
	switch {
	case e.Livemode != a.live:
		// A test card would buy real goods.
		h.Reason = fmt.Sprintf("livemode is %t and payment.stripe.key is not", e.Livemode)
		return h, nil
	case e.Account != "":
		h.Reason = "an event of the connected account " + e.Account
		return h, nil
	}
	var err error
	switch e.Type {
	case stripego.EventTypePaymentIntentProcessing, stripego.EventTypePaymentIntentRequiresAction,
		stripego.EventTypePaymentIntentAmountCapturableUpdated, stripego.EventTypePaymentIntentSucceeded,
		stripego.EventTypePaymentIntentPaymentFailed, stripego.EventTypePaymentIntentCanceled:
		err = a.ofIntent(ctx, &h, e)
	case stripego.EventTypeCheckoutSessionCompleted, stripego.EventTypeCheckoutSessionAsyncPaymentSucceeded,
		stripego.EventTypeCheckoutSessionAsyncPaymentFailed, stripego.EventTypeCheckoutSessionExpired:
		err = h.ofSession(e)
	case stripego.EventTypeRefundCreated, stripego.EventTypeRefundUpdated, stripego.EventTypeRefundFailed,
		stripego.EventTypeChargeRefundUpdated:
		err = a.ofRefund(ctx, &h, e)
	default:
		h.Reason = "not an event that is read here"
	}
	h.checkRef()
	return h, err
}

// checkRef keeps names away that no gate takes. Money is not lost by its name: a person
// sees the beginning of it.
func (h *Happening) checkRef() {
	err := payment.PlainRef(h.Ref)
	if h.Kind == Ignored || err == nil {
		return
	}
	h.Reason = err.Error()
	if h.Kind != Succeeded && h.Kind != Unmatched {
		h.Kind = Ignored
		return
	}
	h.Kind = Unmatched
	if cut := []rune(h.Ref); len(cut) > contract.MaxPaymentRef {
		h.Ref = string(cut[:contract.MaxPaymentRef])
	}
}

func (a *Adapter) verify(body []byte, signature string) error {
	err := error(webhook.ErrNoValidSignature)
	for _, secret := range a.secrets {
		if err = webhook.ValidatePayloadWithTolerance(body, signature, secret, Tolerance); err == nil {
			return nil
		}
	}
	if errors.Is(err, webhook.ErrTooOld) {
		return fmt.Errorf("%w: signed more than %.0f min ago, as this machine's clock (%s) says", ErrSignature, Tolerance.Minutes(), time.Now().UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: %w", ErrSignature, err)
}

func unreadable(e stripego.Event, what string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s whose %s has no id", ErrBody, e.Type, what)
	}
	return fmt.Errorf("%w: %s without a readable %s: %w", ErrBody, e.Type, what, err)
}

// claim sets the hold; an event that names none is not ours. It answers false
// when nothing more is to be read.
func (h *Happening) claim(meta map[string]string, kind Kind) bool {
	hold := meta[MetaHold]
	switch hold {
	case "":
		h.Reason = "no " + MetaHold + " in its metadata"
		return false
	case NoHold:
		h.Reason = "its metadata says that it is for no hold"
		return false
	}
	h.HoldID, h.Kind = hold, kind
	if _, err := contract.HoldNumber(hold); err != nil {
		h.Kind, h.Reason = Ignored, fmt.Sprintf("%s %.60q is no id of a hold", MetaHold, hold)
		if kind == Succeeded {
			h.Kind = Unmatched
		}
	}
	return true
}

// succeeded is money that has come. Without the name of a hold it may be a hold's all
// the same, whose shop forgot the metadata: the session may name it, and otherwise a
// person has to look.
func (a *Adapter) succeeded(ctx context.Context, h *Happening, pi *stripego.PaymentIntent) error {
	meta := pi.Metadata
	if meta[MetaHold] == "" && a.unnamed == Unmatched {
		hold, err := a.holdOf(ctx, pi)
		if err != nil {
			return a.failed("look at "+pi.ID, err)
		}
		meta = map[string]string{MetaHold: hold}
	}
	if !a.claimMoney(h, meta, Succeeded) {
		return nil
	}
	h.Money = money(pi.AmountReceived, pi.Currency)
	if h.HoldID == "" {
		h.Kind, h.Reason = Unmatched, "no "+MetaHold+" in its metadata; a payment for something else says "+NoHold+" there, or payment.stripe.unnamed is ignore"
	}
	return nil
}

// claimMoney is a claim of money that has moved, which is ours also without a name,
// unless such money is to be ignored.
func (a *Adapter) claimMoney(h *Happening, meta map[string]string, kind Kind) bool {
	if h.claim(meta, kind) {
		return true
	}
	if meta[MetaHold] == "" && a.unnamed == Unmatched {
		h.Kind = kind
	}
	return h.Kind == kind
}

func (a *Adapter) ofIntent(ctx context.Context, h *Happening, e stripego.Event) error {
	var pi stripego.PaymentIntent
	if err := json.Unmarshal(e.Data.Raw, &pi); err != nil || pi.ID == "" {
		return unreadable(e, "PaymentIntent", err)
	}
	h.Ref = pi.ID
	switch e.Type {
	case stripego.EventTypePaymentIntentSucceeded:
		return a.succeeded(ctx, h, &pi)
	case stripego.EventTypePaymentIntentPaymentFailed, stripego.EventTypePaymentIntentCanceled:
		if h.claim(pi.Metadata, Failed) {
			h.fail(e.Type, &pi)
		}
	default:
		// Of what is only reserved the shop may take a part.
		if h.claim(pi.Metadata, Started) && e.Type != stripego.EventTypePaymentIntentAmountCapturableUpdated {
			h.Money = money(pi.Amount, pi.Currency)
		}
	}
	return nil
}

// fail says whether the shopper may go on. A declined card may be followed by
// another, and a cancelled PaymentIntent by a new one for the same hold: only a
// shopper who gave up ends the hold before its time.
func (h *Happening) fail(kind stripego.EventType, pi *stripego.PaymentIntent) {
	if h.Kind != Failed {
		return
	}
	if kind == stripego.EventTypePaymentIntentCanceled {
		h.Reason = "cancelled"
		if pi.CancellationReason != "" {
			h.Reason = string(pi.CancellationReason)
		}
		h.Final = pi.CancellationReason == stripego.PaymentIntentCancellationReasonRequestedByCustomer
		return
	}
	h.Reason = "declined"
	if e := pi.LastPaymentError; e != nil {
		switch {
		case e.DeclineCode != "":
			h.Reason = string(e.DeclineCode)
		case e.Code != "":
			h.Reason = string(e.Code)
		}
	}
}

func (h *Happening) ofSession(e stripego.Event) error {
	var cs stripego.CheckoutSession
	if err := json.Unmarshal(e.Data.Raw, &cs); err != nil || cs.ID == "" {
		return unreadable(e, "Checkout Session", err)
	}
	h.Session, h.Ref = cs.ID, cs.ID
	if cs.PaymentIntent != nil {
		h.Ref = cs.PaymentIntent.ID
	}
	switch {
	case e.Type == stripego.EventTypeCheckoutSessionExpired:
		if h.claim(cs.Metadata, Failed) && h.Kind == Failed {
			h.Reason = "session expired" // the shop may have opened another
		}
	case e.Type == stripego.EventTypeCheckoutSessionAsyncPaymentFailed:
		if h.claim(cs.Metadata, Failed) && h.Kind == Failed {
			h.Reason, h.Final = "the delayed payment failed", true
		}
	case cs.PaymentStatus == stripego.CheckoutSessionPaymentStatusUnpaid:
		if h.claim(cs.Metadata, Started) { // a delayed method: its word comes later
			h.Money = money(cs.AmountTotal, cs.Currency)
		}
	default:
		if !h.claim(cs.Metadata, Succeeded) {
			return nil
		}
		h.Money = money(cs.AmountTotal, cs.Currency)
		if cs.PaymentIntent == nil && cs.PaymentStatus != stripego.CheckoutSessionPaymentStatusNoPaymentRequired {
			h.Kind, h.Reason = Unmatched, fmt.Sprintf("a session of mode %s has no PaymentIntent that could be paid back", cs.Mode)
		}
	}
	return nil
}

// ofRefund asks what a refund is now, and of which hold's payment.
func (a *Adapter) ofRefund(ctx context.Context, h *Happening, e stripego.Event) error {
	var told stripego.Refund
	if err := json.Unmarshal(e.Data.Raw, &told); err != nil || told.ID == "" {
		return unreadable(e, "refund", err)
	}
	params := &stripego.RefundRetrieveParams{}
	params.AddExpand("payment_intent")
	params.AddExpand("charge")
	re, err := a.api.V1Refunds.Retrieve(ctx, told.ID, params)
	if hasCode(err, stripego.ErrorCodeResourceMissing) {
		h.Reason = "Stripe no longer knows this refund"
		return nil
	}
	if err != nil {
		return a.failed("look at "+told.ID, err)
	}
	h.Reference = re.ID
	if re.PaymentIntent == nil {
		h.Reason = "a refund without a PaymentIntent"
		return nil
	}
	h.Ref, h.Money = re.PaymentIntent.ID, money(re.Amount, re.Currency)
	meta := re.Metadata
	if meta[MetaHold] == "" { // a person or another program made it
		hold, err := a.holdOf(ctx, re.PaymentIntent)
		if err != nil {
			return a.failed("look at "+h.Ref, err)
		}
		meta = map[string]string{MetaHold: hold}
	}
	switch re.Status {
	case stripego.RefundStatusSucceeded:
		if !a.claimMoney(h, meta, RefundSettled) {
			return nil
		}
		if c := re.Charge; c != nil && !c.Refunded {
			h.Kind, h.Reason = Ignored, fmt.Sprintf("%d of %d have gone back", c.AmountRefunded, c.Amount)
		}
	case stripego.RefundStatusFailed, stripego.RefundStatusCanceled:
		if a.claimMoney(h, meta, RefundFailed) && h.Kind == RefundFailed {
			h.Reason = fmt.Sprintf("the refund is %s %s", re.Status, re.FailureReason)
		}
	default:
		h.Reason = fmt.Sprintf("the refund is %s", re.Status)
	}
	if h.Kind == RefundSettled || h.Kind == RefundFailed {
		h.PaymentID = contract.PaymentID(h.HoldID, h.Ref)
	}
	return nil
}

package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// linkSlack is how long a link outlives the greatest age of its offer: a press
// that died gives its offer back for two minutes more.
const linkSlack = 10 * time.Minute

// stopAllPause is how long a text waits that no text can get past: until a
// person has looked, faster tries only fill the log.
const stopAllPause = time.Minute

// TextGate is the gate as a text uses it.
type TextGate interface {
	Snapshot(ctx context.Context, sku string) (redis.Counters, contract.About, error)
	ReadEntry(ctx context.Context, sku, entryID string) (redis.Entry, bool, error)
	Told(ctx context.Context, req redis.ToldRequest) (redis.HoldOutcome, error)
}

// LinkSigner makes the reserve token of an offer.
type LinkSigner interface {
	Token(holdID string, expires time.Time) (string, error)
}

// Texts are the activities of the queue of texts.
type Texts struct {
	Guard
	Gate      TextGate
	Sender    sms.Sender
	Links     LinkSigner
	Shop      string // brand
	PublicURL string // what links begin with, no trailing slash
}

// JoinedTextInput asks for the text that gives a person their place.
type JoinedTextInput struct {
	EntryRef
	Phone    string `json:"phone"`
	Position int64  `json:"position"` // when it joined
}

// TextResult says what became of a text. Sent says that nothing more follows
// its acceptance. Skipped says that the entry or offer no longer wants it; Hold
// is the gate's word on the offer.
type TextResult struct {
	TextID  string      `json:"text_id,omitempty"`
	Sent    bool        `json:"sent,omitempty"`
	Skipped bool        `json:"skipped,omitempty"`
	Hold    HoldOutcome `json:"hold"`
}

// SendJoined sends the joined text, unless the person has left or pressed by now.
func (a *Texts) SendJoined(ctx context.Context, in JoinedTextInput) (TextResult, error) {
	entry, ok, err := a.Gate.ReadEntry(ctx, in.SKU, in.EntryID)
	if err != nil {
		return TextResult{}, a.gateError(ctx, in.SKU, "read entry of", err)
	}
	if !ok || (entry.State != contract.EntryWaiting && entry.State != contract.EntryOffered) {
		return TextResult{Skipped: true}, nil
	}
	title, err := a.title(ctx, in.SKU)
	if err != nil {
		return TextResult{}, err
	}
	position := in.Position
	if position == 0 { // the input was sealed before the gate gave the place
		position = entry.Position
	}
	return a.send(ctx, sms.Text{
		To:      in.Phone,
		Body:    sms.JoinedBody(a.Shop, title, a.PublicURL+"/w/"+in.EntryID, position),
		Cause:   sms.CauseJoined,
		EntryID: in.EntryID,
	})
}

// OfferTextInput asks for the text that tells of an offer.
type OfferTextInput struct {
	ToldInput
	EntryID string `json:"entry_id"`
	Phone   string `json:"phone"`
}

// SendOffer tells the gate, then sends the offer's text, in each attempt: an
// offer that has ended, is pressed or may not be told is not texted.
func (a *Texts) SendOffer(ctx context.Context, in OfferTextInput) (TextResult, error) {
	told, err := a.Gate.Told(ctx, in.request(false))
	if err != nil {
		return TextResult{}, a.gateError(ctx, in.SKU, "told offer of", err)
	}
	a.wake(ctx, in.SKU, told.Base)
	hold := a.holdOutcome(told)
	if told.Verdict != redis.OK {
		return TextResult{Skipped: true, Hold: hold}, nil
	}
	title, err := a.title(ctx, in.SKU)
	if err != nil {
		return TextResult{}, err
	}
	// From the record, so that every attempt makes the same link.
	expires := told.Hold.OfferedAt.Add(seconds(in.Settings.MaxAgeSeconds) + linkSlack)
	token, err := a.Links.Token(in.HoldID, expires)
	if err != nil {
		return TextResult{}, temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrBadRequest,
			temporal.ApplicationErrorOptions{NonRetryable: true, Cause: err})
	}
	window := min(seconds(in.Settings.WindowSeconds), told.Left)
	out, err := a.send(ctx, sms.Text{
		To:       in.Phone,
		Body:     sms.OfferBody(a.Shop, title, a.PublicURL+"/r/"+token, window),
		Cause:    sms.CauseOffer,
		EntryID:  in.EntryID,
		HoldID:   in.HoldID,
		Validity: window,
	})
	out.Hold = hold
	return out, err
}

func (a *Texts) title(ctx context.Context, sku string) (string, error) {
	_, about, err := a.Gate.Snapshot(ctx, sku)
	if err != nil {
		return "", a.gateError(ctx, sku, "read title of", err)
	}
	if about.Title == "" {
		return sku, nil
	}
	return about.Title, nil
}

// send types a refusal: never is final, the others are tried again.
func (a *Texts) send(ctx context.Context, t sms.Text) (TextResult, error) {
	receipt, err := a.Sender.Send(ctx, t)
	if err == nil {
		return TextResult{TextID: receipt.ID, Sent: receipt.Sent}, nil
	}
	kind, opts := contract.ErrTextLater, temporal.ApplicationErrorOptions{Cause: err}
	var refusal *sms.Error
	if errors.As(err, &refusal) {
		switch refusal.Class {
		case sms.Never:
			kind = contract.ErrTextNever
			opts = temporal.ApplicationErrorOptions{Cause: err, NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign}
		case sms.StopAll:
			kind, opts.NextRetryDelay = contract.ErrTextStopAll, stopAllPause
			activity.GetLogger(ctx).Error("no text can be sent: see to the provider's account", "error", err)
		case sms.Later:
		}
	}
	return TextResult{}, temporal.NewApplicationErrorWithOptions(err.Error(), kind, opts)
}

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

// OptOutBook knows who wants no texts.
type OptOutBook interface {
	OptedOut(ctx context.Context, person string) (bool, error)
	Said(ctx context.Context, person string, said contract.Said) error
}

// EntrySignals passes signals on to entries.
type EntrySignals interface {
	Signal(ctx context.Context, workflowID, signal string, arg any) error
}

// Persons tells whose a number is.
type Persons interface {
	PersonOfPhone(e164 string) string
}

// Texts are the activities of the queue of texts.
type Texts struct {
	Guard
	Gate      TextGate
	Sender    sms.Sender
	OptOuts   OptOutBook
	Entries   EntrySignals
	Persons   Persons
	Links     LinkSigner
	Words     *sms.Words
	PublicURL string // what links begin with, no trailing slash
	Quiet     QuietHours
}

// Addressee is whom a text is written for.
type Addressee struct {
	Locale string `json:"locale,omitempty"`
	Name   string `json:"name,omitempty"`
}

// JoinedTextInput asks for the text that gives a person their place.
type JoinedTextInput struct {
	EntryRef
	Addressee
	Phone    string `json:"phone"`
	Position int64  `json:"position"` // when it joined
	Earlier
}

// Earlier is what an activity before this one left behind: since when it may have
// sent the text without knowing it, or the zero time.
type Earlier struct {
	TriedSince time.Time `json:"tried_since,omitzero"`
}

// TextResult says what became of a text. Sent and Arrived are those of its receipt.
// Skipped says that the entry or offer no longer wants it; Hold
// is the gate's word on the offer.
type TextResult struct {
	TextID  string      `json:"text_id,omitempty"`
	Sent    bool        `json:"sent,omitempty"`
	Arrived bool        `json:"arrived,omitempty"`
	Skipped bool        `json:"skipped,omitempty"`
	Hold    HoldOutcome `json:"hold"`
	Waits   *TextWaits  `json:"waits,omitempty"` // nothing was sent, told or asked
	Earlier             // of a text that was skipped: an attempt before may have sent it
}

// SendJoined sends the joined text, unless the person has left or pressed by now.
func (a *Texts) SendJoined(ctx context.Context, in JoinedTextInput) (TextResult, error) {
	if err := a.wanted(ctx, in.Phone); err != nil {
		return TextResult{}, err
	}
	if out, quiet := a.Quiet.wait(ctx, in.TriedSince); quiet {
		return out, nil
	}
	entry, ok, err := a.Gate.ReadEntry(ctx, in.SKU, in.EntryID)
	if err != nil {
		return TextResult{}, a.gateError(ctx, in.SKU, "read entry of", err)
	}
	wants := func(e redis.Entry, ok bool) bool {
		return ok && (e.State == contract.EntryWaiting || e.State == contract.EntryOffered)
	}
	if !wants(entry, ok) {
		return TextResult{Skipped: true}, nil
	}
	gone := false
	ctx = sms.AskAgain(ctx, func(ctx context.Context) *sms.Error {
		e, ok, err := a.Gate.ReadEntry(ctx, in.SKU, in.EntryID)
		if gone = err == nil && !wants(e, ok); err == nil && !gone {
			return nil
		}
		return notSure(err)
	})
	title, err := a.title(ctx, in.SKU)
	if err != nil {
		return TextResult{}, err
	}
	position := in.Position
	if position == 0 { // the input was sealed before the gate gave the place
		position = entry.Position
	}
	link := a.PublicURL + "/w/" + in.EntryID
	out, err := a.send(ctx, in.TriedSince, sms.Text{
		To:      in.Phone,
		Body:    a.Words.Joined(in.values(title, link), position),
		Link:    link,
		Cause:   sms.CauseJoined,
		EntryID: in.EntryID,
	})
	if gone {
		return TextResult{Skipped: true}, nil
	}
	return out, err
}

// notSure is why a text that has waited is not sent now.
func notSure(err error) *sms.Error {
	if err == nil {
		return &sms.Error{Class: sms.Later, Reason: "no longer wanted"}
	}
	return &sms.Error{Class: sms.Later, Reason: "whether it is still wanted is not known: " + err.Error()}
}

// OfferTextInput asks for the text that tells of an offer.
type OfferTextInput struct {
	ToldInput
	Addressee
	EntryID string `json:"entry_id"`
	Phone   string `json:"phone"`
	Earlier
}

// SendOffer tells the gate, then sends the offer's text, in each attempt: an
// offer that has ended, is pressed or may not be told is not texted. A text that has
// waited for its turn is asked for again: nobody who has left meanwhile gets it.
func (a *Texts) SendOffer(ctx context.Context, in OfferTextInput) (TextResult, error) {
	if err := a.wanted(ctx, in.Phone); err != nil {
		return TextResult{}, err
	}
	if out, quiet := a.Quiet.wait(ctx, in.TriedSince); quiet {
		return out, nil
	}
	told, err := a.Gate.Told(ctx, in.request(false))
	if err != nil {
		return TextResult{}, a.gateError(ctx, in.SKU, "told offer of", err)
	}
	a.wake(ctx, in.SKU, told.Base)
	hold := a.holdOutcome(told)
	skipped := func() (TextResult, error) {
		return TextResult{Skipped: true, Hold: hold, Earlier: Earlier{triedSince(ctx, in.TriedSince)}}, nil
	}
	// Past its greatest age it cannot be told any more: its window would be over.
	if told.Verdict != redis.OK || told.Left <= 0 {
		return skipped()
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
	gone := false
	ctx = sms.AskAgain(ctx, func(ctx context.Context) *sms.Error {
		again, err := a.Gate.Told(ctx, in.request(false))
		if err == nil {
			hold = a.holdOutcome(again)
			gone = again.Verdict != redis.OK || again.Left <= 0
		}
		if err == nil && !gone {
			return nil
		}
		return notSure(err)
	})
	window, link := min(seconds(in.Settings.WindowSeconds), told.Left), a.PublicURL+"/r/"+token
	out, err := a.send(ctx, in.TriedSince, sms.Text{
		To:       in.Phone,
		Body:     a.Words.Offer(in.values(title, link), window),
		Link:     link,
		Cause:    sms.CauseOffer,
		EntryID:  in.EntryID,
		HoldID:   in.HoldID,
		Validity: window,
	})
	if gone {
		return skipped()
	}
	out.Hold = hold
	return out, err
}

func (p Addressee) values(title, link string) sms.Values {
	return sms.Values{Locale: p.Locale, Name: p.Name, Title: title, Link: link}
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

// wanted refuses a text for ever when its person has opted out. Temporal is asked
// in each attempt, so that no loss of Redis brings a text to who wants none.
func (a *Texts) wanted(ctx context.Context, phone string) error {
	out, err := a.OptOuts.OptedOut(ctx, a.Persons.PersonOfPhone(phone))
	if err != nil {
		return temporal.NewApplicationErrorWithOptions("whether the person wants texts is not known: "+err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
	}
	if !out {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions("the person wants no texts", contract.ErrTextNever, temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign, Details: []any{contract.TextRefusal{OptedOut: true}},
	})
}

// optedOut remembers what a refusal says of its person, so that their next join
// knows. What cannot be remembered now is tried again, and is refused again then.
func (a *Texts) optedOut(ctx context.Context, phone string, refusal *sms.Error) error {
	said := contract.Said{Word: contract.SaidStop, Source: contract.SaidByRefusal}
	if err := a.OptOuts.Said(ctx, a.Persons.PersonOfPhone(phone), said); err != nil {
		return temporal.NewApplicationErrorWithOptions(refusal.Error()+"; and it was not remembered: "+err.Error(), contract.ErrUnavailable, temporal.ApplicationErrorOptions{Cause: err})
	}
	return nil
}

// send hands a text over, once: an attempt after the first may follow one whose
// answer was lost, with the provider or with this worker, so it looks first.
func (a *Texts) send(ctx context.Context, tried time.Time, t sms.Text) (TextResult, error) {
	if since := triedSince(ctx, tried); !since.IsZero() {
		receipt, found, err := a.Sender.Find(ctx, t, since)
		if err != nil {
			return TextResult{}, a.refused(ctx, t, err)
		}
		if found {
			activity.GetLogger(ctx).Info("the text had been accepted before", "entry", t.EntryID, "cause", t.Cause, "text", receipt.ID)
			return resultOf(receipt), nil
		}
	}
	receipt, err := a.Sender.Send(ctx, t)
	if err != nil {
		return TextResult{}, a.refused(ctx, t, err)
	}
	return resultOf(receipt), nil
}

func resultOf(r sms.Receipt) TextResult {
	return TextResult{TextID: r.ID, Sent: r.Sent, Arrived: r.Arrived}
}

// refused types a refusal: never is final, the others are tried again. The
// details are a contract.TextRefusal.
func (a *Texts) refused(ctx context.Context, t sms.Text, err error) error {
	kind, opts := contract.ErrTextLater, temporal.ApplicationErrorOptions{Cause: err}
	var refusal *sms.Error
	if errors.As(err, &refusal) {
		if refusal.OptedOut() {
			if err := a.optedOut(ctx, t.To, refusal); err != nil {
				return err
			}
		}
		opts.Details = []any{contract.TextRefusal{Code: refusal.Code, OptedOut: refusal.OptedOut(), MaybeSent: refusal.MaybeSent}}
		switch refusal.Class {
		case sms.Never:
			kind, opts.NonRetryable, opts.Category = contract.ErrTextNever, true, temporal.ApplicationErrorCategoryBenign
		case sms.StopAll:
			kind, opts.NextRetryDelay = contract.ErrTextStopAll, stopAllPause
			activity.GetLogger(ctx).Error("no text can be sent: see to the provider's account", "error", err)
		case sms.Later:
			opts.NextRetryDelay = refusal.RetryAfter // 0: as the retry policy says
		}
		if refusal.Class != sms.Never {
			a.waits(ctx, t, refusal)
		}
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), kind, opts)
}

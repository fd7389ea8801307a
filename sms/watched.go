package sms

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Watched is a sender that remembers why no text can be sent, for whoever asks how
// it stands.
type Watched struct {
	Sender
	Log *slog.Logger

	mu    sync.Mutex
	why   string // empty: texts go out, as far as is known
	since time.Time
}

// Stopped says why no text could be sent at the last try, and since when; "" when
// one could.
func (w *Watched) Stopped() (why string, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why, w.since
}

// Send hands t on.
func (w *Watched) Send(ctx context.Context, t Text) (Receipt, error) {
	receipt, err := w.Sender.Send(ctx, t)
	w.saw(err)
	return receipt, err
}

// Find hands t on.
func (w *Watched) Find(ctx context.Context, t Text, since time.Time) (Receipt, bool, error) {
	receipt, found, err := w.Sender.Find(ctx, t, since)
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Status == 0 && refusal.Code != 0 {
		return receipt, found, err // the code of a text that was found, not of the look
	}
	w.saw(err)
	return receipt, found, err
}

// saw learns from an answer. One that tells nothing about the account, such as a
// broken connection or a turn of ours that is later, changes nothing.
func (w *Watched) saw(err error) {
	var refusal *Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Class == Later && (refusal.Ours || refusal.Status == 0)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch stopped := refusal != nil && refusal.Class == StopAll; {
	case stopped && w.why == "":
		w.why, w.since = refusal.Error(), time.Now().UTC()
		w.Log.Error("no text can be sent, all wait", "error", refusal)
	case stopped:
		w.why = refusal.Error()
	case w.why != "":
		w.Log.Info("texts go out again", "stopped_since", w.since)
		w.why, w.since = "", time.Time{}
	}
}

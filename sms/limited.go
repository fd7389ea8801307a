package sms

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Meter counts segments for all workers together.
type Meter interface {
	// Take takes n segments of a rate, or answers how long to wait.
	Take(ctx context.Context, n int, perSecond float64) (wait time.Duration, err error)
	// Spend counts n segments of today, negative to give them back, and answers
	// how many today has seen.
	Spend(ctx context.Context, n int) (spent int64, err error)
}

// Limited is a sender that keeps to a rate and to a budget, both in segments.
type Limited struct {
	Sender
	Meter     Meter
	PerSecond float64
	ADay      int64 // 0: no budget
	Log       *slog.Logger
}

const (
	// The longest wait inside a send: what takes longer is tried again, so that
	// the offer is told anew.
	mostWait = 10 * time.Second
	// The part of the budget at which a person is told, while there is time.
	alarmAt = 0.8
)

// Send waits for its turn, then sends. A budget that is spent stops all texts:
// whether it was an attack or a good day is for a person to say.
func (l *Limited) Send(ctx context.Context, t Text) (Receipt, error) {
	n := Segments(t.Body)
	waited, err := l.wait(ctx, n)
	if err == nil && waited {
		err = stillWanted(ctx)
	}
	if err != nil {
		return Receipt{}, err
	}
	if err := l.spend(ctx, n); err != nil {
		return Receipt{}, err
	}
	receipt, err := l.Sender.Send(ctx, t)
	if refusal, ok := err.(*Error); ok && !refusal.MaybeSent {
		l.giveBack(ctx, n)
	}
	return receipt, err
}

// wait answers whether the text had to.
func (l *Limited) wait(ctx context.Context, n int) (waited bool, err error) {
	for {
		wait, err := l.Meter.Take(ctx, n, l.PerSecond)
		switch {
		case err != nil:
			return waited, &Error{Class: Later, Reason: "the rate of texts is not known: " + err.Error()}
		case wait == 0:
			return waited, nil
		case wait > mostWait:
			return waited, &Error{Class: Later, Reason: "its turn is later", RetryAfter: wait, Ours: true}
		}
		waited = true
		select {
		case <-ctx.Done():
			return waited, &Error{Class: Later, Reason: "the wait for its turn was cut short: " + ctx.Err().Error()}
		case <-time.After(wait):
		}
	}
}

type askKey struct{}

// AskAgain has ask called once a text has waited for its turn, right before it is
// sent: what was true of its person then need not be now. An error of ask is that of
// the send.
func AskAgain(ctx context.Context, ask func(context.Context) *Error) context.Context {
	return context.WithValue(ctx, askKey{}, ask)
}

func stillWanted(ctx context.Context) error {
	ask, ok := ctx.Value(askKey{}).(func(context.Context) *Error)
	if !ok {
		return nil
	}
	if err := ask(ctx); err != nil {
		return err
	}
	return nil
}

func (l *Limited) spend(ctx context.Context, n int) error {
	spent, err := l.Meter.Spend(ctx, n)
	if err != nil {
		return &Error{Class: Later, Reason: "today's count of texts is not known: " + err.Error()}
	}
	if l.ADay == 0 {
		return nil
	}
	if spent > l.ADay {
		l.giveBack(ctx, n)
		return &Error{Class: StopAll, Reason: fmt.Sprintf("today's %d segments are spent: raise sms.segments_a_day, or wait for midnight UTC", l.ADay), Ours: true, Until: midnight(time.Now())}
	}
	if NearlySpent(spent, l.ADay) && !NearlySpent(spent-int64(n), l.ADay) {
		l.Log.Error("most of today's texts are sent: look who joins, or raise sms.segments_a_day", "segments", spent, "of", l.ADay)
	}
	return nil
}

// NearlySpent says that a person should look at the day's budget while there is time;
// never without a budget.
func NearlySpent(spent, budget int64) bool {
	return budget > 0 && float64(spent) >= alarmAt*float64(budget)
}

func midnight(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// Today answers how many segments today has seen, and how many it may see, 0 when
// there is no budget.
func (l *Limited) Today(ctx context.Context) (spent, budget int64, err error) {
	spent, err = l.Meter.Spend(ctx, 0)
	return spent, l.ADay, err
}

// giveBack fails only towards too little: then the budget ends a text early.
func (l *Limited) giveBack(ctx context.Context, n int) {
	if _, err := l.Meter.Spend(context.WithoutCancel(ctx), -n); err != nil {
		l.Log.Warn("segments that were not sent stay counted", "segments", n, "error", err)
	}
}

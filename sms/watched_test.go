package sms

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answers is a sender that answers what it is told.
type answers struct{ err error }

func (a *answers) Send(context.Context, Text) (Receipt, error) { return Receipt{}, a.err }

func (a *answers) Find(context.Context, Text, time.Time) (Receipt, bool, error) {
	return Receipt{}, false, a.err
}

func TestASenderSaysWhyNothingGoesOut(t *testing.T) {
	var log strings.Builder
	next := &answers{}
	w := &Watched{Sender: next, Log: slog.New(slog.NewTextHandler(&log, nil))}
	sends := func(err error) string {
		next.err = err
		_, got := w.Send(t.Context(), Text{})
		require.Equal(t, err, got)
		why, since := w.Stopped()
		require.Equal(t, why == "", since.IsZero())
		return why
	}
	down := &Error{Class: StopAll, Status: 401, Reason: "wrong token"}
	require.Empty(t, sends(nil))
	require.Empty(t, sends(&Error{Class: Never, Status: 400, Code: 21211}))
	require.Contains(t, sends(down), "wrong token")
	_, since := w.Stopped()
	require.Contains(t, sends(down), "wrong token")
	_, still := w.Stopped()
	require.Equal(t, since, still)
	require.NotEmpty(t, sends(errors.New("connection refused")), "which says nothing of the account")
	require.NotEmpty(t, sends(&Error{Class: Later, Reason: "its turn is later", Ours: true}))
	require.Empty(t, sends(&Error{Class: Later, Status: 429, Code: 20429}), "it takes texts, though not so many")
	require.Contains(t, sends(&Error{Class: StopAll, Ours: true, Reason: "the budget"}), "the budget")
	require.Empty(t, sends(&Error{Class: Never, Status: 400, Code: 21610}), "who refuses one number takes the others")
	require.Equal(t, []int{2, 2}, []int{strings.Count(log.String(), "no text can be sent"), strings.Count(log.String(), "texts go out again")})

	finds := func(err error) string {
		next.err = err
		_, _, got := w.Find(t.Context(), Text{}, time.Time{})
		require.Equal(t, err, got)
		why, _ := w.Stopped()
		return why
	}
	require.Empty(t, finds(&Error{Class: StopAll, Code: 30007, Reason: "the text was undelivered"}), "the code of one text")
	require.NotEmpty(t, finds(down))
	require.Empty(t, finds(nil))
}

func TestTheBudgetOfADay(t *testing.T) {
	require.False(t, NearlySpent(1_000_000, 0), "without a budget")
	require.False(t, NearlySpent(79, 100))
	require.True(t, NearlySpent(80, 100))
	require.Equal(t, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), midnight(time.Date(2026, 3, 1, 22, 30, 0, 0, time.FixedZone("", -1800))), "midnight in UTC, wherever we are")
}

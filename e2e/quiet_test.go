package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/history"
	"holdfast/e2e/shop"
)

// A night of a minute or two, in a zone that is not the machine's. A unit that comes
// back early in it goes past two sleepers, each for as long as quiet.max_wait, and
// then to somebody who is awake; one that comes back late waits for the morning, and
// its window runs from the text. Whoever asks why is told.
// B88.
func TestQuietHours(t *testing.T) {
	const maxWait = 15 * time.Second
	ctx := t.Context()
	zone, err := time.LoadLocation("Australia/Lord_Howe")
	require.NoError(t, err)
	morning := time.Now().Add(75 * time.Second).Truncate(time.Minute).Add(time.Minute)
	h := ownHouse(t, stack.Options{Env: map[string]string{
		"HOLDFAST_QUIET_FROM":     morning.Add(-2 * time.Hour).In(zone).Format("15:04"),
		"HOLDFAST_QUIET_TO":       morning.In(zone).Format("15:04"),
		"HOLDFAST_QUIET_ZONE":     zone.String(),
		"HOLDFAST_QUIET_MAX_WAIT": maxWait.String(),
		"HOLDFAST_OFFER_WINDOW":   "5m",
	}}, lease)

	early, late := "early", "late"
	h.opened(t, early, 0)
	h.opened(t, late, 0)
	ada, err := h.inLine(ctx, h.shop, early, phone(0))
	require.NoError(t, err)
	ben, err := h.inLine(ctx, h.shop, early, phone(1))
	require.NoError(t, err)
	cleo, err := h.inLine(ctx, h.shop, late, phone(2))
	require.NoError(t, err)
	require.Contains(t, h.why(t, late), "no-units: ")

	require.NoError(t, h.shop.Restock(ctx, early, 1))
	stamp := morning.UTC().Format("2006-01-02T15:04:05")
	require.NoError(t, until(ctx, "Ada's text waits", func() error {
		return h.says(ctx, ada.EntryID, "quiet-hours: ", stamp, "quiet.max_wait passes the unit on")
	}))
	require.NoError(t, h.says(ctx, early, "quiet-hours ("+ada.EntryID+"): "))
	require.NoError(t, until(ctx, "Ben's text waits", func() error { return h.says(ctx, ben.EntryID, "quiet-hours: ", stamp) }))
	require.NoError(t, h.says(ctx, ada.EntryID, "parked: its turn of this restock went by before a text could be sent"))
	require.NoError(t, until(ctx, "the unit is open to all", func() error {
		a, err := h.shop.AskHold(ctx, early, "awake", shop.Token())
		if err == nil && a.Status != http.StatusCreated {
			return fmt.Errorf("%s", a)
		}
		return err
	}))
	passed := h.notTold(t, early)
	require.Len(t, passed, 2)
	require.GreaterOrEqual(t, passed[1].At.Sub(passed[0].At), maxWait, "each sleeper has the time to the full")
	texts, err := h.outbox.Texts()
	require.NoError(t, err)
	require.Empty(t, texts, "nobody is woken")
	require.True(t, time.Now().Before(morning.Add(-5*time.Second)), "this machine is too slow for this night")

	// Late in the night.
	require.NoError(t, within(ctx, 3*time.Minute, "it is nearly morning", func() error {
		if left := time.Until(morning); left > maxWait-5*time.Second {
			return fmt.Errorf("in %s", left)
		}
		return nil
	}))
	require.NoError(t, h.shop.Restock(ctx, late, 1))
	require.NoError(t, until(ctx, "Cleo's text waits", func() error { return h.says(ctx, cleo.EntryID, "quiet-hours: ", stamp, "it goes out then") }))
	text, err := h.offerText(ctx, cleo.EntryID)
	require.NoError(t, err)
	require.False(t, text.At.Before(morning), "sent at %s, the night ends at %s", text.At, morning)
	require.Contains(t, text.Body, "for 5 min.")
	require.NoError(t, until(ctx, "Cleo was told", func() error { return h.says(ctx, cleo.EntryID, "it was told at ", "waits for a press until ") }))
	entry, err := h.shop.ReadEntry(ctx, cleo.EntryID)
	require.NoError(t, err)
	require.WithinDuration(t, text.At.Add(5*time.Minute), entry.Offer.ExpiresAt, 2*time.Second, "the window runs from the text")

	// Joined texts went out in the morning; the next unit is Ada's, who lost nothing.
	require.NoError(t, until(ctx, "the joined texts are sent", func() error {
		texts, err := h.outbox.Texts()
		if err == nil && len(texts) != 4 {
			err = fmt.Errorf("%d texts", len(texts))
		}
		return err
	}))
	require.NoError(t, h.shop.Restock(ctx, early, 1))
	_, err = h.offerText(ctx, ada.EntryID)
	require.NoError(t, err)
	story, err := history.Of(ctx, h.temporal, cleo.EntryID, "")
	require.NoError(t, err)
	figure(t, "history of an entry that joined and was told after a night", float64(len(story.GetEvents())), "events")

	// An entry whose workflow somebody ended by force.
	require.NoError(t, h.temporal.TerminateWorkflow(ctx, ben.EntryID, "", "story"))
	require.NoError(t, h.says(ctx, ben.EntryID, "no-workflow: its workflow does not run"))
	h.judge(t, late)
}

func (h *house) why(t *testing.T, of string) string {
	t.Helper()
	out, err := h.command(t.Context(), "why", of)
	require.NoError(t, err)
	return out
}

// says wants all of some words from `holdfast why`.
func (h *house) says(ctx context.Context, of string, words ...string) error {
	out, err := h.command(ctx, "why", of)
	if err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			return errors.New("no " + w + " in " + out)
		}
	}
	return nil
}

// notTold are the lapses of offers that nobody was told of.
func (h *house) notTold(t *testing.T, sku string) (list []shop.LedgerLine) {
	t.Helper()
	lines, err := h.shop.Ledger(t.Context(), sku)
	require.NoError(t, err)
	for _, l := range lines {
		if l.Verb == "lapse" {
			require.Equal(t, "not-told", l.Reason)
			list = append(list, l)
		}
	}
	return list
}

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// B41: whatever keeps people from being told is said in its word, on real servers. The
// rest of the words: quiet-hours in TestQuietHours, rate-limited by our own rate below.
func TestWhyNobodyWasTold(t *testing.T) {
	ctx := t.Context()
	stopped := phone(8)
	twilio := newTexter(t, phone(9))
	h := ownHouse(t, stack.Options{Env: with(twilio.env(), "HOLDFAST_GATE_REOPEN_WAIT", lease.String())}, lease)
	waits := func(sku string, n int) string {
		t.Helper()
		return h.queues(t, twilio, sku, phone(n)).EntryID
	}
	says := func(of string, words ...string) {
		t.Helper()
		require.NoError(t, until(ctx, of+" says why", func() error { return h.says(ctx, of, words...) }))
	}
	post := func(path string) {
		t.Helper()
		a, err := h.shop.Call(ctx, http.MethodPost, path, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a)
	}

	t.Run("no-units, before-you, paused", func(t *testing.T) {
		h.opened(t, "paused", 0)
		ada, ben := waits("paused", 0), waits("paused", 1)
		says("paused", "2 people wait\n", "no-units: ")
		says(ben, "no-units: ", "before-you: 1 person is before")
		post("/v1/stock/paused/pause")
		require.NoError(t, h.shop.Restock(ctx, "paused", 1))
		says("paused", "paused: ", "holdfast resume paused")
		says(ada, "paused: ")
		post("/v1/stock/paused/resume")
		says(ada, "it was told at ") // delivery goes on by itself
	})
	t.Run("ended", func(t *testing.T) {
		h.opened(t, "ended", 0)
		ada := waits("ended", 2)
		h.putPolicy(t, "ended", map[string]any{"ends_at": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)})
		require.NoError(t, h.shop.Restock(ctx, "ended", 1))
		says("ended", "ended: ")
		says(ada, "ended: ")
	})
	t.Run("shortfall", func(t *testing.T) {
		h.opened(t, "short", 2)
		for range 2 {
			_, err := h.shop.Hold(ctx, "short", "walk-in")
			require.NoError(t, err)
		}
		ada := waits("short", 4)
		h.decided(t, event("short", "correction", map[string]any{"delta": -1, "reason": "broken", "allow_shortfall": true}), "")
		says("short", "shortfall: 1 unit too many promised")
		says(ada, "shortfall: ")
	})
	t.Run("parked", func(t *testing.T) {
		h.opened(t, "parked", 0)
		ada := waits("parked", 3)
		require.NoError(t, h.shop.Restock(ctx, "parked", 1))
		page, err := h.shop.Visit(ctx, twilio.link(t, phone(3)))
		require.NoError(t, err)
		_, err = h.shop.Press(ctx, page, "/r/")
		require.NoError(t, err)
		e, err := h.entryState(ctx, ada, "holding")
		require.NoError(t, err)
		says(ada, "it was told, and holds what it was offered")
		post("/v1/holds/" + e.HoldID + "/release") // by the shop: a missed turn
		says(ada, "parked: it missed its turn of this restock")
		says("parked", "parked ("+ada+"): ")
	})
	t.Run("opted-out, unreachable", func(t *testing.T) {
		h.opened(t, "gone", 0)
		ada, err := h.inLine(ctx, h.shop, "gone", stopped)
		require.NoError(t, err)
		require.NoError(t, twilio.joinedText(ctx, stopped))
		twilio.texts(t, h, stopped, "STOP")
		says(ada.EntryID, "opted-out: the person texted STOP")
		ben, err := h.shop.Join(ctx, "gone", phone(9))
		require.NoError(t, err)
		says(ben.EntryID, "unreachable: ")
	})
	t.Run("no-workflow", func(t *testing.T) {
		h.opened(t, "nobody", 0)
		ada := waits("nobody", 5)
		require.NoError(t, h.temporal.TerminateWorkflow(ctx, ada, "", "story"))
		says(ada, "no-workflow: its workflow does not run")
	})
	t.Run("closed", func(t *testing.T) {
		h.opened(t, "closed", 0)
		ada := waits("closed", 6)
		require.NoError(t, h.redis.HSet(ctx, "hf:{closed}:stock", "fence", strings.Repeat("0", 40)).Err())
		says("closed", "closed: the gate of closed checks itself")
		says(ada, "closed: ")
		require.NoError(t, within(ctx, time.Minute, "it opens by itself", func() error { return h.says(ctx, "closed", "no-units: ") }))
	})
	t.Run("rate-limited by the provider, sender-down", func(t *testing.T) {
		h.opened(t, "kept", 0)
		ada := waits("kept", 7)
		twilio.Down(http.StatusTooManyRequests, 20429)
		require.NoError(t, h.shop.Restock(ctx, "kept", 1))
		says(ada, "rate-limited: ")
		says("kept", "rate-limited ("+ada+"): ", "all who wait have an offer")
		twilio.Down(http.StatusUnauthorized, 20003)
		says(ada, "sender-down: the provider takes no texts of ours")
		says("kept", "sender-down ("+ada+"): ")
	})
}

// Texts that wait for our own rate are in a queue that says nothing to their entries;
// why says it all the same, and how many they are.
func TestWhyATextWaitsForItsTurn(t *testing.T) {
	ctx := t.Context()
	const sku, people = "slow", 5
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: with(twilio.env(), "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "0.5")}, lease)
	h.opened(t, sku, 0)
	var entries []shop.Entry
	for i := range people {
		e, err := h.inLine(ctx, h.shop, sku, phone(i))
		require.NoError(t, err)
		entries = append(entries, e)
	}
	require.NoError(t, h.shop.Restock(ctx, sku, people))
	// Five places and five offers are twenty seconds of texts. Offers that are made in the
	// same moment wait in no order of their own: whichever waits says so.
	require.NoError(t, until(ctx, "it says so", func() error { return h.says(ctx, sku, "rate-limited (", "at most 0.5 segments go out a second") }))
	require.NoError(t, until(ctx, "one of them waits", func() error {
		var told error
		for _, e := range entries {
			err := h.says(ctx, e.EntryID, "rate-limited: ", "was not told of it yet")
			if err == nil {
				return nil
			}
			told = errors.Join(told, err)
		}
		return told
	}))
	require.NoError(t, within(ctx, time.Minute, "all are told", func() error {
		if n := twilio.told(); n < people {
			return errors.New("not yet")
		}
		return h.says(ctx, sku, "nobody waits to be told; who has an offer was told")
	}))
	h.judge(t, sku)
}

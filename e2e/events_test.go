package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// Everything that can happen happens, one after the other, and the shop, which
// sorts what it is told by sequence, reads the story as it was.
// B19, B32.
func TestTheShopIsToldTheStory(t *testing.T) {
	ctx := t.Context()
	box := newInbox(t)
	h := ownHouse(t, stack.Options{Env: box.env()}, lease)
	sku := "news"

	// A walk-in buys.
	h.opened(t, sku, 2)
	bought, err := h.shop.Hold(ctx, sku, "buyer")
	require.NoError(t, err)
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+bought.HoldID+"/checkout", map[string]any{"payment_ref": "pay_1"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	confirmed(t, h, bought.HoldID, "pay_1")

	// Another lets the last unit go, which nobody waits for.
	hasty := h.door(t, "HOLDFAST_HOLD_TTL", "5s", "HOLDFAST_HOLD_EXTENSION", "0s", "HOLDFAST_HOLD_GRACE", "0s",
		"HOLDFAST_OFFER_WINDOW", "5s", "HOLDFAST_WAITLIST_TTL", "5s", "HOLDFAST_EVENTS_URL", box.URL, "HOLDFAST_EVENTS_SECRETS", inboxSecret)
	let, err := hasty.Hold(ctx, sku, "dreamer")
	require.NoError(t, err)
	_, err = h.holdState(ctx, let.HoldID, "expired")
	require.NoError(t, err)
	taken, err := h.shop.Hold(ctx, sku, "second buyer")
	require.NoError(t, err)

	// Three join; one leaves, one waits in vain.
	ada, err := h.inLine(ctx, h.shop, sku, phone(0))
	require.NoError(t, err)
	ben, err := h.inLine(ctx, h.shop, sku, phone(1))
	require.NoError(t, err)
	a, err = h.shop.Call(ctx, http.MethodDelete, "/v1/waitlist/"+ben.EntryID, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status)
	cleo, err := h.inLine(ctx, hasty, sku, phone(2))
	require.NoError(t, err)
	_, err = h.entryState(ctx, cleo.EntryID, "expired")
	require.NoError(t, err)

	// The unit comes back, Ada presses and gives it back, Dan's offer lapses.
	dan, err := h.inLine(ctx, slowButHasty(t, h, box), sku, phone(3))
	require.NoError(t, err)
	_, err = h.shop.Declined(ctx, taken.HoldID, "pay_2")
	require.NoError(t, err)
	pressed := h.presses(t, ada.EntryID)
	a, err = h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+pressed.HoldID+"/release", map[string]any{})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	require.NoError(t, until(ctx, "Dan's offer has lapsed", func() error {
		if _, ok := h.lapse(t, sku); !ok {
			return errors.New("not yet")
		}
		return nil
	}))

	// Money that came late goes back.
	late, err := h.shop.Confirm(ctx, pressed.HoldID, "pay_3")
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, late.Status, late)
	owner := paymentID(pressed.HoldID, "pay_3")
	require.NoError(t, h.temporal.SignalWorkflow(ctx, owner, "", "refund-settled", map[string]string{"reference": "re_3"}))
	require.NoError(t, h.closed(ctx, owner))

	// Money that nobody knows waits.
	unknown := bought.HoldID[:len("hold_")+8] + strings.Repeat("a", 18)
	_, err = h.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: paymentID(unknown, "pay_4"), TaskQueue: "holdfast"}, "Payment",
		map[string]any{"payment_id": paymentID(unknown, "pay_4"), "hold_id": unknown, "sku": sku, "payment_ref": "pay_4", "cause": "unknown"})
	require.NoError(t, err)

	// The count was wrong, and more wrong than the gate believes.
	h.decided(t, event(sku, "correction", map[string]any{"delta": -1000, "reason": "a typing error"}), "would-oversell")

	want := []string{
		"stock.changed", "hold.created", "hold.extended", "hold.confirmed",
		"hold.created", "hold.expired", "hold.created",
		"waitlist.joined", "waitlist.joined", "waitlist.left", "waitlist.joined", "waitlist.expired", "waitlist.joined",
		"hold.released", "waitlist.offered", "waitlist.claimed", "hold.created",
		"hold.released", "waitlist.lapsed", "waitlist.offered", "waitlist.lapsed",
		"refund.settled", "payment.unmatched", "stock.rejected",
	}
	require.NoError(t, box.has(ctx, len(want)))
	story := box.story(t)
	require.Equal(t, want, typesOf(story))
	said := func(i int, member string) any {
		var data map[string]any
		require.NoError(t, json.Unmarshal(story[i].Data, &data))
		return data[member]
	}
	for i, who := range map[int]string{1: bought.HoldID, 3: bought.HoldID, 5: let.HoldID, 13: taken.HoldID, 16: pressed.HoldID, 17: pressed.HoldID, 21: pressed.HoldID, 22: unknown} {
		require.Equal(t, who, said(i, "hold_id"), "%d: %s", i, story[i].Type)
	}
	for i, who := range map[int]string{7: ada.EntryID, 9: ben.EntryID, 11: cleo.EntryID, 15: ada.EntryID, 18: ada.EntryID, 20: dan.EntryID} {
		require.Equal(t, who, said(i, "entry_id"), "%d: %s", i, story[i].Type)
	}
	require.Equal(t, []any{"sold", "pay_1", "buyer", true}, []any{said(3, "state"), said(3, "payment_ref"), said(3, "customer"), said(3, "extended")})
	require.Equal(t, "would-oversell", said(23, "reason"))
	for _, e := range story {
		for i := range 4 {
			require.NotContains(t, string(e.Data), phone(i))
		}
	}
	// A purchase and 23 other things, and not one was told of twice.
	require.Len(t, box.story(t), len(want))
	h.judge(t, sku)
}

// slowButHasty is a door whose offers are short and whose places are long.
func slowButHasty(t *testing.T, h *house, box *inbox) *shop.Shop {
	t.Helper()
	return h.door(t, "HOLDFAST_OFFER_WINDOW", "5s", "HOLDFAST_EVENTS_URL", box.URL, "HOLDFAST_EVENTS_SECRETS", inboxSecret)
}

// The worker is killed again and again while many holds begin and end: each that
// ended has told so.
func TestNoEventIsLostWithTheWorker(t *testing.T) {
	const holds, kills = 60, 3
	ctx := t.Context()
	box := newInbox(t)
	h := ownHouse(t, stack.Options{Env: box.env()}, lease)
	sku := "killed-news"
	h.opened(t, sku, holds)
	require.NoError(t, box.has(ctx, 1))
	ids := make([]string, holds)
	ended := make(chan error, 1)
	go func() {
		ended <- each(ctx, holds, 6, func(ctx context.Context, i int) error {
			if err := until(ctx, "the hold is given", func() error {
				hold, err := h.shop.AskHold(ctx, sku, "customer", fmt.Sprintf("news-%d", i))
				if err == nil && hold.Status != http.StatusCreated && hold.Status != http.StatusOK {
					err = fmt.Errorf("%s", hold)
				}
				if err != nil {
					return err
				}
				given, err := shop.ParseHold(hold)
				ids[i] = given.HoldID
				return err
			}); err != nil {
				return err
			}
			if i%2 == 0 {
				return h.temporal.SignalWorkflow(ctx, ids[i], "", "payment-succeeded", map[string]string{"payment_ref": "pay_" + ids[i]})
			}
			return h.temporal.SignalWorkflow(ctx, ids[i], "", "release", map[string]string{"reason": "shop"})
		})
	}()
	worker := h.Child(stack.Worker)
	for k := range kills {
		require.NoError(t, box.has(ctx, 1+k*holds/kills))
		worker.Kill()
		require.NoError(t, worker.Start(ctx))
	}
	require.NoError(t, <-ended)
	require.NoError(t, each(ctx, holds, 8, func(ctx context.Context, i int) error { return h.closed(ctx, ids[i]) }))
	require.NoError(t, box.has(ctx, 1+2*holds))
	per := map[string][]string{}
	for _, e := range box.story(t)[1:] {
		var data struct {
			HoldID string `json:"hold_id"`
		}
		require.NoError(t, json.Unmarshal(e.Data, &data))
		per[data.HoldID] = append(per[data.HoldID], e.Type)
	}
	for i, id := range ids {
		end := "hold.confirmed"
		if i%2 == 1 {
			end = "hold.released"
		}
		require.Equal(t, []string{"hold.created", end}, per[id], id)
	}
	require.Len(t, per, holds)
	h.judge(t, sku)
}

// A shop without an endpoint pays nothing, and one with an endpoint one event of
// history for each thing that it is told of.
func TestWhatEventsCost(t *testing.T) {
	ctx := t.Context()
	box := newInbox(t)
	cost := func(h *house, sku string) (events, markers int) {
		h.opened(t, sku, 1)
		hold, err := h.shop.Hold(ctx, sku, "customer")
		require.NoError(t, err)
		confirmed(t, h, hold.HoldID, "pay_"+sku)
		require.NoError(t, h.closed(ctx, hold.HoldID))
		history := h.temporal.GetWorkflowHistory(ctx, hold.HoldID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			e, err := history.Next()
			require.NoError(t, err)
			events++
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_MARKER_RECORDED:
				markers++
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
				t.Errorf("%s schedules %s", hold.HoldID, e)
			}
		}
		return events, markers
	}
	silent, verbs := cost(sharedHouse(t), "silent")
	require.Equal(t, 2, verbs, "adopt and confirm")
	require.LessOrEqual(t, silent, 16)
	figure(t, "history_events_of_a_confirmed_hold_without_endpoint", float64(silent), "events")
	told, markers := cost(ownHouse(t, stack.Options{Env: box.env()}, lease), "told")
	require.Equal(t, 4, markers, "adopt and confirm, created and confirmed")
	require.Equal(t, silent+2, told)
	require.NoError(t, box.has(ctx, 3))
}

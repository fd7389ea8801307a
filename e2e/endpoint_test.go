package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// The endpoint is down, comes back, wants no more; and a person sees to it.
func TestAnEndpointThatFails(t *testing.T) {
	ctx := t.Context()
	box := newInbox(t)
	h := ownHouse(t, stack.Options{Env: box.env()}, lease)
	sku := "deaf"
	box.answers(http.StatusServiceUnavailable)
	h.opened(t, sku, 5)
	sell := func(customer string) {
		hold, err := h.shop.Hold(ctx, sku, customer)
		require.NoError(t, err)
		confirmed(t, h, hold.HoldID, "pay_"+customer)
		require.NoError(t, h.closed(ctx, hold.HoldID))
	}
	sell("one")
	require.NoError(t, until(ctx, "every event was tried", func() error {
		if n := box.called(); n < 6 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	}))
	require.Empty(t, box.story(t))
	box.answers(0)
	require.NoError(t, box.has(ctx, 3))
	require.Equal(t, []string{"stock.changed", "hold.created", "hold.confirmed"}, typesOf(box.story(t)))

	box.answers(http.StatusGone)
	sell("two")
	parked := h.parked(t, 2)
	require.ElementsMatch(t, []string{"hold.created", "hold.confirmed"}, []string{parked[0].Type, parked[1].Type})
	require.Contains(t, parked[0].Reason, "410")
	out, err := h.command(ctx, "events", "test")
	require.Error(t, err)
	require.Contains(t, out, "410")
	calls := box.called()
	_, err = h.command(ctx, "events", "retry", parked[0].EventID) // an error when it was parked again at once
	t.Log(err)
	require.NoError(t, until(ctx, "it was tried afresh", func() error {
		if box.called() == calls {
			return errors.New("it was not")
		}
		return nil
	}))
	h.parked(t, 2)

	box.answers(0)
	out, err = h.command(ctx, "events", "test")
	require.NoError(t, err, out)
	out, err = h.command(ctx, "events", "retry", "--all")
	require.NoError(t, err, out)
	require.NoError(t, box.has(ctx, 6))
	require.ElementsMatch(t, []string{"stock.changed", "hold.created", "hold.confirmed", "hold.created", "hold.confirmed", "holdfast.test"}, typesOf(box.story(t)))
	h.parked(t, 0)
	h.judge(t, sku)
}

// An endpoint that answers nobody keeps one delivery busy, and no hold.
func TestAnEndpointThatHangs(t *testing.T) {
	const holds = 20
	ctx := t.Context()
	box := newInbox(t)
	box.mute = make(chan struct{})
	h := ownHouse(t, stack.Options{Env: box.env("HOLDFAST_EVENTS_CONCURRENCY", "1", "HOLDFAST_EVENTS_TIMEOUT", "30s")}, lease)
	sku := "hangs"
	h.opened(t, sku, holds)
	began := time.Now()
	require.NoError(t, each(ctx, holds, 4, func(ctx context.Context, i int) error {
		hold, err := h.shop.Hold(ctx, sku, fmt.Sprintf("customer-%d", i))
		if err != nil {
			return err
		}
		a, err := h.shop.Confirm(ctx, hold.HoldID, "pay_"+hold.HoldID)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("the confirm got %s", a)
		}
		if err != nil {
			return err
		}
		return h.closed(ctx, hold.HoldID)
	}))
	took := time.Since(began)
	require.Empty(t, box.story(t))
	require.Less(t, took, 20*time.Second, "the holds waited for the endpoint")
	figure(t, "sales_a_second_while_the_endpoint_hangs", perSecond(holds, took), "/s")
	close(box.mute)
	require.NoError(t, box.has(ctx, 1+2*holds))
	h.judge(t, sku)
}

// parkedEvent is a line of `holdfast events parked --json`.
type parkedEvent struct {
	EventID string `json:"event_id"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
}

// parked waits until as many events are listed as parked.
func (h *house) parked(t *testing.T, n int) (list []parkedEvent) {
	t.Helper()
	require.NoError(t, until(t.Context(), fmt.Sprintf("%d events are parked", n), func() error {
		out, err := h.command(t.Context(), "events", "parked", "--json")
		if err != nil {
			return err
		}
		list = nil
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) == n {
			return err
		}
		return fmt.Errorf("parked are %v", list)
	}))
	return list
}

// command runs the product's own command line against the house.
func (h *house) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, os.Getenv("HOLDFAST_BIN"), args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+h.URL(), "HOLDFAST_KEY="+stack.APIKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("holdfast %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

// Each post of an event is a delivery of its own: shop.Inventory signs it under an id that
// no other has. What makes two of them one is the event's id.

// B64, B68: one delivery is posted twenty times in the same moment, to a line that is longer
// than it, and again when it was decided. Five units are five units and five offers. Under
// another event id the same units come once more.
func TestADeliveryTwentyTimesAtOnce(t *testing.T) {
	const sku, posts, units, people = "twenty-times", 20, 5, 7
	ctx := t.Context()
	h := sharedHouse(t)
	h.opened(t, sku, 0)
	line := make([]shop.Entry, people)
	for i := range line {
		var err error
		line[i], err = h.inLine(ctx, h.shop, sku, phone(i))
		require.NoError(t, err)
	}
	delivery := event(sku, "restock", map[string]any{"units": units})
	barrier := make(chan struct{})
	time.AfterFunc(0, func() { close(barrier) })
	require.NoError(t, each(ctx, posts, posts, func(ctx context.Context, _ int) error {
		<-barrier
		a, err := h.shop.Inventory(ctx, delivery)
		if err == nil && a.Status != http.StatusOK && a.Status != http.StatusAccepted {
			err = errors.New(a.String())
		}
		return err
	}))
	counted := func(received, offered int64) {
		t.Helper()
		stock := h.decided(t, delivery, "")
		require.Equal(t, []int64{received, 0, offered, 0, 0, people - offered, 0}, parts(stock))
		require.Equal(t, book{Received: received}, h.book(t, sku))
	}
	counted(units, units)
	for i := range units {
		text, err := h.offerText(ctx, line[i].EntryID)
		require.NoError(t, err)
		require.Equal(t, phone(i), text.To)
	}
	h.decided(t, delivery, "")
	counted(units, units)
	for _, e := range line[units:] {
		_, told, err := h.outbox.OfferTo(e.EntryID)
		require.NoError(t, err)
		require.False(t, told, "%d units came, and more people were told", units)
	}

	another := maps.Clone(delivery)
	another["event_id"] = shop.Token()
	h.decided(t, another, "")
	counted(2*units, people)
	h.judge(t, sku)
}

// B65: the decision of a delivery takes long, and Redis is silent while one is looked up;
// both are posted again meanwhile. No answer says that they counted, each can be posted
// again, and each counts once in the end: also when the door dies that took it, and nobody
// posts it any more.
func TestADeliveryThatIsSlowlyDecided(t *testing.T) {
	const sku, posts = "slowly", 8
	ctx := t.Context()
	h := ownHouse(t, stack.Options{Env: map[string]string{"HOLDFAST_GATE_REOPEN_WAIT": "7s"}}, 3*time.Second)
	h.opened(t, sku, 1)
	postedAgain := func(delivery map[string]any) (taken int) {
		t.Helper()
		answers := make([]shop.Answer, posts)
		require.NoError(t, each(ctx, posts, posts, func(ctx context.Context, i int) (err error) {
			answers[i], err = h.shop.Inventory(ctx, delivery)
			return err
		}))
		for _, a := range answers {
			var said struct{ Applied *bool }
			require.NoError(t, json.Unmarshal(a.Body, &said))
			require.Nil(t, said.Applied, "nobody has decided: %s", a)
			if a.Status == http.StatusAccepted {
				taken++
			} else {
				require.Equal(t, http.StatusServiceUnavailable, a.Status, a)
				require.NotEmpty(t, a.Header.Get("Retry-After"), "the sender posts it again: %s", a)
			}
		}
		return taken
	}
	onHand := func(want int64) {
		t.Helper()
		require.NoError(t, until(ctx, fmt.Sprintf("%d units are there", want), func() error {
			stock, err := h.shop.Stock(ctx, sku)
			if err == nil && stock.OnHand != want {
				err = fmt.Errorf("%d are", stock.OnHand)
			}
			return err
		}))
		require.Equal(t, want, h.book(t, sku).Received)
	}

	slow := event(sku, "restock", map[string]any{"units": 5})
	h.shuts(t, sku)
	require.Positive(t, postedAgain(slow), "recorded, not decided")
	require.Equal(t, int64(6), h.decided(t, slow, "").OnHand)
	onHand(6)

	lost := event(sku, "restock", map[string]any{"units": 3})
	redis, door := h.Child(stack.Redis), h.Child(stack.Door)
	require.NoError(t, redis.Suspend())
	require.Positive(t, postedAgain(lost), "recorded, not looked up")
	door.Kill()
	require.NoError(t, redis.Resume())
	require.NoError(t, door.Start(ctx))
	onHand(9)
	require.Equal(t, int64(9), h.decided(t, lost, "").OnHand)
	onHand(9)
	h.judge(t, sku)
}

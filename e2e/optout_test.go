package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/shop"
	"holdfast/sms"
)

// texts has a person text our number, as Twilio passes it on.
func (s *texter) texts(t *testing.T, h *house, from, body string) {
	t.Helper()
	status, answer, err := s.Text(h.shop.URL+sms.InboundPath, from, "+15005550006", body, "")
	require.NoError(t, err)
	require.Equal(t, 200, status, answer)
	require.Equal(t, sms.EmptyTwiML, answer)
}

// joinedText waits for the text that gives a number its place.
func (s *texter) joinedText(ctx context.Context, number string) error {
	return until(ctx, "a place is texted to "+number, func() error {
		for _, m := range s.MessagesTo(number) {
			if m.Link("/w/") != "" {
				return nil
			}
		}
		return errors.New("no such text yet")
	})
}

// queues joins and waits for the text that says so.
func (h *house) queues(t *testing.T, s *texter, sku, number string) shop.Entry {
	t.Helper()
	e, err := h.inLine(t.Context(), h.shop, sku, number)
	require.NoError(t, err)
	require.NoError(t, s.joinedText(t.Context(), number))
	return e
}

// B75: Ada waits for two things and is offered one of them. Her STOP ends both places,
// the offer goes on, and until her START she cannot join.
func TestStopAndStart(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	ada, ben := phone(0), phone(1)
	h.opened(t, "chair", 0)
	h.opened(t, "lamp", 0)
	chair := h.queues(t, twilio, "chair", ada)
	after := h.queues(t, twilio, "chair", ben)
	lamp := h.queues(t, twilio, "lamp", ada)
	require.NoError(t, h.shop.Restock(ctx, "chair", 1))
	twilio.link(t, ada)

	twilio.texts(t, h, ada, "Stop")
	twilio.texts(t, h, ada, "STOPALL")
	for _, e := range []shop.Entry{chair, lamp} {
		_, err := h.entryState(ctx, e.EntryID, "opted_out")
		require.NoError(t, err)
		require.NoError(t, h.closed(ctx, e.EntryID))
	}
	twilio.link(t, ben)
	require.NoError(t, h.shop.Restock(ctx, "lamp", 1))
	stock, err := h.shop.Stock(ctx, "lamp")
	require.NoError(t, err)
	require.Equal(t, int64(1), stock.OpenToAll, "nobody waits for the lamp any more")

	a, err := h.shop.AskJoin(ctx, "lamp", ada)
	require.NoError(t, err)
	require.Equal(t, "opted-out", a.Code(), a)
	require.Contains(t, a.Problem().Detail, "START, texted to +15005550006")
	require.Len(t, twilio.MessagesTo(ada), 3, "two places and an offer; nothing since the STOP")

	twilio.texts(t, h, ada, "START")
	require.NoError(t, until(ctx, "she can join again", func() error {
		a, err := h.shop.AskJoin(ctx, "chair", ada)
		if err == nil && a.Status != 201 {
			err = errors.New(a.String())
		}
		return err
	}))
	_, err = h.entryState(ctx, after.EntryID, "offered")
	require.NoError(t, err)
	h.judge(t, "chair", "lamp")
}

// A STOP comes while Redis has forgotten everything, and then it gets back what it
// had: the place of who opted out is there again, and takes its turn. No text.
func TestAnOptOutOutlivesRedis(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	ada, ben := phone(0), phone(1)
	const sku = "forgets"
	h.opened(t, sku, 0)
	first := h.queues(t, twilio, sku, ada)
	second := h.queues(t, twilio, sku, ben)

	kept := h.dump(t)
	require.NoError(t, h.redis.FlushAll(ctx).Err())
	twilio.texts(t, h, ada, "STOP")
	require.NoError(t, h.shop.Open(ctx, "new", "A new thing"))
	a, err := h.shop.AskJoin(ctx, "new", ada)
	require.NoError(t, err)
	require.Equal(t, "opted-out", a.Code(), "known without Redis: %s", a)
	require.NoError(t, until(ctx, "the places that Redis knows of have ended: none", func() error {
		open, err := check.List(ctx, h.temporal, `WorkflowType="OptOut" AND ExecutionStatus="Running"`)
		if err != nil || len(open) != 1 {
			return fmt.Errorf("%d people have opted out: %w", len(open), errors.Join(err, errors.New("not one")))
		}
		d, err := h.temporal.DescribeWorkflow(ctx, open[0], "")
		if err == nil && len(d.RawResponse.GetPendingActivities()) > 0 {
			err = errors.New("they are being ended")
		}
		return err
	}))
	h.restore(t, kept)

	again, err := h.shop.ReadEntry(ctx, first.EntryID)
	require.NoError(t, err)
	require.Equal(t, "waiting", again.State, "the place is back")
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	_, err = h.entryState(ctx, first.EntryID, "opted_out")
	require.NoError(t, err)
	twilio.link(t, ben)
	_, err = h.entryState(ctx, second.EntryID, "offered")
	require.NoError(t, err)
	for _, m := range twilio.MessagesTo(ada) {
		require.Empty(t, m.Link("/r/"), "an opted-out person was told of an offer")
	}
	require.Len(t, twilio.MessagesTo(ada), 1)
	h.judge(t, sku)
}

// Twilio knows of a STOP that never came here: its refusal says so, and the next
// join knows.
// B41, B75.
func TestAStopThatOnlyTwilioKnows(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	h := ownHouse(t, stack.Options{Env: twilio.env()}, lease)
	ada, ben := phone(0), phone(1)
	const sku = "unheard"
	h.opened(t, sku, 0)
	first, second := h.queues(t, twilio, sku, ada), h.queues(t, twilio, sku, ben)
	twilio.Refuse(ada, 21610)
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	twilio.link(t, ben)
	for id, state := range map[string]string{first.EntryID: "opted_out", second.EntryID: "offered"} {
		_, err := h.entryState(ctx, id, state)
		require.NoError(t, err)
	}
	require.NoError(t, until(ctx, "her next join is refused", func() error {
		a, err := h.shop.AskJoin(ctx, sku, ada)
		if err == nil && a.Code() != "opted-out" {
			err = errors.New(a.String())
		}
		return err
	}))
	h.judge(t, sku)
}

// dump is everything that Redis has.
func (h *house) dump(t *testing.T) map[string]string {
	t.Helper()
	keys, err := h.redis.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	kept := map[string]string{}
	for _, key := range keys {
		kept[key], err = h.redis.Dump(t.Context(), key).Result()
		require.NoError(t, err)
	}
	return kept
}

// restore puts it back over what there is.
func (h *house) restore(t *testing.T, kept map[string]string) {
	t.Helper()
	for key, value := range kept {
		require.NoError(t, h.redis.RestoreReplace(t.Context(), key, 0, value).Err())
	}
}

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
	"holdfast/e2e/shop"
	"holdfast/internal/twiliostub"
	"holdfast/sms"
)

// B81: a restock for many people at once, and a provider that takes few texts a second
// and answers the others 429. Offers are made in order, everybody is told once, and
// nobody's window begins before their own text. The long form has the case's 500 people
// and 50 texts a second. No machine of two cores brings offers that fast to their texts,
// so there the provider is busy at first and names one instant to all: then they come
// together.
func TestARestockThatTheProviderCannotKeepUpWith(t *testing.T) {
	ctx := t.Context()
	twilio := newTexter(t, "")
	env := twilio.env()
	env["HOLDFAST_SMS_SEGMENTS_A_DAY"] = "0"
	h := ownHouse(t, stack.Options{Env: env}, lease)
	const sku, window = "rush", 15 * time.Minute
	people, perSecond, busy := 120, 8, time.Duration(0)
	if long() {
		people, perSecond, busy = 500, 50, 2*time.Minute
	}
	h.opened(t, sku, 0)
	entries := make([]shop.Entry, people)
	for i := range entries { // one after the other: their order is what is tested
		var err error
		entries[i], err = h.shop.Join(ctx, sku, phone(i))
		require.NoError(t, err)
	}
	require.NoError(t, within(ctx, 3*time.Minute, "everybody has their place", func() error {
		if n := len(twilio.Messages()); n < people {
			return fmt.Errorf("%d texts", n)
		}
		return nil
	}))

	twilio.Limit(perSecond)
	began := time.Now()
	opens := began.Add(busy)
	twilio.Busy(opens)
	require.NoError(t, h.shop.Restock(ctx, sku, int64(people)))
	if busy > 0 {
		require.NoError(t, within(ctx, busy-10*time.Second, "everybody's text was tried", func() error {
			if n := len(twilio.Calls()); n < 2*people {
				return fmt.Errorf("%d of %d", n-people, people)
			}
			return nil
		}))
	}
	require.NoError(t, within(ctx, busy+4*time.Minute, "everybody is told", func() error {
		if n := len(twilio.Messages()); n < 2*people {
			return fmt.Errorf("%d of %d", n-people, people)
		}
		return nil
	}))
	refused := len(slices.DeleteFunc(twilio.Calls(), func(c string) bool { return c != "POST 429" }))
	if busy > 0 {
		refused -= people
		all := twilio.Messages()
		figure(t, "burst_told_in", all[len(all)-1].CreatedAt.Sub(opens).Seconds(), "s")
		asked := perSecondMost(twilio.Requests(), opens)
		figure(t, "burst_asked_in_a_second", float64(asked), "")
		require.Greater(t, asked, perSecond)
	}
	require.Positive(t, refused, "the provider kept up, so nothing was shown")
	figure(t, fmt.Sprintf("restock_of_%d_told_at_%d_a_second_in", people, perSecond), time.Since(began).Seconds(), "s")
	figure(t, "texts_answered_429", float64(refused), "")

	var offered []string
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "offer" {
			offered = append(offered, l.Other)
		}
	}
	for i, e := range entries {
		require.Equal(t, e.EntryID, offered[i], "offer no. %d", i+1)
		h.status(t, e.EntryID, "knows that its offer was told", func(s map[string]any) bool { return s["offer_sent"] == true })
		sent := twilio.MessagesTo(phone(i))
		require.Len(t, sent, 2, "no. %d: a place and an offer", i+1)
		now, err := h.shop.ReadEntry(ctx, e.EntryID)
		require.NoError(t, err)
		require.NotNil(t, now.Offer, "no. %d: %s", i+1, now.State)
		require.WithinRange(t, now.Offer.ExpiresAt, sent[1].CreatedAt.Add(window-5*time.Second), sent[1].CreatedAt.Add(window+5*time.Second), "no. %d", i+1)
	}
	require.Len(t, twilio.Messages(), 2*people, "nobody was told twice")
	h.judge(t, sku)
}

// perSecondMost is how many messages were asked for within any second since an instant.
func perSecondMost(calls []twiliostub.Request, since time.Time) (most int) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(r twiliostub.Request) bool { return r.Method != http.MethodPost || r.At.Before(since) })
	from := 0
	for i, r := range calls {
		for r.At.Sub(calls[from].At) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// The rate is one of all workers: measured at the provider, with two of them, and
// texts of two segments. The long form has fifty a second, and a provider that is busy at
// first, so that more texts wait than the rate lets through.
func TestTheRateOfAllWorkersTogether(t *testing.T) {
	ctx := t.Context()
	const sku = "dear"
	people, perSecond, busy := 30, 10, time.Duration(0)
	if long() {
		people, perSecond, busy = 200, 50, time.Minute
	}
	twilio := newTexter(t, "")
	env := twilio.env()
	env["HOLDFAST_SMS_SEGMENTS_PER_SECOND"] = fmt.Sprint(perSecond)
	h := ownHouse(t, stack.Options{Env: with(env, "HOLDFAST_SMS_SEGMENTS_A_DAY", "0")}, lease)
	second, err := stack.Start(ctx, stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"),
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env:      with(env, "HOLDFAST_GATE_LEASE", lease.String(), "HOLDFAST_HTTP_PUBLIC_URL", h.shop.URL, "HOLDFAST_SMS_SEGMENTS_A_DAY", "0"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	require.NoError(t, h.shop.Open(ctx, sku, strings.Repeat("A long name ", 10)))
	require.NoError(t, each(ctx, people, 4, func(ctx context.Context, i int) error {
		_, err := h.inLine(ctx, h.shop, sku, phone(i))
		return err
	}))
	told := func(n int) {
		require.NoError(t, within(ctx, busy+2*time.Minute, "everybody is told", func() error {
			if got := len(twilio.Messages()); got < n {
				return fmt.Errorf("%d texts", got)
			}
			return nil
		}))
	}
	measured := 0
	if busy > 0 {
		told(people)
		measured = people
		twilio.Busy(time.Now().Add(busy))
	}
	require.NoError(t, h.shop.Restock(ctx, sku, int64(people)))
	told(2 * people)
	all := twilio.Messages()
	for _, m := range all {
		require.Equal(t, 2, sms.Segments(m.Body), "each text has two segments")
	}
	all = all[measured:]
	greatest, from := 0, 0
	in := 0 // segments from message no. from on, within a second
	for _, m := range all {
		for in += 2; m.CreatedAt.Sub(all[from].CreatedAt) >= time.Second; from++ {
			in -= 2
		}
		greatest = max(greatest, in)
	}
	took := all[len(all)-1].CreatedAt.Sub(all[0].CreatedAt)
	rate := float64(2*len(all)) / took.Seconds()
	figure(t, "segments_in_any_second", float64(greatest), "")
	figure(t, "segments_a_second", rate, "/s")
	// A burst of one text, and what two clocks and a connection add.
	require.LessOrEqual(t, greatest, perSecond+4)
	require.Greater(t, rate, float64(perSecond)/2, "it was not the rate that held the texts up")
	for _, url := range []string{h.WorkerOpsURL(), second.WorkerOpsURL()} {
		require.NotEqual(t, "0", scrapeOf(t, url).samples[`holdfast_texts_total{outcome="accepted"}`], "both workers send")
	}
}

// A unit waits for an offer's text and nothing for a joined one, so the offers go first:
// those of a restock come before most of what a long line is still to be told.
func TestAnOfferIsToldBeforePlaces(t *testing.T) {
	ctx := t.Context()
	const sku, people, units = "places-wait", 60, 3
	twilio := newTexter(t, "")
	env := twilio.env()
	env["HOLDFAST_SMS_SEGMENTS_PER_SECOND"] = "2"
	h := ownHouse(t, stack.Options{Env: env}, lease)
	h.opened(t, sku, 0)
	require.NoError(t, each(ctx, people, 8, func(ctx context.Context, i int) error {
		_, err := h.inLine(ctx, h.shop, sku, phone(i))
		return err
	}))
	require.NoError(t, h.shop.Restock(ctx, sku, units))
	require.NoError(t, until(ctx, "the offers are told", twilio.links(units)))
	places := slices.DeleteFunc(twilio.Messages(), func(m twiliostub.Message) bool { return m.Link("/r/") != "" })
	figure(t, "places_told_before_the_offers", float64(len(places)), fmt.Sprint("of ", people))
	require.Less(t, len(places), people*2/3, "joined texts that were sent before the offers")
}

package starter

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func releaseOf(sku, holdID, reason string) redis.ReleaseRequest {
	return redis.ReleaseRequest{SKU: sku, HoldID: holdID, Reason: reason, Actor: "test"}
}

func keepsPlaces(_ *config.Config, opts *redis.Options) { opts.MissedKeep = 1 }

func lapsesAtOnce(_ *config.Config, opts *redis.Options) { opts.OfferMaxAge = time.Millisecond }

// lapsed is an offer that nobody pressed in time.
func (h *house) lapsed() (entryID, holdID, path string) {
	h.t.Helper()
	entryID, holdID, path = h.offer()
	h.eventually("the offer lapses", func() bool {
		out, err := h.gate.Lapse(h.t.Context(), redis.LapseRequest{SKU: h.sku, HoldID: holdID})
		return err == nil && out.Verdict == redis.OK
	})
	return entryID, holdID, path
}

// ended is an entry that came to an end of this kind while it waited.
func ended(state contract.EntryState) func(h *house) string {
	return func(h *house) string {
		v := h.join("+12025550101")
		_, err := h.gate.Gate.Leave(h.t.Context(), redis.LeaveRequest{SKU: h.sku, EntryID: v.EntryID, State: state, Actor: "test"})
		require.NoError(h.t, err)
		return "/w/" + v.EntryID
	}
}

func (h *house) textSent(holdID string) {
	h.t.Helper()
	_, err := h.gate.Told(h.t.Context(), redis.ToldRequest{SKU: h.sku, HoldID: holdID, Window: h.cfg.Offer.Window, MaxAge: h.cfg.Offer.MaxAge, Sent: true})
	require.NoError(h.t, err)
}

// waitingText is the place of somebody whose text is kept back.
func (h *house) waitingText(why contract.Why) string {
	h.t.Helper()
	entryID, _, _ := h.offer()
	h.eventually("the workflow starts", func() bool { _, ok := h.wf.entry(entryID); return ok })
	h.wf.set(func() {
		h.wf.statuses[entryID] = contract.EntryStatus{EntryID: entryID, TextWaits: &contract.TextWait{Why: why, Until: time.Now().Add(7 * time.Hour)}}
	})
	return "/w/" + entryID
}

// setSale changes the SKU for everybody.
func (h *house) setSale(req redis.SettingsRequest) {
	h.t.Helper()
	req.SKU = h.sku
	_, err := h.gate.Settings(h.t.Context(), req)
	require.NoError(h.t, err)
}

// pageStates are all pages that a shopper can come to.
var pageStates = []pageState{
	{name: "join", arrange: func(h *house) string {
		for _, phone := range []string{"+12025550111", "+12025550112", "+12025550113"} {
			h.join(phone)
		}
		return "/join/" + h.sku
	}, shows: "3 people are in line right now.", dark: true},
	{name: "join-wrong", arrange: func(h *house) string { return "/join/" + h.sku }, act: func(b reader) {
		b.Must(b.t, fill("phone", "call me"), fill("name", "Ada Lovelace"), fill("quantity", "2"), chromedp.Click("input[name=consent]", chromedp.ByQuery))
		b.click("button")
	}, shows: "This is not a phone number."},
	{name: "joined", arrange: func(h *house) string { return "/join/" + h.sku }, act: func(b reader) {
		b.Must(b.t, fill("phone", "07700 900001"), chromedp.Click("input[name=consent]", chromedp.ByQuery))
		b.click("button")
	}, shows: "If +44 7700 900001 is your number"},
	{name: "place", arrange: func(h *house) string {
		h.join("+12025550111")
		h.join("+12025550112")
		return "/w/" + h.join("+12025550101").EntryID
	}, shows: "You are no. 3 in line", dark: true},
	{name: "place-leave", arrange: func(h *house) string { return "/w/" + h.join("+12025550101").EntryID }, act: func(b reader) {
		b.Must(b.t, chromedp.Click("summary", chromedp.ByQuery))
	}, shows: "Yes, leave the line"},
	{name: "place-missed", settings: []setting{keepsPlaces, lapsesAtOnce}, arrange: func(h *house) string {
		entryID, _, _ := h.lapsed()
		return "/w/" + entryID
	}, shows: "Your last turn has passed, and your place is kept."},
	{name: "place-paused", arrange: func(h *house) string {
		v, yes := h.join("+12025550101"), true
		h.setSale(redis.SettingsRequest{Paused: &yes})
		return "/w/" + v.EntryID
	}, shows: "The sale is paused right now."},
	{name: "place-ended", arrange: func(h *house) string {
		v, past := h.join("+12025550101"), time.Now().Add(-time.Second)
		h.setSale(redis.SettingsRequest{Ends: &past})
		return "/w/" + v.EntryID
	}, shows: "The sale has ended"},
	{name: "turn-coming", arrange: func(h *house) string {
		entryID, _, _ := h.offer()
		return "/w/" + entryID
	}, shows: "A text with your link is on its way."},
	{name: "turn-quiet", arrange: func(h *house) string { return h.waitingText(contract.WhyQuietHours) }, shows: "we send none at night"},
	{name: "turn-held-up", arrange: func(h *house) string { return h.waitingText(contract.WhySenderDown) }, shows: "Our texts are held up right now."},
	{name: "turn", arrange: func(h *house) string {
		entryID, holdID, _ := h.offer()
		h.textSent(holdID)
		return "/w/" + entryID
	}, shows: "Open the link in your text"},
	{name: "offer", arrange: func(h *house) string {
		_, holdID, path := h.offer()
		h.textSent(holdID)
		return path
	}, shows: "Reserve now", dark: true},
	{name: "offer-over", settings: []setting{func(cfg *config.Config, _ *redis.Options) { cfg.Offer.Window = time.Millisecond }}, arrange: func(h *house) string {
		_, holdID, path := h.offer()
		h.textSent(holdID)
		return path
	}, shows: "What was kept for you is about to go"},
	{name: "making", arrange: func(h *house) string {
		_, holdID, _ := h.offer()
		_, err := h.gate.Reserve(h.t.Context(), redis.ReserveRequest{SKU: h.sku, HoldID: holdID, Press: true, Actor: redis.ActorShopper})
		require.NoError(h.t, err)
		return "/h/" + holdID
	}, shows: "Your hold is being made"},
	{name: "held", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		return "/h/" + holdID
	}, shows: "Go to the checkout", dark: true, more: true},
	{name: "held-paying", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		a := h.call("POST", "/v1/holds/"+holdID+"/checkout", map[string]any{"payment_ref": "pay_1"})
		require.Equal(h.t, http.StatusOK, a.status, a.body)
		return "/h/" + holdID
	}, shows: "Your payment has begun"},
	{name: "held-left", arrange: func(h *house) string {
		entryID, _, _ := h.pressed()
		require.Equal(h.t, http.StatusSeeOther, h.browse("POST", "/w/"+entryID+"/leave", nil).status)
		return "/w/" + entryID
	}, shows: "You have left the line. Your hold runs on"},
	{name: "held-over", settings: []setting{func(cfg *config.Config, _ *redis.Options) { cfg.Hold.TTL = time.Second }}, arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		h.eventually("its time is over", func() bool { return time.Now().After(h.record(holdID).Deadline) })
		return "/h/" + holdID
	}, shows: "a payment that comes right now may still be in time."},
	{name: "cart", units: 5, arrange: func(h *house) string {
		second := "U-" + rand.Text()
		h.put(second)
		a := h.call("PUT", "/v1/stock/"+second, map[string]any{"title": "Cushion, wool", "checkout_url": checkout})
		require.Less(h.t, a.status, 300, a.body)
		_, err := h.gate.Stock(h.t.Context(), second, contract.StockEvent{EventID: rand.Text(), Kind: contract.StockRestock, Units: 5})
		require.NoError(h.t, err)
		a = h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": []any{
			map[string]any{"sku": h.sku, "quantity": 2}, map[string]any{"sku": second, "quantity": 4},
		}}, "Idempotency-Key", rand.Text())
		require.Equal(h.t, http.StatusCreated, a.status, a.body)
		return "/h/" + a.hold(h.t).HoldID
	}, shows: "4 × Cushion, wool"},
	{name: "sold", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		require.Equal(h.t, http.StatusOK, h.confirm(holdID, "pay_1").status)
		return "/h/" + holdID
	}, shows: "Bought. It is yours.", dark: true},
	{name: "refund", units: 1, arrange: refunded(contract.PaymentStatus{State: contract.PaymentRefundPending, Cause: contract.CauseLate}), shows: "We are sending €149.00 back to you", dark: true},
	{name: "refund-sent", units: 1, arrange: refunded(contract.PaymentStatus{State: contract.PaymentRefundReported, Cause: contract.CauseLate}), shows: "We have sent €149.00 back"},
	{name: "refund-settled", units: 1, arrange: refunded(contract.PaymentStatus{State: contract.PaymentRefundSettled, Cause: contract.CauseLate}), shows: "We have paid €149.00 back"},
	{name: "refund-parked", units: 1, arrange: refunded(contract.PaymentStatus{State: contract.PaymentParked, Cause: contract.CauseLate}), shows: "A person at the shop is looking at it."},
	{name: "gone-kept", settings: []setting{keepsPlaces, lapsesAtOnce}, arrange: func(h *house) string {
		_, _, path := h.lapsed()
		return path
	}, shows: "Gone, but you keep your place", dark: true},
	{name: "gone-now", settings: []setting{lapsesAtOnce}, arrange: func(h *house) string {
		entryID, _, path := h.lapsed()
		for _, phone := range []string{"+12025550111", "+12025550112", "+12025550113"} {
			h.join(phone)
		}
		h.eventually("the workflow starts", func() bool { _, ok := h.wf.entry(entryID); return ok })
		require.Equal(h.t, http.StatusSeeOther, h.browse("POST", "/w/"+entryID+"/again", nil).status)
		return path
	}, shows: "You are now no. 4 in line"},
	{name: "gone-again", settings: []setting{lapsesAtOnce}, arrange: func(h *house) string {
		_, _, path := h.lapsed()
		h.join("+12025550111")
		return path
	}, shows: "Put me back in line", dark: true},
	{name: "gone-pastdue", arrange: func(h *house) string {
		_, holdID, _ := h.offer()
		return "/r/" + h.token(holdID, time.Now().Add(-time.Second))
	}, shows: "This link has expired."},
	{name: "given-back", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		require.Equal(h.t, http.StatusSeeOther, h.browse("POST", "/h/"+holdID+"/release", nil).status)
		return "/h/" + holdID
	}, shows: "You gave it back"},
	{name: "payment-failed", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		h.call("POST", "/v1/holds/"+holdID+"/payment-failed", map[string]any{"final": true})
		return "/h/" + holdID
	}, shows: "The payment did not go through"},
	{name: "walk-in-over", units: 1, arrange: func(h *house) string {
		v := h.hold()
		h.join("+12025550111")
		_, err := h.gate.Release(h.t.Context(), releaseOf(h.sku, v.HoldID, contract.ReasonShop))
		require.NoError(h.t, err)
		return "/h/" + v.HoldID
	}, shows: "The shop has taken it back"},
	{name: "left", arrange: ended(contract.EntryLeft), shows: "You have left the line"},
	{name: "time-out", arrange: ended(contract.EntryExpired), shows: "Your time in this line is over"},
	{name: "opted-out", arrange: ended(contract.EntryOptedOut), shows: "You answered STOP"},
	{name: "unreachable", arrange: ended(contract.EntryUnreachable), shows: "Our texts did not reach you"},
	{name: "removed", arrange: ended(contract.EntryRemoved), shows: "You are not in this line any more"},
	{name: "unknown-link", arrange: func(*house) string { return "/r/" + strings.Repeat("A", 54) }, shows: "We do not know this link"},
	{name: "unknown-product", arrange: func(*house) string { return "/join/NOBODY" }, shows: "We do not know this product"},
	{name: "ended", arrange: func(h *house) string {
		past := time.Now().Add(-time.Second)
		h.setSale(redis.SettingsRequest{Ends: &past})
		return "/join/" + h.sku
	}, shows: "The sale has ended"},
	{name: "unavailable", arrange: func(h *house) string {
		_, holdID, _ := h.pressed()
		h.gate.break_("Snapshot", errors.Join(redis.ErrUnavailable), nil)
		return "/h/" + holdID
	}, shows: "One moment, please"},
}

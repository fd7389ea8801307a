package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

var placeLink = regexp.MustCompile(`https?://[^/\s]+(/w/entry_[a-z0-9]+)`)

// A phone whose clock is an hour ahead goes all the way: joins, is told, presses,
// sees the time run out, pays too late and reads of the refund. Then the next in
// line buys. What changes shows by itself, on pages that nobody loads again.
// B4, B11, B21, B69.
func TestShoppersOnTheirPhones(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "phones"
	h.opened(t, sku, 0)
	door := h.door(t, "HOLDFAST_HOLD_TTL", "6s", "HOLDFAST_HOLD_GRACE", "0s", "HOLDFAST_HOLD_AFTER", "page")
	b := openBrowser(t)
	must := func(actions ...chromedp.Action) {
		t.Helper()
		require.NoError(t, b.do(actions...))
	}
	// shows waits until the heading is one that matches.
	shows := func(heading string) {
		t.Helper()
		must(chromedp.Evaluate(fmt.Sprintf(`new Promise(done => {
			const look = () => new RegExp(%q).test(document.querySelector('h1').textContent) && (done(), true);
			if (!look()) new MutationObserver((_, self) => look() && self.disconnect()).observe(document, {subtree: true, childList: true});
		})`, heading), nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	}
	// click presses a button and waits for the page that follows.
	click := func(button string) {
		t.Helper()
		must(chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := chromedp.RunResponse(ctx, chromedp.Click(button))
			return err
		}))
	}
	text := func() string {
		t.Helper()
		said, err := b.text()
		require.NoError(t, err)
		return said
	}
	must(
		chromedp.EmulateViewport(360, 720),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(`{
				const real = Date, off = 3600000;
				Date = class extends real {
					constructor(...given) { given.length ? super(...given) : super(real.now() + off); }
					static now() { return real.now() + off; }
				};
			}`).Do(ctx)
			return err
		}),
	)

	must(
		chromedp.Navigate(door.URL+"/join/"+sku),
		chromedp.SendKeys("#phone", phone(0)),
		chromedp.Click("input[name=consent]"),
	)
	click("main form > button")
	shows("^Look at your phone$")
	var ada shop.Text
	require.NoError(t, until(ctx, "Ada is told of her place", func() error {
		texts, err := h.outbox.Texts()
		for _, sent := range texts {
			if sent.To == phone(0) && placeLink.MatchString(sent.Body) && sent.Cause == "joined" {
				if e, rerr := h.shop.ReadEntry(ctx, sent.EntryID); rerr == nil && e.SKU == sku {
					ada = sent
					return nil
				}
			}
		}
		return errors.Join(errors.New("no text yet"), err)
	}))
	must(chromedp.Navigate(door.URL + placeLink.FindStringSubmatch(ada.Body)[1]))
	shows("^You are no. 1 in line$")
	bea, err := h.inLine(ctx, door, sku, phone(1))
	require.NoError(t, err)

	// press opens the link of a text and presses its button.
	press := func(entryID string) shop.Entry {
		t.Helper()
		told, err := h.offerText(ctx, entryID)
		require.NoError(t, err)
		link, err := url.Parse(told.Link())
		require.NoError(t, err)
		h.untouched(t, sku, func() {
			must(chromedp.Navigate(door.URL + link.Path))
			shows("^It is your turn$")
		})
		click("main form > button")
		shows("^It is held for you$")
		entry, err := h.entryState(ctx, entryID, "holding")
		require.NoError(t, err)
		return entry
	}
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	held := press(ada.EntryID)
	shows("gone|Gone") // what it says of her place hangs on missed.keep
	require.Contains(t, text(), "The time is over. What was kept for you has gone back.")
	_, err = h.holdState(ctx, held.HoldID, "expired")
	require.NoError(t, err)
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+held.HoldID+"/confirm", map[string]any{
		"payment_ref": "pay_" + held.HoldID, "amount": 4900, "currency": "EUR",
	})
	require.NoError(t, err)
	require.Equal(t, "hold-ended", a.Code(), a)
	must(chromedp.Navigate(door.URL + "/h/" + held.HoldID))
	shows("^Your refund is on its way$")
	require.Contains(t, text(), "We are sending €49.00 back to you, all of it.")

	bought := press(bea.EntryID)
	confirmed(t, h, bought.HoldID, "pay_"+bought.HoldID)
	shows("^Bought. It is yours.$")
	h.judge(t, sku)
}

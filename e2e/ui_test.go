package e2e

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/dev/stack"
	"holdfast/e2e/shop"
)

const payloadKeys = "HOLDFAST_SECRETS_PAYLOAD_KEYS"

// An operator reads in Temporal's UI how every hold, entry, payment and book
// stands and what comes next, though Temporal itself has only ciphertext.
func TestAnOperatorReadsTheUI(t *testing.T) {
	const secret = "whsec_cmVmdW5kcy1vZi10aGUtc2hvcC1vZi10aGUtc3Rvcnk="
	// The shop's endpoint takes every request for a refund but one.
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || strings.Contains(string(body), "pay_stuck") {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(desk.Close)
	h := ownHouse(t, stack.Options{UI: true, Env: map[string]string{
		payloadKeys:                 config.DevPayloadKey,
		"HOLDFAST_PAYMENT_PROVIDER": "webhook", "HOLDFAST_PAYMENT_WEBHOOK_URL": desk.URL, "HOLDFAST_PAYMENT_WEBHOOK_SECRETS": secret,
	}}, lease)
	h.check.Codec, _ = ringOf(t, config.DevPayloadKey)
	b := openBrowser(t)

	t.Run("holds and payments", func(t *testing.T) { b.readsHolds(t, h) })
	t.Run("entries", func(t *testing.T) { b.readsEntries(t, h) })
	h.judge(t, "TABLE", "STOOL", "LAMP")
}

func (b browser) readsHolds(t *testing.T, h *house) {
	ctx := t.Context()
	h.opened(t, "TABLE", 10)
	h.opened(t, "STOOL", 0)
	take := func(door *shop.Shop, customer string) shop.Hold {
		t.Helper()
		a, err := door.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{
			"sku": "TABLE", "quantity": 1, "customer": customer, "order_ref": "order of " + customer,
		}, "Idempotency-Key", shop.Token())
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, a)
		hold, err := shop.ParseHold(a)
		require.NoError(t, err)
		return hold
	}
	post := func(hold shop.Hold, path string, body any) shop.Answer {
		t.Helper()
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/holds/"+hold.HoldID+path, body)
		require.NoError(t, err)
		return a
	}
	// lines are those of a hold; the payment stands before the order.
	lines := func(state string, hold shop.Hold, payment, next string) []string {
		out := []string{"State: " + state, "Lines: 1 × TABLE", "Customer: " + hold.Customer, "Held until: " + utc(hold.ExpiresAt)}
		if payment != "" {
			out = append(out, "Payment: "+payment)
		}
		return append(out, "Order: "+hold.OrderRef, "Next: "+next)
	}

	// Its clock runs out while the others are read.
	lapsing := take(h.door(t, payloadKeys, config.DevPayloadKey, "HOLDFAST_HOLD_TTL", "5s"), "Hanno Idle")

	held := take(h.shop, "Ada [link](https://evil.example)")
	b.reads(t, h, held.HoldID, lines("held", held, "", "given back at the deadline unless paid")...)

	paying := take(h.shop, "Berta Quist")
	require.Equal(t, http.StatusOK, post(paying, "/checkout", map[string]any{"payment_ref": "pay_1", "amount": 4900, "currency": "EUR"}).Status)
	require.NoError(t, until(ctx, "the hold is extended", func() (err error) {
		if paying, err = h.shop.ReadHold(ctx, paying.HoldID); err == nil && !paying.Extended {
			err = errors.New("it is not")
		}
		return err
	}))
	b.reads(t, h, paying.HoldID, lines("held", paying, "", "the shopper pays; given back when the deadline and the grace have passed")...)
	b.picture(t, "ui-hold.png")

	require.Equal(t, "amount-mismatch", post(paying, "/confirm", map[string]any{"payment_ref": "pay_1", "amount": 1, "currency": "EUR"}).Code())
	b.reads(t, h, paying.HoldID, lines("held", paying, "", "a person should look: 1 payment(s) of another amount, refunded when the hold ends unless put right")...)

	sold := take(h.shop, "Cleo Sold")
	confirmed(t, h, sold.HoldID, "pay_2")
	b.reads(t, h, sold.HoldID, lines("sold", sold, "pay_2", "closes")...)

	released := take(h.shop, "Dora Left")
	require.Equal(t, http.StatusOK, post(released, "/release", map[string]any{}).Status)
	b.reads(t, h, released.HoldID, lines("released", released, "", "closes")...)

	_, err := h.holdState(ctx, lapsing.HoldID, "expired")
	require.NoError(t, err)
	b.reads(t, h, lapsing.HoldID, lines("expired", lapsing, "", "closes")...)

	// A stranger starts a Hold of something that is sold out.
	stool := sha256.Sum256([]byte("STOOL"))
	refused := "hold_" + strings.ToLower(base32.StdEncoding.EncodeToString(stool[:5])) + "astrangersholdabca"
	_, err = h.temporal.ExecuteWorkflow(ctx, onQueue(refused), "Hold", map[string]any{
		"hold_id": refused, "customer": "Emil", "person": "emil", "lines": []any{map[string]any{"sku": "STOOL", "quantity": 1}},
		"settings": map[string]any{"hold_seconds": 60},
	})
	require.NoError(t, err)
	b.reads(t, h, refused, "State: refused", "Lines: 1 × STOOL", "Customer: Emil", "Next: closes")

	const settle = "send the signal refund-settled with {\"reference\":\"re_123\",\"actor\":\"you\"}: the provider’s reference and your name"
	for ref, want := range map[string][2]string{
		"pay_late":  {"refund-reported", "the provider pays the money back; settled by its word, or " + settle},
		"pay_stuck": {"refund-pending", "the provider is asked for the refund until it takes the request"},
	} {
		require.Equal(t, "hold-ended", post(released, "/confirm", map[string]any{"payment_ref": ref, "amount": 4900, "currency": "EUR"}).Code())
		b.reads(t, h, paymentID(released.HoldID, ref), "State: "+want[0], "Payment: "+ref+", 4900 EUR (minor units)", "Hold: "+released.HoldID, "Cause: late", "Next: "+want[1])
	}
	const nonsense = `{"ref":"pay_odd"}`
	require.NoError(t, h.temporal.SignalWorkflow(ctx, held.HoldID, "", "payment-succeeded", json.RawMessage(nonsense)))
	raw := rawRef(nonsense)
	b.reads(t, h, paymentID(held.HoldID, raw), "State: parked", "Payment: "+raw, "Hold: "+held.HoldID, "Cause: undecodable", "Said: "+nonsense,
		"Next: a person must find out what this money is, pay it back or book it, then "+settle)

	b.reads(t, h, "stock.TABLE", "State: open", "Lines: TABLE: received 10, returned 0, corrected 0, refused events 0", "Title: Chair TABLE", "Next: the next stock event")
	b.lists(t, h, `HoldfastSku="TABLE" AND HoldfastState="sold"`, sold.HoldID)
	b.lists(t, h, `HoldfastState="parked"`, paymentID(held.HoldID, raw))
	b.lists(t, h, `WorkflowType="Hold" AND HoldfastSku="TABLE"`, held.HoldID, paying.HoldID, sold.HoldID, released.HoldID, lapsing.HoldID)
	b.picture(t, "ui-list.png")
}

func (b browser) readsEntries(t *testing.T, h *house) {
	ctx := t.Context()
	h.opened(t, "LAMP", 0)
	people := make([]shop.Entry, 4)
	names := []string{"Fritzi Bought", "Gerda Holds", "Hilde Offered", "Ida Waits"}
	for i, name := range names {
		a, err := h.shop.Call(ctx, http.MethodPost, "/v1/waitlist", map[string]any{"sku": "LAMP", "phone": phone(i), "name": name, "consent": true})
		require.NoError(t, err)
		people[i], err = shop.ParseEntry(a)
		require.NoError(t, err)
		require.NoError(t, until(ctx, name+" is acknowledged", func() error {
			known, err := h.check.Acknowledged(ctx, "LAMP", people[i].EntryID)
			if err == nil && !known {
				err = errors.New("not yet")
			}
			return err
		}))
	}
	require.NoError(t, h.shop.Restock(ctx, "LAMP", 3))
	for i := range 2 {
		page, err := h.linkPage(ctx, people[i].EntryID)
		require.NoError(t, err)
		_, err = h.shop.Press(ctx, page, "/r/")
		require.NoError(t, err)
		people[i], err = h.entryState(ctx, people[i].EntryID, "holding")
		require.NoError(t, err)
	}
	confirmed(t, h, people[0].HoldID, "pay_lamp")
	_, err := h.offerText(ctx, people[2].EntryID)
	require.NoError(t, err)
	var offered shop.Entry
	require.NoError(t, until(ctx, "the window of the offer runs", func() error {
		offered, err = h.shop.ReadEntry(ctx, people[2].EntryID)
		if err == nil && offered.Offer == nil {
			err = errors.New("no offer yet")
		}
		return err
	}))
	start := func(i int, state string) []string {
		return []string{"State: " + state, "Lines: 1 × LAMP", "Customer: " + names[i]}
	}
	b.reads(t, h, people[0].EntryID, append(start(0, "bought"), "Next: closes")...)
	b.reads(t, h, people[1].EntryID, append(start(1, "holding"), "Next: the end of the hold "+people[1].HoldID)...)
	b.reads(t, h, people[2].EntryID, append(start(2, "offered"), "Held until: "+utc(offered.Offer.ExpiresAt), "Next: a press, or the offer lapses")...)
	b.reads(t, h, people[3].EntryID, append(start(3, "waiting"), "Next: waits for a unit until "+utc(people[3].ExpiresAt))...)
}

// lists waits until the UI's list shows these workflows under a filter, and no
// others. It has columns for the state and the SKU, as a person can choose them.
func (b browser) lists(t *testing.T, h *house, query string, ids ...string) {
	t.Helper()
	const columns = `{"default": ["Status", "Type", "Workflow ID", "HoldfastState", "HoldfastSku", "Start"].map(label => ({label}))}`
	want, err := json.Marshal(slices.Sorted(slices.Values(ids)))
	require.NoError(t, err)
	require.NoError(t, b.do(
		chromedp.Evaluate(`localStorage.setItem('namespace-workflow-table-columns', JSON.stringify(`+columns+`))`, nil),
		chromedp.Navigate(h.UIURL()+"/namespaces/default/workflows?query="+url.QueryEscape(query)),
	))
	require.NoError(t, b.poll(fmt.Sprintf(`JSON.stringify([...document.querySelectorAll('tbody a')].map(a => a.textContent.trim())
		.filter(text => /^(hold|entry|payment)_|^stock[.]/.test(text)).sort()) === %q`, want)))
}

// A UI that no codec endpoint answers shows ciphertext: the test above can see.
func TestTheUIShowsNothingWithoutACodecEndpoint(t *testing.T) {
	ctx := t.Context()
	const at = "127.0.0.1:1" // where a worker without a door believes the pages are
	h := ownHouse(t, stack.Options{UI: true, NoDoor: true, Env: map[string]string{
		payloadKeys: config.DevPayloadKey, "HOLDFAST_HTTP_PUBLIC_ADDR": at, "HOLDFAST_HTTP_API_ADDR": at, "HOLDFAST_HTTP_OPS_ADDR": at, "HOLDFAST_HTTP_PUBLIC_URL": "http://" + at,
	}}, lease)
	open := h.door(t, payloadKeys, config.DevPayloadKey, "HOLDFAST_TEMPORAL_UI_ORIGINS", h.UIURL())
	closed := h.door(t, payloadKeys, config.DevPayloadKey, "HOLDFAST_TEMPORAL_UI_ORIGINS", "https://temporal.example")
	h.shop = open
	h.check.Codec, _ = ringOf(t, config.DevPayloadKey)
	h.opened(t, "VASE", 1)
	hold, err := h.shop.Hold(ctx, "VASE", "Ottokar Hidden")
	require.NoError(t, err)
	b := openBrowser(t)

	hidden := func() {
		t.Helper()
		text, err := b.text()
		require.NoError(t, err)
		require.Contains(t, text, hold.HoldID)
		require.NotContains(t, text, "Ottokar")
	}
	// Unset: it shows what Temporal has.
	first, err := h.temporal.GetWorkflowHistory(ctx, hold.HoldID, "", false, 0).Next()
	require.NoError(t, err)
	sealed := first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0].GetData()
	require.NoError(t, b.page(h, hold.HoldID, "timeline"))
	require.NoError(t, b.poll(fmt.Sprintf(`document.body.innerText.includes(%q)`, base64.StdEncoding.EncodeToString(sealed))))
	hidden()
	// Asked from an origin that is none of temporal.ui_origins.
	b.setCodec(t, closed.URL+"/codec")
	require.NoError(t, b.page(h, hold.HoldID, "user-metadata"))
	require.NoError(t, b.poll(`document.body.innerText.includes('Codec Server could not connect')`))
	hidden()
	// As it should be.
	b.setCodec(t, open.URL+"/codec")
	b.reads(t, h, hold.HoldID, "State: held", "Lines: 1 × VASE", "Customer: Ottokar Hidden", "Held until: "+utc(hold.ExpiresAt), "Next: given back at the deadline unless paid")
	require.NoError(t, b.poll(`document.querySelector('[data-testid="data-encoder-status-success"]') !== null`))
	h.judge(t, "VASE")
}

// setCodec sets the endpoint as a person does, in the dialog behind the glasses.
func (b browser) setCodec(t *testing.T, endpoint string) {
	t.Helper()
	require.NoError(t, b.do(
		chromedp.Click(`[data-testid^="data-encoder-status"], button[aria-label="Configure Codec Server"]`, chromedp.ByQuery),
		chromedp.Click(`#use-local-endpoint-radio`, chromedp.ByQuery),
		chromedp.WaitVisible(`#data-encoder-endpoint-input`, chromedp.ByQuery),
		chromedp.Evaluate(`document.getElementById('data-encoder-endpoint-input').select()`, nil), // typing replaces it
		chromedp.SendKeys(`#data-encoder-endpoint-input`, endpoint, chromedp.ByQuery),
		chromedp.Click(`#data-encoder-settings [data-testid="confirm-modal-button"]:enabled`, chromedp.ByQuery),
		chromedp.WaitNotVisible(`#data-encoder-endpoint-input`, chromedp.ByQuery),
	), "set the codec endpoint %s", endpoint)
}

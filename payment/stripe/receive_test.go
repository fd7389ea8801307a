package stripe

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
	"holdfast/internal/stripetest"
)

// receive gives an event of an object as it is now to the adapter.
func receive(t *testing.T, s *stripetest.Server, a *Adapter, kind, id string, change func(stripetest.Object)) Happening {
	body := s.Event(kind, id, change)
	h, err := a.Receive(t.Context(), body, stripetest.Sign(body, time.Now(), hookSecret))
	require.NoError(t, err)
	require.Equal(t, kind, h.Type)
	require.NotEmpty(t, h.EventID)
	return h
}

func TestSignatures(t *testing.T) {
	s, a := standIn(t)
	ref := paid(s, holdID)
	body := s.Event("payment_intent.succeeded", ref, nil)
	now := time.Now()
	sign := stripetest.Sign
	for name, header := range map[string]string{
		"ours":               sign(body, now, hookSecret),
		"the one before":     sign(body, now, oldSecret),
		"while Stripe rolls": sign(body, now, "whsec_new", hookSecret),
		"ours first":         sign(body, now, hookSecret, "whsec_new"),
		"with other schemes": sign(body, now, hookSecret) + ",v0=00,v2=zz",
		"a broken one first": strings.Replace(sign(body, now, hookSecret), ",", ",v1=xyz,v1=00,", 1),
		"four minutes old":   sign(body, now.Add(-4*time.Minute), hookSecret),
	} {
		h, err := a.Receive(t.Context(), body, header)
		require.NoError(t, err, name)
		require.Equal(t, Succeeded, h.Kind, name)
	}
	good := sign(body, now, hookSecret)
	for name, header := range map[string]string{
		"none":              "",
		"a stranger's":      sign(body, now, "whsec_stranger"),
		"six minutes old":   sign(body, now.Add(-6*time.Minute), hookSecret),
		"another body":      sign(append([]byte(" "), body...), now, hookSecret),
		"another time":      "t=1" + good[strings.Index(good, ","):],
		"no time":           good[strings.Index(good, ",")+1:],
		"no signature":      good[:strings.Index(good, ",")],
		"another scheme":    strings.Replace(good, "v1=", "v0=", 1),
		"garbage":           "t=now,v1=00",
		"cut":               good[:len(good)-2],
		"empty signature":   good[:strings.Index(good, ",")] + ",v1=",
		"very long":         strings.Repeat("v1=00,", 100_000),
		"signed by nothing": sign(body, now, ""),
	} {
		h, err := a.Receive(t.Context(), body, header)
		require.ErrorIs(t, err, ErrSignature, name)
		require.Zero(t, h, name)
		require.NotContains(t, err.Error(), hookSecret)
		require.Less(t, len(err.Error()), 300)
	}
	_, err := a.Receive(t.Context(), body, sign(body, now.Add(-6*time.Minute), hookSecret))
	require.ErrorContains(t, err, "this machine's clock", "a wrong clock is found out")
}

func TestWhatIsNoEventOfStripe(t *testing.T) {
	_, a := standIn(t)
	for name, body := range map[string]string{
		"empty":           "",
		"no JSON":         "{",
		"a list":          "[]",
		"another object":  `{"object":"charge","id":"ch_1"}`,
		"a thin event":    `{"object":"v2.core.event","id":"evt_1","type":"v1.billing.meter.no_meter_found"}`,
		"no data":         `{"object":"event","id":"evt_1","type":"payment_intent.succeeded","data":{}}`,
		"no object":       `{"object":"event","id":"evt_1","type":"payment_intent.succeeded","data":{"object":{}}}`,
		"amount: a text":  `{"object":"event","id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":"5"}}}`,
		"amount: a half":  `{"object":"event","id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":5.5}}}`,
		"no session":      `{"object":"event","id":"evt_1","type":"checkout.session.completed","data":{"object":{}}}`,
		"no refund":       `{"object":"event","id":"evt_1","type":"refund.updated","data":{"object":{}}}`,
		"metadata: texts": `{"object":"event","id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","metadata":["hold_id"]}}}`,
	} {
		_, err := a.Receive(t.Context(), []byte(body), stripetest.Sign([]byte(body), time.Now(), hookSecret))
		require.ErrorIs(t, err, ErrBody, name)
		require.NotContains(t, err.Error(), "%!", name)
	}
}

func TestEveryEventHasItsMeaning(t *testing.T) {
	s, a := standIn(t)
	eur := func(amount int64) *contract.Money { return &contract.Money{Amount: amount, Currency: "EUR"} }
	unpaid, whole := s.Intent(holdID, 1250, "eur"), paid(s, holdID)
	yen := s.Intent(holdID, 500, "jpy")
	s.Pay(yen)
	part := paid(s, holdID)
	s.Set(part, stripetest.Object{"amount_received": 1000})
	declined := s.Intent(holdID, 1250, "eur")
	s.Set(declined, stripetest.Object{"last_payment_error": stripetest.Object{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}})
	gaveUp, replaced := s.Intent(holdID, 1250, "eur"), s.Intent(holdID, 1250, "eur")
	s.Set(gaveUp, stripetest.Object{"status": "canceled", "cancellation_reason": "requested_by_customer"})
	s.Set(replaced, stripetest.Object{"status": "canceled", "cancellation_reason": "duplicate"})
	session := func(intent string, fields stripetest.Object) string {
		id := s.Session(holdID, intent, 1250, "eur")
		s.Set(id, fields)
		return id
	}
	done := session(whole, stripetest.Object{"status": "complete", "payment_status": "paid"})
	slow := session(unpaid, stripetest.Object{"status": "complete"})
	left := session("", stripetest.Object{"status": "expired"})
	free := session("", stripetest.Object{"status": "complete", "payment_status": "no_payment_required", "amount_total": 0})
	byInvoice := session("", stripetest.Object{"status": "complete", "payment_status": "paid", "mode": "subscription"})

	for name, c := range map[string]struct {
		kind, id string
		want     Happening
	}{
		"asks the bank":    {"payment_intent.requires_action", unpaid, Happening{Kind: Started, Ref: unpaid, Money: eur(1250)}},
		"under way":        {"payment_intent.processing", unpaid, Happening{Kind: Started, Ref: unpaid, Money: eur(1250)}},
		"reserved":         {"payment_intent.amount_capturable_updated", unpaid, Happening{Kind: Started, Ref: unpaid}},
		"succeeded":        {"payment_intent.succeeded", whole, Happening{Kind: Succeeded, Ref: whole, Money: eur(1250)}},
		"yen as they come": {"payment_intent.succeeded", yen, Happening{Kind: Succeeded, Ref: yen, Money: &contract.Money{Amount: 500, Currency: "JPY"}}},
		"captured in part": {"payment_intent.succeeded", part, Happening{Kind: Succeeded, Ref: part, Money: eur(1000)}},
		"declined":         {"payment_intent.payment_failed", declined, Happening{Kind: Failed, Ref: declined, Reason: "insufficient_funds"}},
		"gave up":          {"payment_intent.canceled", gaveUp, Happening{Kind: Failed, Ref: gaveUp, Reason: "requested_by_customer", Final: true}},
		"replaced":         {"payment_intent.canceled", replaced, Happening{Kind: Failed, Ref: replaced, Reason: "duplicate"}},
		"session paid":     {"checkout.session.completed", done, Happening{Kind: Succeeded, Ref: whole, Session: done, Money: eur(1250)}},
		"session slow":     {"checkout.session.completed", slow, Happening{Kind: Started, Ref: unpaid, Session: slow, Money: eur(1250)}},
		"slow, paid":       {"checkout.session.async_payment_succeeded", done, Happening{Kind: Succeeded, Ref: whole, Session: done, Money: eur(1250)}},
		"slow, failed":     {"checkout.session.async_payment_failed", slow, Happening{Kind: Failed, Ref: unpaid, Session: slow, Reason: "the delayed payment failed", Final: true}},
		"session left":     {"checkout.session.expired", left, Happening{Kind: Failed, Ref: left, Session: left, Reason: "session expired"}},
		"session free":     {"checkout.session.completed", free, Happening{Kind: Succeeded, Ref: free, Session: free, Money: eur(0)}},
		"session, invoice": {"checkout.session.completed", byInvoice, Happening{
			Kind: Unmatched, Ref: byInvoice, Session: byInvoice, Money: eur(1250), Reason: "a session of mode subscription has no PaymentIntent that could be paid back",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := receive(t, s, a, c.kind, c.id, nil)
			c.want.HoldID, c.want.Type, c.want.EventID = holdID, c.kind, got.EventID
			require.Equal(t, c.want, got)
		})
	}
	require.Empty(t, s.Calls(), "payments are read without asking Stripe")
}

// The page says which events to select; each of them is read.
func TestTheDocsNameEventsThatAreRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/payment.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| event | means |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "5. **A key**")
	names := regexp.MustCompile("`((?:payment_intent|checkout|refund)\\.[a-z_.]+)`").FindAllStringSubmatch(table, -1)
	require.Len(t, names, 13)
	s, a := standIn(t)
	ref := paid(s, holdID)
	for _, name := range names {
		id := ref
		switch strings.Split(name[1], ".")[0] {
		case "checkout":
			id = s.Session(holdID, ref, 1250, "eur")
		case "refund":
			id = s.RefundByHand(ref, 1250)
		}
		require.NotContains(t, receive(t, s, a, name[1], id, nil).Reason, "not an event", name[1])
	}
}

// What is not ours, or cannot be: never an error, as Stripe would send it again
// for days.
func TestNotOurs(t *testing.T) {
	s, a := standIn(t)
	whole := paid(s, holdID)
	set := func(key string, value any) func(stripetest.Object) {
		return func(e stripetest.Object) { e[key] = value }
	}
	for name, c := range map[string]struct {
		kind, id string
		change   func(stripetest.Object)
		reason   string
	}{
		"said to be of others":   {"payment_intent.succeeded", paid(s, NoHold), nil, "for no hold"},
		"nothing paid":           {"payment_intent.processing", s.Intent("", 1, "eur"), nil, "no hold_id"},
		"a session of others":    {"checkout.session.completed", s.Session("", whole, 1, "eur"), nil, "no hold_id"},
		"a test card's":          {"payment_intent.succeeded", whole, set("livemode", true), "livemode"},
		"a connected account's":  {"payment_intent.succeeded", whole, set("account", "acct_1"), "acct_1"},
		"created":                {"payment_intent.created", whole, nil, "not an event"},
		"an event of tomorrow":   {"payment_intent.enchanted", whole, nil, "not an event"},
		"a bad id, nothing paid": {"payment_intent.processing", s.Intent("order 7", 1, "eur"), nil, "no id of a hold"},
	} {
		got := receive(t, s, a, c.kind, c.id, c.change)
		require.Equal(t, Ignored, got.Kind, name)
		require.Contains(t, got.Reason, c.reason, name)
	}
	for _, hold := range []string{"order 7", "hold_", holdID + "x", strings.ToUpper(holdID), "entry" + holdID[4:]} {
		id := paid(s, hold)
		got := receive(t, s, a, "payment_intent.succeeded", id, nil)
		require.Equal(t, Unmatched, got.Kind, "money that names a hold is listed")
		require.Equal(t, hold, got.HoldID)
		require.Equal(t, id, got.Ref)
		require.EqualValues(t, 1250, got.Money.Amount)
		require.Contains(t, got.Reason, "no id of a hold")
	}
}

// Money without the name of a hold may be a hold's, whose shop forgot it: it is listed,
// unless the account sells other things. What its session names is no secret.
func TestMoneyThatNamesNoHold(t *testing.T) {
	s, lists := standIn(t)
	ignores, err := New(Account{Key: s.Key, WebhookSecrets: []string{hookSecret}, BaseURL: s.URL, Timeout: time.Second, IgnoreUnnamed: true})
	require.NoError(t, err)
	nameless := paid(s, "")
	refund := s.RefundByHand(nameless, 1250)
	another := paid(s, "")
	failed := s.RefundByHand(another, 1250)
	s.EndRefund(failed, "failed")
	for _, c := range []struct {
		kind, id     string
		want         Kind
		ref, payment string
	}{
		{"payment_intent.succeeded", nameless, Unmatched, nameless, ""},
		{"refund.updated", refund, RefundSettled, nameless, contract.PaymentID("", nameless)},
		{"refund.failed", failed, RefundFailed, another, contract.PaymentID("", another)},
	} {
		got := receive(t, s, lists, c.kind, c.id, nil)
		require.Equal(t, []any{c.want, "", c.payment, c.ref}, []any{got.Kind, got.HoldID, got.PaymentID, got.Ref}, c.kind)
		require.EqualValues(t, 1250, got.Money.Amount)
		got = receive(t, s, ignores, c.kind, c.id, nil)
		require.Equal(t, []any{Ignored, "no hold_id in its metadata"}, []any{got.Kind, got.Reason}, c.kind)
	}
	ofSession := paid(s, "")
	s.Session(holdID, ofSession, 1250, "eur")
	got := receive(t, s, lists, "payment_intent.succeeded", ofSession, nil)
	require.Equal(t, []any{Succeeded, holdID}, []any{got.Kind, got.HoldID})
	require.Equal(t, Ignored, receive(t, s, lists, "refund.updated", s.RefundByHand(paid(s, NoHold), 1250), nil).Kind)

	// Nobody can say: Stripe is asked to send it again.
	s.Next(&stripetest.Fault{On: "GET /v1/checkout/sessions", Status: 500})
	raw := s.Event("payment_intent.succeeded", nameless, nil)
	_, err = lists.Receive(t.Context(), raw, stripetest.Sign(raw, time.Now(), hookSecret))
	passes(t, err)
}

// A name of any size is data like any other.
func TestMoneyUnderNoName(t *testing.T) {
	s, a := standIn(t)
	for name, ref := range map[string]string{"endless": "pi_" + strings.Repeat("x", 500), "with a blank": "pi_ 1"} {
		of := func(kind string) Happening {
			return receive(t, s, a, kind, paid(s, holdID), func(e stripetest.Object) {
				e["data"].(map[string]any)["object"].(map[string]any)["id"] = ref
			})
		}
		got := of("payment_intent.succeeded")
		require.Equal(t, []any{Unmatched, holdID}, []any{got.Kind, got.HoldID}, name)
		require.LessOrEqual(t, len(got.Ref), 200)
		require.True(t, strings.HasPrefix(ref, got.Ref))
		require.Contains(t, got.Reason, "payment_ref")
		require.EqualValues(t, 1250, got.Money.Amount)
		require.Equal(t, Ignored, of("payment_intent.processing").Kind)
		require.Equal(t, Ignored, of("payment_intent.canceled").Kind)
	}
}

// The other way round: live events reach a live key.
func TestLiveEventsNeedALiveKey(t *testing.T) {
	s, test := standIn(t)
	live, err := New(Account{Key: "rk_live_1", WebhookSecrets: []string{hookSecret}, BaseURL: s.URL, Timeout: time.Second})
	require.NoError(t, err)
	ref := paid(s, holdID)
	for _, c := range []struct {
		a    *Adapter
		live bool
		want Kind
	}{{live, true, Succeeded}, {live, false, Ignored}, {test, true, Ignored}, {test, false, Succeeded}} {
		got := receive(t, s, c.a, "payment_intent.succeeded", ref, func(e stripetest.Object) { e["livemode"] = c.live })
		require.Equal(t, c.want, got.Kind)
	}
}

func TestRefundsAreReadAsTheyAreNow(t *testing.T) {
	s, a := standIn(t)
	s.NewRefunds("pending")
	ref := paid(s, holdID)
	_, err := a.RequestRefund(t.Context(), refundOf(ref))
	require.NoError(t, err)
	re := s.Refunds()[0]
	body := func(kind string) []byte { return s.Event(kind, re, nil) }
	take := func(raw []byte) Happening {
		h, err := a.Receive(t.Context(), raw, stripetest.Sign(raw, time.Now(), hookSecret))
		require.NoError(t, err)
		return h
	}
	created := body("refund.created")
	h := take(created)
	require.Equal(t, Ignored, h.Kind, "under way")

	s.EndRefund(re, "succeeded")
	updated := body("refund.updated")
	want := Happening{
		Kind: RefundSettled, HoldID: holdID, PaymentID: refundOf(ref).PaymentID, Ref: ref, Reference: re,
		Money: &contract.Money{Amount: 1250, Currency: "EUR"},
	}
	for _, raw := range [][]byte{updated, created, updated, body("charge.refund.updated")} {
		h = take(raw)
		want.EventID, want.Type = h.EventID, h.Type
		require.Equal(t, want, h)
	}

	// Days later it fails: a delivery that was late must not settle it again.
	s.EndRefund(re, "failed")
	for _, raw := range [][]byte{body("refund.failed"), updated, created} {
		h = take(raw)
		want.Kind, want.Reason, want.EventID, want.Type = RefundFailed, "the refund is failed lost_or_stolen_card", h.EventID, h.Type
		require.Equal(t, want, h)
	}
}

// A person pays back in the Dashboard: the Payment is found by the hold that
// the payment names, and only the whole sum settles it.
func TestARefundByHandSettles(t *testing.T) {
	for name, byMeta := range map[string]bool{"intent names the hold": true, "session names it": false} {
		t.Run(name, func(t *testing.T) {
			s, a := standIn(t)
			ref := paid(s, map[bool]string{true: holdID}[byMeta])
			if !byMeta {
				s.Session(holdID, ref, 1250, "eur")
			}
			got := receive(t, s, a, "refund.created", s.RefundByHand(ref, 250), nil)
			require.Equal(t, Ignored, got.Kind)
			require.Equal(t, "250 of 1250 have gone back", got.Reason)
			rest := s.RefundByHand(ref, 1000)
			got = receive(t, s, a, "refund.created", rest, nil)
			require.Equal(t, RefundSettled, got.Kind)
			require.Equal(t, contract.PaymentID(holdID, ref), got.PaymentID)
			require.Equal(t, rest, got.Reference)
		})
	}
	s, a := standIn(t)
	got := receive(t, s, a, "refund.created", s.RefundByHand(paid(s, "order 7"), 1250), nil)
	require.Equal(t, Ignored, got.Kind)
}

// B65: without an answer the event is asked for again; a refund that is gone is not.
func TestARefundEventDuringAnOutage(t *testing.T) {
	s, a := standIn(t)
	re := s.RefundByHand(paid(s, ""), 1250)
	for _, on := range []string{"GET /v1/refunds", "GET /v1/checkout/sessions"} {
		for _, status := range []int{500, 429} {
			s.Next(&stripetest.Fault{On: on, Status: status})
			raw := s.Event("refund.updated", re, nil)
			_, err := a.Receive(t.Context(), raw, stripetest.Sign(raw, time.Now(), hookSecret))
			passes(t, err)
		}
	}
	s.Next(&stripetest.Fault{On: "GET /v1/refunds", Status: 404, Code: "resource_missing"})
	require.Equal(t, Ignored, receive(t, s, a, "refund.updated", re, nil).Kind)
}

// B25, B28, B67, B68: whatever order and however often, under whatever event
// ids, the events of a payment that succeeded never end its hold, and say one
// sale under one name.
func TestOrderAndRepeatsAreHarmless(t *testing.T) {
	s, a := standIn(t)
	ref := s.Intent(holdID, 1250, "eur")
	cs := s.Session(holdID, ref, 1250, "eur")
	var bodies [][]byte
	add := func(kind, id string) { bodies = append(bodies, s.Event(kind, id, nil)) }
	add("payment_intent.created", ref)
	add("payment_intent.payment_failed", ref)
	add("payment_intent.requires_action", ref)
	add("payment_intent.processing", ref)
	s.Set(cs, stripetest.Object{"status": "complete"})
	add("checkout.session.completed", cs) // unpaid as yet
	s.Pay(ref)
	add("payment_intent.succeeded", ref)
	add("payment_intent.succeeded", ref) // the same under another id
	s.Set(cs, stripetest.Object{"payment_status": "paid"})
	add("checkout.session.async_payment_succeeded", cs)
	add("charge.succeeded", ref)
	old := s.Session(holdID, "", 1250, "eur") // one that the shopper came back from
	s.Set(old, stripetest.Object{"status": "expired"})
	add("checkout.session.expired", old)
	add("payment_intent.canceled", s.Intent(holdID, 1250, "eur"))

	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SliceOfN(rapid.IntRange(0, len(bodies)-1), 1, 40).Draw(t, "order")
		said := map[int]Happening{}
		for _, i := range order {
			h, err := a.Receive(t.Context(), bodies[i], stripetest.Sign(bodies[i], time.Now(), hookSecret))
			require.NoError(t, err)
			require.False(t, h.Final, h.Type)
			if h.Kind == Succeeded {
				require.Equal(t, ref, h.Ref, h.Type)
				require.EqualValues(t, 1250, h.Money.Amount)
			}
			if first, ok := said[i]; ok {
				require.Equal(t, first, h, "a repeat says the same")
			}
			said[i] = h
		}
	})
	require.Empty(t, s.Calls())
}

package e2e

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// B39, B69, B85: four of five who wait are told. Three buy, and who lets it lapse makes room for the
// fifth; a link that is only looked at takes nothing.
func TestFourChairsFivePeople(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	door := h.door(t, "HOLDFAST_OFFER_WINDOW", "5s")
	sku := "four-chairs"
	h.opened(t, sku, 0)
	names := []string{"Ada", "Ben", "Cleo", "Dora", "Marcus"}
	people := make([]shop.Entry, len(names))
	for i, name := range names {
		var err error
		people[i], err = h.inLine(ctx, door, sku, phone(i))
		require.NoError(t, err, name)
		require.Equal(t, int64(i+1), people[i].Position, name)
	}
	again, err := h.shop.AskJoin(ctx, sku, "+1\u00a0(201)\u00a0555-０１０４") // as Marcus may write it
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, again.Status, "who waits already gets the same place: %s", again)
	same, err := shop.ParseEntry(again)
	require.NoError(t, err)
	require.Equal(t, people[4].EntryID, same.EntryID)
	require.Equal(t, int64(5), same.Position)
	require.NoError(t, h.shop.Restock(ctx, sku, 4))

	pages := make([]shop.Page, 4)
	for i := range pages {
		text, err := h.offerText(ctx, people[i].EntryID)
		require.NoError(t, err, names[i])
		require.Equal(t, phone(i), text.To)
		pages[i], err = h.shop.Visit(ctx, text.Link())
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, pages[i].Status)
	}
	// A link that is only looked at takes nothing.
	stock, err := h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 0, 4, 0, 1}, []int64{stock.OnHand, stock.Held, stock.Offered, stock.OpenToAll, stock.Waiting}, "on_hand, held, offered, open_to_all, waiting")

	walkIn, err := h.shop.AskHold(ctx, sku, "walk-in", shop.Token())
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, walkIn.Status, walkIn)
	require.Equal(t, "reserved-for-line", walkIn.Code())
	require.Equal(t, int64(1), walkIn.Problem().Waiting)
	require.NotEmpty(t, walkIn.Problem().JoinURL)

	// Three press and pay; Dora, the fourth, does nothing.
	for i := range 3 {
		to, err := h.shop.Press(ctx, pages[i], "/r/")
		require.NoError(t, err)
		require.Equal(t, http.StatusSeeOther, to.Status, "%s: %s", names[i], to.Text)
		entry, err := h.entryState(ctx, people[i].EntryID, "holding")
		require.NoError(t, err)
		require.Equal(t, "https://shop.example/checkout?hold="+entry.HoldID, to.To)
		confirmed(t, h, entry.HoldID, "pay_"+names[i])
		_, err = h.entryState(ctx, people[i].EntryID, "bought")
		require.NoError(t, err)
	}
	_, told, err := h.outbox.OfferTo(people[4].EntryID)
	require.NoError(t, err)
	_, lapsedAlready := h.lapse(t, sku)
	require.False(t, told && !lapsedAlready, "Marcus was told before anyone lapsed")

	text, err := h.offerText(ctx, people[4].EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(4), text.To)
	lapsed, ok := h.lapse(t, sku)
	require.True(t, ok, "Marcus was told, and nobody had lapsed")
	dora, err := h.entryState(ctx, people[3].EntryID, "waiting")
	require.NoError(t, err)
	require.Equal(t, int64(1), dora.Position, "she has missed her turn and keeps her place for the next restock")
	missed, err := h.shop.Visit(ctx, pages[3].URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusGone, missed.Status)
	require.Contains(t, missed.Text, "You are still no. 1 in line.")
	lines := h.ledger(t, sku)
	require.Equal(t, []string{"offer", text.HoldID}, []string{lines[lapsed+1].Verb, lines[lapsed+1].Ref}, "the line after the lapse")

	entry := h.presses(t, people[4].EntryID)
	confirmed(t, h, entry.HoldID, "pay_Marcus")

	stock, err = h.shop.Stock(ctx, sku)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, 0, 4}, []int64{stock.OnHand, stock.Held, stock.Offered, stock.Sold}, "on_hand, held, offered, sold")
	h.judge(t, sku)
}

// lapse is the index of the first lapse in a SKU's ledger.
func (h *house) lapse(t *testing.T, sku string) (int, bool) {
	t.Helper()
	for i, l := range h.ledger(t, sku) {
		if l.Verb == "lapse" {
			return i, true
		}
	}
	return 0, false
}

// An entry that nobody serves for its whole time to live ends by itself.
func TestForgottenEntry(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "forgotten"
	h.opened(t, sku, 0)
	forgotten, err := h.inLine(ctx, h.door(t, "HOLDFAST_WAITLIST_TTL", "5s"), sku, phone(0))
	require.NoError(t, err)
	patient, err := h.inLine(ctx, h.shop, sku, phone(1))
	require.NoError(t, err)

	_, err = h.entryState(ctx, forgotten.EntryID, "expired")
	require.NoError(t, err)
	ended := false
	for _, l := range h.ledger(t, sku) {
		if l.Verb == "leave" && l.Ref == forgotten.EntryID {
			require.Equal(t, "expired", l.Kind)
			require.False(t, l.At.Before(forgotten.ExpiresAt), "expired %s, before %s", l.At, forgotten.ExpiresAt)
			ended = true
		}
	}
	require.True(t, ended, "the ledger has no line of its end")
	require.NoError(t, h.closed(ctx, forgotten.EntryID))

	require.NoError(t, h.shop.Restock(ctx, sku, 2))
	text, err := h.offerText(ctx, patient.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(1), text.To)
	require.NoError(t, until(ctx, "the second unit is open to all", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && (stock.OpenToAll != 1 || stock.Waiting != 0) {
			err = errors.New("it is not")
		}
		return err
	}))
	_, told, err := h.outbox.OfferTo(forgotten.EntryID)
	require.NoError(t, err)
	require.False(t, told, "an expired entry was texted")
	facts, err := h.check.Gate(ctx, sku)
	require.NoError(t, err)
	for id, hold := range facts.Holds {
		require.NotEqual(t, forgotten.EntryID, hold.Entry, "hold %s", id)
	}
	h.judge(t, sku)
}

// B44: Ada, the first in line, wants two and one comes: she is offered that one. What she
// takes of it ends her place, and Ben's turn is next.
func TestTheFirstInLineWantsTwo(t *testing.T) {
	ctx := t.Context()
	h := sharedHouse(t)
	sku := "wants-two"
	h.opened(t, sku, 0)
	a, err := h.shop.Call(ctx, http.MethodPost, "/v1/waitlist", map[string]any{"sku": sku, "phone": phone(0), "quantity": 2, "consent": true})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, a)
	ada, err := shop.ParseEntry(a)
	require.NoError(t, err)
	require.NoError(t, until(ctx, "Ada is acknowledged", func() error {
		known, err := h.check.Acknowledged(ctx, sku, ada.EntryID)
		if err == nil && !known {
			err = errNotYet
		}
		return err
	}))
	ben, err := h.inLine(ctx, h.shop, sku, phone(1))
	require.NoError(t, err)
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	entry := h.presses(t, ada.EntryID)
	hold, err := h.shop.ReadHold(ctx, entry.HoldID)
	require.NoError(t, err)
	require.Equal(t, []shop.Line{{SKU: sku, Quantity: 1}}, hold.Lines)
	_, told, err := h.outbox.OfferTo(ben.EntryID)
	require.NoError(t, err)
	require.False(t, told, "one unit came, and two people were told")
	confirmed(t, h, entry.HoldID, "pay_"+entry.HoldID)
	require.NoError(t, h.shop.Restock(ctx, sku, 1))
	text, err := h.offerText(ctx, ben.EntryID)
	require.NoError(t, err)
	require.Equal(t, phone(1), text.To)
	_, err = h.entryState(ctx, ada.EntryID, "bought")
	require.NoError(t, err)
	h.judge(t, sku)
}

// A pause right after a restock burns nobody's turn: who was not told yet is
// told when the sale goes on, in the same order.
// B54.
func TestAPauseRightAfterARestock(t *testing.T) {
	h := sharedHouse(t)
	ctx := t.Context()
	const sku, people = "pause-after-restock", 20
	h.opened(t, sku, 0)
	entries := make([]shop.Entry, people)
	for i := range entries {
		var err error
		entries[i], err = h.inLine(ctx, h.shop, sku, phone(900+i))
		require.NoError(t, err)
	}
	require.NoError(t, h.shop.Restock(ctx, sku, people))
	for _, verb := range []string{"pause", "resume"} {
		a, err := h.shop.Call(ctx, "POST", "/v1/stock/"+sku+"/"+verb, nil)
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a)
	}
	for i, e := range entries {
		text, err := h.offerText(ctx, e.EntryID)
		require.NoError(t, err, "no. %d", i+1)
		require.Equal(t, phone(900+i), text.To)
		_, err = h.entryState(ctx, e.EntryID, "offered")
		require.NoError(t, err, "no. %d", i+1)
	}
	h.judge(t, sku)
}

package starter

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func (h *house) askFind(term string) answer {
	h.t.Helper()
	h.door.skus.gate = &fewSKUs{Gate: h.gate, skus: []string{h.sku}} // other tests close SKUs of theirs
	return h.call("POST", "/v1/find", map[string]any{"term": term})
}

func (h *house) find(term string) findView {
	h.t.Helper()
	a := h.askFind(term)
	require.Equal(h.t, http.StatusOK, a.status, a.body)
	var v findView
	a.into(h.t, &v)
	return v
}

// whats is a story without its times, of one SKU.
func (v findView) whats(sku string) (whats []string) {
	for _, s := range v.Story {
		if s.SKU == sku {
			whats = append(whats, s.What)
		}
	}
	return whats
}

func (v findView) ids() (ids []string) {
	for _, thing := range v.Things {
		ids = append(ids, thing.ID)
	}
	return ids
}

func (h *house) buys(holdID, ref string) {
	h.t.Helper()
	out, err := h.gate.Confirm(h.t.Context(), redis.ConfirmRequest{SKU: h.sku, HoldID: holdID, PaymentRef: ref, Actor: "checkout"})
	require.NoError(h.t, err)
	require.Equal(h.t, redis.OK, out.Verdict)
}

// Whatever a person on call was told leads to the same story, in the order of time.
func TestFindTellsTheStory(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) {
		cfg.Temporal.UIOrigins, cfg.Temporal.Namespace = []string{"https://temporal.example"}, "shop"
	})
	entryID, holdID, path := h.offer()
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	ref := "pay-of-" + holdID
	h.buys(holdID, ref)
	for _, term := range []string{"+1 (202) 555-0101", "202-555-0101 is no number", entryID, holdID, ref} {
		v := h.find(term)
		if term == "202-555-0101 is no number" {
			require.Empty(t, v.Things)
			require.True(t, v.Whole, "it was looked for everywhere")
			continue
		}
		require.Subset(t, v.ids(), []string{entryID, holdID}, term)
		require.Equal(t, []string{
			"joined the line: 1", "units are kept for the next in line: 1", "the link was pressed: units taken: 1",
			"its workflow holds it: 1", "sold: 1", "the place in line ended: bought",
		}, v.whats(h.sku), term)
	}
	for _, thing := range h.find(holdID).Things {
		require.Equal(t, "https://temporal.example/namespaces/shop/workflows/"+thing.ID, thing.UI)
		require.Equal(t, h.sku, thing.SKU)
		require.NotEmpty(t, thing.Next)
	}
}

// An offer has no workflow of its own: a link would lead nowhere.
func TestFindLinksWhatHasAWorkflow(t *testing.T) {
	links := func(h *house, entryID, holdID string) (entry, hold bool) {
		t.Helper()
		h.door.cfg.Temporal.UIOrigins = []string{"https://temporal.example"}
		for _, thing := range h.find(holdID).Things {
			entry = entry || thing.ID == entryID && thing.UI != ""
			hold = hold || thing.ID == holdID && thing.UI != ""
		}
		return entry, hold
	}
	h := newHouse(t, 0)
	entryID, holdID, path := h.offer()
	entry, hold := links(h, entryID, holdID)
	require.Equal(t, []bool{true, false}, []bool{entry, hold}, "it is offered")
	require.Equal(t, http.StatusSeeOther, h.press(path).status)
	entry, hold = links(h, entryID, holdID)
	require.Equal(t, []bool{true, true}, []bool{entry, hold}, "it was pressed")

	h = newHouse(t, 0)
	entryID, holdID, _ = h.offer()
	_, err := h.gate.Leave(t.Context(), redis.LeaveRequest{SKU: h.sku, EntryID: entryID, State: contract.EntryLeft, Actor: "shopper"})
	require.NoError(t, err)
	require.Equal(t, contract.HoldReleased, h.record(holdID).State)
	entry, hold = links(h, entryID, holdID)
	require.Equal(t, []bool{true, false}, []bool{entry, hold}, "it was withdrawn")
}

// Of an order the shop knows the number, of a customer the name.
func TestFindByTheShopsOwnWords(t *testing.T) {
	h := newHouse(t, 5)
	customer, order := "customer of "+h.sku, "order of "+h.sku
	a := h.askHold("key-1", "order_ref", order, "customer", customer).hold(t)
	b := h.askHold("key-2", "order_ref", order, "customer", "somebody else").hold(t)
	require.ElementsMatch(t, []string{a.HoldID, b.HoldID}, h.find(order).ids())
	require.Equal(t, []string{a.HoldID}, h.find(customer).ids())
	require.Equal(t, "given back at the deadline unless paid; its deadline is "+a.ExpiresAt, h.find(a.HoldID).Things[0].Next)

	// A phone number makes the person, and still the shop asks for its customer.
	texted := "texted " + customer
	c := h.askHold("key-3", "customer", texted, "customer_phone", "+12025550144").hold(t)
	require.Equal(t, []string{c.HoldID}, h.find(texted).ids())
	require.Equal(t, []string{c.HoldID}, h.find("+12025550144").ids())

	h.event("restock", "delivery "+h.sku, map[string]any{"units": 3})
	v := h.find("delivery " + h.sku)
	require.Equal(t, []thingView{{Kind: "stock-event", ID: "delivery " + h.sku, SKU: h.sku, State: stockApplied, Next: "nothing: applied, on_hand moved by +3"}}, v.Things)
	require.Equal(t, []string{"units came in: 3"}, v.whats(h.sku))
}

// A stock event is found whatever became of it, with what to do and the book's link.
func TestFindAStockEvent(t *testing.T) {
	h := newHouse(t, 0, func(cfg *config.Config, _ *redis.Options) {
		cfg.Temporal.UIOrigins, cfg.Temporal.Namespace = []string{"https://temporal.example"}, "shop"
	})
	only := func(id, state, next string) {
		t.Helper()
		things := h.find(id).Things
		require.Len(t, things, 1)
		require.Equal(t, []string{"stock-event", id, h.sku, state}, []string{things[0].Kind, things[0].ID, things[0].SKU, things[0].State})
		require.Contains(t, things[0].Next, next)
		require.Equal(t, "https://temporal.example/namespaces/shop/workflows/stock."+h.sku, things[0].UI)
	}
	book := contract.StockBook{SKU: h.sku}
	keeps := func(change func()) {
		h.wf.set(func() { change(); h.wf.statuses[contract.StockWorkflowID(h.sku)] = book })
	}
	refused, waits, lost := "refused "+h.sku, "waits "+h.sku, "lost "+h.sku
	h.event("correction", refused, map[string]any{"delta": -5, "reason": "counted"})
	only(refused, stockRefused, "would-oversell")

	h.wf.set(func() { h.wf.inert = true }) // no book takes it
	sent := h.askEvent("restock", waits, map[string]any{"units": 3})
	require.Equal(t, http.StatusAccepted, sent.status, sent.body)
	only(waits, stockReceived, "sends it again")
	keeps(func() { book.Pending = []contract.StockEvent{{EventID: waits, Kind: contract.StockRestock, Units: 3}} })
	only(waits, stockRecorded, "when the gate of "+h.sku+" decides")
	h.wf.set(func() { h.wf.fail["Status"] = context.DeadlineExceeded })
	only(waits, stockReceived, "see that one does")
	require.Equal(t, http.StatusServiceUnavailable, h.askFind("nothing of "+h.sku).status, "a book may know it")
	h.wf.set(func() { clear(h.wf.fail) })

	// Redis has forgotten it, its book has not.
	keeps(func() {
		book.Events = []contract.BookEvent{{EventID: lost, Kind: contract.StockRestock, Applied: true, Delta: 7}}
	})
	only(lost, stockApplied, "on_hand moved by +7")
	require.Empty(t, h.find("nothing of "+h.sku).Things)
}

// Money that met no live hold is told with what a person should do.
func TestFindByPayment(t *testing.T) {
	h := newHouse(t, 1)
	hold := h.hold()
	id := contract.PaymentID(hold.HoldID, "pay-late")
	h.wf.set(func() {
		h.wf.statuses[id] = contract.PaymentStatus{PaymentID: id, HoldID: hold.HoldID, PaymentRef: "pay-late", Cause: contract.CauseLate, State: contract.PaymentParked}
	})
	h.dir.lasts(PaymentRun{ID: id, RunID: "run", SKU: h.sku, State: contract.PaymentParked, StartedAt: paidAt})
	v := h.find(id)
	require.Equal(t, []string{id, hold.HoldID}, v.ids())
	require.Contains(t, v.Things[0].Next, "holdfast refunds settle")
	require.Equal(t, id, v.Story[0].ID, "it came first")
	require.Equal(t, contract.CauseLate, v.Story[0].Reason)
}

// What is next for a hold its workflow says, which knows of the grace and of wrong money.
func TestFindAsksTheWorkflowWhatIsNext(t *testing.T) {
	h := newHouse(t, 1)
	hold := h.hold()
	h.wf.set(func() { h.wf.statuses[hold.HoldID] = "a person should look: 1 payment(s) of another amount" })
	require.Equal(t, "a person should look: 1 payment(s) of another amount; its deadline is "+hold.ExpiresAt, h.find(hold.HoldID).Things[0].Next)
	h.wf.set(func() { h.wf.fail["Next"] = context.DeadlineExceeded })
	v := h.find(hold.HoldID)
	require.Equal(t, "paid, or given back at "+hold.ExpiresAt+"; when a payment has begun, after a grace", v.Things[0].Next)
	require.Equal(t, []string{silentWorker}, v.Missing)
	h.wf.set(func() { clear(h.wf.fail); delete(h.wf.holds, hold.HoldID) })
	require.Contains(t, h.find(hold.HoldID).Things[0].Next, "holdfast reconcile "+h.sku)
}

// While a SKU is closed nobody knows what it knows: that nothing was found says nothing.
func TestFindWhileASKUIsClosed(t *testing.T) {
	h := newHouse(t, 1)
	customer := "customer of " + h.sku
	hold := h.askHold("key-1", "customer", customer).hold(t)
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", "another server").Err())
	for _, term := range []string{"somebody else of " + h.sku, "+1 202 555 0103", contract.HoldID(h.sku, make([]byte, contract.IDTailBytes))} {
		a := h.askFind(term)
		require.Equal(t, http.StatusServiceUnavailable, a.status, "%s: %s", term, a.body)
		require.Contains(t, a.problem(t).Detail, "SKU "+h.sku+" is closed")
		require.NotEmpty(t, a.header.Get("Retry-After"))
	}
	h.eventually("it is checked", func() bool {
		h.wf.mu.Lock()
		defer h.wf.mu.Unlock()
		return len(h.wf.checked) > 0
	})
	// What its ledger tells is told, with what is missing.
	for _, term := range []string{customer, hold.HoldID} {
		v := h.find(term)
		require.Equal(t, []string{"units taken: 1", "its workflow holds it: 1"}, v.whats(h.sku), term)
		require.Len(t, v.Missing, 1)
		require.Contains(t, v.Missing[0], h.sku)
	}
}

// What Redis knows is told in time also when Temporal gives no answer, or no worker.
func TestFindWithoutTemporal(t *testing.T) {
	h := newHouse(t, 1)
	hold, ref := h.hold(), "pay of "+h.sku
	h.buys(hold.HoldID, ref)
	h.dir.silent = true
	began := time.Now()
	v := h.find(ref)
	require.Less(t, time.Since(began), 2*statusTimeout, "it was asked once")
	require.Equal(t, []string{hold.HoldID}, v.ids())
	require.Equal(t, []string{silentTemporal}, v.Missing)

	h.dir.silent = false
	id := contract.PaymentID(hold.HoldID, "pay-late")
	h.dir.lasts(PaymentRun{ID: id, RunID: "run", SKU: h.sku, State: contract.PaymentParked, StartedAt: paidAt})
	h.wf.set(func() { h.wf.down = true })
	v = h.find(id)
	require.Equal(t, []string{id}, v.ids())
	require.Equal(t, contract.PaymentParked, v.Things[0].State)
	require.Equal(t, []string{silentWorker}, v.Missing)
	a := h.askFind(contract.EventID("a", contract.EventTest, ""))
	require.Equal(t, http.StatusServiceUnavailable, a.status, "not known is not nothing")
}

// A payment that has made no sale leads to the hold that it was told for.
func TestFindByAPaymentThatMadeNoSale(t *testing.T) {
	h := newHouse(t, 1)
	hold := h.hold()
	path := "/v1/holds/" + hold.HoldID
	started, other, failed := "started-"+h.sku, "other-"+h.sku, "failed-"+h.sku
	require.Equal(t, http.StatusOK, h.call("POST", path+"/checkout", map[string]any{"payment_ref": started, "amount": 100, "currency": "EUR"}).status)
	require.Equal(t, http.StatusOK, h.call("POST", path+"/payment-failed", map[string]any{"payment_ref": failed, "final": false}).status)
	h.wf.set(func() {
		h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
			return contract.ConfirmResult{Outcome: contract.ConfirmAmountMismatch}, nil
		}
	})
	require.Equal(t, amountMismatch, h.call("POST", path+"/confirm", map[string]any{"payment_ref": other, "amount": 99, "currency": "EUR"}).problem(t).Code)
	for _, ref := range []string{started, other, failed} {
		require.Equal(t, []string{hold.HoldID}, h.find(ref).ids(), ref)
	}

	// Money that met no hold has a Payment and nothing else.
	stray := "stray-" + h.sku
	h.door.notePaying(t.Context(), "no hold of ours", stray)
	id := contract.PaymentID("no hold of ours", stray)
	h.wf.set(func() { h.wf.statuses[id] = contract.PaymentStatus{PaymentID: id, State: contract.PaymentParked} })
	h.dir.lasts(PaymentRun{ID: id, RunID: "run", State: contract.PaymentParked, StartedAt: paidAt})
	require.Equal(t, []string{id}, h.find(stray).ids())
}

func TestFindRefusesWhatIsNoTerm(t *testing.T) {
	h := newHouse(t, 0)
	require.Equal(t, validationFailed, h.call("POST", "/v1/find", map[string]any{}).problem(t).Code)
	require.Equal(t, validationFailed, h.call("POST", "/v1/find", map[string]any{"term": "x", "more": 1}).problem(t).Code)
	require.Equal(t, unauthorized, h.call("POST", "/v1/find", map[string]any{"term": "x"}, "Authorization", "").problem(t).Code)
	for _, unknown := range []string{"hold_x", contract.HoldID("NO-SKU", make([]byte, contract.IDTailBytes)), contract.PaymentID("a", "b")} {
		require.Empty(t, h.find(unknown).Things, unknown)
	}
	h.dir.err = errTemporalDown
	a := h.call("POST", "/v1/find", map[string]any{"term": contract.PaymentID("a", "b")})
	require.Equal(t, http.StatusServiceUnavailable, a.status, "not known is not nothing")
}

// slowLedgers are a gate of which a SKU's ledger takes too long.
type slowLedgers struct {
	Gate
	slow string
	most []int // lines that were asked for
}

func (g *slowLedgers) FindLines(ctx context.Context, sku string, since time.Time, most int, match func(redis.LedgerLine) bool) ([]redis.LedgerLine, bool, error) {
	if g.most = append(g.most, most); sku == g.slow {
		<-ctx.Done()
		return nil, false, fmt.Errorf("%w: %w", redis.ErrUnavailable, ctx.Err())
	}
	return g.Gate.FindLines(ctx, sku, since, most, match)
}

// A shop of many SKUs with long ledgers gets an answer all the same: what was found in
// the time that there is, and that not all was looked through.
func TestFindEndsInTime(t *testing.T) {
	h := newHouse(t, 1)
	first, last := "A-"+h.sku, "Z-"+h.sku
	h.put(first)
	h.put(last)
	customer := "customer of " + h.sku
	hold := h.askHold("key-1", "customer", customer).hold(t)
	g := &slowLedgers{Gate: h.door.gate, slow: last}
	h.door.gate = g
	find := &finding{d: h.door, seekFor: 100 * time.Millisecond, whole: true}
	require.NoError(t, find.seek(t.Context(), customer))
	require.Equal(t, []string{hold.HoldID}, find.holds)
	require.False(t, find.whole)

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, (&finding{d: h.door, seekFor: time.Second}).seek(gone, customer), "the caller has gone")

	for n, most := range map[int]int{0: findLines, 10: findLines, 11: 18_181, 100: 2000, 100_000: findLinesLeast} {
		require.Equal(t, most, linesOfEach(n))
	}
	skus, err := h.door.skus.all(t.Context())
	require.NoError(t, err)
	require.Equal(t, linesOfEach(len(skus)), g.most[0])
}

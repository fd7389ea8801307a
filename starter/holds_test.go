package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func TestHold(t *testing.T) {
	h := newHouse(t, 3)
	a := h.askHold(`"quoted-key"`, "order_ref", "o-1", "price", map[string]any{"amount": 4900, "currency": "EUR"})
	require.Equal(t, http.StatusCreated, a.status, a.body)
	v := a.hold(t)
	require.Equal(t, "/v1/holds/"+v.HoldID, a.header.Get("Location"))
	require.Equal(t, contract.HoldHeld, v.State)
	require.Equal(t, []contract.Line{{SKU: h.sku, Quantity: 1}}, v.Lines)
	require.Equal(t, []any{"customer-1", "o-1", int64(4900)}, []any{v.Customer, v.OrderRef, v.Price.Amount})
	require.Equal(t, "https://door.example/h/"+v.HoldID, v.Links.Page)
	expires, err := time.Parse(time.RFC3339, v.ExpiresAt)
	require.NoError(t, err)
	now, err := time.Parse(time.RFC3339, v.Now)
	require.NoError(t, err)
	require.InDelta(t, h.cfg.Hold.TTL.Seconds(), expires.Sub(now).Seconds(), 1)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, v.ExpiresAt)

	in := h.wf.holds[v.HoldID]
	require.Equal(t, contract.HoldSettings{HoldSeconds: 600, ExtensionSeconds: 60, GraceSeconds: 60}, in.Settings)
	require.Equal(t, h.ring.PersonOfCustomer("customer-1"), in.Person)
	require.Equal(t, in.Person, h.record(v.HoldID).Person)

	// The same key, bare: the same hold, with nothing moved.
	h.untouched(func() {
		again := h.askHold("quoted-key", "order_ref", "o-1", "price", map[string]any{"amount": 4900, "currency": "EUR"})
		require.Equal(t, http.StatusOK, again.status, again.body)
		require.Equal(t, []any{v.HoldID, v.ExpiresAt}, []any{again.hold(t).HoldID, again.hold(t).ExpiresAt})
		exact(t, h.askHold("quoted-key"), 422, idempotencyKeyReused)
		exact(t, h.askHold("quoted-key", "order_ref", "o-2"), 422, idempotencyKeyReused)
		read := h.call("GET", "/v1/holds/"+v.HoldID, nil)
		require.Equal(t, http.StatusOK, read.status)
		require.Equal(t, []string{"customer-1", "o-1"}, []string{read.hold(t).Customer, read.hold(t).OrderRef})
	})
	// The key of another caller is another key.
	till := h.call("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"},
		"Idempotency-Key", "quoted-key", "Authorization", "Bearer key-of-the-till")
	require.Equal(t, http.StatusCreated, till.status, till.body)
	require.NotEqual(t, v.HoldID, till.hold(t).HoldID)
	require.Equal(t, [4]int64{3, 2, 0, 0}, h.parts())
}

// As many are refused as shoppers come: their keys are forgotten soon. The body of what
// was promised is remembered for a day.
func TestAKeyIsRememberedForWhatItMade(t *testing.T) {
	h := newHouse(t, 1)
	caller, _, _ := strings.Cut(h.cfg.Secrets.APIKeys[0], ":")
	left := func(key string) time.Duration {
		ttl, err := shared.PTTL(t.Context(), "hf:idem:holds:"+digest(caller, key)).Result()
		require.NoError(t, err)
		return ttl
	}
	key := rand.Text()
	require.Equal(t, http.StatusCreated, h.askHold(key).status)
	require.InDelta(t, claimKeep, left(key), float64(time.Minute))
	refused := rand.Text()
	exact(t, h.askHold(refused), 409, soldOut)
	require.Positive(t, left(refused))
	require.LessOrEqual(t, left(refused), claimFirst)
	exact(t, h.askHold(refused, "quantity", 2), 422, idempotencyKeyReused)
	exact(t, h.askHold(key, "quantity", 2), 422, idempotencyKeyReused)
}

func TestHoldOfLinesAndPhone(t *testing.T) {
	h := newHouse(t, 5)
	a := h.call("POST", "/v1/holds", map[string]any{
		"customer": "c", "customer_phone": "07700 900001",
		"lines": []any{map[string]any{"sku": h.sku, "quantity": 2}, map[string]any{"sku": h.sku, "quantity": 1}},
	}, "Idempotency-Key", "lines")
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.Equal(t, int64(3), a.hold(t).Lines[0].Quantity)
	require.Equal(t, h.ring.PersonOfPhone("+447700900001"), h.record(a.hold(t).HoldID).Person)
	require.NotContains(t, h.log.String(), "7700")
}

func TestHoldRefusals(t *testing.T) {
	h := newHouse(t, 1)
	first := h.hold()
	h.untouched(func() {
		p := exact(t, h.askHold("late"), 409, soldOut)
		require.Equal(t, "https://door.example/join/"+h.sku, p.JoinURL)
	})
	// A refusal leaves nothing behind: the same key gets the unit once it is free.
	require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+first.HoldID+"/release", nil).status)
	require.Equal(t, http.StatusCreated, h.askHold("late").status)

	h.join("+12025550101")
	h.restock(1)
	h.untouched(func() {
		p := exact(t, h.askHold("walk-in"), 409, reservedForLine)
		require.Equal(t, int64(1), *p.Waiting)
		require.NotEmpty(t, p.JoinURL)
	})

	require.Equal(t, http.StatusOK, h.call("POST", "/v1/stock/"+h.sku+"/pause", nil).status)
	h.untouched(func() { exact(t, h.askHold("paused"), 409, paused) })
}

// Every crash point between the steps: what the client is told, that nothing is
// promised, and that its repeat finds out.
// B3.
func TestHoldCrashPoints(t *testing.T) {
	lost := fmt.Errorf("%w: connection reset", redis.ErrUnavailable)
	for name, c := range map[string]struct {
		breakIt func(h *house)
		held    int64 // units claimed after the broken request
		starts  int
	}{
		"no idempotency record": {func(h *house) { h.gate.break_("ClaimKey", lost, nil) }, 0, 0},
		"reserve not done":      {func(h *house) { h.gate.break_("Reserve", lost, nil) }, 0, 0},
		"reserve's answer lost": {func(h *house) { h.gate.break_("Reserve", nil, lost) }, 1, 0},
		"start fails":           {func(h *house) { h.wf.fail["Hold"] = errTemporalDown }, 1, 0},
		"adopt not done":        {func(h *house) { h.gate.break_("AdoptHold", lost, nil) }, 1, 1},
		"adopt's answer lost":   {func(h *house) { h.gate.break_("AdoptHold", nil, lost) }, 1, 1},
		"too many ended leases": {func(h *house) { h.gate.again = reserveMost }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, 1)
			c.breakIt(h)
			p := exact(t, h.askHold("k"), 503, unavailable)
			require.NotContains(t, p.Detail, "sold")
			require.Equal(t, c.held, h.counters().Held)
			require.Equal(t, c.starts, h.wf.started())

			h.gate.break_("", nil, nil)
			delete(h.wf.fail, "Hold")
			again := h.askHold("k")
			require.Contains(t, []int{http.StatusOK, http.StatusCreated}, again.status, again.body)
			v := again.hold(t)
			require.Equal(t, contract.HoldHeld, v.State)
			require.Equal(t, [4]int64{1, 1, 0, 0}, h.parts(), "one unit, not two")
			require.Equal(t, 1, h.wf.started(), "one workflow, not two")
			require.Contains(t, h.wf.holds, v.HoldID)
		})
	}
}

func TestHoldAfterSomeSweeps(t *testing.T) {
	h := newHouse(t, 1)
	h.gate.again = reserveMost - 1
	require.Equal(t, http.StatusCreated, h.askHold("k").status)
}

// The steps come in the order of the design, and nothing is promised early.
func TestHoldOrder(t *testing.T) {
	h := newHouse(t, 1)
	h.gate.calls = nil
	h.wf.onHold = func(in contract.HoldInput) {
		require.Equal(t, contract.HoldProvisional, h.record(in.HoldID).State, "reserved before the start")
		require.Equal(t, []string{"LookupSKU", "ClaimKey", "Reserve", "Policy"}, h.gate.calls)
	}
	require.Equal(t, http.StatusCreated, h.askHold("k").status)
	require.Equal(t, []string{"LookupSKU", "ClaimKey", "Reserve", "Policy", "AdoptHold"}, h.gate.calls)
}

func shortLease(_ *config.Config, opts *redis.Options) { opts.Lease = 20 * time.Millisecond }

// The lease ends while the start is under way: the unit may be anybody's, so
// nothing is promised.
func TestHoldLeaseEndsBeforeAdopt(t *testing.T) {
	h := newHouse(t, 1, shortLease)
	h.wf.onHold = func(in contract.HoldInput) {
		h.eventually("the lease ends", func() bool { return h.record(in.HoldID).State == contract.HoldSwept })
	}
	exact(t, h.askHold("k"), 503, unavailable)
	require.Equal(t, int64(0), h.counters().Held)
	id := ""
	for id = range h.wf.holds {
	}
	exact(t, h.call("GET", "/v1/holds/"+id, nil), 404, unknownHold) // a swept hold is never shown

	// Its workflow found no unit meanwhile: the id is spent.
	h.wf.onHold = nil
	h.restockTo0(t)
	out, err := h.gate.Gate.AdoptHold(t.Context(), redis.AdoptHoldRequest{SKU: h.sku, HoldID: id, ByWorkflow: true, Units: 1, Person: "p", HoldFor: time.Minute})
	require.NoError(t, err)
	require.Equal(t, redis.SoldOut, out.Verdict)
	h.untouched(func() {
		p := exact(t, h.askHold("k"), 409, justGone)
		require.Equal(t, "https://door.example/join/"+h.sku, p.JoinURL)
	})
}

func (h *house) restockTo0(t *testing.T) {
	_, err := h.gate.Stock(t.Context(), h.sku, contract.StockEvent{EventID: rand.Text(), Kind: contract.StockCorrection, Delta: -1, Reason: "test"})
	require.NoError(t, err)
}

// A workflow that has closed is never adopted again.
func TestHoldClosedWorkflow(t *testing.T) {
	h := newHouse(t, 2, shortLease)
	v := h.hold()
	require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil).status)
	require.Equal(t, contract.HoldReleased, h.record(v.HoldID).State)

	// The record is provisional although its workflow has closed.
	in := contract.HoldInput{}
	h.wf.onHold = func(got contract.HoldInput) { in = got; h.wf.set(func() { h.wf.closed[got.HoldID] = true }) }
	exact(t, h.askHold("closed"), 503, unavailable)
	require.NotContains(t, h.gate.calls[len(h.gate.calls)-1], "AdoptHold")
	h.eventually("the lease gives the unit back", func() bool { return h.record(in.HoldID).State == contract.HoldSwept })
	require.Equal(t, int64(0), h.counters().Held)
}

// A workflow that closed with an ended record: the repeat answers the record.
func TestHoldRepeatAfterEnd(t *testing.T) {
	h := newHouse(t, 1)
	v := h.askHold("k").hold(t)
	require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+v.HoldID+"/release", map[string]any{"reason": "cart-emptied"}).status)
	h.untouched(func() {
		again := h.askHold("k")
		require.Equal(t, http.StatusOK, again.status)
		require.Equal(t, []any{contract.HoldReleased, "cart-emptied"}, []any{again.hold(t).State, again.hold(t).EndReason})
		require.NotEmpty(t, again.hold(t).EndedAt)
		require.Empty(t, again.hold(t).Links.Checkout)
	})
}

func TestHoldCrowd(t *testing.T) {
	h := newHouse(t, 10)
	statuses := make([]int, 100)
	var crowd sync.WaitGroup
	for i := range statuses {
		crowd.Go(func() { statuses[i] = h.askHold(fmt.Sprint(i), "customer", fmt.Sprint(i)).status })
	}
	crowd.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.Equal(t, map[int]int{http.StatusCreated: 10, http.StatusConflict: 90}, count)
	require.Equal(t, 10, h.wf.started(), "losers start no workflow")
}

func TestRelease(t *testing.T) {
	h := newHouse(t, 2)
	v := h.hold()
	for _, word := range []string{contract.ReasonExpired, contract.ReasonCompensation, contract.ReasonLeft} {
		h.untouched(func() {
			exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/release", map[string]any{"reason": word}), 422, validationFailed, "/reason")
		})
	}
	a := h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil)
	require.Equal(t, []any{http.StatusOK, contract.HoldReleased, contract.ReasonShop}, []any{a.status, a.hold(t).State, a.hold(t).EndReason})
	h.untouched(func() {
		require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil).status)
		exact(t, h.call("POST", "/v1/holds/"+contract.HoldID(h.sku, []byte("never heard of"))+"/release", nil), 404, unknownHold)
		exact(t, h.call("POST", "/v1/holds/nonsense/release", nil), 404, unknownHold)
	})

	// Without an open workflow the gate gives the unit back.
	v = h.hold()
	h.wf.set(func() { delete(h.wf.holds, v.HoldID) })
	a = h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil)
	require.Equal(t, []any{http.StatusOK, contract.HoldReleased}, []any{a.status, a.hold(t).State})
	lines := h.ledger()
	require.Equal(t, h.door.apiKeys[0].caller, lines[len(lines)-1].Actor)

	// Temporal is silent: nothing is said to be released.
	v = h.hold()
	h.wf.set(func() { h.wf.down = true })
	h.untouched(func() { exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil), 503, unavailable) })
}

func TestPaymentSignals(t *testing.T) {
	h := newHouse(t, 2)
	v := h.hold()
	path := "/v1/holds/" + v.HoldID
	h.untouched(func() {
		for _, ref := range []string{"p 1", "p\n1"} { // as confirm does
			exact(t, h.call("POST", path+"/checkout", map[string]any{"payment_ref": ref}), 422, validationFailed, "/payment_ref")
			exact(t, h.call("POST", path+"/confirm", map[string]any{"payment_ref": ref}), 422, validationFailed, "/payment_ref")
		}
		exact(t, h.call("POST", path+"/checkout", map[string]any{"payment_ref": "", "amount": 1.5}), 422, validationFailed, "/payment_ref", "/amount", "/currency")
	})
	a := h.call("POST", path+"/checkout", map[string]any{"payment_ref": "p1", "amount": 4900, "currency": "EUR"})
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.True(t, a.hold(t).Extended)
	require.Greater(t, a.hold(t).ExpiresAt, v.ExpiresAt)
	amount := int64(4900)
	require.Equal(t, sentSignal{v.HoldID, contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "p1", Amount: &amount, Currency: "EUR"}}, h.wf.sent()[0])

	require.Equal(t, contract.HoldHeld, h.call("POST", path+"/payment-failed", map[string]any{"payment_ref": "p1"}).hold(t).State, "the shopper may try again")
	a = h.call("POST", path+"/payment-failed", map[string]any{"payment_ref": "p1", "reason": "declined", "final": true})
	require.Equal(t, []any{http.StatusOK, contract.HoldReleased, contract.ReasonPaymentFailed}, []any{a.status, a.hold(t).State, a.hold(t).EndReason})
	h.untouched(func() {
		require.Equal(t, http.StatusOK, h.call("POST", path+"/payment-failed", map[string]any{"final": true}).status)
		exact(t, h.call("POST", path+"/checkout", map[string]any{"payment_ref": "p2"}), 409, holdEnded)
	})
}

func TestListHolds(t *testing.T) {
	h := newHouse(t, 3)
	one, two := h.hold(), h.hold()
	h.call("POST", "/v1/holds/"+two.HoldID+"/release", nil)
	h.dir.holdIDs = []string{two.HoldID, one.HoldID, contract.HoldID(h.sku, []byte("purged since"))}
	var list struct {
		Data       []holdView
		NextCursor *string `json:"next_cursor"`
	}
	h.call("GET", "/v1/holds?sku="+h.sku, nil).into(t, &list)
	require.Equal(t, []string{two.HoldID, one.HoldID}, []string{list.Data[0].HoldID, list.Data[1].HoldID})
	require.Equal(t, "customer-1", list.Data[1].Customer)
	require.Nil(t, list.NextCursor)
	h.call("GET", "/v1/holds?state=held", nil).into(t, &list)
	require.Len(t, list.Data, 1, "visibility may be behind, the record is not")
	for _, q := range []string{"state=offered", "state=x", "sku=a'b", "limit=0", "limit=201", "limit=x", "cursor=*"} {
		exact(t, h.call("GET", "/v1/holds?"+q, nil), 422, validationFailed)
	}
	h.dir.err = errTemporalDown
	exact(t, h.call("GET", "/v1/holds", nil), 503, unavailable)
}

// What the workflow alone knows is left out when it is silent; the gate's truth
// is not.
func TestGetHoldWithoutTemporal(t *testing.T) {
	h := newHouse(t, 1)
	v := h.hold()
	h.wf.set(func() { h.wf.down = true })
	a := h.call("GET", "/v1/holds/"+v.HoldID, nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, []any{contract.HoldHeld, ""}, []any{a.hold(t).State, a.hold(t).Customer})
}

// A client that goes away does not leave the steps half done.
func TestHoldClientGone(t *testing.T) {
	h := newHouse(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	h.wf.onHold = func(contract.HoldInput) { cancel(errors.New("client gone")) }
	r := h.request("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"}, "Idempotency-Key", "k")
	require.Equal(t, http.StatusCreated, h.send(r.WithContext(ctx)).status)
	require.True(t, strings.HasPrefix(h.call("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"}, "Idempotency-Key", "k").hold(t).HoldID, "hold_"))
}

// Whatever a verb asks to be woken is woken, in the background.
func TestWakes(t *testing.T) {
	for _, verb := range []string{"Reserve", "AdoptHold", "Release", "Leave", "Join"} {
		t.Run(verb, func(t *testing.T) {
			h := newHouse(t, 1)
			h.gate.wake = verb
			id := h.hold().HoldID
			h.wf.set(func() { delete(h.wf.holds, id) }) // the gate itself releases it
			require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+id+"/release", nil).status)
			entry := h.join("+12025550101").EntryID
			require.Equal(t, http.StatusNoContent, h.call("DELETE", "/v1/waitlist/"+entry, nil).status)
			h.eventually("Stock is woken", func() bool { return h.wf.woken(h.sku) > 0 })
		})
	}
}

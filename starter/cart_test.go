package starter

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// cartHouse is a house with three SKUs, in the order in which a cart takes them.
type cartHouse struct {
	*house
	skus []string
}

func newCartHouse(t *testing.T, units int64, settings ...setting) *cartHouse {
	h := &cartHouse{house: newHouse(t, 0, settings...)}
	h.skus = []string{h.sku, "U-" + rand.Text(), "V-" + rand.Text()}
	h.put(h.skus[1])
	h.put(h.skus[2])
	for _, sku := range h.skus {
		h.stock(sku, units)
	}
	return h
}

func (h *cartHouse) stock(sku string, units int64) {
	h.t.Helper()
	if units == 0 {
		return
	}
	out, err := h.gate.Stock(h.t.Context(), sku, contract.StockEvent{EventID: rand.Text(), Kind: contract.StockRestock, Units: units})
	require.NoError(h.t, err)
	require.True(h.t, out.Applied)
}

// lines asks for one of each SKU, and one more of the first, out of order.
func (h *cartHouse) lines() []any {
	line := func(sku string) map[string]any { return map[string]any{"sku": sku, "quantity": 1} }
	return []any{line(h.skus[2]), line(h.skus[0]), line(h.skus[1]), line(h.skus[0])}
}

func (h *cartHouse) merged() []contract.Line {
	return []contract.Line{{SKU: h.skus[0], Quantity: 2}, {SKU: h.skus[1], Quantity: 1}, {SKU: h.skus[2], Quantity: 1}}
}

func (h *cartHouse) ask(key string) answer {
	h.t.Helper()
	return h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": h.lines()}, "Idempotency-Key", key)
}

func (h *cartHouse) cart() holdView {
	h.t.Helper()
	a := h.ask(rand.Text())
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
	return a.hold(h.t)
}

// claimed are the units held of each SKU.
func (h *cartHouse) claimed() (out [3]int64) {
	return h.counted(func(c redis.Counters) int64 { return c.Held })
}

func (h *cartHouse) sold() (out [3]int64) {
	return h.counted(func(c redis.Counters) int64 { return c.Sold })
}

func (h *cartHouse) counted(part func(redis.Counters) int64) (out [3]int64) {
	h.t.Helper()
	for i, sku := range h.skus {
		c, _, err := h.gate.Snapshot(h.t.Context(), sku)
		require.NoError(h.t, err)
		out[i] = part(c)
	}
	return out
}

// get reads the hold as a client sees it.
func (h *cartHouse) get(id string) holdView {
	h.t.Helper()
	a := h.call("GET", "/v1/holds/"+id, nil)
	require.Equal(h.t, http.StatusOK, a.status, a.body)
	return a.hold(h.t)
}

func TestCart(t *testing.T) {
	h := newCartHouse(t, 3)
	a := h.ask("key")
	require.Equal(t, http.StatusCreated, a.status, a.body)
	v := a.hold(t)
	require.Equal(t, contract.HoldHeld, v.State)
	require.Equal(t, h.merged(), v.Lines, "merged, in the order of their SKUs")
	number, err := contract.HoldNumber(v.HoldID)
	require.NoError(t, err)
	require.Equal(t, contract.SKUNumber(h.skus[0]), number)
	require.Equal(t, h.merged(), h.wf.holds[v.HoldID].Lines)
	require.Equal(t, [3]int64{2, 1, 1}, h.claimed())

	again := h.ask("key")
	require.Equal(t, http.StatusOK, again.status, again.body)
	require.Equal(t, []any{v.HoldID, v.ExpiresAt}, []any{again.hold(t).HoldID, again.hold(t).ExpiresAt})
	require.Equal(t, [3]int64{2, 1, 1}, h.claimed())
	require.Equal(t, 1, h.wf.started())
	exact(t, h.askHold("key"), 422, idempotencyKeyReused)
	require.Equal(t, h.merged(), h.get(v.HoldID).Lines)

	page := h.browse("GET", "/h/"+v.HoldID, nil)
	require.Contains(t, page.text(), "They are held for you until")
	require.Equal(t, 2, strings.Count(page.text(), "1 × Oak Chair"))
	require.Contains(t, page.text(), "2 × Oak Chair")

	h.dir.holdIDs = []string{v.HoldID}
	for _, sku := range h.skus {
		require.Contains(t, h.call("GET", "/v1/holds?sku="+sku, nil).body, v.HoldID)
	}

	checkout := h.call("POST", "/v1/holds/"+v.HoldID+"/checkout", map[string]any{"payment_ref": "P1"})
	require.Equal(t, http.StatusOK, checkout.status, checkout.body)
	require.True(t, checkout.hold(t).Extended)
	require.Greater(t, checkout.hold(t).ExpiresAt, v.ExpiresAt)

	paid := h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "P1"})
	require.Equal(t, http.StatusOK, paid.status, paid.body)
	require.Equal(t, []any{contract.HoldSold, "P1"}, []any{paid.hold(t).State, paid.hold(t).PaymentRef})
	require.NotEmpty(t, paid.hold(t).EndedAt)
	require.Equal(t, [3]int64{2, 1, 1}, h.sold())
	require.Contains(t, h.browse("GET", "/h/"+v.HoldID, nil).body, "They are yours")
	exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/release", nil), 409, holdEnded)
}

// A later line is refused: the problem names it, the lines before it are free at
// once, the last one first, and nothing keeps the same request from trying again.
func TestCartRefusedAtALaterLine(t *testing.T) {
	for gone, pointer := range []string{"/lines/1", "/lines/2", "/lines/0"} {
		t.Run(pointer, func(t *testing.T) {
			h := newCartHouse(t, 0)
			for i, sku := range h.skus {
				if i != gone {
					h.stock(sku, 2)
				}
			}
			p := exact(t, h.ask("key"), 409, soldOut)
			require.Equal(t, []string{h.skus[gone], pointer}, []string{p.SKU, p.Pointer})
			require.Equal(t, "https://door.example/join/"+h.skus[gone], p.JoinURL)
			require.Equal(t, [3]int64{}, h.claimed())
			require.Zero(t, h.wf.started())
			var freed []string
			for _, sku := range slices.Backward(h.skus[:gone]) {
				freed = append(freed, sku)
			}
			require.Equal(t, freed, h.gate.freed)
			if gone > 0 {
				other := h.call("POST", "/v1/holds", map[string]any{"sku": h.skus[0], "quantity": 2, "customer": "c2"}, "Idempotency-Key", "other")
				require.Equal(t, http.StatusCreated, other.status, "what was given back can be taken: %s", other.body)
				h.stock(h.skus[0], 2)
			}
			h.stock(h.skus[gone], 2)
			again := h.ask("key")
			require.Equal(t, http.StatusCreated, again.status, again.body)
			require.Equal(t, h.merged(), again.hold(t).Lines)
		})
	}
	t.Run("unknown", func(t *testing.T) {
		h := newCartHouse(t, 1)
		p := exact(t, h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": []any{
			map[string]any{"sku": h.skus[0], "quantity": 1}, map[string]any{"sku": "NOBODY", "quantity": 1},
		}}, "Idempotency-Key", "key"), 404, unknownSKU)
		require.Equal(t, []string{"NOBODY", "/lines/1"}, []string{p.SKU, p.Pointer})
		require.Equal(t, [3]int64{}, h.claimed())
	})
	t.Run("and the way back is broken", func(t *testing.T) {
		h := newCartHouse(t, 2)
		exact(t, h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": []any{
			map[string]any{"sku": h.skus[0], "quantity": 1}, map[string]any{"sku": h.skus[1], "quantity": 1}, map[string]any{"sku": h.skus[2], "quantity": 3},
		}}, "Idempotency-Key", "key"), 409, soldOut)
		h.gate.break_("Release", redis.ErrUnavailable, nil)
		h.gate.only = h.skus[1]
		exact(t, h.call("POST", "/v1/holds", map[string]any{"customer": "c", "lines": []any{
			map[string]any{"sku": h.skus[0], "quantity": 1}, map[string]any{"sku": h.skus[1], "quantity": 1}, map[string]any{"sku": h.skus[2], "quantity": 3},
		}}, "Idempotency-Key", "key2"), 409, soldOut)
		require.Equal(t, [3]int64{0, 1, 0}, h.claimed(), "the others are free, this one under its lease")
	})
}

// Two requests with the same key at once: the one that is refused takes back a lease,
// never a hold.
func TestCartGivesBackNoHoldOfAnother(t *testing.T) {
	h := newCartHouse(t, 2)
	first := h.ask("key").hold(t)
	h.door.takeBack(t.Context(), walkIns(contract.HoldInput{HoldID: first.HoldID, Lines: h.merged()}, "shop"))
	require.Equal(t, h.skus[2], h.gate.freed[0])
	require.Equal(t, [3]int64{2, 1, 1}, h.claimed())
	require.Equal(t, contract.HoldHeld, h.get(first.HoldID).State)
}

// B59: every crash point of a cart's lines. Nothing is promised, and the repeat finds
// out.
func TestCartCrashPoints(t *testing.T) {
	for name, c := range map[string]struct {
		breakIt func(h *cartHouse)
		claimed [3]int64
		starts  int
		broken  int
	}{
		"the second reserve is not done":     {func(h *cartHouse) { h.gate.break_("Reserve", redis.ErrUnavailable, nil) }, [3]int64{2, 0, 0}, 0, 1},
		"the second reserve's answer lost":   {func(h *cartHouse) { h.gate.break_("Reserve", nil, redis.ErrUnavailable) }, [3]int64{2, 1, 0}, 0, 1},
		"the third reserve's answer is lost": {func(h *cartHouse) { h.gate.break_("Reserve", nil, redis.ErrUnavailable) }, [3]int64{2, 1, 1}, 0, 2},
		"the start fails":                    {func(h *cartHouse) { h.wf.fail["Hold"] = errTemporalDown }, [3]int64{2, 1, 1}, 0, 1},
		"the second adopt is not done":       {func(h *cartHouse) { h.gate.break_("AdoptHold", redis.ErrUnavailable, nil) }, [3]int64{2, 1, 1}, 1, 1},
		"the third adopt's answer is lost":   {func(h *cartHouse) { h.gate.break_("AdoptHold", nil, redis.ErrUnavailable) }, [3]int64{2, 1, 1}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newCartHouse(t, 3)
			c.breakIt(h)
			h.gate.only = h.skus[c.broken]
			exact(t, h.ask("key"), 503, unavailable)
			require.Equal(t, c.claimed, h.claimed())
			require.Equal(t, c.starts, h.wf.started())
			h.gate.break_("", nil, nil)
			h.wf.set(func() { clear(h.wf.fail) })
			for _, in := range h.wf.holds { // what its workflow does meanwhile
				h.adopt(in)
			}
			again := h.ask("key")
			require.Contains(t, []int{http.StatusCreated, http.StatusOK}, again.status, again.body)
			require.Equal(t, h.merged(), again.hold(t).Lines)
			require.Equal(t, [3]int64{2, 1, 1}, h.claimed(), "taken once")
			require.Equal(t, 1, h.wf.started())
		})
	}
}

// adopt is what a Hold does first.
func (h *cartHouse) adopt(in contract.HoldInput) {
	h.t.Helper()
	for _, line := range in.Lines {
		_, err := h.gate.Gate.AdoptHold(h.t.Context(), redis.AdoptHoldRequest{
			SKU: line.SKU, HoldID: in.HoldID, HoldFor: time.Minute, ByWorkflow: true, Units: line.Quantity, Person: in.Person,
		})
		require.NoError(h.t, err)
	}
}

// A cart whose lines are not all held is not promised, and its repeat says so until
// its workflow has made it.
func TestCartHalfMadeIsNotPromised(t *testing.T) {
	h := newCartHouse(t, 2)
	h.gate.break_("AdoptHold", redis.ErrUnavailable, nil)
	h.gate.only = h.skus[1]
	exact(t, h.ask("key"), 503, unavailable)
	var id string
	for id = range h.wf.holds {
	}
	require.Equal(t, contract.HoldProvisional, h.get(id).State)
	require.Contains(t, h.browse("GET", "/h/"+id, nil).body, "is being made")
	exact(t, h.ask("key"), 503, unavailable)
	h.gate.break_("", nil, nil)
	h.adopt(h.wf.holds[id])
	require.Equal(t, http.StatusOK, h.ask("key").status)
	require.Equal(t, contract.HoldHeld, h.get(id).State)
}

// The Hold found a line gone and gave the others back: the cart is refused as a
// whole, and its id is spent.
func TestCartThatItsHoldRefused(t *testing.T) {
	h := newCartHouse(t, 2, func(_ *config.Config, opts *redis.Options) { opts.Lease = 2 * time.Second })
	var id string
	h.wf.onHold = func(in contract.HoldInput) {
		id = in.HoldID
		ctx := context.Background()
		last := in.Lines[2]
		_, err := h.gate.Gate.Release(ctx, redis.ReleaseRequest{SKU: last.SKU, HoldID: id, Reason: contract.ReasonCompensation, Lease: true})
		require.NoError(t, err)
		_, err = h.gate.Gate.Reserve(ctx, redis.ReserveRequest{SKU: last.SKU, HoldID: contract.HoldID(last.SKU, []byte("another one")), Units: 2, Person: "x"})
		require.NoError(t, err)
		h.adopt(in)
		for _, line := range in.Lines[:2] {
			_, err := h.gate.Gate.Release(ctx, redis.ReleaseRequest{SKU: line.SKU, HoldID: id, Reason: contract.ReasonCompensation})
			require.NoError(t, err)
		}
	}
	exact(t, h.ask("key"), 409, justGone)
	h.wf.onHold = nil
	require.Equal(t, contract.HoldRefused, h.get(id).State)
	exact(t, h.ask("key"), 409, justGone)
	require.Equal(t, [3]int64{0, 0, 2}, h.claimed())
	h.wf.set(func() { h.wf.closed[id] = true })
	exact(t, h.ask("key"), 409, justGone)
}

// Between two lines of a confirm the hold is neither sold nor ended: its workflow is
// asked, never a Payment, so that a payment has one seller.
func TestCartBetweenTwoConfirms(t *testing.T) {
	h := newCartHouse(t, 2)
	v := h.cart()
	confirm := func(i int) {
		out, err := h.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: h.skus[i], HoldID: v.HoldID, PaymentRef: "P1"})
		require.NoError(t, err)
		require.Equal(t, redis.OK, out.Verdict)
	}
	confirm(0)
	got := h.get(v.HoldID)
	require.Equal(t, []any{contract.HoldHeld, "", ""}, []any{got.State, got.PaymentRef, got.EndedAt})
	asked := 0
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		asked++
		confirm(1)
		confirm(2)
		return contract.ConfirmResult{Outcome: contract.ConfirmSold}, nil
	}
	for range 2 {
		paid := h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "P1"})
		require.Equal(t, http.StatusOK, paid.status, paid.body)
		require.Equal(t, contract.HoldSold, paid.hold(t).State)
	}
	require.Equal(t, 1, asked, "once sold, the records answer")
	require.Empty(t, h.wf.decided)
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmConflict}
	exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "P2"}), 409, paymentConflict)
	require.Equal(t, contract.CauseSecond, h.wf.decided[0].Cause)
}

// B22: the money of a cart whose workflow is gone goes to a Payment as soon as every
// line has ended, and not before.
func TestCartPaidLate(t *testing.T) {
	h := newCartHouse(t, 2)
	v := h.cart()
	h.wf.decision = contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded}
	h.wf.onConfirm = func(context.Context, contract.ConfirmRequest) (contract.ConfirmResult, error) {
		return contract.ConfirmResult{}, errTemporalDown
	}
	release := func(i int) {
		_, err := h.gate.Gate.Release(t.Context(), redis.ReleaseRequest{SKU: h.skus[i], HoldID: v.HoldID, Reason: contract.ReasonShop})
		require.NoError(t, err)
	}
	release(2)
	release(1)
	exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "P1"}), 503, unavailable)
	require.Empty(t, h.wf.decided, "its Hold is between two lines")
	require.Equal(t, contract.SignalPaymentSucceeded, h.wf.sent()[0].Name)
	release(0)
	p := exact(t, h.call("POST", "/v1/holds/"+v.HoldID+"/confirm", map[string]any{"payment_ref": "P1"}), 409, holdEnded)
	require.Equal(t, contract.PaymentID(v.HoldID, "P1"), p.Refund.PaymentID)
	require.Equal(t, []string{h.skus[0], contract.CauseLate}, []string{h.wf.decided[0].SKU, h.wf.decided[0].Cause})
}

func TestCartGivenBack(t *testing.T) {
	for name, owner := range map[string]bool{"by its workflow": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			h := newCartHouse(t, 2)
			v := h.cart()
			if !owner {
				h.wf.set(func() { h.wf.closed[v.HoldID] = true })
			}
			for range 2 {
				a := h.call("POST", "/v1/holds/"+v.HoldID+"/release", map[string]any{"reason": "fraud"})
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.Equal(t, []any{contract.HoldReleased, "fraud"}, []any{a.hold(t).State, a.hold(t).EndReason})
			}
			require.Equal(t, [3]int64{}, h.claimed())
			require.Len(t, h.gate.freed, map[bool]int{true: 0, false: 3}[owner])
			if !owner {
				require.Equal(t, []string{h.skus[2], h.skus[1], h.skus[0]}, h.gate.freed)
			}
		})
	}
}

// A line's record may be purged a little before the first one's: what the cart was
// is told by the others. While it may still be wanted, it is not.
func TestCartWithALineThatIsNotOnRecord(t *testing.T) {
	h := newCartHouse(t, 2)
	v := h.cart()
	for i := range 3 {
		_, err := h.gate.Confirm(t.Context(), redis.ConfirmRequest{SKU: h.skus[i], HoldID: v.HoldID, PaymentRef: "P1"})
		require.NoError(t, err)
	}
	require.NoError(t, shared.HDel(t.Context(), "hf:{"+h.skus[1]+"}:holds", v.HoldID).Err())
	require.Equal(t, contract.HoldHeld, h.get(v.HoldID).State, "its workflow waits for it")
	h.cfg.Gate.RecordRetention = 0
	require.Equal(t, contract.HoldSold, h.get(v.HoldID).State)
}

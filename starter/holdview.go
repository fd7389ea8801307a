package starter

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

type holdLinks struct {
	Page     string `json:"page"`
	Checkout string `json:"checkout,omitempty"` // while it can still be paid
}

type holdView struct {
	HoldID     string               `json:"hold_id"`
	State      contract.HoldState   `json:"state"`
	Lines      []contract.Line      `json:"lines"`
	Customer   string               `json:"customer,omitempty"`
	OrderRef   string               `json:"order_ref,omitempty"`
	Price      *contract.Money      `json:"price,omitempty"`
	EntryID    string               `json:"entry_id,omitempty"`
	Generation int64                `json:"generation,omitempty"`
	PaymentRef string               `json:"payment_ref,omitempty"`
	CreatedAt  string               `json:"created_at"`
	ExpiresAt  string               `json:"expires_at"`
	Extended   bool                 `json:"extended"`
	EndedAt    string               `json:"ended_at,omitempty"`
	EndReason  string               `json:"end_reason,omitempty"`
	Refund     *contract.RefundInfo `json:"refund,omitempty"`
	Links      holdLinks            `json:"links"`
	Now        string               `json:"now"`
}

const statusTimeout = 2 * time.Second // of a query that only adds to an answer

// viewHold shows a hold. State and times are the gate's; what the shop said of
// it is known from in, or asked of its workflow. When that does not answer, the
// shop's own words are left out.
func (d *Door) viewHold(ctx context.Context, out redis.HoldOutcome, in *contract.HoldInput) (holdView, error) {
	h := out.Hold
	v := holdView{
		HoldID: h.ID, State: h.State, Lines: linesOf(h),
		EntryID: h.EntryID, Generation: h.Generation, PaymentRef: h.PaymentRef,
		CreatedAt: stamp(h.CreatedAt), ExpiresAt: stamp(h.Deadline), Extended: h.Extended,
		EndedAt: stampIf(h.EndedAt), EndReason: h.Reason,
		Links: holdLinks{Page: d.holdURL(h.ID)}, Now: stamp(nowOf(out)),
	}
	switch {
	case in != nil:
		v.Customer, v.OrderRef, v.Price = in.Customer, in.OrderRef, in.Price
	case h.EntryID != "":
		v.Customer = h.EntryID
	default:
		var s contract.HoldStatus
		if d.status(ctx, h.ID, &s) {
			v.Customer, v.OrderRef, v.Price = s.Customer, s.OrderRef, s.Price
		}
	}
	if h.State == contract.HoldHeld {
		_, about, err := d.gate.Snapshot(ctx, h.SKU)
		if err != nil {
			return v, err
		}
		v.Links.Checkout = d.checkoutURL(about, h)
	}
	if n := len(h.Refunded); n > 0 {
		v.Refund = d.refundOf(ctx, h.ID, h.Refunded[n-1])
	}
	return v, nil
}

// nowOf is the gate's clock when it answered, so that a client counts down
// right whatever this machine's clock says.
func nowOf(out redis.HoldOutcome) time.Time {
	if out.Left > 0 {
		return out.Hold.Deadline.Add(-out.Left)
	}
	return time.Now()
}

// status asks a workflow for what only adds to an answer.
func (d *Door) status(ctx context.Context, workflowID string, out any) bool {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := d.launcher.Status(ctx, workflowID, out); err != nil {
		d.log.Warn("a workflow did not answer its status", "kind", kindOf(workflowID), "error", err)
		return false
	}
	return true
}

// kindOf names a workflow without its id, which is a capability.
func kindOf(workflowID string) string {
	kind, _, _ := strings.Cut(workflowID, "_")
	return kind
}

func (d *Door) refundOf(ctx context.Context, holdID, ref string) *contract.RefundInfo {
	info := &contract.RefundInfo{PaymentID: contract.PaymentID(holdID, ref), PaymentRef: ref, State: contract.PaymentRefundPending}
	var s contract.PaymentStatus
	if d.status(ctx, info.PaymentID, &s) {
		info.State = s.State
	}
	return info
}

func (d *Door) holdURL(id string) string { return d.cfg.HTTP.PublicURL + "/h/" + id }

// checkoutURL is the shop's checkout for a hold; empty when the shop named none.
func (d *Door) checkoutURL(about contract.About, h redis.Hold) string {
	expires := stamp(h.Deadline)
	return strings.NewReplacer(
		"{hold_id}", h.ID,
		"{entry_id}", h.EntryID,
		"{expires_at}", url.QueryEscape(expires),
		"{sig}", d.keys.CheckoutSig(h.ID, h.EntryID, expires),
	).Replace(about.CheckoutURL)
}

// readHold reads the hold that a path names. A swept record was never promised.
func (d *Door) readHold(ctx context.Context, id string) (redis.HoldOutcome, error) {
	sku, err := d.skus.byHold(ctx, id)
	if err != nil {
		return redis.HoldOutcome{}, err
	}
	out, ok, err := d.readWhole(ctx, sku, id)
	if err == nil && (!ok || out.Hold.State == contract.HoldSwept) {
		err = problem(unknownHold, "there is no hold %.80q", id)
	}
	return out, err
}

func (d *Door) getHold(w http.ResponseWriter, r *http.Request) error {
	out, err := d.readHold(r.Context(), r.PathValue("hold_id"))
	if err != nil {
		return err
	}
	return d.answerHold(w, r, out)
}

func (d *Door) answerHold(w http.ResponseWriter, r *http.Request, out redis.HoldOutcome) error {
	view, err := d.viewHold(r.Context(), out, nil)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// listHolds lists holds that have a workflow, newest first. Temporal's
// visibility finds them; what is shown is the gate's record.
func (d *Door) listHolds(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 50)
	if err != nil {
		return err
	}
	cursor, err := d.decodeCursor(listOfHolds, q.cursor)
	if err != nil {
		return err
	}
	sku, state := r.URL.Query().Get("sku"), contract.HoldState(r.URL.Query().Get("state"))
	if sku != "" && !contract.ValidSKU(sku) {
		return badQuery("sku", "is not a SKU")
	}
	if state != "" && state != contract.HoldHeld && !state.Ended() {
		return badQuery("state", "must be held, sold, released, expired or refused")
	}
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	ids, next, err := d.directory.Holds(ctx, sku, state, q.limit, cursor)
	if err != nil {
		return err
	}
	data, err := readAll(ctx, ids, func(ctx context.Context, id string) (*holdView, error) { return d.listed(ctx, id, state) })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page{Data: data, NextCursor: d.encodeCursor(listOfHolds, next)})
}

// listed reads one hold of a list; nil when its record has gone, or is in
// another state than visibility still says.
func (d *Door) listed(ctx context.Context, id string, state contract.HoldState) (*holdView, error) {
	sku, err := d.skus.byHold(ctx, id)
	if err != nil {
		return nil, err
	}
	out, ok, err := d.readWhole(ctx, sku, id)
	if err != nil || !ok || out.Hold.State == contract.HoldSwept || state != "" && out.Hold.State != state {
		return nil, err
	}
	v, err := d.viewHold(ctx, out, nil)
	return &v, err
}

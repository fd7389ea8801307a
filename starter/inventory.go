package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"holdfast/contract"
	"holdfast/redis"
)

type verifier = *standardwebhooks.Webhook

func newVerifiers(secrets []string) ([]verifier, error) {
	out := make([]verifier, len(secrets))
	for i, s := range secrets {
		v, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			return nil, fmt.Errorf("secrets.inventory: item %d is not whsec_ and base64", i+1)
		}
		out[i] = v
	}
	return out, nil
}

// signed says whether any listed secret signed the body, within five minutes.
func (d *Door) signed(raw []byte, h http.Header) bool {
	ok := false
	for _, v := range d.verifiers {
		if v.Verify(raw, h) == nil {
			ok = true
		}
	}
	return ok
}

type eventView struct {
	EventID string `json:"event_id"`
	Applied *bool  `json:"applied,omitempty"` // missing while undecided
	Reason  string `json:"reason,omitempty"`
	Stock   any    `json:"stock,omitempty"`
}

const eventWait = 2 * time.Second // for the gate's decision

// postInventory takes a stock event of the shop. The book records it first, so
// that it is applied even when the gate cannot now.
func (d *Door) postInventory(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	if !d.signed(raw, r.Header) {
		return problem(signatureInvalid, "webhook-id, webhook-timestamp and webhook-signature must sign this body with a secret of ours, at most five minutes ago")
	}
	if err := isJSON(r); err != nil {
		return err
	}
	f, err := parseObject(raw)
	if err != nil {
		return err
	}
	named, ev := stockEvent(f)
	if err := f.lenient(); err != nil {
		return err
	}
	ctx := r.Context()
	sku, err := d.skus.bySKU(ctx, named)
	if err != nil {
		return err
	}
	// A silent gate gets no more time than a slow one: the book takes the event.
	look, cancel := context.WithTimeout(ctx, eventWait)
	defer cancel()
	out, decided, err := d.eventOutcome(look, sku, ev.EventID)
	if err != nil {
		return err
	}
	if !decided {
		if err := d.claimEvent(look, sku, ev); err != nil {
			return err
		}
		if err := d.roomInBook(look, sku); err != nil {
			return err
		}
		if err := d.launcher.StockEvent(ctx, sku, ev); err != nil {
			return err
		}
		if out, decided, err = d.awaitEvent(look, sku, ev.EventID); err != nil {
			return err
		}
	}
	switch {
	case !decided:
		d.behind.Store(sku, true)
		return writeJSON(w, http.StatusAccepted, eventView{EventID: ev.EventID})
	case out.Movement != ev.Movement():
		return eventReused(sku, ev)
	}
	stock, err := d.viewStock(ctx, sku)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, eventView{EventID: ev.EventID, Applied: &out.Applied, Reason: out.Reason, Stock: stock})
}

func stockEvent(f *fields) (sku string, ev contract.StockEvent) {
	ev.EventID = f.text("event_id", 128)
	sku = f.sku("sku")
	ev.Kind = f.text("kind", 32)
	ev.OccurredAt = f.instant("occurred_at")
	ev.Actor, _ = f.optionalText("actor", 200)
	switch ev.Kind {
	case contract.StockRestock:
		ev.Units = f.integer("units", 1, maxUnits)
	case contract.StockCorrection:
		readCorrection(f, &ev)
		return sku, ev
	case contract.StockReturn:
		readReturn(f, &ev)
	case contract.StockLevel:
		ev.Units = f.integer("units", 0, maxUnits)
		ev.Version = f.integer("version", 1, contract.MaxLevelVersion)
		ev.CountsSold = f.integer("counts_sold", 0, maxUnits)
		ev.AllowShortfall = f.boolean("allow_shortfall")
	case "":
	default:
		f.complain("kind", "must be %q, %q, %q or %q", contract.StockRestock, contract.StockCorrection, contract.StockReturn, contract.StockLevel)
	}
	ev.Reason, _ = f.optionalText("reason", 200)
	return sku, ev
}

func readCorrection(f *fields, ev *contract.StockEvent) {
	if delta := f.optionalInteger("delta", -maxUnits, maxUnits); delta != nil {
		ev.Delta = *delta
	}
	switch f.members["delta"] {
	case nil:
		f.complain("delta", "is missing")
	case json.Number("0"), json.Number("-0"):
		f.complain("delta", "must not be 0")
	}
	ev.AllowShortfall = f.boolean("allow_shortfall")
	ev.Reason = f.text("reason", 200)
}

func readReturn(f *fields, ev *contract.StockEvent) {
	ev.ReturnID = f.text("return_id", 128)
	ev.HoldID = f.text("hold_id", 64)
	if _, err := contract.HoldNumber(ev.HoldID); err != nil && ev.HoldID != "" {
		f.complain("hold_id", "must be the id of the hold that made the sale")
	}
	ev.Units = f.integer("units", 1, maxUnits)
	ev.Resell = f.boolean("resell")
	if !f.has("resell") {
		f.complain("resell", "is missing: true when the units can be sold again, false when they cannot")
	}
}

// claimEvent refuses an undecided event id that came with another movement
// before: its outcome would be told as that of this one. What only describes the
// movement may differ. While Redis is silent nothing is compared, and the book
// keeps the event that came first; once it is decided the gate knows which.
func (d *Door) claimEvent(ctx context.Context, sku string, ev contract.StockEvent) error {
	movement := ev.Movement()
	got, err := d.gate.ClaimKey(ctx, eventClaim(sku, ev.EventID), redis.Claim{BodyHash: movement}, d.cfg.Gate.RecordRetention)
	switch {
	case errors.Is(err, redis.ErrUnavailable):
		return nil
	case err != nil:
		return err
	case got.BodyHash != movement:
		return eventReused(sku, ev)
	}
	return nil
}

// eventClaim names the record that an event has come.
func eventClaim(sku, eventID string) string { return "event:" + digest(sku, eventID) }

func eventReused(sku string, ev contract.StockEvent) error {
	return problem(idempotencyKeyReused, "event %q of SKU %s came with another movement before, and only that one counts; a new movement needs an event_id of its own", ev.EventID, sku)
}

// eventOutcome reads the gate's decision. A closed or silent gate has none yet;
// the book takes the event all the same.
func (d *Door) eventOutcome(ctx context.Context, sku, eventID string) (redis.StockOutcome, bool, error) {
	out, decided, err := d.gate.EventOutcome(ctx, sku, eventID)
	var closed *redis.ClosedError
	switch {
	case errors.As(err, &closed):
		d.metClosed(closed)
		d.behind.Store(sku, true)
		return out, false, nil
	case errors.Is(err, redis.ErrUnavailable):
		d.behind.Store(sku, true)
		return out, false, nil
	}
	return out, decided, err
}

// awaitEvent looks for the decision until ctx ends.
func (d *Door) awaitEvent(ctx context.Context, sku, eventID string) (out redis.StockOutcome, decided bool, err error) {
	err = watch(ctx, time.Now().Add(eventWait), func() (bool, error) {
		out, decided, err = d.eventOutcome(ctx, sku, eventID)
		return decided, err
	})
	if ctx.Err() != nil && !decided {
		err = nil // not decided yet
	}
	return out, decided, err
}

package starter

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const (
	// claimKeep is how long an Idempotency-Key is remembered. After it the hold's
	// record still answers a repeat: the id is made of the key.
	claimKeep = 24 * time.Hour
	// claimFirst is how long it is remembered before its request has made a hold: as many
	// are refused as shoppers come, and Redis must not keep them all for a day.
	claimFirst = 2 * time.Minute
	// takeTimeout bounds reserve, start and adopt together. A start that takes
	// longer has lost its lease anyway and is found out by the repeat.
	takeTimeout = 10 * time.Second
	reserveMost = 8 // calls, each of which sweeps a bite of ended leases
)

type holdRequest struct {
	Lines    []contract.Line // merged, in the order in which they are taken
	Customer string
	Phone    string // E.164, or empty
	OrderRef string
	Price    *contract.Money
	pointers map[string]string // SKU → the first item of lines that names it
}

func (d *Door) readHoldRequest(w http.ResponseWriter, r *http.Request) (holdRequest, error) {
	var req holdRequest
	f, err := readObject(w, r, false)
	if err != nil {
		return req, err
	}
	req.Lines, req.pointers = readLines(f)
	req.Customer = f.text("customer", 200)
	if f.has("customer_phone") {
		req.Phone = d.phone(f, "customer_phone")
	}
	req.OrderRef, _ = f.optionalText("order_ref", 200)
	req.Price = f.price("price")
	return req, f.done()
}

// postHold takes units for a customer. The order of steps is the promise:
// idempotency record, reserve under a lease, start, adopt, 201.
func (d *Door) postHold(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if key == "" {
		return problem(idempotencyKeyMissing, "send the header Idempotency-Key: a value of your own, the same for each repeat of this request")
	}
	req, err := d.readHoldRequest(w, r)
	if err != nil {
		return err
	}
	// A client that goes away does not leave the steps half done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), takeTimeout)
	defer cancel()
	for _, line := range req.Lines {
		if _, err := d.skus.bySKU(ctx, line.SKU); err != nil {
			return req.named(err)
		}
	}
	in := d.holdInput(d.keys.HoldID(req.Lines[0].SKU, callerOf(ctx), key), req.Lines)
	in.Customer, in.OrderRef, in.Price = req.Customer, req.OrderRef, req.Price
	in.Person = d.keys.PersonOfCustomer(req.Customer)
	if req.Phone != "" {
		in.Person = d.keys.PersonOfPhone(req.Phone)
	}
	claimed, err := d.claim(ctx, "holds", key, in.HoldID, req, claimFirst)
	if err != nil {
		return err
	}
	taken, err := d.take(ctx, in, walkIns(in, callerOf(ctx)))
	if err != nil {
		return req.named(err)
	}
	if err := d.gate.KeepClaim(ctx, claimed, claimKeep); err != nil {
		d.log.Warn("the body of a request is forgotten soon", "hold_id", in.HoldID, "error", err)
	}
	status := http.StatusOK
	if taken.now {
		status = http.StatusCreated
		d.noteNames(ctx, in)
	}
	if !taken.now && !slices.Equal(linesOf(taken.out.Hold), req.Lines) {
		return problem(idempotencyKeyReused, "this Idempotency-Key made hold %s of other lines; use a new key for a new request", in.HoldID)
	}
	view, err := d.viewHold(ctx, taken.out, &in)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/holds/"+in.HoldID)
	return writeJSON(w, status, view)
}

// claim binds the caller's Idempotency-Key to this very request: kind, what it
// names and what it says. What is kept of it tells nothing of the body. It answers the
// name under which that is kept.
func (d *Door) claim(ctx context.Context, kind, key, holdID string, request any, keep time.Duration) (name string, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return "", err
	}
	print := d.keys.Fingerprint(string(body))
	name = kind + ":" + digest(callerOf(ctx), key)
	got, err := d.gate.ClaimKey(ctx, name, redis.Claim{BodyHash: print, HoldID: holdID}, keep)
	if err != nil {
		return "", err
	}
	if got.BodyHash != print {
		return "", problem(idempotencyKeyReused, "this Idempotency-Key came with another body before; a repeat must be the same, a new request needs a new key")
	}
	return name, nil
}

func (d *Door) holdInput(id string, lines []contract.Line) contract.HoldInput {
	return contract.HoldInput{HoldID: id, Lines: lines}
}

// taken is a hold with an owner, or one that has ended.
type taken struct {
	out redis.HoldOutcome
	now bool // promised by this call
}

// take is reserve, start, adopt, each for every line. A hold is promised only after
// adopt has answered that all of it lives and its workflow is open; everything else
// is a refusal of the gate, the record as it is, or "not known, repeat".
func (d *Door) take(ctx context.Context, in contract.HoldInput, lines []redis.ReserveRequest) (taken, error) {
	for i, req := range lines {
		out, err := d.reserve(ctx, req)
		switch {
		case err != nil:
			return taken{}, err // the leases end by themselves
		case out.Verdict == redis.OK:
			continue
		}
		d.takeBack(ctx, lines[:i])
		if out.Verdict == redis.Existing {
			return d.asItIs(ctx, in, out)
		}
		return taken{}, d.refusal(req.SKU, out)
	}
	var err error
	if in.Settings, err = d.holdClocks(ctx, in.Lines); err != nil {
		return taken{}, err
	}
	switch started, err := d.launcher.Hold(ctx, in); {
	case err != nil:
		// The workflow may run or not. Nothing is released: the leases end by
		// themselves, and a repeat finds out.
		return taken{}, err
	case started == launch.StartedClosed:
		return d.afterClosed(ctx, in)
	}
	outs := make([]redis.HoldOutcome, len(lines))
	for i, req := range lines {
		out, err := d.gate.AdoptHold(ctx, redis.AdoptHoldRequest{SKU: req.SKU, HoldID: in.HoldID, HoldFor: time.Duration(in.Settings.HoldSeconds) * time.Second})
		if err != nil {
			return taken{}, err
		}
		d.wakeIf(req.SKU, out.Base)
		switch out.Verdict {
		case redis.OK:
			outs[i] = out
		case redis.Existing:
			return d.asItIs(ctx, in, out)
		default:
			// Gone: the lease ended first. The workflow runs and tries afresh.
			return taken{}, unconfirmed(in.HoldID)
		}
	}
	return taken{out: whole(outs), now: true}, nil
}

func unconfirmed(holdID string) error {
	return tryLater(retrySoon, "hold %s was not confirmed in time; repeat the request as it was to learn its outcome", holdID)
}

func (d *Door) reserve(ctx context.Context, req redis.ReserveRequest) (redis.HoldOutcome, error) {
	for range reserveMost {
		out, err := d.gate.Reserve(ctx, req)
		if err != nil {
			return out, err
		}
		d.wakeIf(req.SKU, out.Base)
		if out.Verdict != redis.Again {
			return out, nil
		}
	}
	return redis.HoldOutcome{}, tryLater(retrySoon, "many ended reservations of SKU %s are being swept; nothing was changed", req.SKU)
}

// asItIs answers a repeat with the record. A refused hold never was one and its id is
// spent, which a program must be able to tell from sold-out; a cart that is still being
// made is not promised.
func (d *Door) asItIs(ctx context.Context, in contract.HoldInput, out redis.HoldOutcome) (taken, error) {
	if len(in.Lines) > 1 {
		read, ok, err := d.readWhole(ctx, in.Lines[0].SKU, in.HoldID)
		switch {
		case err != nil:
			return taken{}, err
		case !ok || read.Hold.State == contract.HoldProvisional || read.Hold.State == contract.HoldSwept:
			return taken{}, unconfirmed(in.HoldID)
		}
		out = read
	}
	if out.Hold.State == contract.HoldRefused {
		p := problem(justGone, "the units were gone before hold %s was made; try again with a new Idempotency-Key, or join the line", out.Hold.ID)
		p.JoinURL = d.joinURL(in.Lines[0].SKU)
		return taken{}, p
	}
	return taken{out: out}, nil
}

// afterClosed reads the record of a hold whose workflow has closed: it has
// ended and is never adopted again.
func (d *Door) afterClosed(ctx context.Context, in contract.HoldInput) (taken, error) {
	out, ok, err := d.readWhole(ctx, in.Lines[0].SKU, in.HoldID)
	if err != nil {
		return taken{}, err
	}
	if !ok || !out.Hold.State.Ended() {
		d.log.Error("a closed Hold has no ended record", "hold_id", in.HoldID, "state", out.Hold.State, "recorded", ok)
		return taken{}, tryLater(retryClosed, "the workflow of hold %s has closed and its record has not ended; the lease gives its units back", in.HoldID)
	}
	return d.asItIs(ctx, in, out)
}

// refusal is the problem for a verdict of reserve.
func (d *Door) refusal(sku string, out redis.HoldOutcome) error {
	var p *Problem
	switch out.Verdict {
	case redis.SoldOut:
		p = problem(soldOut, "not enough units of SKU %s are free; join the line to be told when some come back", sku)
		p.JoinURL = d.joinURL(sku)
	case redis.ReservedForLine:
		p = problem(reservedForLine, "free units of SKU %s go to the people in line first", sku)
		p.JoinURL, p.Waiting = d.joinURL(sku), &out.Waiting
	case redis.Paused:
		p = problem(paused, "the sale of SKU %s is paused", sku)
	case redis.Ended:
		p = problem(saleEnded, "the sale of SKU %s has ended", sku)
	case redis.LimitReached:
		p = problem(limitReached, "one person may have only so many units of SKU %s, and this customer has them in holds and sales", sku)
	case redis.Unknown:
		return problem(unknownLink, "there is no such offer")
	default:
		d.log.Error("a verdict that nobody expected", "sku", sku, "verdict", out.Verdict)
		return tryLater(retrySoon, "the outcome is not known; repeat the request as it was")
	}
	p.SKU = sku
	return p
}

func (d *Door) wakeIf(sku string, base redis.Base) {
	if base.Wake {
		d.wake(sku)
	}
}

func (d *Door) joinURL(sku string) string { return d.cfg.HTTP.PublicURL + "/join/" + sku }

package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
)

// A hold has one record in the gate for each of its lines. They are taken and sold
// in the order of their SKUs and given back in reverse. Every step is repeated until
// its outcome is known, so what is to be undone is what answered ok; a worker that
// dies repeats the steps of its task from the first, and the records answer.

// ending is why and by whom a hold is given back.
type ending struct{ reason, actor string }

// adopt tells the gate that the lines have their owner, and once a payment has
// started asks for the one extension. A line that is not to be had gives all the
// others back: the door has taken a lease of each of them, so also those after it.
func (h *hold) adopt() error {
	summary := "adopt"
	if h.paying {
		summary = "extend while the shopper pays"
	}
	for i := range h.lines {
		in := h.ofAdopt(i)
		if h.paying {
			in.ExtendSeconds = h.in.Settings.ExtensionSeconds
			if i == 0 { // which speaks for the cart
				in.Amount = h.named
			}
		}
		out, answered, err := h.askLine(i, lineStep{adopts: true}, h.label(summary, i), holdActivities.AdoptHold, in)
		switch {
		case err != nil:
			return err
		case !answered:
			continue
		}
		if ours, err := h.adopted(i, out); err != nil || !ours {
			return err
		}
	}
	h.arm()
	h.tellAdopted()
	return nil
}

func (h *hold) ofAdopt(i int) activities.AdoptHoldInput {
	in := activities.AdoptHoldInput{
		SKU: h.lines[i].SKU, HoldID: h.in.HoldID, Units: h.lines[i].Quantity, Person: h.in.Person,
		HoldSeconds: h.in.Settings.HoldSeconds,
	}
	if i == 0 && len(h.lines) > 1 {
		in.Cart = h.lines
	}
	return in
}

// adopted takes a line's answer and says whether the line is ours.
func (h *hold) adopted(i int, out activities.HoldOutcome) (bool, error) {
	if out.Verdict == redis.Unknown { // no such SKU: waiting would keep the other lines' units
		out.State, out.EndedAt = contract.HoldRefused, workflow.Now(h.ctx)
	}
	h.take(i, out)
	if out.Verdict != redis.OK {
		return false, h.rejoin()
	}
	// Until the last line may end, a payment can still win them all.
	if ends := workflow.Now(h.ctx).Add(out.Left()); ends.After(h.ends) {
		h.ends = ends
	}
	return true, nil
}

// arm sets the timer by what the lines have answered; there is nothing to wait for
// before the first has.
func (h *hold) arm() {
	if !h.ends.IsZero() {
		h.deadline.set(h.ctx, "hold deadline", h.ends.Sub(workflow.Now(h.ctx))+h.grace())
	}
}

// tellAdopted shows the hold, and tells of it once every line has answered.
func (h *hold) tellAdopted() {
	h.show()
	if len(h.silent()) == 0 {
		h.tellHeld()
	}
}

// label is the summary of a step on one line.
func (h *hold) label(step string, i int) string {
	if len(h.lines) == 1 {
		return step
	}
	return fmt.Sprintf("%s: %d × %s", step, h.lines[i].Quantity, h.lines[i].SKU)
}

// grace is how long the units are kept past the deadline.
func (h *hold) grace() time.Duration {
	if h.paying {
		return seconds(h.in.Settings.GraceSeconds)
	}
	return 0
}

// apart is true when a line has ended and the hold has not: the others must follow
// it. Until they have, the hold sells nothing itself. Its money goes to a Payment,
// which may be at the lines already.
func (h *hold) apart() bool {
	if h.status.State.Ended() {
		return false
	}
	for _, line := range h.gate {
		if line.State.Ended() {
			return true
		}
	}
	return false
}

// rejoin gives the rest of a cart back when a line has ended by itself.
func (h *hold) rejoin() error {
	if !h.apart() {
		return nil
	}
	return h.giveBack(contract.ReasonCompensation, "hold")
}

// giveBack ends the hold, the last line first. Money that it keeps gets its owner
// first, so that no unit is free while its payment is nobody's. The gate may refuse
// an expiry as early, or answer that the hold was sold meanwhile. A line that does not
// answer keeps no other.
func (h *hold) giveBack(reason, actor string) error {
	h.why = ending{reason, actor}
	left, err := h.earlyForAll()
	if err != nil {
		return err
	}
	if left > 0 {
		h.waitForLines(left)
		return nil
	}
	if err := h.handMismatched(); err != nil {
		return err
	}
	for i := len(h.lines) - 1; i >= 0; i-- {
		if h.gate[i].State == contract.HoldRefused {
			continue // it never had a unit
		}
		step := lineStep{gives: h.why}
		if h.steps[i].gives == step.gives {
			continue // it is asked for that already
		}
		out, answered, err := h.askLine(i, step, h.label("give back: "+reason, i), holdActivities.ReleaseHold, h.ofRelease(i))
		if err != nil {
			return err
		}
		if answered {
			left = max(left, h.gaveBack(i, out))
		}
	}
	h.waitForLines(left)
	return nil
}

func (h *hold) ofRelease(i int) activities.ReleaseHoldInput {
	in := activities.ReleaseHoldInput{SKU: h.lines[i].SKU, HoldID: h.in.HoldID, Reason: h.why.reason, Actor: h.why.actor}
	if at := h.gate[i].Deadline; !at.IsZero() {
		in.Deadline = at.Add(h.grace())
	}
	if h.gate[i].State == contract.HoldProvisional && h.why.reason != contract.ReasonExpired && h.why.reason != contract.ReasonCompensation {
		unheard := h.ofAdopt(i)
		in.Unheard = &unheard
	}
	return in
}

// earlyForAll is how long the gates of all lines would refuse the expiry, 0 when one
// would not. It asks only while the hold keeps money of another amount, which may be
// put right for as long as the hold lives, and needs its owner before a unit is free.
func (h *hold) earlyForAll() (left time.Duration, err error) {
	if len(h.mismatched) == 0 || h.why.reason != contract.ReasonExpired || h.apart() {
		return 0, nil
	}
	for i := range h.lines {
		in := h.ofRelease(i)
		in.AskOnly, in.Unheard = true, nil
		out, later, err := gateAsk[activities.HoldOutcome](h.ctx, h.label("ask whether it may end", i), holdActivities.ReleaseHold, in)
		if err != nil || later != nil || out.Verdict != redis.Early {
			return 0, err
		}
		left = max(left, out.Left())
	}
	return left, nil
}

// gaveBack takes a line's answer. It is how long the gate refuses to end the line.
func (h *hold) gaveBack(i int, out activities.HoldOutcome) time.Duration {
	switch out.Verdict {
	case redis.Early:
		return out.Left()
	case redis.Unknown:
		workflow.GetLogger(h.ctx).Error("the gate has no record of this hold: nothing to give back", "hold", h.in.HoldID, "sku", h.lines[i].SKU)
		out.State, out.Reason, out.EndedAt = contract.HoldReleased, h.why.reason, workflow.Now(h.ctx)
		if h.why.reason == contract.ReasonExpired {
			out.State = contract.HoldExpired
		}
	}
	h.take(i, out)
	return 0
}

// waitForLines sets the timer for what could not end yet: left is what the gate gave
// more. Lines that do not agree are being sold again by a Payment, or that is undone,
// line by line. It leaves them all sold or none, so they agree soon; if it could not, a
// person must, and many looks would fill the history. Lines that do not answer are
// asked all the time.
func (h *hold) waitForLines(left time.Duration) {
	switch {
	case h.status.State.Ended():
		return
	case left > 0:
		h.deadline.set(h.ctx, "hold deadline", left)
	case h.disagree():
		h.deadline.set(h.ctx, "hold deadline", min(time.Second<<min(h.looks, 17), longestLook))
		h.looks++
		if sold := h.staySold(); len(sold) > 0 {
			workflow.GetLogger(h.ctx).Error("lines of a refused cart stay sold: a person must take back what is left of them, as a return, and release the hold", "hold", h.in.HoldID, "skus", sold)
		}
	case h.deadline.due():
		h.deadline.clear()
	}
	h.show()
}

// longestLook is the pause between two looks at lines that only a person can make
// agree. A release is a look at once.
const longestLook = 24 * time.Hour

const patientLooks = 8 // some four minutes, far more than a Payment needs for a cart

// staySold are the SKUs of lines that nobody undoes any more: units of them came back
// before the rest of the cart was refused.
func (h *hold) staySold() (skus []string) {
	if h.looks < patientLooks {
		return nil
	}
	for i, line := range h.gate {
		if line.State == contract.HoldSold && h.steps[i].word == nil {
			skus = append(skus, h.lines[i].SKU)
		}
	}
	return skus
}

// disagree says that a line which has answered is not given back.
func (h *hold) disagree() bool {
	for i, line := range h.gate {
		if h.steps[i].word == nil && (line.State.Live() || line.State == contract.HoldSold) {
			return true
		}
	}
	return false
}

// take makes the gate's record of a line part of the status.
func (h *hold) take(i int, out activities.HoldOutcome) {
	was := h.gate[i]
	h.told.on = out.Tell
	switch out.State {
	case "":
		out.State = was.State
	case contract.HoldSwept: // its claim is gone, and a Hold takes it afresh at its start only
		out.State = contract.HoldReleased
	}
	if out.CreatedAt.IsZero() {
		out.CreatedAt = was.CreatedAt
	}
	if out.Deadline.IsZero() {
		out.Deadline = was.Deadline
	}
	out.Extended = out.Extended || was.Extended
	h.gate[i] = out

	states, back := make([]contract.HoldState, len(h.gate)), make([]bool, len(h.gate))
	s := &h.status
	s.ExpiresAt, s.PaymentRef, s.EndReason, s.EndedAt, s.Extended = time.Time{}, "", "", nil, true
	for i, line := range h.gate {
		states[i], back[i] = line.State, line.Returned >= h.lines[i].Quantity
		s.Extended = s.Extended && line.Extended
		if at := line.Deadline; !at.IsZero() && (s.ExpiresAt.IsZero() || at.Before(s.ExpiresAt)) {
			s.ExpiresAt = at
		}
	}
	s.State = contract.CartStateOf(states, back)
	if len(states) > 1 {
		s.LineStates = states
	}
	if at := h.gate[0].CreatedAt; !at.IsZero() {
		s.CreatedAt = at
	}
	if s.State.Ended() {
		h.ended()
	}
	h.show()
}

// ended is what the status says of the end: the last line's time, and the reason of
// the first line that tells it.
func (h *hold) ended() {
	told := false
	h.status.SoldAt = nil
	for _, line := range h.gate {
		if h.status.State == contract.HoldSold && len(h.gate) > 1 {
			h.status.SoldAt = append(h.status.SoldAt, line.EndedAt)
		}
		if line.State == h.status.State && !told {
			h.status.EndReason, h.status.PaymentRef, told = line.Reason, line.PaymentRef, true
		}
		if at := line.EndedAt; !at.IsZero() && (h.status.EndedAt == nil || at.After(*h.status.EndedAt)) {
			h.status.EndedAt = &at
		}
	}
}

func (h *hold) show() {
	next := "closes"
	switch silent := h.silent(); {
	case h.status.State.Ended():
	case len(silent) > 0:
		next = "the gate of " + verbatim(strings.Join(silent, ", ")) + " is closed or out of reach: asked again until it answers"
	case h.apart() && len(h.staySold()) > 0:
		next = "**a person should look**: " + verbatim(strings.Join(h.staySold(), ", ")) + " stays sold while the other lines were given back. " +
			"Take what is left of it back as a return, then release the hold: it ends"
	case h.apart():
		next = "its lines do not agree yet: looks again until all are sold or all are given back"
	case len(h.mismatched) > 0:
		next = fmt.Sprintf("**a person should look**: %d payment(s) of another amount, refunded when the hold ends unless put right", len(h.mismatched))
	case h.paying:
		next = "the shopper pays; given back when the deadline and the grace have passed"
	default:
		next = "given back at the deadline unless paid"
	}
	lines := make([]string, len(h.lines))
	for i, line := range h.lines {
		lines[i] = fmt.Sprintf("%d × %s", line.Quantity, verbatim(line.SKU))
	}
	until := instant(h.status.ExpiresAt)
	if h.status.State == contract.HoldRefused { // it never held anything
		until = ""
	}
	details(h.ctx,
		"State", string(h.status.State),
		"Lines", strings.Join(lines, ", "),
		"Customer", verbatim(h.in.Customer),
		"Held until", until,
		"Payment", verbatim(h.status.PaymentRef),
		"Order", verbatim(h.in.OrderRef),
		"Unresolved", h.unresolvedLine(),
		"Next", next,
	)
}

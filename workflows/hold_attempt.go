package workflows

import (
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	port "holdfast/payment"
)

var attemptActivities *activities.Attempts

// maxAttempts is how many payments begun for one hold are remembered: each is a
// call to the provider. Money of a further one is late or second like any other.
const maxAttempts = 20

// attempt is a payment that was begun for the hold.
type attempt struct {
	ref     string
	asked   bool            // before an expiry, once
	ending  bool            // asked to end after the hold did
	word    workflow.Future // the provider's, until it is heard
	unknown string          // why the provider did not know before the expiry
	over    bool            // nothing more is to be asked
}

// begun remembers a payment that has started, when there is a provider that can
// be asked about it.
func (h *hold) begun(ref string) {
	if !h.in.Settings.AsksProvider || ref == "" || utf8.RuneCountInString(ref) > contract.MaxPaymentRef {
		return
	}
	for _, a := range h.attempts {
		if a.ref == ref {
			return
		}
	}
	h.begunLast = ref
	if len(h.attempts) == maxAttempts {
		workflow.GetLogger(h.ctx).Warn("one payment too many was begun for this hold: it is not asked about", "hold", h.in.HoldID, "most", maxAttempts)
		return
	}
	h.attempts = append(h.attempts, &attempt{ref: ref})
}

// begunAfter says that the shopper has gone on to another payment.
func (h *hold) begunAfter(ref string) bool {
	return h.begunLast != "" && h.begunLast != ref
}

// expire gives the units back at the deadline. Payments that had started are
// asked about first: one that was paid makes the sale, one that is open is ended.
// Whatever comes in meanwhile goes first, as money that arrives always does. A hold
// that ends for another reason, and only waits for its lines, asks nobody.
func (h *hold) expire() error {
	if h.why.reason == contract.ReasonExpired && !h.apart() && h.asking() {
		err := workflow.Await(h.ctx, func() bool { return h.words() == 0 || h.pending() || h.cancelled() })
		if err != nil || h.words() > 0 {
			return err
		}
		return h.hear()
	}
	return h.giveBack(h.why.reason, h.why.actor)
}

// asking asks about every payment that was not yet asked about, and says whether
// an answer is still to be heard.
func (h *hold) asking() bool {
	heard := true
	for _, a := range h.attempts {
		if !a.asked {
			a.asked = true
			a.word = h.ask("ask the provider before the expiry", attemptActivities.AskAttempt, a, temporal.RetryPolicy{
				// Past the deadline the units wait for this answer.
				InitialInterval: time.Second, BackoffCoefficient: 3, MaximumAttempts: 3,
			})
		}
		heard = heard && a.word == nil
	}
	return !heard
}

// words counts the answers that have not come yet.
func (h *hold) words() int {
	n := 0
	for _, a := range h.attempts {
		if a.word != nil && !a.word.IsReady() {
			n++
		}
	}
	return n
}

// endAttempts ends what is still open of an ended hold, so that no shopper pays
// for nothing. It answers true once every answer was heard.
func (h *hold) endAttempts() (bool, error) {
	if err := h.hear(); err != nil {
		return false, err
	}
	all := true
	for _, a := range h.attempts {
		if _, known := h.answers[a.ref]; known || a.ref == h.status.PaymentRef {
			a.over, a.word = true, nil // its money is seen to
		}
		if a.over {
			continue
		}
		all = false
		if a.word != nil {
			continue
		}
		a.ending = true
		a.word = h.ask("end an open payment", attemptActivities.EndAttempt, a, temporal.RetryPolicy{
			// Nobody waits but the shopper who may still pay: some ten minutes.
			InitialInterval: 5 * time.Second, BackoffCoefficient: 3, MaximumInterval: 2 * time.Minute, MaximumAttempts: 8,
		})
	}
	return all, nil
}

// answered says that an answer of the provider can be heard.
func (h *hold) answered() bool {
	for _, a := range h.attempts {
		if a.word != nil && a.word.IsReady() {
			return true
		}
	}
	return false
}

func (h *hold) ask(summary string, activity any, a *attempt, retry temporal.RetryPolicy) workflow.Future {
	ctx := workflow.WithActivityOptions(h.ctx, workflow.ActivityOptions{
		// Several calls of one attempt. There is no limit from schedule to close:
		// time without a worker must not pass for a provider's silence.
		StartToCloseTimeout: 30 * time.Second, RetryPolicy: &retry, Summary: summary,
	})
	return workflow.ExecuteActivity(ctx, activity, activities.AttemptInput{
		HoldID: h.in.HoldID, Ref: a.ref, SaleRef: h.status.PaymentRef,
	})
}

// hear takes the answers that have come. Money goes the way of all money: it
// makes the sale, or its Payment decides.
func (h *hold) hear() error {
	for _, a := range h.attempts {
		if a.word == nil || !a.word.IsReady() {
			continue
		}
		var out activities.AttemptAnswer
		err := a.word.Get(h.ctx, &out)
		a.word = nil
		switch {
		case err != nil && a.ending:
			a.over = true
			workflow.GetLogger(h.ctx).Error("a payment may still be open at the provider: its money would be late", "hold", h.in.HoldID, "payment", contract.PaymentID(h.in.HoldID, a.ref), "error", err)
		case err != nil:
			a.unknown = "the provider did not answer: " + err.Error()
		case out.State == port.Paid:
			a.over = true
			if err := contract.CheckPaymentRef(out.Ref); err != nil {
				// The hold must not fail with its units, and this money has another name.
				workflow.GetLogger(h.ctx).Error("the provider gives paid money no good name: it keeps the one that it was begun under", "hold", h.in.HoldID, "payment", contract.PaymentID(h.in.HoldID, a.ref), "error", err)
				out.Ref = a.ref
			}
			if h.namedBy[out.Ref] == nil {
				h.namedBy[out.Ref] = h.namedBy[a.ref] // announced under the attempt's name
			}
			if _, err := h.pay(payment{ref: out.Ref, money: out.Money}); err != nil {
				return err
			}
		default:
			a.over = true
			if out.State == port.Unknown && !a.ending {
				a.unknown = out.Reason
			}
		}
	}
	return nil
}

// recordUnresolved follows the end of the hold: one that expired has payments of
// which nobody could say whether they were made. Money that came has its owner.
func (h *hold) recordUnresolved() {
	if h.status.State != contract.HoldExpired {
		return
	}
	for _, a := range h.attempts {
		if _, came := h.answers[a.ref]; a.unknown != "" && !came {
			h.unresolvedAttempt(a.ref, a.unknown)
		}
	}
}

func (h *hold) unresolvedAttempt(ref, reason string) {
	id := contract.PaymentID(h.in.HoldID, ref)
	workflow.GetLogger(h.ctx).Error("payment unresolved: the hold expired and nobody could say whether it was paid", "hold", h.in.HoldID, "payment", id, "reason", reason)
	h.unresolved = append(h.unresolved, verbatim(ref)+": "+verbatim(reason))
	h.tellUnresolved(ref, h.namedBy[ref], reason)
	h.show()
}

// unresolvedLine is what an operator reads of it.
func (h *hold) unresolvedLine() string {
	if len(h.unresolved) == 0 {
		return ""
	}
	return "**a person should look at the provider**: " + strings.Join(h.unresolved, "; ")
}

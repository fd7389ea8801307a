package workflows

import (
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

// lineStep is what a line was asked and has not answered: its gate is closed, or out
// of reach. It is asked without limit. Neither another line nor a message waits for
// it; only a payment does, whose units these are.
type lineStep struct {
	adopts bool
	gives  ending // when it does not adopt

	word workflow.Future // nil: nothing was asked
	stop workflow.CancelFunc
}

// askLine asks one line for a step in place of the one before. Without an answer it
// goes on; hearLine takes it.
func (h *hold) askLine(i int, step lineStep, summary string, activity, in any) (out activities.HoldOutcome, answered bool, err error) {
	h.dropStep(i)
	ctx, stop := workflow.WithCancel(h.ctx)
	if h.outOfReach() {
		// Seconds for each line add up, in which nobody would be heard.
		step.word = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, remoteGate(summary)), activity, in)
	} else {
		out, step.word, err = gateAsk[activities.HoldOutcome](ctx, summary, activity, in)
	}
	if step.word == nil {
		return out, err == nil, err
	}
	step.stop = stop
	h.steps[i] = step
	return out, false, nil
}

// outOfReach says that a line does not answer.
func (h *hold) outOfReach() bool { return len(h.silent()) > 0 }

// dropStep asks a line no more. An attempt that runs may still reach the gate, which
// decides who was first.
func (h *hold) dropStep(i int) {
	if h.steps[i].word != nil {
		h.steps[i].stop()
	}
	h.steps[i] = lineStep{}
}

// silent are the SKUs of the lines that do not answer.
func (h *hold) silent() (skus []string) {
	for i, s := range h.steps {
		if s.word != nil {
			skus = append(skus, h.lines[i].SKU)
		}
	}
	return skus
}

// giving says that the hold gives its units back, and a line has not answered.
func (h *hold) giving() bool {
	for _, s := range h.steps {
		if s.word != nil && !s.adopts {
			return true
		}
	}
	return false
}

// moneyWaits is true while units are given back for another reason than their time,
// and no gate has said that it has any: who asked first is first. An expiry stops for
// a payment.
func (h *hold) moneyWaits() bool {
	return h.giving() && h.why.reason != contract.ReasonExpired && !h.over()
}

func (h *hold) lineReady() bool {
	for _, s := range h.steps {
		if ready(s.word) {
			return true
		}
	}
	return false
}

// hearLine takes the answer of one line.
func (h *hold) hearLine() error {
	for i, s := range h.steps {
		if !ready(s.word) {
			continue
		}
		h.steps[i] = lineStep{}
		var out activities.HoldOutcome
		if err := s.word.Get(h.ctx, &out); err != nil {
			return err // it can never succeed
		}
		if !s.adopts {
			h.waitForLines(h.gaveBack(i, out))
			return nil
		}
		ours, err := h.adopted(i, out)
		if err == nil && ours {
			h.arm()
			h.tellAdopted()
		}
		return err
	}
	return nil
}

// clearTheWay stops what a sale makes needless, before the lines are sold one by one.
// A line that was never adopted may have lost its lease, and a sale takes no unit
// afresh: it is waited for, with the others kept for whoever has paid.
func (h *hold) clearTheWay() error {
	for h.adopting() {
		if err := workflow.Await(h.ctx, h.lineReady); err != nil {
			return err
		}
		if err := h.hearLine(); err != nil {
			return err
		}
	}
	if h.over() {
		return nil
	}
	if h.giving() { // goes on if there is no sale
		h.deadline.set(h.ctx, "hold deadline", 0)
	}
	for i := range h.steps {
		h.dropStep(i)
	}
	return nil
}

// adopting says that a line has not answered whether it is ours at all.
func (h *hold) adopting() bool {
	for i, s := range h.steps {
		if s.word != nil && s.adopts && h.gate[i].State == contract.HoldProvisional {
			return true
		}
	}
	return false
}

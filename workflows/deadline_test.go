package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B13: one rule at the boundary, that of the gate: before the deadline nothing ends,
// from it on the ending may, and until the ending has come the payment or the press
// wins. The workflows ask for the ending at the deadline and not before, and there is
// one outcome each time.
func TestOneRuleAtTheDeadline(t *testing.T) {
	// Of callbacks and timers that are due together the environment promises no
	// order; at the very instant one of the two happens, and whole.
	for name, c := range map[string]struct {
		off         time.Duration
		sold, ended bool // may happen
	}{
		"1 ms before": {-time.Millisecond, true, false},
		"at":          {0, true, true},
		"1 ms after":  {time.Millisecond, false, true},
	} {
		t.Run("a payment "+name, func(t *testing.T) {
			w := reserved(t)
			w.at(10*time.Minute+c.off, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
			out := w.runHold()
			switch out.State {
			case contract.HoldSold:
				require.True(t, c.sold)
				require.Empty(t, w.payments)
				require.Zero(t, w.free)
			case contract.HoldExpired:
				require.True(t, c.ended)
				require.Equal(t, began.Add(10*time.Minute), w.hold.EndedAt, "at the deadline, neither before nor after")
				require.LessOrEqual(t, len(w.payments), 1, "its money has one owner, if the Hold still heard of it")
				require.EqualValues(t, 1, w.free)
			default:
				t.Errorf("ended as %s", out.State)
			}
			require.Zero(t, w.called("release expired early"))
		})
		t.Run("a press "+name, func(t *testing.T) {
			w := joined(t)
			w.at(day, func() { w.offers(holdID) })
			pressed := false
			w.at(day+15*time.Minute+c.off, func() {
				if w.hold.State == contract.HoldOffered {
					pressed = true
					w.press()
				}
			})
			w.at(day+16*time.Minute, func() {
				if pressed {
					w.hold.State, w.entry.State = contract.HoldSold, contract.EntryBought
					w.SignalWorkflow(contract.SignalHoldEnded, contract.HoldEnded{HoldID: holdID})
				}
			})
			state := w.runEntry().State
			if pressed {
				require.True(t, c.sold)
				require.Equal(t, contract.EntryBought, state)
			} else {
				require.True(t, c.ended)
				require.Equal(t, contract.EntryLapsed, state)
				require.Equal(t, began.Add(day+15*time.Minute), w.hold.EndedAt)
			}
			require.Zero(t, w.called("lapse early"))
		})
	}
}

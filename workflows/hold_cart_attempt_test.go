package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
)

// askingCart is a cart whose provider can be asked; P1 is begun in the first minute.
func askingCart(t *testing.T) *world {
	w := cart(t)
	w.provider.status, w.provider.cancel = map[string][]says{}, map[string][]says{}
	w.begin(time.Minute, "P1")
	return w
}

func (w *world) runAskingCart() contract.HoldResult {
	in := cartInput()
	in.Settings.AsksProvider = true
	return w.runAskingOf(in)
}

// The webhook was lost: all lines are sold, none was given back first.
func TestCartPaidAtTheProviderIsSold(t *testing.T) {
	for name, answers := range map[string][2][]says{
		"paid":                           {{paidThere("P1", 500)}, nil},
		"paid between status and cancel": {{openThere}, {paidThere("P1", 500)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := askingCart(t)
			w.tells()
			w.provider.status["P1"], w.provider.cancel["P1"] = answers[0], answers[1]
			out := w.runAskingCart()
			require.Equal(t, contract.HoldResult{HoldID: holdID, State: contract.HoldSold, PaymentRef: "P1"}, out)
			require.Equal(t, calls(adopted, adopted, []string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE ok"}), w.calls)
			require.Empty(t, w.payments)
			require.Equal(t, []string{contract.EventHoldCreated, contract.EventHoldExtended, contract.EventHoldConfirmed}, w.toldOf())
		})
	}
}

// No line is free before the attempt has ended; one line that is early has it asked
// about no second time.
func TestCartEndsAnOpenAttemptBeforeItExpires(t *testing.T) {
	for _, early := range []string{"", chair, lamp, table} {
		t.Run(early, func(t *testing.T) {
			w := askingCart(t)
			w.provider.cancel["P1"] = []says{{status: openThere.status, do: func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				require.Equal(t, each(contract.HoldHeld), w.states())
				if early != "" {
					w.on(early).hold.Deadline = w.on(early).hold.Deadline.Add(2 * time.Minute)
				}
			}}}
			requireUndone(t, w, w.runAskingCart(), contract.HoldExpired)
			require.Equal(t, []string{"status P1", "cancel P1"}, w.provider.calls)
			require.NotContains(t, w.currentDetails(), "Unresolved")
		})
	}
}

// What nobody knew is told once, also when a line waits for its gate.
func TestCartExpiresUnresolved(t *testing.T) {
	for _, early := range []string{"", chair, table} {
		t.Run(early, func(t *testing.T) {
			w := askingCart(t)
			w.tells()
			w.provider.status["P1"] = []says{{status: nobodyKnew.status, do: func() {
				if early == "" {
					return
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.on(early).hold.Deadline = w.on(early).hold.Deadline.Add(2 * time.Minute)
			}}}
			requireUndone(t, w, w.runAskingCart(), contract.HoldExpired)
			require.Equal(t, []string{"status P1"}, w.provider.calls)
			require.Equal(t, []string{contract.EventHoldCreated, contract.EventHoldExtended, contract.EventPaymentUnresolved, contract.EventHoldExpired}, w.toldOf())
		})
	}
}

// The provider's word is money like any other: a later line refuses it, and all
// lines go back after it has its owner.
func TestCartPaidAtTheProviderAndRefusedAtALaterLine(t *testing.T) {
	for _, sku := range []string{chair, lamp, table} {
		t.Run(sku, func(t *testing.T) {
			w := askingCart(t)
			w.tells()
			w.provider.status["P1"] = []says{{status: paidThere("P1", 500).status, do: func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.on(sku).free = -1
			}}}
			require.Equal(t, contract.HoldReleased, w.runAskingCart().State)
			require.Equal(t, []string{contract.CauseLate}, w.causes())
			require.Equal(t, each(contract.HoldReleased), w.states())
			require.Contains(t, w.hold.Refunded, "P1", "it never sells again")
			require.Equal(t, []string{"status P1"}, w.provider.calls, "its money is seen to")
			require.Equal(t, []string{contract.EventHoldCreated, contract.EventHoldExtended, contract.EventHoldReleased}, w.toldOf(), "the sale that was undone is not told")
		})
	}
}

// Whatever comes while the provider is asked goes first; its word is heard later.
func TestCartEndsWhileTheProviderIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *world)
		say    says
		want   contract.HoldState
		causes []string
	}{
		"cancelled, paid there": {func(w *world) { w.CancelWorkflow() }, paidThere("P1", 500), contract.HoldReleased, []string{contract.CauseLate}},
		"cancelled, open there": {func(w *world) { w.CancelWorkflow() }, openThere, contract.HoldReleased, nil},
		"released, paid there": {
			func(w *world) { w.SignalWorkflow(contract.SignalRelease, contract.Release{}) },
			paidThere("P1", 500), contract.HoldReleased,
			[]string{contract.CauseLate},
		},
		"declined for good, unknown there": {
			func(w *world) {
				w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1", Final: true})
			},
			nobodyKnew, contract.HoldReleased, nil,
		},
		"paid by another, paid there": {
			func(w *world) { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2")) },
			paidThere("P1", 500), contract.HoldSold,
			[]string{contract.CauseSecond},
		},
		"declined, tried again, paid there": {
			func(w *world) {
				w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "P1"})
				w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P2"})
			},
			paidThere("P1", 500), contract.HoldSold, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := askingCart(t)
			w.tells()
			// The provider answers at its second attempt: a second later.
			w.provider.status["P1"] = []says{{err: silent, do: func() { c.do(w) }}, c.say}
			out := w.runAskingCart()
			if err := w.GetWorkflowError(); err != nil {
				require.True(t, temporal.IsCanceledError(err))
				out.State = contract.CartState(w.states()...)
			}
			require.Equal(t, c.want, out.State)
			require.Equal(t, each(c.want), w.states())
			require.Equal(t, c.causes, w.causes())
			require.NotContains(t, w.toldOf(), contract.EventPaymentUnresolved)
		})
	}
}

// A cart that was refused at its start ends what its shopper has begun.
func TestCartRefusedEndsItsAttempts(t *testing.T) {
	for name, say := range map[string]says{"open": openThere, "paid": paidThere("P1", 500)} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			w.tells()
			w.provider.status, w.provider.cancel = map[string][]says{}, map[string][]says{"P1": {say}}
			w.begin(0, "P1")
			w.on(table).hold.State = contract.HoldSwept
			require.Equal(t, contract.HoldRefused, w.runAskingCart().State)
			require.Equal(t, []string{"cancel P1"}, w.provider.calls)
			require.Equal(t, name == "paid", len(w.payments) == 1)
			require.Empty(t, w.toldOf(), "it was never promised")
		})
	}
}

// A provider that names its payment badly does not take the hold down with it.
func TestHoldPaidAtTheProviderUnderNoName(t *testing.T) {
	for _, ref := range []string{"", string(make([]byte, 500))} {
		w := askingCart(t)
		w.provider.status["P1"] = []says{paidThere(ref, 500)}
		out := w.runAskingCart()
		require.NoError(t, w.GetWorkflowError())
		require.Equal(t, contract.HoldSold, out.State)
		require.Equal(t, "P1", out.PaymentRef, "the name by which it was asked about")
	}
}

// Of money that has its owner nobody says that it is unresolved.
func TestHoldExpiresWithMoneyThatIsKnown(t *testing.T) {
	w := reserved(t)
	w.tells()
	w.provider.status, w.provider.cancel = map[string][]says{"P1": {{status: nobodyKnew.status, do: func() {
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 499, "EUR"))
	}}}}, map[string][]says{}
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentStarted, startedAmount(500, "EUR")) })
	require.Equal(t, contract.HoldExpired, w.runAsking().State)
	require.Equal(t, []string{contract.CauseMismatched}, w.causes())
	require.NotContains(t, w.toldOf(), contract.EventPaymentUnresolved)
	require.NotContains(t, w.currentDetails(), "Unresolved")
}

// The gate had given all lines back and the worker died before it could note it: a
// payment is what the next one meets first.
func TestHoldLearnsOfItsExpiryFromAPayment(t *testing.T) {
	w := reserved(t)
	w.tells()
	w.provider.cancel, w.provider.status = map[string][]says{}, map[string][]says{"P1": {{status: nobodyKnew.status, do: func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hold.Deadline = w.hold.Deadline.Add(2 * time.Minute) // the first release is early
	}}}}
	w.at(16*time.Minute+30*time.Second, func() {
		w.endHold(contract.HoldExpired, contract.ReasonExpired)
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2"))
	})
	w.begin(time.Minute, "P1")
	require.Equal(t, contract.HoldExpired, w.runAsking().State)
	require.Equal(t, []string{contract.CauseLate}, w.causes())
	require.Equal(t, 1, w.called("release expired early"))
	require.Contains(t, w.toldOf(), contract.EventPaymentUnresolved, "nobody knows what became of P1")
	require.Contains(t, w.currentDetails(), "Unresolved")
}

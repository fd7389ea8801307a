package workflows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/payment"
	"holdfast/redis"
)

// asking is a world whose provider can be asked; P1 is begun in the first minute.
func asking(t *testing.T) *world {
	w := reserved(t)
	w.provider.status, w.provider.cancel = map[string][]says{}, map[string][]says{}
	w.begin(time.Minute, "P1")
	return w
}

func (w *world) begin(at time.Duration, ref string) {
	w.at(at, func() { w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: ref}) })
}

func (w *world) runAsking() contract.HoldResult {
	in := holdInput()
	in.Settings.AsksProvider = true
	return w.runAskingOf(in)
}

// runAskingOf answers nothing of a hold that was cancelled or failed.
func (w *world) runAskingOf(in contract.HoldInput) contract.HoldResult {
	w.ExecuteWorkflow(contract.HoldWorkflow, in)
	require.True(w.t, w.IsWorkflowCompleted())
	if err := w.GetWorkflowError(); err != nil {
		w.t.Log(err)
		return contract.HoldResult{}
	}
	var out contract.HoldResult
	require.NoError(w.t, w.GetWorkflowResult(&out))
	return out
}

// The webhook was lost: the status before the expiry makes the sale.
func TestHoldPaidAtTheProviderIsSold(t *testing.T) {
	for name, answers := range map[string][2][]says{
		"paid":                             {{paidThere("P1", 500)}, nil},
		"paid after a bad moment":          {{noAnswer, noAnswer, paidThere("P1", 500)}, nil},
		"paid between status and cancel":   {{openThere}, {paidThere("P1", 500)}},
		"the answer to the cancel is lost": {{openThere, paidThere("P1", 500)}, {noAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			w.provider.status["P1"], w.provider.cancel["P1"] = answers[0], answers[1]
			out := w.runAsking()
			require.Equal(t, contract.HoldSold, out.State)
			require.Equal(t, "P1", out.PaymentRef)
			require.Equal(t, []string{"adopt ok", "adopt ok", "confirm ok"}, w.calls, "nothing was given back")
			require.Empty(t, w.payments)
			require.NotContains(t, w.currentDetails(), "Unresolved")
		})
	}
}

// The unit is free only after the attempt has ended, and it is asked about once.
func TestHoldEndsAnOpenAttemptBeforeItExpires(t *testing.T) {
	w := asking(t)
	w.provider.cancel["P1"] = []says{{status: openThere.status, do: func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, contract.HoldHeld, w.hold.State)
		require.False(t, w.Now().Before(began.Add(16*time.Minute)), "deadline and grace have passed")
		w.hold.Deadline = w.hold.Deadline.Add(2 * time.Minute) // a gate that reopened gives time
	}}}
	out := w.runAsking()
	require.Equal(t, contract.HoldExpired, out.State)
	require.Equal(t, []string{"status P1", "cancel P1"}, w.provider.calls)
	require.Equal(t, 1, w.called("release expired early"))
	require.Equal(t, 1, w.called("release expired ok"))
	require.EqualValues(t, 1, w.free)
	require.NotContains(t, w.currentDetails(), "Unresolved")
}

func TestHoldExpiresUnresolved(t *testing.T) {
	for name, c := range map[string]struct {
		status []says
		why    string
		calls  []string
	}{
		"under way":     {[]says{nobodyKnew}, "`it is under way`", []string{"status P1"}},
		"key refused":   {[]says{{err: &payment.Error{Class: payment.Permanent, Reason: "401", Do: "set the key"}}}, "`401: set the key`", []string{"status P1"}},
		"stays silent":  {[]says{noAnswer}, "the provider does not answer", []string{"status P1", "status P1", "status P1", "cancel P1"}},
		"a bug, thrice": {[]says{{err: errors.New("nil map")}}, "nil map", []string{"status P1", "status P1", "status P1", "cancel P1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			w.provider.status["P1"] = c.status
			require.Equal(t, contract.HoldExpired, w.runAsking().State)
			require.EqualValues(t, 1, w.free)
			require.Equal(t, c.calls, w.provider.calls, "asked once, a silence three times; what may still be open is ended after it")
			details := w.currentDetails()
			require.Contains(t, details, "- **Unresolved**: **a person should look at the provider**: `P1`: ")
			require.Contains(t, details, c.why)
		})
	}
}

// Payment wins: money that arrives while the provider is asked makes the sale,
// once, whatever the provider says then.
func TestHoldPaidWhileTheProviderIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		say  says
		pays string
	}{
		"the same, paid there":      {paidThere("P1", 500), "P1"},
		"the same, no answer":       {noAnswer, "P1"},
		"another, the first open":   {openThere, "P2"},
		"another, both were paid":   {paidThere("P1", 500), "P2"},
		"another, the first silent": {noAnswer, "P2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			say := c.say
			say.do = func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid(c.pays)) }
			w.provider.status["P1"] = []says{say, c.say}
			out := w.runAsking()
			require.Equal(t, contract.HoldSold, out.State)
			require.Equal(t, 1, w.called("confirm ok"))
			require.Zero(t, w.free)
			require.Equal(t, c.pays, out.PaymentRef, "what came first")
			if name == "another, both were paid" {
				require.Equal(t, []string{contract.CauseSecond}, w.causes())
				require.Equal(t, "P1", w.payments[0].PaymentRef)
				return
			}
			require.Empty(t, w.payments)
		})
	}
}

// A confirm that comes while the provider is silent does not wait for it.
func TestHoldConfirmDoesNotWaitForTheProvider(t *testing.T) {
	w := asking(t)
	w.provider.status["P1"] = []says{noAnswer}
	var a *answer[contract.ConfirmResult]
	w.at(16*time.Minute+500*time.Millisecond, func() {
		a = update[contract.ConfirmResult](w, contract.UpdateConfirm, "", contract.ConfirmRequest{PaymentRef: "P1"})
	})
	require.Equal(t, contract.HoldSold, w.runAsking().State)
	require.Equal(t, contract.ConfirmSold, a.result.Outcome)
	require.Equal(t, []string{"status P1"}, w.provider.calls)
	require.Equal(t, began.Add(16*time.Minute+500*time.Millisecond), w.hold.EndedAt)
}

// However a hold ends without a sale, nothing that was begun for it stays open.
func TestHoldEndsAttemptsWithEachEnd(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"released":  func(w *world) { w.SignalWorkflow(contract.SignalRelease, contract.Release{}) },
		"failed":    func(w *world) { w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{Final: true}) },
		"cancelled": func(w *world) { w.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			w.begin(2*time.Minute, "P2")
			w.begin(2*time.Minute, "P1") // a repeat
			free := make([]int64, 0, 2)
			for _, ref := range []string{"P1", "P2"} {
				w.provider.cancel[ref] = []says{noAnswer, {status: openThere.status, do: func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					free = append(free, w.free)
				}}}
			}
			w.at(3*time.Minute, func() { end(w) })
			w.runAsking()
			require.Equal(t, contract.HoldReleased, w.hold.State)
			require.ElementsMatch(t, []string{"cancel P1", "cancel P1", "cancel P2", "cancel P2"}, w.provider.calls)
			require.Equal(t, []int64{1, 1}, free, "the unit does not wait for the provider")
			if name == "cancelled" {
				require.True(t, temporal.IsCanceledError(w.GetWorkflowError()))
			}
		})
	}
}

// A shopper goes to pay at the very moment in which the hold ends.
func TestHoldEndsAnAttemptBegunAfterItsEnd(t *testing.T) {
	w := asking(t)
	w.provider.cancel["P1"] = []says{{status: openThere.status, do: func() {
		w.SignalWorkflow(contract.SignalPaymentStarted, contract.PaymentStarted{PaymentRef: "P2"})
	}}}
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{}) })
	require.Equal(t, contract.HoldReleased, w.runAsking().State)
	require.Equal(t, []string{"cancel P1", "cancel P2"}, w.provider.calls)
	require.Equal(t, began.Add(3*time.Minute), w.hold.EndedAt)
}

// The shopper paid at the moment of the end: the money has its owner at once,
// whether the webhook comes or not.
func TestHoldReleasedAsItIsPaid(t *testing.T) {
	w := asking(t)
	w.provider.cancel["P1"] = []says{{status: paidThere("P1", 500).status, do: func() {
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paidAmount("P1", 500, "EUR"))
	}}}
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{}) })
	require.Equal(t, contract.HoldReleased, w.runAsking().State)
	require.Equal(t, []string{contract.CauseLate}, w.causes(), "once")
	require.EqualValues(t, 500, *w.payments[0].Amount)
}

func TestHoldSoldEndsTheOtherAttempts(t *testing.T) {
	w := asking(t)
	w.begin(2*time.Minute, "P2")
	w.begin(2*time.Minute, "P3")
	w.provider.cancel["P3"] = []says{paidThere("P3", 500)}
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
	require.Equal(t, "P1", w.runAsking().PaymentRef)
	require.ElementsMatch(t, []string{"cancel P2 beside P1", "cancel P3 beside P1"}, w.provider.calls, "never the sale's own")
	require.Equal(t, []string{contract.CauseSecond}, w.causes())
	require.Equal(t, "P3", w.payments[0].PaymentRef)
}

// A session that its own PaymentIntent has paid is the same money.
func TestHoldSoldByTheIntentOfItsSession(t *testing.T) {
	w := asking(t)
	w.provider.cancel["P1"] = []says{paidThere("PI", 500)}
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("PI")) })
	require.Equal(t, "PI", w.runAsking().PaymentRef)
	require.Equal(t, 1, w.called("confirm ok"))
	require.Empty(t, w.payments)
}

// What the provider says was paid is compared with what was announced for it.
func TestHoldPaidAnotherAmountAtTheProvider(t *testing.T) {
	for amount, want := range map[int64]contract.HoldState{500: contract.HoldSold, 499: contract.HoldExpired} {
		w := reserved(t)
		w.provider.status, w.provider.cancel = map[string][]says{"cs": {paidThere("PI", amount)}}, map[string][]says{}
		w.at(time.Minute, func() {
			m := startedAmount(500, "EUR")
			m.PaymentRef = "cs"
			w.SignalWorkflow(contract.SignalPaymentStarted, m)
		})
		w.at(2*time.Minute, func() {
			m := startedAmount(700, "EUR")
			m.PaymentRef = "other"
			w.SignalWorkflow(contract.SignalPaymentStarted, m)
		})
		require.Equal(t, want, w.runAsking().State)
		if want == contract.HoldExpired {
			require.Equal(t, []string{contract.CauseMismatched}, w.causes())
			require.Equal(t, []int64{0}, w.freeAt, "its owner came before the unit was free")
		}
	}
}

// Without a provider that can be asked there is nothing of it in a history.
func TestHoldAsksNobodyWithoutAProvider(t *testing.T) {
	w := reserved(t)
	w.begin(time.Minute, "P1")
	require.Equal(t, contract.HoldExpired, w.runHold().State)
	require.Empty(t, w.provider.calls)
	require.Equal(t, began.Add(16*time.Minute), w.hold.EndedAt)
}

// A hold in which nobody began to pay asks nothing either, and one hold does not
// ask without end.
func TestHoldAsksNoMoreThanItMust(t *testing.T) {
	w := reserved(t)
	w.provider.status, w.provider.cancel = map[string][]says{}, map[string][]says{}
	require.Equal(t, contract.HoldExpired, w.runAsking().State)
	require.Empty(t, w.provider.calls)

	w = asking(t)
	for i := range 30 {
		w.begin(2*time.Minute, strings.Repeat("x", i+1))
	}
	w.begin(3*time.Minute, "")
	w.begin(3*time.Minute, strings.Repeat("y", 1000))
	require.Equal(t, contract.HoldExpired, w.runAsking().State)
	require.Len(t, w.provider.calls, 2*20)
}

// A provider that stays silent does not keep an ended hold open for ever.
func TestHoldGivesUpEndingAnAttempt(t *testing.T) {
	w := asking(t)
	w.provider.cancel["P1"] = []says{noAnswer}
	w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalRelease, contract.Release{}) })
	require.Equal(t, contract.HoldReleased, w.runAsking().State)
	require.Len(t, w.provider.calls, 8)
	require.Less(t, w.Now().Sub(began), 15*time.Minute)
}

// The gate's expiry of a hold that another road has sold meanwhile is no expiry.
func TestHoldSoldMeanwhileIsNotUnresolved(t *testing.T) {
	w := asking(t)
	w.provider.status["P1"] = []says{{status: nobodyKnew.status, do: func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P9"
	}}}
	require.Equal(t, "P9", w.runAsking().PaymentRef)
	require.NotContains(t, w.currentDetails(), "Unresolved")
	require.Equal(t, redis.ActorHoldTimer, w.released.Actor)
}

// A provider's word about one attempt may be late: it does not end the hold of a
// shopper who has gone on to another. The shop's own word does.
func TestHoldOutlivesTheEndOfAnOlderAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		failed contract.PaymentFailed
		want   contract.HoldState
	}{
		"the older":           {contract.PaymentFailed{PaymentRef: "P1", Final: true, AttemptOnly: true}, contract.HoldSold},
		"the last":            {contract.PaymentFailed{PaymentRef: "P2", Final: true, AttemptOnly: true}, contract.HoldReleased},
		"the shop gives up":   {contract.PaymentFailed{PaymentRef: "P1", Final: true}, contract.HoldReleased},
		"one never begun":     {contract.PaymentFailed{PaymentRef: "P9", Final: true, AttemptOnly: true}, contract.HoldSold},
		"not final, the last": {contract.PaymentFailed{PaymentRef: "P2", AttemptOnly: true}, contract.HoldSold},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			w.begin(2*time.Minute, "P2")
			w.at(3*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentFailed, c.failed) })
			w.at(4*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P2")) })
			require.Equal(t, c.want, w.runAsking().State)
		})
	}
}

// Also when so many were begun that the last is not remembered.
func TestHoldOutlivesTheEndOfTheLastAttemptItRemembers(t *testing.T) {
	w := asking(t)
	for i := range 20 {
		w.begin(2*time.Minute, fmt.Sprint("Q", i+1)) // with P1 one too many
	}
	w.at(3*time.Minute, func() {
		w.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: "Q19", Final: true, AttemptOnly: true})
	})
	w.at(4*time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("Q20")) })
	require.Equal(t, contract.HoldSold, w.runAsking().State)
}

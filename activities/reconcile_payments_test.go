package activities

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// owed is a Payment of a hold that an operator has terminated.
func (s *shelf) owed(hold, ref string) contract.PaymentInput {
	in := contract.PaymentInput{PaymentID: contract.PaymentID(hold, ref), HoldID: hold, SKU: s.sku, PaymentRef: ref, Cause: contract.CauseLate}
	s.opens(in.PaymentID, contract.PaymentWorkflow)
	s.terminates(in.PaymentID, in)
	return in
}

// I7: a Payment that somebody terminated gets its successor, once.
func TestATerminatedPaymentIsBegunAnew(t *testing.T) {
	s := newShelf(t, 1)
	in := s.owed(s.held(), "pi_owed")
	require.Zero(t, s.pass(contract.ReconcileInput{Since: time.Now().Add(time.Hour)}).Found, "the last pass has seen it")
	require.Equal(t, 1, s.pass(contract.ReconcileInput{DryRun: true}).Found)
	require.Empty(t, s.paid)
	report := s.pass(contract.ReconcileInput{})
	require.Equal(t, []string{in.PaymentID + " was ended with its money owed"}, report.Differences)
	require.Equal(t, []string{"pi_owed"}, s.paid)
	s.flows[in.HoldID].open = false // it has learnt of the sale
	s.nothingLeft()
	require.Len(t, s.paid, 1)
}

// So does one whose hold nobody knows: no SKU's pass meets it.
func TestATerminatedPaymentOfNoSKUIsBegunAnew(t *testing.T) {
	s := newShelf(t, 1)
	in := contract.PaymentInput{PaymentID: contract.PaymentID("hold_x", "pi_x"), HoldID: "hold_x", PaymentRef: "pi_x", Cause: contract.CauseUnknown}
	s.opens(in.PaymentID, contract.PaymentWorkflow).ofNoSKU = true
	s.terminates(in.PaymentID, in)
	require.Zero(t, s.pass(contract.ReconcileInput{}).Found)
	all := func() (report contract.ReconcileAllReport) {
		env, passes := s.passes()
		passes.SKUs, passes.Starter = slow{never: "LONG"}, slow{never: "LONG"}
		passes.Patience = time.Millisecond
		out, err := env.ExecuteActivity(passes.LookThroughAll, contract.ReconcileAllInput{})
		require.NoError(t, err)
		require.NoError(t, out.Get(&report))
		return report
	}
	found := all().Found
	require.Equal(t, []string{"pi_x"}, s.paid)
	require.Equal(t, found-1, all().Found, "once")
	require.Len(t, s.paid, 1)
}

func TestATerminatedPaymentThatAPersonMustSee(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *shelf, in contract.PaymentInput)
		alarm  string
	}{
		"settled by hand": {func(s *shelf, in contract.PaymentInput) {
			s.hears(in.PaymentID, contract.SignalRefundSettled, contract.RefundSettled{Reference: "re_1"})
		}, "with the word that its money went back"},
		"not what its id says": {func(s *shelf, in contract.PaymentInput) {
			in.PaymentRef, in.PaymentID = "pi_other", contract.PaymentID(in.HoldID, "pi_other")
			s.terminates(contract.PaymentID(in.HoldID, "pi_owed"), in)
		}, "what it was begun with names"},
		"begun with nothing": {func(s *shelf, in contract.PaymentInput) { s.terminates(in.PaymentID, "?") }, "what it was begun with names"},
		"it cannot be begun": {func(s *shelf, in contract.PaymentInput) { s.undecided = errors.New("no such type") }, "could not be begun anew: no such type"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 1)
			in := s.owed(s.held(), "pi_owed")
			c.change(s, in)
			report := s.pass(contract.ReconcileInput{})
			require.Len(t, report.Alarms, 1)
			require.Contains(t, report.Alarms[0], in.PaymentID)
			require.Contains(t, report.Alarms[0], c.alarm)
			require.Empty(t, s.paid)
		})
	}
}

package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// B21, B23: late money buys an expired hold after all when a unit is free, by the
// same gate, and goes back when none is.
func TestPaymentRetakesAnExpiredHold(t *testing.T) {
	for free, want := range map[int64]contract.PaymentDecision{
		0: {State: contract.PaymentRefundPending, Outcome: contract.ConfirmHoldEnded},
		1: {State: contract.PaymentSold, Outcome: contract.ConfirmSold},
	} {
		w := withRecord(t, contract.HoldExpired, "")
		w.free = free
		decision, open, _ := w.runPayment(paymentOf("P1", contract.CauseLate))
		require.Equal(t, want, decision)
		require.Equal(t, free == 0, open)
		require.Zero(t, w.free)
	}
}

// B22: a Payment has the cart from the record of its first line, also when its Hold
// is long gone: all lines or none, undone in reverse.
func TestPaymentOfACart(t *testing.T) {
	expired, held, sold := each(contract.HoldExpired), each(contract.HoldHeld), each(contract.HoldSold)
	for name, c := range map[string]struct {
		states []contract.HoldState
		free   int64
		change func(w *world)
		steps  []string
		want   contract.PaymentDecision
		after  []contract.HoldState
		units  []int64
		marks  [][]string
	}{
		"retaken": {
			expired, 2, nil,
			[]string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE ok"},
			contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold},
			sold,
			[]int64{0, 1, 1},
			nil,
		},
		"no unit of the first line": {
			expired, 2, func(w *world) { w.free = 1 },
			[]string{"confirm CHAIR hold-ended", "refund CHAIR ok"},
			refundOf(contract.ConfirmHoldEnded), expired,
			[]int64{1, 2, 2},
			[][]string{{"P1"}, nil, nil},
		},
		"no unit of the last line": {
			expired, 2, func(w *world) { w.on(table).free = 0 },
			[]string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE hold-ended", "unconfirm LAMP ok", "unconfirm CHAIR ok", "refund CHAIR ok"},
			refundOf(contract.ConfirmHoldEnded), expired,
			[]int64{2, 2, 0},
			[][]string{{"P1"}, {"P1"}, nil},
		},
		"a line was given back otherwise": {
			[]contract.HoldState{contract.HoldExpired, contract.HoldReleased, contract.HoldExpired},
			2, nil,
			[]string{"confirm CHAIR ok", "confirm LAMP hold-ended", "unconfirm CHAIR ok", "refund CHAIR ok"},
			refundOf(contract.ConfirmHoldEnded),
			[]contract.HoldState{contract.HoldExpired, contract.HoldReleased, contract.HoldExpired},
			[]int64{2, 2, 2},
			[][]string{{"P1"}, nil, nil},
		},
		"its hold was terminated, all lines live": {
			held, 0, nil,
			[]string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE ok"},
			contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold},
			sold,
			[]int64{0, 0, 0},
			nil,
		},
		"its hold was terminated in the middle of this payment": {
			held, 0, func(w *world) { w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P1" },
			[]string{"confirm CHAIR ok", "confirm LAMP ok", "confirm TABLE ok"},
			contract.PaymentDecision{State: contract.PaymentSold, Outcome: contract.ConfirmSold},
			sold,
			[]int64{0, 0, 0},
			nil,
		},
		"its hold was terminated in the middle of another payment": {
			held, 0, func(w *world) { w.hold.State, w.hold.PaymentRef = contract.HoldSold, "P0" },
			[]string{"confirm CHAIR payment-conflict", "refund CHAIR ok"},
			refundOf(contract.ConfirmConflict),
			[]contract.HoldState{contract.HoldSold, contract.HoldHeld, contract.HoldHeld},
			[]int64{0, 0, 0},
			[][]string{{"P1"}, nil, nil},
		},
		"the worker died while the sale was undone": {
			expired, 2, func(w *world) {
				w.hold.State, w.hold.PaymentRef, w.hold.Retaken, w.free = contract.HoldSold, "P1", true, 0
				w.on(lamp).hold.Refunded = []string{"P1"}
			},
			[]string{"confirm CHAIR ok", "confirm LAMP refunded", "unconfirm CHAIR ok", "refund CHAIR ok"},
			refundOf(contract.ConfirmHoldEnded), expired,
			[]int64{2, 2, 2},
			[][]string{{"P1"}, {"P1"}, nil},
		},
		"a later line is not on record": {
			sold, 0, func(w *world) { w.hold.PaymentRef, w.on(lamp).hold = "P1", nil },
			[]string{"confirm CHAIR ok", "confirm LAMP unknown"},
			contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmHoldEnded},
			nil,
			[]int64{0, 0, 0},
			nil,
		},
		"units of the first line came back meanwhile": {
			held, 0, func(w *world) { w.on(lamp).free = -1; w.hold.Returned = 1 },
			[]string{"confirm CHAIR ok", "confirm LAMP shortfall", "unconfirm CHAIR returned"},
			contract.PaymentDecision{State: contract.PaymentParked, Outcome: contract.ConfirmHoldEnded},
			[]contract.HoldState{contract.HoldSold, contract.HoldHeld, contract.HoldHeld},
			[]int64{0, -1, 0},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := cartRecords(t, c.free, c.states...)
			if c.change != nil {
				c.change(w)
			}
			decision, open, _ := w.runPayment(paymentOf("P1", contract.CauseLate))
			require.Equal(t, c.steps, w.calls)
			require.Equal(t, c.want, decision)
			require.Equal(t, c.want.State != contract.PaymentSold, open, "money that made no sale keeps its owner")
			require.Equal(t, c.units, w.freeUnits())
			if c.after != nil {
				require.Equal(t, c.after, w.states())
			}
			if c.marks != nil {
				require.Equal(t, c.marks, w.marks())
			}
		})
	}
}

func refundOf(outcome string) contract.PaymentDecision {
	return contract.PaymentDecision{State: contract.PaymentRefundPending, Outcome: outcome}
}

// The announced amount stands with the first line, and is the whole cart's.
func TestPaymentOfACartComparesTheAmountOnce(t *testing.T) {
	w := cartRecords(t, 2, each(contract.HoldExpired)...)
	in := paymentOf("P1", contract.CauseLate)
	in.Amount, in.Currency = money(500, "EUR")
	asked := map[string]redis.ConfirmRequest{}
	w.onConfirm = func(req redis.ConfirmRequest) { asked[req.SKU] = req }
	w.runPayment(in)
	require.True(t, asked[chair].SameAmount)
	require.Equal(t, &contract.Money{Amount: 500, Currency: "EUR"}, asked[chair].Amount)
	for _, sku := range []string{lamp, table} {
		require.Nil(t, asked[sku].Amount)
		require.False(t, asked[sku].SameAmount)
		require.True(t, asked[sku].Retake)
	}
}

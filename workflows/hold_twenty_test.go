package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

// twenty is a world in which the door has just taken a cart of as many lines as there
// may be.
func twenty(t *testing.T) (*world, contract.HoldInput) {
	w := newWorld(t)
	w.more = map[string]*shelf{}
	in := holdInput()
	in.Lines = nil
	for i := range contract.MaxLines {
		in.Lines = append(in.Lines, contract.Line{SKU: fmt.Sprintf("SKU-%02d", i), Quantity: 1})
	}
	in.HoldID = contract.HoldID(in.Lines[0].SKU, []byte("a cart of twenty"))
	for _, l := range in.Lines {
		w.more[l.SKU] = &shelf{hold: &redis.Hold{
			ID: in.HoldID, SKU: l.SKU, State: contract.HoldProvisional, Units: 1, Person: "p1", CreatedAt: began, Deadline: began.Add(10 * time.Second),
		}}
	}
	w.more[in.Lines[0].SKU].hold.Cart = in.Lines
	return w, in
}

// verbs are the calls of a verb, in their order.
func (w *world) verbs(verb string, in contract.HoldInput) (skus []int) {
	for _, call := range w.since(0) {
		for i, l := range in.Lines {
			if call == verb+" "+l.SKU+" ok" {
				skus = append(skus, i)
			}
		}
	}
	return skus
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func downFrom(n int) []int {
	out := upTo(n)
	slices.Reverse(out)
	return out
}

func TestCartOfTwentyLines(t *testing.T) {
	t.Run("is sold", func(t *testing.T) {
		w, in := twenty(t)
		w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1")) })
		require.Equal(t, contract.HoldSold, w.runHoldOf(in).State)
		require.Equal(t, upTo(contract.MaxLines), w.verbs("confirm", in))
	})
	t.Run("is refused at its last line", func(t *testing.T) {
		w, in := twenty(t)
		w.at(time.Minute, func() {
			w.more["SKU-19"].free = -1 // a shortfall
			w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
		})
		require.Equal(t, contract.HoldReleased, w.runHoldOf(in).State)
		require.Equal(t, upTo(contract.MaxLines-1), w.verbs("confirm", in))
		require.Equal(t, downFrom(contract.MaxLines-1), w.verbs("unconfirm", in), "the last one first")
		require.Equal(t, downFrom(contract.MaxLines), w.verbs("release shop", in), "each once")
		require.Equal(t, []string{contract.CauseLate}, w.causes())
	})
	t.Run("one of its gates is closed throughout its end", func(t *testing.T) {
		w, in := twenty(t)
		w.shut("SKU-07", closes, opens)
		require.Equal(t, contract.HoldExpired, w.runHoldOf(in).State)
		ends := w.verbs("release expired", in)
		require.Len(t, ends, contract.MaxLines)
		require.Equal(t, 7, ends[contract.MaxLines-1], "the others did not wait for it")
	})
}

// B113: cancelled while a refused sale is undone, line by line. What is undone goes on,
// then everything is given back, once.
func TestCartCancelledWhileItsSaleIsUndone(t *testing.T) {
	for _, stuck := range []string{"unconfirm LAMP", "unconfirm CHAIR"} {
		t.Run(stuck, func(t *testing.T) {
			w := cart(t)
			w.down = func(verb string) error {
				if verb == stuck && w.Now().Before(began.Add(2*time.Minute)) {
					return redis.ErrUnavailable
				}
				return nil
			}
			w.at(time.Minute, func() {
				w.on(table).end(w.Now(), contract.HoldReleased, contract.ReasonShop) // by hand, at the gate
				w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
			})
			w.at(90*time.Second, w.CancelWorkflow)
			w.ExecuteWorkflow(contract.HoldWorkflow, cartInput())
			require.True(t, w.IsWorkflowCompleted())
			if err := w.GetWorkflowError(); err != nil {
				require.True(t, temporal.IsCanceledError(err), "%v", err)
			}
			require.Equal(t, each(contract.HoldReleased), w.states())
			require.Equal(t, []int64{2, 1, 1}, w.freeUnits())
			require.Equal(t, []string{contract.CauseLate}, w.causes())
			require.Equal(t, [][]string{{"P1"}, {"P1"}, nil}, w.marks(), "it sells nothing any more")
		})
	}
}

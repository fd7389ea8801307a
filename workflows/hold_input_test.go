package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
)

// Any client of Temporal may start a Hold: what the gate can only refuse is refused
// before it is asked.
func TestHoldThatIsNone(t *testing.T) {
	for want, change := range map[string]func(in *contract.HoldInput){
		"person is empty":                  func(in *contract.HoldInput) { in.Person = "" },
		"the number of its first SKU":      func(in *contract.HoldInput) { in.HoldID = "my hold" },
		"number of its first SKU, CHAIR":   func(in *contract.HoldInput) { in.HoldID = contract.HoldID(lamp, []byte("a hold of a test")) },
		"hold_seconds is 0":                func(in *contract.HoldInput) { in.Settings.HoldSeconds = 0 },
		"hold_seconds is 9223372036854775": func(in *contract.HoldInput) { in.Settings.HoldSeconds = 1<<63 - 1 },
		"extension_seconds is -1":          func(in *contract.HoldInput) { in.Settings.ExtensionSeconds = -1 },
		"grace_seconds is -1":              func(in *contract.HoldInput) { in.Settings.GraceSeconds = -1 },
		"at most 1000000000": func(in *contract.HoldInput) {
			in.Lines = []contract.Line{{SKU: chair, Quantity: 1e9}, {SKU: chair, Quantity: 1}}
		},
		"asks for 10000000000": func(in *contract.HoldInput) { in.Lines[0].Quantity = 1e10 },
		"which is no SKU":      func(in *contract.HoldInput) { in.Lines = append(in.Lines, contract.Line{SKU: "no sku", Quantity: 1}) },
	} {
		w := newWorld(t)
		in := holdInput()
		change(&in)
		w.ExecuteWorkflow(contract.HoldWorkflow, in)
		require.True(t, w.IsWorkflowCompleted())
		require.ErrorContains(t, w.GetWorkflowError(), want)
		var app *temporal.ApplicationError
		require.ErrorAs(t, w.GetWorkflowError(), &app)
		require.Equal(t, contract.ErrBadRequest, app.Type())
		require.Empty(t, w.calls, "nothing was taken")
	}
}

// A line of a SKU that was never opened is refused like one that is sold out: its gate
// would be asked without end, with the other lines' units taken.
func TestCartOfASKUThatThereIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		ghosts []string
		want   []string
		free   []int64
	}{
		"the first": {[]string{chair}, []string{"release compensation TABLE ok", "release compensation LAMP ok"}, []int64{0, 1, 1}},
		"the last":  {[]string{table}, []string{"adopt CHAIR ok", "adopt LAMP ok", "release compensation LAMP ok", "release compensation CHAIR ok"}, []int64{2, 1, 0}},
		"all but one": {
			[]string{lamp, table},
			[]string{"adopt CHAIR ok", "release compensation CHAIR ok"},
			[]int64{2, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := cart(t)
			w.ghosts = c.ghosts
			require.Equal(t, contract.HoldRefused, w.runCart().State)
			require.Equal(t, c.want, w.calls)
			require.Equal(t, c.free, w.freeUnits())
			require.Zero(t, w.checks, "there is nothing to check")
		})
	}
	t.Run("a hold of one line", func(t *testing.T) {
		w := newWorld(t)
		w.ghosts = []string{chair}
		require.Equal(t, contract.HoldRefused, w.runHold().State)
	})
	t.Run("nobody can say so yet", func(t *testing.T) {
		w := cart(t)
		w.ghosts, w.mapless = []string{lamp}, true
		w.at(time.Minute, func() { w.haunt() })
		require.Equal(t, contract.HoldExpired, w.runCart().State, "it is waited for")
		require.NotZero(t, w.checks)
	})
}

// A SKU whose stock the gate has lost after the hold was promised is no unknown one.
func TestCartWaitsForALineWhoseSKUIsLost(t *testing.T) {
	w := cart(t)
	w.at(time.Minute, func() {
		w.haunt(lamp)
		w.SignalWorkflow(contract.SignalPaymentSucceeded, paid("P1"))
	})
	w.at(2*time.Minute, func() { w.haunt() })
	require.Equal(t, contract.HoldSold, w.runCart().State)
	require.Empty(t, w.payments)
}

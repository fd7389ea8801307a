package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

const (
	lamp  = "LAMP"
	table = "TABLE"
)

// cartLines are two chairs, a lamp and a table, in the order in which they are
// taken.
func cartLines() []contract.Line {
	return []contract.Line{{SKU: chair, Quantity: 2}, {SKU: lamp, Quantity: 1}, {SKU: table, Quantity: 1}}
}

func cartInput() contract.HoldInput {
	in := holdInput()
	in.Lines = cartLines()
	return in
}

// cart is a world in which the door has just taken a cart of three lines, and
// nothing else is there.
func cart(t *testing.T) *world {
	w := newWorld(t)
	w.more = map[string]*shelf{lamp: {}, table: {}}
	for _, l := range cartLines() {
		w.on(l.SKU).hold = &redis.Hold{
			ID: holdID, SKU: l.SKU, State: contract.HoldProvisional, Units: l.Quantity, Person: "p1", CreatedAt: began, Deadline: began.Add(10 * time.Second),
		}
	}
	w.hold.Cart = cartLines()
	return w
}

// cartRecords is a world in which the lines of a cart have come to states, and
// units are free.
func cartRecords(t *testing.T, free int64, states ...contract.HoldState) *world {
	w := cart(t)
	for i, l := range cartLines() {
		s := w.on(l.SKU)
		s.free, s.hold.State, s.hold.Deadline = free, states[i], began
	}
	return w
}

func (w *world) runCart() contract.HoldResult { return w.runHoldOf(cartInput()) }

// states of the cart's lines.
func (w *world) states() (out []contract.HoldState) {
	for _, l := range cartLines() {
		out = append(out, w.on(l.SKU).hold.State)
	}
	return out
}

// freeUnits of each of the cart's SKUs.
func (w *world) freeUnits() (out []int64) {
	for _, l := range cartLines() {
		out = append(out, w.on(l.SKU).free)
	}
	return out
}

// marks are the payments that the cart's lines carry as going back.
func (w *world) marks() (out [][]string) {
	for _, l := range cartLines() {
		out = append(out, w.on(l.SKU).hold.Refunded)
	}
	return out
}

// since answers the calls after the first n.
func (w *world) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[n:])
}

// changed are the calls of a verb that moved something. A line that was asked once more
// than it needed, because it had not answered, answers that later or never.
func (w *world) changed(verb string) []string {
	return slices.DeleteFunc(w.since(0), func(call string) bool {
		return !strings.HasPrefix(call, verb) || !strings.HasSuffix(call, " ok")
	})
}

func each(s contract.HoldState) []contract.HoldState { return []contract.HoldState{s, s, s} }

var adopted = []string{"adopt CHAIR ok", "adopt LAMP ok", "adopt TABLE ok"}

// all is a verb on each line, in the order of a giving back.
func reversed(verb string) []string {
	return []string{verb + " TABLE ok", verb + " LAMP ok", verb + " CHAIR ok"}
}

func calls(lists ...[]string) []string { return slices.Concat(lists...) }

func requireUndone(t *testing.T, w *world, out contract.HoldResult, state contract.HoldState) {
	require.Equal(t, state, out.State)
	require.Equal(t, []int64{2, 1, 1}, w.freeUnits(), "each unit is back exactly once")
}

package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// A door has died; its leases were swept, and the lamp went to somebody else. The workflow
// takes the chair afresh, is refused the lamp and lets the table go, while the chair's gate
// does not answer: what it says of each line is what its gate has said.
func TestACartThatComesApartSaysSoOfEachLine(t *testing.T) {
	w := cartRecords(t, 0, contract.HoldSwept, contract.HoldSwept, contract.HoldSwept)
	w.on(chair).free, w.on(table).free = 2, 1
	w.down = func(verb string) error {
		if strings.HasPrefix(verb, "release") && strings.HasSuffix(verb, chair) && w.Now().Sub(began) < time.Minute {
			return &redis.ClosedError{SKU: chair}
		}
		return nil
	}
	w.at(20*time.Second, func() {
		require.Equal(t, contract.HoldSwept, w.on(table).hold.State)
		s := w.holdStatus()
		require.Equal(t, contract.HoldHeld, s.Of(chair))
		require.Equal(t, contract.HoldRefused, s.Of(lamp))
		require.Equal(t, contract.HoldReleased, s.Of(table))
	})
	w.runCart()
}

// While one line of a cart has not answered, the cart waits for it, and the line that did
// is held.
func TestACartThatWaitsForOneLineHoldsTheOther(t *testing.T) {
	w := cart(t)
	w.shut(lamp, 0, 80*time.Second)
	w.at(10*time.Second, func() {
		s := w.holdStatus()
		require.Equal(t, contract.HoldProvisional, s.State)
		require.Equal(t, contract.HoldHeld, s.Of(chair))
		require.Equal(t, contract.HoldProvisional, s.Of(lamp))
	})
	w.runCart()
}

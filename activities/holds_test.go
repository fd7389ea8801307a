package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/redis"
)

// I8: a hold that was promised, and that Redis has forgotten before its Hold had heard
// of it, has a record when its shopper has given it back, and takes nothing.
func TestAnUnheardHoldEndsWithARecord(t *testing.T) {
	for state, free := range map[contract.HoldState]int64{contract.HoldReleased: 1, contract.HoldRefused: 0} {
		s := newShelf(t, 1)
		if free == 0 {
			s.held()
		}
		before, id := s.counters(), s.id(contract.HoldID)
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		holds := &Holds{Guard: Guard{Waker: s}, Gate: s.gate}
		env.RegisterActivity(holds)
		release := func(in ReleaseHoldInput) (out HoldOutcome) {
			got, err := env.ExecuteActivity(holds.ReleaseHold, in)
			require.NoError(t, err)
			require.NoError(t, got.Get(&out))
			return out
		}
		in := ReleaseHoldInput{SKU: s.sku, HoldID: id, Reason: "changed-mind", Actor: "shopper"}
		require.Equal(t, redis.Unknown, release(in).Verdict, "nobody said how it would be adopted")
		in.Unheard = &AdoptHoldInput{SKU: s.sku, HoldID: id, Units: 1, Person: "ann", HoldSeconds: 600}
		for range 2 {
			require.Equal(t, state, release(in).State)
			require.Equal(t, state, s.state(id))
			after := s.counters()
			require.Equal(t, [2]int64{before.Held, before.Available}, [2]int64{after.Held, after.Available})
		}
	}
}

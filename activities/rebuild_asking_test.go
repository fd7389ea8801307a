package activities

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// promised is a hold that the door has adopted and answered, and whose workflow has begun and
// not yet asked the gate.
func (s *shelf) promised() string {
	id := s.id(contract.HoldID)
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	out, err := s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: time.Hour})
	require.NoError(s.t, err)
	require.Equal(s.t, redis.OK, out.Verdict)
	s.opens(id, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: id, State: contract.HoldProvisional, Person: "p-" + id, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, CreatedAt: out.Hold.CreatedAt,
	}
	return id
}

func (s *shelf) asks(id string) redis.HoldOutcome {
	out, err := s.gate.AdoptHold(s.t.Context(), redis.AdoptHoldRequest{SKU: s.sku, HoldID: id, HoldFor: time.Hour, ByWorkflow: true, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	return out
}

// Redis forgets a hold right after its 201, before its workflow has asked for it once. The
// next in line wants its unit, and so does a walk-in: it is kept until the workflow asks.
func TestARebuildKeepsAHoldThatIsYetToBeAdopted(t *testing.T) {
	for name, lose := range map[string]func(s *shelf) (id string, back func()){
		"emptied":           func(s *shelf) (string, func()) { return s.promised(), s.flushes },
		"of before":         func(s *shelf) (string, func()) { back := s.snapshot(); return s.promised(), back },
		"of its lease":      func(s *shelf) (string, func()) { return s.leased(false) },
		"its lease is over": func(s *shelf) (string, func()) { return s.leased(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 1)
			id, back := lose(s)
			s.waits("ann")
			back()
			require.True(t, s.rebuild(contract.ReconcileInput{}).Opened)
			require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
			lease, err := s.rdb.ZScore(t.Context(), s.key("leases"), id).Result()
			require.NoError(t, err)
			require.Greater(t, time.UnixMilli(int64(lease)), time.Now().Add(50*time.Second), "a workflow asks again within 15 s")
			walkIn := must(s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: s.id(contract.HoldID), Units: 1, Person: "thief"}))
			require.NotEqual(t, redis.OK, walkIn.Verdict)
			out := s.asks(id)
			require.Equal(t, redis.OK, out.Verdict)
			require.Greater(t, time.Until(out.Hold.Deadline), 59*time.Minute)
			require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
		})
	}
}

// leased is one of which an older Redis knows the lease, which is over meanwhile, and perhaps
// that it was.
func (s *shelf) leased(swept bool) (string, func()) {
	id := s.id(contract.HoldID)
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	if swept {
		ctx := s.t.Context()
		require.Eventually(s.t, func() bool {
			_, err := s.gate.Drain(ctx, s.sku, 1) // which ends leases first
			return err == nil && s.state(id) == contract.HoldSwept
		}, 10*time.Second, 50*time.Millisecond)
	}
	s.opens(id, contract.HoldWorkflow).status = contract.HoldStatus{
		HoldID: id, State: contract.HoldProvisional, Person: "p-" + id, Lines: []contract.Line{{SKU: s.sku, Quantity: 1}}, CreatedAt: time.Now(),
	}
	back := s.snapshot()
	return id, func() {
		back()
		require.NoError(s.t, s.rdb.ZAddXX(s.t.Context(), s.key("leases"), goredis.Z{Score: 1, Member: id}).Err())
	}
}

// Two have yet to be adopted, and one unit is left: its lease was over when the other one
// got it. The older one has it, the other is told so when it asks, and nobody's alarm rings.
func TestARebuildKeepsNoMoreThanThereIs(t *testing.T) {
	s := newShelf(t, 2)
	held, first, second := s.held(), s.promised(), s.id(contract.HoldID)
	status := s.flows[first].status.(contract.HoldStatus)
	status.HoldID, status.Person, status.CreatedAt = second, "p-"+second, status.CreatedAt.Add(time.Second)
	s.opens(second, contract.HoldWorkflow).status = status
	s.flushes()
	report := s.rebuild(contract.ReconcileInput{})
	require.True(t, report.Opened)
	require.Empty(t, report.Alarms)
	require.Equal(t, [4]int64{2, 2, 0, 0}, s.parts())
	require.Equal(t, contract.HoldHeld, s.state(held))
	require.Equal(t, redis.SoldOut, s.asks(second).Verdict)
	require.Equal(t, redis.OK, s.asks(first).Verdict)
	require.Equal(t, contract.HoldRefused, s.state(second))
}

package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// dead is the lease of a door that died before it began a workflow.
func (s *shelf) dead() string {
	id := s.id(contract.HoldID)
	_, err := s.gate.Reserve(s.t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
	require.NoError(s.t, err)
	return id
}

func (s *shelf) leaseOf(id string) time.Time {
	until, err := s.rdb.ZScore(s.t.Context(), s.key("leases"), id).Result()
	require.NoError(s.t, err)
	return time.UnixMilli(int64(until))
}

// Redis has lost that the door adopted a hold, and nothing else, and its workflow has not
// asked yet: the unit is kept until it does. One that has no workflow was promised to
// nobody, and its unit goes to the line.
func TestACheckKeepsAHoldThatIsYetToBeAdopted(t *testing.T) {
	s := newShelf(t, 2)
	dead := s.dead()
	id, _ := s.leased(false)
	s.waits("ann")
	s.closed()
	for _, lease := range []string{dead, id} {
		require.Eventually(t, func() bool { return time.Now().After(s.leaseOf(lease)) }, 10*time.Second, 10*time.Millisecond)
	}
	report := s.check()
	require.True(t, report.Opened, report)
	require.Empty(t, report.Differences)
	require.Greater(t, s.leaseOf(id), time.Now().Add(50*time.Second), "a workflow asks again within 15 s")
	walkIn := must(s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: s.id(contract.HoldID), Units: 1, Person: "thief"}))
	require.NotEqual(t, redis.OK, walkIn.Verdict)
	require.Equal(t, contract.HoldSwept, s.state(dead))
	require.Equal(t, [4]int64{2, 1, 1, 0}, s.parts(), "the other unit is offered to who waits")
	out := s.asks(id)
	require.Equal(t, redis.OK, out.Verdict)
	require.Greater(t, time.Until(out.Hold.Deadline), 59*time.Minute)
	require.Equal(t, [4]int64{2, 1, 1, 0}, s.parts())
}

// Nothing is renewed of a SKU that is open, of one on another server, and of a hold that
// somebody has adopted.
func TestOnlyLeasesOfAClosedSKUAreRenewed(t *testing.T) {
	s := newShelf(t, 2)
	held, leased := s.held(), s.dead()
	before, until := s.record(leased), s.record(held).Deadline
	base := must(s.gate.Renew(t.Context(), s.sku, replID(t, s), []string{held, leased}))
	require.Equal(t, redis.Moved, base.Verdict)
	s.closed()
	base = must(s.gate.Renew(t.Context(), s.sku, "yet another server", []string{held, leased}))
	require.Equal(t, redis.Moved, base.Verdict)
	base = must(s.gate.Renew(t.Context(), s.sku, replID(t, s), []string{held, "hold_of_nobody"}))
	require.Equal(t, redis.OK, base.Verdict)
	s.reopens()
	require.Equal(t, before, s.record(leased))
	require.Equal(t, until, s.record(held).Deadline)
}

type olderRecord struct {
	back func()
	says string
	id   string // of the hold
	want contract.HoldState
}

// An older Redis has a record of everything, and of something one of before: the check does
// not open it as it was, for what was promised since would be somebody else's.
func TestACheckFindsOlderRecords(t *testing.T) {
	for name, lose := range map[string]func(s *shelf) olderRecord{
		"a lease that its workflow has adopted": func(s *shelf) olderRecord {
			id, back := s.leased(false)
			status := s.flows[id].status.(contract.HoldStatus)
			status.State, status.ExpiresAt = contract.HoldHeld, time.Now().Add(time.Hour)
			s.flows[id].status = status
			return olderRecord{back: back, says: id + " is held, but Redis knows it as provisional", id: id, want: contract.HoldHeld}
		},
		"a line that its cart has adopted, which still asks for another": func(s *shelf) olderRecord {
			id, back := s.leased(false)
			status := s.flows[id].status.(contract.HoldStatus)
			status.Lines = []contract.Line{{SKU: s.sku, Quantity: 1}, {SKU: "LAMP", Quantity: 1}}
			status.LineStates, status.ExpiresAt = []contract.HoldState{contract.HoldHeld, contract.HoldProvisional}, time.Now().Add(time.Hour)
			s.flows[id].status = status
			return olderRecord{back: back, says: id + " is held, but Redis knows it as provisional", id: id, want: contract.HoldHeld}
		},
		"an offer that was pressed": func(s *shelf) olderRecord {
			ann := s.waits("ann")
			offer := s.offered(ann)
			back := s.snapshot()
			s.presses(ann, offer, "ann")
			s.flows[ann].state = "holding"
			return olderRecord{back: back, says: offer + " is held, but Redis knows it as offered", id: offer, want: contract.HoldHeld}
		},
		"a place that has an offer since": func(s *shelf) olderRecord {
			join := redis.JoinRequest{SKU: s.sku, EntryID: s.id(contract.EntryID), Person: "ann", Units: 1, Sealed: []byte("x")}
			out := must(s.gate.Join(s.t.Context(), join))
			back := s.snapshot()
			must(s.gate.AdoptEntry(s.t.Context(), s.sku, join.EntryID))
			s.opens(join.EntryID, contract.WaitlistEntryWorkflow).status = contract.EntryStatus{
				EntryID: join.EntryID, SKU: s.sku, State: contract.EntryWaiting, Quantity: 1, Person: "ann", JoinedAt: out.Entry.JoinedAt,
			}
			offer := s.offered(join.EntryID)
			return olderRecord{back: back, says: join.EntryID + " has the offer " + offer + ", but Redis does not know of it", id: offer, want: contract.HoldOffered}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 1)
			older := lose(s)
			older.back()
			report := s.check()
			require.False(t, report.Opened)
			require.True(t, report.Rebuildable)
			require.Equal(t, []string{older.says}, report.Differences)
			report = s.rebuild(contract.ReconcileInput{})
			require.True(t, report.Opened)
			require.Len(t, report.Differences, 1)
			require.Equal(t, older.want, s.state(older.id))
			walkIn := must(s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: s.id(contract.HoldID), Units: 1, Person: "thief"}))
			require.NotEqual(t, redis.OK, walkIn.Verdict)
			s.closed()
			report = s.check()
			require.True(t, report.Opened, report)
			require.Empty(t, report.Differences, "a second look finds nothing")
		})
	}
}

package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// The examples of docs/waitlist.md that the gate alone decides, in the order of the
// page and with its people.
func TestTheExamplesOfTheLine(t *testing.T) {
	const waiting, offered, window = contract.EntryWaiting, contract.EntryOffered, 15 * time.Minute
	keeps := func(t *testing.T) *fixture { // as shipped: missed.keep is 1
		f, keep := open(t, 0), int64(1)
		f.policy(1, contract.Policy{MissedKeep: &keep})
		return f
	}
	misses := func(f *fixture, entry string) {
		f.t.Helper()
		hold := f.offered(entry)
		require.Equal(f.t, OK, f.told(hold, true).Verdict)
		f.pass(window)
		require.Equal(f.t, OK, f.lapse(hold).Verdict)
	}

	t.Run("order", func(t *testing.T) {
		f := keeps(t)
		ada := f.waits("ada", 1)
		f.pass(time.Microsecond)
		ben := f.waits("ben", 1)
		require.Equal(t, time.Microsecond, f.entry(ben).JoinedAt.Sub(f.entry(ada).JoinedAt))
		f.restock("one", 1)
		f.offered(ada)
		require.Equal(t, int64(1), f.entry(ben).Position, "the first now")
	})
	t.Run("eligible", func(t *testing.T) {
		for _, away := range []bool{false, true} {
			f := keeps(t)
			ada := f.joinAs("ada", 1).Entry.ID // its door has died
			ben := f.waits("ben", 1)
			f.pass(time.Second)
			f.restock("one", 1)
			require.Equal(t, []contract.EntryState{waiting, waiting}, f.states([]string{ada, ben}))
			require.Empty(t, f.drain().Items)
			f.pass(2 * time.Second)
			items := f.drain().Items
			require.Len(t, items, 1)
			require.Equal(t, []any{ItemStart, ada}, []any{items[0].Kind, items[0].EntryID}, "the outbox starts her workflow after 3 s")
			if away {
				f.pass(testLease)
				f.drain()
				f.offered(ben)
				continue
			}
			f.ack(ada)
			f.offered(ada)
		}
	})
	t.Run("restocks and turns", func(t *testing.T) {
		f := keeps(t)
		ada, ben, cleo := f.waits("ada", 1), f.waits("ben", 1), f.waits("cleo", 1)
		f.restock("one", 1)
		misses(f, ada)
		require.Equal(t, waiting, f.entry(ada).State, "parked")
		held := f.claimed(ben)
		require.Equal(t, OK, f.release(held, contract.ReasonShopper).Verdict)
		require.Equal(t, contract.EntryLeft, f.entry(ben).State, "given back is left")
		require.Equal(t, []contract.EntryState{waiting, offered}, f.states([]string{ada, cleo}))
		dora := f.waits("dora", 1)
		f.restock("two", 1)
		require.Equal(t, []contract.EntryState{offered, waiting}, f.states([]string{ada, dora}), "a new generation: she is the first again")
		misses(f, ada)
		require.Equal(t, contract.EntryLapsed, f.entry(ada).State)
		f.offered(dora)
	})
	t.Run("fewer units than somebody wants", func(t *testing.T) {
		f := keeps(t)
		ada, ben := f.waits("ada", 2), f.waits("ben", 1)
		f.restock("one", 1)
		require.Equal(t, int64(1), f.hold(f.offered(ada)).Units)
		require.Equal(t, OK, f.confirm(f.claimed(ada), "pi").Verdict)
		require.Equal(t, contract.EntryBought, f.entry(ada).State)
		require.Equal(t, int64(2), f.joinAs("ada", 1).Entry.Position, "again, at the end")
		require.Equal(t, int64(1), f.entry(ben).Position)
	})
	t.Run("the limit of a person", func(t *testing.T) {
		f := keeps(t)
		f.limit(1)
		f.restock("yesterday", 1)
		bought := f.id(contract.HoldID)
		f.reserveAs("ada", bought, 1)
		f.adopt(bought, true)
		f.confirm(bought, "pi")
		ada, ben, cleo := f.waits("ada", 1), f.waits("ben", 1), f.waits("cleo", 1)
		f.restock("one", 1)
		require.Equal(t, []contract.EntryState{waiting, offered, waiting}, f.states([]string{ada, ben, cleo}))
		f.comesBack(bought, 1, true)
		require.Equal(t, []contract.EntryState{offered, offered, waiting}, f.states([]string{ada, ben, cleo}), "at her old place")
	})
	t.Run("walk-ins", func(t *testing.T) {
		f := keeps(t)
		ada, ben := f.waits("ada", 1), f.waits("ben", 1)
		f.restock("one", 2)
		f.offered(ben)
		require.NotEqual(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
		misses(f, ada)
		require.Equal(t, int64(1), f.counters().OpenToAll)
		require.Equal(t, OK, f.reserve(f.id(contract.HoldID), 1).Verdict)
	})
	t.Run("pause and resume", func(t *testing.T) {
		f := keeps(t)
		people := []string{f.waits("ada", 1), f.waits("ben", 1), f.waits("cleo", 1)}
		f.pause(true)
		f.restock("one", 3)
		require.Equal(t, []contract.EntryState{waiting, waiting, waiting}, f.states(people))
		f.pause(false)
		require.Equal(t, people, f.toldNow())
	})
	t.Run("leaving", func(t *testing.T) {
		f := keeps(t)
		ada, ben := f.waits("ada", 1), f.waits("ben", 1)
		f.restock("one", 1)
		f.told(f.offered(ada), true)
		f.pass(5 * time.Minute)
		f.leave(ada, contract.EntryLeft)
		require.Equal(t, []string{ben}, f.toldNow())
	})
	t.Run("expiry", func(t *testing.T) {
		f := keeps(t)
		ada := f.waits("ada", 1)
		f.restock("one", 1)
		f.told(f.offered(ada), true)
		f.pass(5 * time.Minute)
		require.Equal(t, offered, f.leave(ada, contract.EntryExpired).Entry.State, "the end of the offer comes first")
		require.Equal(t, Early, f.lapse(f.offered(ada)).Verdict)
		f.pass(10 * time.Minute)
		require.Equal(t, OK, f.lapse(f.offered(ada)).Verdict)
		require.Equal(t, waiting, f.entry(ada).State)
		require.Equal(t, contract.EntryExpired, f.leave(ada, contract.EntryExpired).Entry.State)
	})
}

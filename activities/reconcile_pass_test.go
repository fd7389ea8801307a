package activities

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"holdfast/contract"
	"holdfast/redis"
)

func TestAPassOverASoundSKUChangesNothing(t *testing.T) {
	s := newShelf(t, 3)
	s.held()
	s.flows[s.held()].unlisted = true // Temporal's lists are behind
	s.held()
	s.waits("ada")
	before, err := s.rdb.HGetAll(t.Context(), s.key("stock")).Result()
	require.NoError(t, err)
	report := s.pass(contract.ReconcileInput{})
	require.Equal(t, 4, report.Owners)
	s.nothingLeft()
	after, err := s.rdb.HGetAll(t.Context(), s.key("stock")).Result()
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Zero(t, s.awoken)
}

// B27: a terminated Hold's unit goes to the line; one whose payment nobody had is sold by
// that first.
func TestWhatATerminatedHoldLeaves(t *testing.T) {
	s := newShelf(t, 3)
	idle, paid, forgotten := s.held(), s.held(), s.held()
	entry := s.waits("ada")
	s.ends(idle)
	s.ends(paid, "pi_paid")
	delete(s.flows, forgotten) // past Temporal's retention

	report := s.pass(contract.ReconcileInput{DryRun: true})
	require.Equal(t, [4]int64{3, 3, 0, 0}, s.parts(), "a dry run changes nothing")
	require.Equal(t, [3]int{4, 0, 3}, [3]int{report.Found, report.Repaired, report.Missing})
	require.Empty(t, s.paid)

	report = s.pass(contract.ReconcileInput{})
	require.Equal(t, [3]int{3, 3, 3}, [3]int{report.Found, report.Repaired, report.Missing}, report.Differences)
	require.Equal(t, int64(3), s.drift)
	require.Equal(t, []string{"pi_paid"}, s.paid)
	require.Equal(t, [4]int64{2, 0, 1, 1}, s.parts())
	e, _, err := s.gate.ReadEntry(t.Context(), s.sku, entry)
	require.NoError(t, err)
	require.Equal(t, contract.EntryOffered, e.State)
	s.flows[entry].status = contract.EntryStatus{EntryID: entry, State: contract.EntryOffered, HoldID: e.HoldID}
	s.nothingLeft()
	require.Len(t, s.paid, 1, "a Payment that was started is not started again")
}

// Money that a Hold was told of before it was terminated gets its Payment, also when
// its record has ended; once.
func TestMoneyOfAHoldThatGaveItsUnitBack(t *testing.T) {
	s := newShelf(t, 1)
	id := s.held()
	_, err := s.gate.Release(t.Context(), redis.ReleaseRequest{SKU: s.sku, HoldID: id, Reason: contract.ReasonShop})
	require.NoError(t, err)
	s.ends(id, "pi_late")
	require.Zero(t, s.pass(contract.ReconcileInput{Since: time.Now().Add(time.Hour)}).Found, "the last pass has seen it")
	require.Equal(t, 1, s.pass(contract.ReconcileInput{Since: time.Now().Add(-time.Hour)}).Found)
	require.Equal(t, []string{"pi_late"}, s.paid)
	s.nothingLeft()
	require.Len(t, s.paid, 1)
}

// One record is deleted by hand, another made up, a counter and a place spoilt: all
// are named with their amounts, mended, and not found again.
// B35.
func TestAHandInTheKeys(t *testing.T) {
	s := newShelf(t, 5)
	lost, stays := s.held(), s.held()
	entry, other := s.waits("ada"), s.waits("bob") // both take an offer: free units are theirs
	for _, id := range []string{entry, other} {
		e, _, err := s.gate.ReadEntry(t.Context(), s.sku, id)
		require.NoError(t, err)
		s.flows[id].status = contract.EntryStatus{EntryID: id, State: contract.EntryOffered, HoldID: e.HoldID}
		_, err = s.gate.AdoptOffer(t.Context(), s.sku, e.HoldID)
		require.NoError(t, err)
	}
	s.held() // the last free unit
	last := s.waits("cyd")
	stray := s.copied(stays)
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("holds"), lost).Err())
	require.NoError(t, s.rdb.HIncrBy(t.Context(), s.key("stock"), "offered", 3).Err())
	require.NoError(t, s.rdb.ZRem(t.Context(), s.key("line"), last).Err())

	report := s.pass(contract.ReconcileInput{})
	text := strings.Join(report.Differences, "\n")
	require.Contains(t, text, stray+" held 1, and its workflow is not open")
	require.Contains(t, text, lost+" holds 1, and the gate had no record of it")
	require.Contains(t, text, last+" had a place")
	require.Contains(t, text, "offered is 5, by records 2")
	require.Equal(t, report.Found, report.Repaired)
	require.Equal(t, [4]int64{5, 3, 2, 0}, s.parts())
	require.Zero(t, s.pass(contract.ReconcileInput{}).Found, "a second run finds nothing")
	h, ok, err := s.gate.ReadHold(t.Context(), s.sku, lost)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, contract.HoldHeld, h.Hold.State)
}

// A hold that a hand has made up is in no counter. When it is ended, nobody gets the unit
// of somebody else, not even for an instant.
func TestAStrayRecordFreesNothing(t *testing.T) {
	s := newShelf(t, 1)
	stays := s.held()
	stray := s.copied(stays)
	env, passes := s.passes()
	ended := 0
	passes.Gate = after{s.gate, func() {
		ended++
		require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
		id := s.id(contract.HoldID)
		out, err := s.gate.Reserve(t.Context(), redis.ReserveRequest{SKU: s.sku, HoldID: id, Units: 1, Person: "p-" + id})
		require.NoError(t, err)
		require.Equal(t, redis.SoldOut, out.Verdict)
	}}
	_, err := env.ExecuteActivity(passes.LookThrough, contract.ReconcileInput{SKU: s.sku, Pass: true})
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	require.Equal(t, contract.HoldReleased, s.state(stray))
	require.Equal(t, contract.HoldHeld, s.state(stays))
	s.nothingLeft()
}

// A lost record beside one that a hand has made up: the counters do not show either. As
// long as the lost one may be on its way, none is ended.
func TestAStrayRecordBesideALostOne(t *testing.T) {
	s := newShelf(t, 2)
	lost, stays := s.held(), s.held()
	stray := s.copied(stays)
	s.flows[lost].started = time.Now()
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("holds"), lost).Err())
	report := s.pass(contract.ReconcileInput{Agree: true})
	require.Zero(t, report.Found)
	require.Len(t, report.Alarms, 1)
	require.Contains(t, report.Alarms[0], "not ended while a record is missing")
	require.Equal(t, [4]int64{2, 2, 0, 0}, s.parts(), "nobody else gets a unit")
	s.flows[lost].started = time.Now().Add(-2 * time.Minute)
	require.Empty(t, s.pass(contract.ReconcileInput{}).Alarms)
	require.Equal(t, [4]int64{2, 2, 0, 0}, s.parts())
	require.Equal(t, contract.HoldReleased, s.state(stray))
	s.nothingLeft()
}

// An attempt that was cut off has missed a record, which is back since: the counters are
// not corrected before the next pass, and nothing is ended whose unit may be another's.
func TestAStrayRecordAfterAnAttemptThatMissedOne(t *testing.T) {
	s := newShelf(t, 1)
	stays := s.held()
	stray := s.copied(stays)
	env, passes := s.passes()
	in := contract.ReconcileInput{SKU: s.sku, Pass: true}
	var report contract.ReconcileReport
	s.attempt(env, in, &passAt{Report: contract.ReconcileReport{SKU: s.sku}, Waits: true}, func() {
		out, err := env.ExecuteActivity(passes.LookThrough, in)
		require.NoError(t, err)
		require.NoError(t, out.Get(&report))
	})
	require.Len(t, report.Alarms, 1)
	require.Contains(t, report.Alarms[0], "not corrected while records or owners are missing")
	require.Equal(t, contract.HoldHeld, s.state(stray))
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
	require.Empty(t, s.pass(contract.ReconcileInput{}).Alarms)
	require.Equal(t, contract.HoldReleased, s.state(stray))
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
	s.nothingLeft()
}

// copied is a record of a hold that nobody has, made up from one.
func (s *shelf) copied(of string) string {
	stray := s.id(contract.HoldID)
	raw, err := s.rdb.HGet(s.t.Context(), s.key("holds"), of).Result()
	require.NoError(s.t, err)
	raw = strings.ReplaceAll(raw, "p-"+of, "p-"+stray)
	require.NoError(s.t, s.rdb.HSet(s.t.Context(), s.key("holds"), stray, raw).Err())
	return stray
}

// While a record is missing that may be on its way, its unit stays in the counters.
func TestNoCounterIsCorrectedBeforeItsRecordIsBack(t *testing.T) {
	s := newShelf(t, 1)
	id := s.held()
	s.flows[id].started = time.Now()
	require.NoError(t, s.rdb.HDel(t.Context(), s.key("holds"), id).Err())
	report := s.pass(contract.ReconcileInput{})
	require.Zero(t, report.Found)
	require.Len(t, report.Alarms, 1)
	require.Contains(t, report.Alarms[0], "held is 1, by records 0: not corrected")
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts(), "nobody else gets its unit")
	s.flows[id].started = time.Now().Add(-2 * time.Minute)
	require.Equal(t, 1, s.pass(contract.ReconcileInput{}).Repaired)
	require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
}

// More missing owners than could be an accident are an outage.
func TestTheBrake(t *testing.T) {
	s := newShelf(t, 10)
	for range 10 {
		s.held()
	}
	gone := 0
	for id := range s.flows {
		if gone++; gone <= 4 {
			delete(s.flows, id)
		}
	}
	report := s.pass(contract.ReconcileInput{})
	require.True(t, report.Braked)
	require.Zero(t, report.Repaired)
	require.Len(t, report.Alarms, 1)
	require.Contains(t, report.Alarms[0], "holdfast reconcile CHAIR --agree")
	require.Equal(t, [4]int64{10, 10, 0, 0}, s.parts())
	require.Equal(t, 4, s.pass(contract.ReconcileInput{Agree: true}).Repaired)
	require.Equal(t, [4]int64{10, 6, 0, 0}, s.parts())
	s.nothingLeft()
}

// Another namespace knows none of the workflows: an outage, which changes nothing,
// agreed or not.
func TestAMissingNamespaceIsAnOutage(t *testing.T) {
	s := newShelf(t, 1)
	s.held()
	for _, in := range []contract.ReconcileInput{{}, {Agree: true}} {
		s.down = serviceerror.NewNamespaceNotFound("shop")
		_, err := s.tryPass(in)
		require.ErrorContains(t, err, "shop")
		require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
		// It goes while the pass asks.
		s.down, s.downAsked = nil, serviceerror.NewNamespaceNotFound("shop")
		for _, f := range s.flows {
			f.unlisted = true
		}
		_, err = s.tryPass(in)
		require.ErrorContains(t, err, "shop")
		require.Equal(t, [4]int64{1, 1, 0, 0}, s.parts())
		s.downAsked = nil
	}
}

// due moves a hold's deadline to so long ago.
func (s *shelf) due(id string, ago time.Duration) {
	raw, err := s.rdb.HGet(s.t.Context(), s.key("holds"), id).Result()
	require.NoError(s.t, err)
	deadline := fmt.Sprint(s.flows[id].status.(contract.HoldStatus).ExpiresAt.UnixMilli())
	require.Contains(s.t, raw, deadline)
	require.NoError(s.t, s.rdb.HSet(s.t.Context(), s.key("holds"), id, strings.Replace(raw, deadline, fmt.Sprint(time.Now().Add(-ago).UnixMilli()), 1)).Err())
}

// A hold whose owner lives is let be past deadline and grace, for five minutes: an
// ending that waits for a worker is no alarm.
func TestAHoldMayBeOverdueForAWhile(t *testing.T) {
	s := newShelf(t, 2)
	s.due(s.held(), 5*time.Minute) // of which one is grace
	require.Empty(t, s.pass(contract.ReconcileInput{}).Alarms)
	late := s.held()
	s.due(late, 6*time.Minute+time.Second)
	alarms := s.pass(contract.ReconcileInput{}).Alarms
	require.Len(t, alarms, 1)
	require.Contains(t, alarms[0], late+" is held since its deadline")
}

// Units that are free beside somebody who waits are nothing to mend: the book is woken,
// and its drain serves the line.
func TestAPassWakesALineBesideFreeUnits(t *testing.T) {
	for name, c := range map[string]struct {
		units  int64
		waits  bool
		paused bool
		dryRun bool
		woken  bool
	}{
		"free, and somebody waits": {units: 1, waits: true, woken: true},
		"nothing is free":          {waits: true},
		"nobody waits":             {units: 1},
		"paused":                   {units: 1, waits: true, paused: true},
		"only looked at":           {units: 1, waits: true, dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, 0)
			if c.waits {
				s.waits("ada")
			}
			if c.paused {
				paused := true
				_, err := s.gate.Settings(t.Context(), redis.SettingsRequest{SKU: s.sku, Paused: &paused})
				require.NoError(t, err)
			}
			// As after a call whose wake was lost: the units came, and no offer was made.
			for _, counter := range []string{"on_hand", "received"} {
				require.NoError(t, s.rdb.HIncrBy(t.Context(), s.key("stock"), counter, c.units).Err())
			}
			s.book.Received, s.awoken = c.units, 0
			report := s.pass(contract.ReconcileInput{DryRun: c.dryRun})
			require.Zero(t, report.Found, report.Differences)
			require.Equal(t, c.woken, s.awoken > 0)
		})
	}
}

func TestAlarmsThatNoMachineMends(t *testing.T) {
	s := newShelf(t, 2)
	late := s.held()
	s.due(late, 6*time.Minute+time.Second)
	s.book.Received = 7
	report := s.pass(contract.ReconcileInput{})
	require.Len(t, report.Alarms, 2, report.Alarms)
	require.Contains(t, report.Alarms[0], late+" is held since its deadline")
	require.Contains(t, report.Alarms[1], "the book has received 7")
	require.Zero(t, report.Found)

	// An event that the gate has decided and the book has not is no difference.
	s.book.Received = 2
	ev := contract.StockEvent{EventID: "e-new", Kind: contract.StockRestock, Units: 4}
	_, err := s.gate.Stock(t.Context(), s.sku, ev)
	require.NoError(t, err)
	s.book.Pending = []contract.StockEvent{ev}
	require.Len(t, s.pass(contract.ReconcileInput{}).Alarms, 1)
}

// An offer that its entry was never told of is told again.
func TestALostOfferIsToldAgain(t *testing.T) {
	s := newShelf(t, 0)
	entry := s.waits("ada")
	s.restock(1)
	require.NoError(t, s.rdb.Del(t.Context(), s.key("offers")).Err())
	report := s.pass(contract.ReconcileInput{})
	require.Equal(t, 1, report.Repaired, report.Differences)
	require.NotZero(t, s.awoken)
	out, err := s.gate.Drain(t.Context(), s.sku, 10)
	require.NoError(t, err)
	require.Len(t, out.Items, 1)
	require.Equal(t, [2]string{string(redis.ItemOffer), entry}, [2]string{string(out.Items[0].Kind), out.Items[0].EntryID})
}

// A closed SKU is not looked through.
func TestAPassMeetsAClosedGate(t *testing.T) {
	s := newShelf(t, 1)
	require.NoError(t, s.rdb.HSet(t.Context(), s.key("stock"), "fence", "another server").Err())
	require.True(t, s.pass(contract.ReconcileInput{}).Closed)
}

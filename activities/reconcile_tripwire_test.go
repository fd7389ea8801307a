package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// wiresTold are the wires of each signal to the book since the last call.
func (s *shelf) wiresTold() (told [][]string) {
	for _, rung := range s.rung {
		require.False(s.t, rung.At.IsZero())
		wires := []string{}
		for _, r := range rung.Rings {
			wires = append(wires, r.Wire)
		}
		told = append(told, wires)
	}
	s.rung = nil
	return told
}

// A shortfall is in each report; the book is told when it does not know, and when it is
// over. Nobody is told by a dry run.
func TestAPassTellsTheBookOfAShortfall(t *testing.T) {
	s := newShelf(t, 1)
	id := s.held()
	s.n++
	out, err := s.gate.Stock(t.Context(), s.sku, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -1, AllowShortfall: true})
	require.NoError(t, err)
	s.book.Corrected, s.book.DecidedN = -1, out.N
	s.book.Events = append(s.book.Events, contract.BookEvent{EventID: "count", Kind: contract.StockCorrection, Applied: true, Delta: -1})

	report := s.pass(contract.ReconcileInput{DryRun: true})
	require.Equal(t, []string{"shortfall: more is promised than there is, by 1"}, report.Alarms)
	require.Empty(t, s.wiresTold())
	s.pass(contract.ReconcileInput{})
	told := s.wiresTold()
	require.NotEmpty(t, told)
	require.Equal(t, []string{contract.WireShortfall}, told[0])

	s.book.Alarm = &contract.StockAlarm{Rings: s.gateRings(), Since: time.Now()}
	require.Len(t, s.pass(contract.ReconcileInput{}).Alarms, 1)
	require.Empty(t, s.wiresTold(), "it knows")
	s.restock(1)
	require.Empty(t, s.pass(contract.ReconcileInput{}).Alarms)
	require.Equal(t, [][]string{{}}, s.wiresTold(), "it is over")
	s.book.Alarm = nil
	s.nothingLeft()
	require.Empty(t, s.wiresTold())
	require.NotEmpty(t, id)
}

func (s *shelf) gateRings() []contract.Ring {
	_, rings, err := s.gate.Tripwire(s.t.Context(), s.sku)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, rings)
	return rings
}

// A counter that a hand has bent is mended by the pass, and the book learns of it all
// the same.
func TestAPassTellsOfWhatItMends(t *testing.T) {
	s := newShelf(t, 2)
	require.NoError(t, s.rdb.HIncrBy(t.Context(), s.key("stock"), "held", -1).Err())
	report := s.pass(contract.ReconcileInput{})
	require.Equal(t, 1, report.Repaired)
	require.Equal(t, []string{contract.WireNegative, contract.WireLedger}, s.wiresTold()[0])
	s.nothingLeft()
}

// A line that is gone from the middle of the ledger is found by the pass alone.
func TestAPassReadsTheLedger(t *testing.T) {
	s := newShelf(t, 2)
	s.held()
	var faults []bool
	s.ledgerFault = func(_ string, has bool) { faults = append(faults, has) }
	s.pass(contract.ReconcileInput{})
	lines := s.rdb.XRange(t.Context(), s.key("ledger"), "-", "+").Val()
	require.NoError(t, s.rdb.XDel(t.Context(), s.key("ledger"), lines[2].ID).Err())
	report := s.pass(contract.ReconcileInput{})
	require.Len(t, report.Alarms, 2, "the counter that it does not lead to, and the gap")
	require.Contains(t, report.Alarms[1], "ledger: line no. 2 of epoch 1 is followed by no. 4")
	require.Equal(t, [][]string{{contract.WireLedger}}, s.wiresTold())
	require.Equal(t, []bool{false, true}, faults)
}

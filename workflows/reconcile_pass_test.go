package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"holdfast/contract"
)

// looks has the passes answer as a test says.
func (s *shut) looks(answer func(contract.ReconcileInput) (contract.ReconcileReport, error)) {
	s.RegisterActivityWithOptions(func(_ context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
		return answer(in)
	}, activity.RegisterOptions{Name: "LookThrough"})
}

func (s *shut) runs(in contract.ReconcileInput) contract.ReconcileReport {
	s.ExecuteWorkflow(contract.ReconcileWorkflow, in)
	require.True(s.t, s.IsWorkflowCompleted())
	require.NoError(s.t, s.GetWorkflowError())
	var report contract.ReconcileReport
	require.NoError(s.t, s.GetWorkflowResult(&report))
	return report
}

func TestAPassReports(t *testing.T) {
	s := newShut(t)
	in := contract.ReconcileInput{SKU: chair, ReopenSeconds: 20, Pass: true, Agree: true, Since: began}
	s.looks(func(got contract.ReconcileInput) (contract.ReconcileReport, error) {
		require.Equal(t, in, got)
		return contract.ReconcileReport{SKU: chair, Found: 2, Repaired: 1, Differences: []string{"hold_1 held 1"}, Alarms: []string{"look"}}, nil
	})
	require.Equal(t, 2, s.runs(in).Found)
	v, err := s.QueryWorkflow(contract.QueryStatus)
	require.NoError(t, err)
	var status contract.ReconcileReport
	require.NoError(t, v.Get(&status))
	require.Equal(t, []string{"look"}, status.Alarms)
	require.Zero(t, s.at, "an open gate is not checked")
}

// A gate that a pass finds closed is checked after its leases have ended, but not by a
// dry run.
func TestAPassOverAClosedGate(t *testing.T) {
	for _, dry := range []bool{false, true} {
		s := newShut(t)
		s.looks(func(in contract.ReconcileInput) (contract.ReconcileReport, error) {
			return contract.ReconcileReport{SKU: chair, Closed: true, DryRun: in.DryRun}, nil
		})
		report := s.runs(contract.ReconcileInput{SKU: chair, ReopenSeconds: 20, Pass: true, DryRun: dry})
		require.True(t, report.Closed)
		require.Equal(t, !dry, report.Opened)
		require.Len(t, s.opened, map[bool]int{false: 1, true: 0}[dry])
		if !dry {
			require.Equal(t, began.Add(20*time.Second), s.at)
		}
	}
}

// A pass that cannot look gives up: the next one comes in a minute.
func TestAPassGivesUp(t *testing.T) {
	s := newShut(t)
	tries := 0
	s.looks(func(contract.ReconcileInput) (contract.ReconcileReport, error) {
		tries++
		return contract.ReconcileReport{}, errors.New("namespace not found")
	})
	s.ExecuteWorkflow(contract.ReconcileWorkflow, contract.ReconcileInput{SKU: chair, Pass: true})
	require.ErrorContains(t, s.GetWorkflowError(), "namespace not found")
	require.Equal(t, 5, tries)
}

// Each run over all SKUs begins to look where the last one that got through began.
func TestReconcileAllGoesOnWhereTheLastOneBegan(t *testing.T) {
	last := began.Add(-time.Hour)
	for name, c := range map[string]struct {
		last   *contract.ReconcileAllReport
		failed []string
		asked  time.Time
		since  time.Time
	}{
		"the first":         {nil, nil, time.Time{}, began},
		"the next":          {&contract.ReconcileAllReport{Since: last}, nil, last.Add(-10 * time.Minute), began},
		"one that failed":   {&contract.ReconcileAllReport{Since: last}, []string{chair}, last.Add(-10 * time.Minute), last},
		"the first to fail": {nil, []string{chair}, time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShut(t)
			s.RegisterActivityWithOptions(func(_ context.Context, in contract.ReconcileAllInput) (contract.ReconcileAllReport, error) {
				require.True(t, c.asked.Equal(in.Since), "%s", in.Since)
				return contract.ReconcileAllReport{SKUs: 3, Failed: c.failed}, nil
			}, activity.RegisterOptions{Name: "LookThroughAll"})
			if c.last != nil {
				s.SetLastCompletionResult(*c.last)
			}
			s.ExecuteWorkflow(contract.ReconcileAllWorkflow, contract.ReconcileAllInput{})
			require.NoError(t, s.GetWorkflowError())
			var report contract.ReconcileAllReport
			require.NoError(t, s.GetWorkflowResult(&report))
			require.True(t, c.since.Equal(report.Since), "%s", report.Since)
			require.Equal(t, 3, report.SKUs)
		})
	}
}

// A closed gate that has a book is rebuilt, also when its stock is gone, and the report
// has both what was found and what was merged. One without a book waits for a person,
// and so does one without the fence, by which a rebuild knows its Redis.
func TestAClosedGateIsRebuilt(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*shut)
		opens bool
	}{
		"a record is lost": {func(s *shut) { s.missing["hold_2"] = true }, true},
		"its stock is":     {func(s *shut) { s.found.Missing = true }, true},
		"its book is":      {func(s *shut) { s.book = nil }, false},
		"it has no fence":  {func(s *shut) { s.found.Missing, s.found.ReplID = true, "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShut(t)
			c.spoil(s)
			rebuilt := 0
			s.rebuilds = func() contract.ReconcileReport {
				rebuilt++
				return contract.ReconcileReport{SKU: chair, Opened: true, Differences: []string{"merged"}}
			}
			report := s.runs(contract.ReconcileInput{SKU: chair, ReopenSeconds: 20})
			require.Equal(t, c.opens, report.Opened)
			require.Equal(t, c.opens, rebuilt == 1)
			if c.opens {
				require.Len(t, report.Differences, 2)
				require.Equal(t, "merged", report.Differences[1])
			}
		})
	}
}

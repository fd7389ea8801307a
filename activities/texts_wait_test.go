package activities_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// queue is a rate that lets a text wait once; meanwhile something happens.
type queue struct{ meanwhile func() }

func (q *queue) Take(context.Context, int, float64) (time.Duration, error) {
	if q.meanwhile == nil {
		return 0, nil
	}
	q.meanwhile()
	q.meanwhile = nil
	return time.Millisecond, nil
}

func (q *queue) Spend(context.Context, int) (int64, error) { return 0, nil }

// B48: who leaves while the text waits for its turn gets none.
func TestATextThatWaitedIsAskedForAgain(t *testing.T) {
	run := func(p *phoneBook, method func(a *activities.Texts) any, in any, meanwhile func()) (out activities.TextResult) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		a := &activities.Texts{
			Guard: activities.Guard{Waker: p}, Gate: p, OptOuts: p, Entries: p, Persons: p, Links: p, Words: nordlicht(t), PublicURL: "https://n.example",
			Sender: &sms.Limited{Sender: p, Meter: &queue{meanwhile}, PerSecond: 1, Log: slog.Default()},
		}
		env.RegisterActivity(a)
		v, err := env.ExecuteActivity(method(a), in)
		require.NoError(t, err)
		require.NoError(t, v.Get(&out))
		return out
	}
	offered := redis.HoldOutcome{Base: redis.Base{Verdict: redis.OK}, Hold: redis.Hold{State: contract.HoldOffered}, Left: time.Hour}
	p := &phoneBook{told: offered}
	out := run(p, offerText, offerInput(), func() {
		p.told.Verdict, p.told.Hold.State = redis.Gone, contract.HoldReleased
	})
	require.True(t, out.Skipped)
	require.Equal(t, redis.Gone, out.Hold.Verdict, "the entry learns what became of the offer")
	require.Empty(t, p.texts)

	p = &phoneBook{told: offered}
	out = run(p, offerText, offerInput(), func() { p.told.Hold.Deadline = time.Unix(1_800_000_000, 0).UTC() })
	require.Len(t, p.texts, 1)
	require.Equal(t, p.told.Hold.Deadline, out.Hold.Deadline, "the window is that of the sending")

	p = &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}}
	require.True(t, run(p, joinedText, joinedInput(), func() { p.entry.State = contract.EntryLeft }).Skipped)
	require.Empty(t, p.texts)

	p = &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}}
	require.False(t, run(p, joinedText, joinedInput(), func() {}).Skipped)
	require.Len(t, p.texts, 1)
}

package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/internal/twiliostub"
	"holdfast/redis"
	"holdfast/sms"
)

const twilioAccount, twilioToken = "AC00000000000000000000000000000001", "token1"

// texting is a workflow that sends one offer's text, as an entry does, through the
// real twilio-go client to a stand-in of Twilio.
type texting struct {
	stub *twiliostub.Server
	told int // how often the gate was told
}

func newTexting(t *testing.T) *texting {
	stub, err := twiliostub.Start(twiliostub.Options{AccountSID: twilioAccount, AuthToken: twilioToken})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stub.Close()) })
	return &texting{stub: stub}
}

type tellingGate struct {
	*phoneBook
	told *int
}

func (g tellingGate) Told(ctx context.Context, req redis.ToldRequest) (redis.HoldOutcome, error) {
	*g.told++
	return g.phoneBook.Told(ctx, req)
}

func (x *texting) run(t *testing.T) (activities.TextResult, error) {
	sender, err := sms.NewTwilio(sms.TwilioAccount{AccountSID: twilioAccount, AuthToken: twilioToken, From: "+12025550100", BaseURL: x.stub.URL})
	require.NoError(t, err)
	p := &phoneBook{title: "Chair", told: redis.HoldOutcome{
		Base: redis.Base{Verdict: redis.OK}, Left: 16 * time.Minute,
		Hold: redis.Hold{State: contract.HoldOffered, OfferedAt: time.Now()},
	}}
	a := &activities.Texts{
		Guard: activities.Guard{Waker: p}, Gate: tellingGate{p, &x.told}, Sender: sender, OptOuts: p, Entries: p, Persons: p, Links: p,
		Words: nordlicht(t), PublicURL: "https://n.example",
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Now()) // the stand-in goes by the true time
	env.RegisterActivity(a)
	env.ExecuteWorkflow(func(ctx workflow.Context) (activities.TextResult, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: 30 * time.Second,
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 5},
		})
		var out activities.TextResult
		err := workflow.ExecuteActivity(ctx, a.SendOffer, offerInput()).Get(ctx, &out)
		return out, err
	})
	require.True(t, env.IsWorkflowCompleted())
	if err := env.GetWorkflowError(); err != nil {
		return activities.TextResult{}, err
	}
	var out activities.TextResult
	require.NoError(t, env.GetWorkflowResult(&out))
	return out, nil
}

// B80: the provider accepts and the answer is lost: it is looked up before a second send.
func TestATextWhoseAnswerWasLostIsNotSentTwice(t *testing.T) {
	for name, faults := range map[string][]twiliostub.Fault{
		"dropped":                   {{On: twiliostub.Create, Kept: true, Drop: true}},
		"broken after storing":      {{On: twiliostub.Create, Kept: true, Status: 500, Code: 20500}},
		"and the look-up fails too": {{On: twiliostub.Create, Kept: true, Drop: true}, {On: twiliostub.List, Drop: true}, {On: twiliostub.List, Status: 429, Code: 20429}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTexting(t)
			x.stub.Next(faults...)
			out, err := x.run(t)
			require.NoError(t, err)
			require.Len(t, x.stub.Messages(), 1, "%v", x.stub.Calls())
			require.Equal(t, x.stub.Messages()[0].SID, out.TextID)
			require.False(t, out.Sent)
			require.Equal(t, len(faults)+1, x.told, "each attempt asks the gate first")
		})
	}
}

func TestATextThatWasNeverTakenIsSentAgain(t *testing.T) {
	x := newTexting(t)
	x.stub.Next(
		twiliostub.Fault{On: twiliostub.Create, Drop: true},
		twiliostub.Fault{On: twiliostub.Create, Status: 429, Code: 20429, RetryAfter: time.Second},
	)
	out, err := x.run(t)
	require.NoError(t, err)
	require.Len(t, x.stub.Messages(), 1)
	require.Equal(t, x.stub.Messages()[0].SID, out.TextID)
	require.Equal(t, []string{"POST 0", "GET 200", "POST 429", "GET 200", "POST 201"}, x.stub.Calls())
}

func TestARefusalForEverIsAskedOnce(t *testing.T) {
	x := newTexting(t)
	x.stub.Refuse("+12025550101", 21610)
	_, err := x.run(t)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrTextNever, app.Type())
	var refusal contract.TextRefusal
	require.NoError(t, app.Details(&refusal))
	require.True(t, refusal.OptedOut)
	require.Equal(t, []string{"POST 400"}, x.stub.Calls())
}

// The answer was lost, and the text then too: what the look-up finds is final.
func TestALostTextThatCannotArriveIsNotSentAgain(t *testing.T) {
	x := newTexting(t)
	x.stub.Next(twiliostub.Fault{On: twiliostub.Create, Kept: true, Drop: true}, twiliostub.Fault{On: twiliostub.List, Drop: true, Before: func() {
		_, err := x.stub.Advance(x.stub.Messages()[0].SID, twiliostub.Undelivered, 30006)
		require.NoError(t, err)
	}})
	_, err := x.run(t)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrTextNever, app.Type())
	require.Len(t, x.stub.Messages(), 1)
}

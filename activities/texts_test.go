package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast/activities"
	"holdfast/contract"
	"holdfast/redis"
	"holdfast/sms"
)

// phoneBook is the gate and the sender as one text meets them.
type phoneBook struct {
	entry *redis.Entry
	told  redis.HoldOutcome
	title string
	err   error
	texts []sms.Text
	woken int

	optedOut bool
	unknown  error           // what a look for an opt-out answers
	said     []contract.Said // by person p-of-the-number
	deaf     error           // nothing can be said

	waits []contract.TextWait // that entry_a was told of
	known any                 // heartbeat details of the attempt before
}

func (p *phoneBook) Signal(_ context.Context, id, signal string, arg any) error {
	if id != "entry_a" || signal != contract.SignalTextWaits || p.deaf != nil {
		return errors.New("nobody is there")
	}
	p.waits = append(p.waits, arg.(contract.TextWait))
	return nil
}

func (p *phoneBook) PersonOfPhone(e164 string) string { return "p-" + e164 }

func (p *phoneBook) OptedOut(_ context.Context, person string) (bool, error) {
	return p.optedOut && person == "p-+12025550101", p.unknown
}

func (p *phoneBook) Said(_ context.Context, person string, said contract.Said) error {
	if p.deaf != nil || person != "p-+12025550101" {
		return p.deaf
	}
	p.said = append(p.said, said)
	return nil
}

func (p *phoneBook) Snapshot(context.Context, string) (redis.Counters, contract.About, error) {
	return redis.Counters{}, contract.About{Title: p.title}, nil
}

func (p *phoneBook) ReadEntry(context.Context, string, string) (redis.Entry, bool, error) {
	if p.entry == nil {
		return redis.Entry{}, false, nil
	}
	return *p.entry, true, nil
}

func (p *phoneBook) Told(context.Context, redis.ToldRequest) (redis.HoldOutcome, error) {
	return p.told, nil
}

func (p *phoneBook) Send(_ context.Context, t sms.Text) (sms.Receipt, error) {
	if p.err != nil {
		return sms.Receipt{}, p.err
	}
	p.texts = append(p.texts, t)
	return sms.Receipt{ID: "SM1"}, nil
}

func (p *phoneBook) Find(context.Context, sms.Text, time.Time) (sms.Receipt, bool, error) {
	return sms.Receipt{}, false, errors.New("a first attempt has nothing to look for")
}

func (p *phoneBook) Token(holdID string, expires time.Time) (string, error) {
	return "token-of-" + holdID + "-" + expires.Format(time.TimeOnly), nil
}

func (p *phoneBook) Wake(context.Context, string) error {
	p.woken++
	return errors.New("a wake that fails fails nothing")
}
func (p *phoneBook) Reconcile(context.Context, contract.ReconcileInput) error { return nil }

func (p *phoneBook) run(t *testing.T, method func(a *activities.Texts) any, in any) (activities.TextResult, error) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	if p.known != nil {
		env.SetHeartbeatDetails(p.known)
	}
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var told map[string]any
		require.NoError(t, details.Get(&told))
		p.known = told
	})
	a := &activities.Texts{Guard: activities.Guard{Waker: p}, Gate: p, Sender: p, OptOuts: p, Entries: p, Persons: p, Links: p, Words: nordlicht(t), PublicURL: "https://n.example"}
	env.RegisterActivity(a)
	var out activities.TextResult
	v, err := env.ExecuteActivity(method(a), in)
	if err == nil {
		require.NoError(t, v.Get(&out))
	}
	return out, err
}

func nordlicht(t *testing.T) *sms.Words {
	words, err := sms.LoadWords(sms.WordsOptions{Shop: "Nordlicht", Locale: "en", LongestLink: "https://n.example/r/"})
	require.NoError(t, err)
	return words
}

func joinedText(a *activities.Texts) any { return a.SendJoined }
func offerText(a *activities.Texts) any  { return a.SendOffer }

func joinedInput() activities.JoinedTextInput {
	return activities.JoinedTextInput{EntryRef: activities.EntryRef{SKU: "CHAIR", EntryID: "entry_a"}, Phone: "+12025550101", Position: 2}
}

func offerInput() activities.OfferTextInput {
	return activities.OfferTextInput{
		ToldInput: activities.ToldInput{
			OfferRef: activities.OfferRef{SKU: "CHAIR", HoldID: "hold_a"},
			Settings: contract.EntrySettings{WindowSeconds: 900, SentGraceSeconds: 60, MaxAgeSeconds: 3600},
		},
		EntryID: "entry_a", Phone: "+12025550101",
	}
}

func TestJoinedTextOnlyToWhoStillWaits(t *testing.T) {
	p := &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}}
	out, err := p.run(t, joinedText, joinedInput())
	require.NoError(t, err)
	require.Equal(t, activities.TextResult{TextID: "SM1"}, out)
	require.Equal(t, []sms.Text{{
		To: "+12025550101", Cause: sms.CauseJoined, EntryID: "entry_a", Link: "https://n.example/w/entry_a",
		Body: "Nordlicht: you are no. 2 in line for CHAIR. Your place: https://n.example/w/entry_a Reply STOP to stop.",
	}}, p.texts, "a SKU without a title goes by its own name")

	for _, entry := range []*redis.Entry{nil, {State: contract.EntryLeft}, {State: contract.EntryHolding}} {
		p := &phoneBook{entry: entry}
		out, err := p.run(t, joinedText, joinedInput())
		require.NoError(t, err)
		require.True(t, out.Skipped)
		require.Empty(t, p.texts)
	}
}

func TestOfferTextOnlyWhenTheGateSaysSo(t *testing.T) {
	offered := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := &phoneBook{title: "Chair", told: redis.HoldOutcome{
		Base: redis.Base{Verdict: redis.OK, Wake: true}, Left: 16 * time.Minute,
		Hold: redis.Hold{State: contract.HoldOffered, OfferedAt: offered},
	}}
	out, err := p.run(t, offerText, offerInput())
	require.NoError(t, err)
	require.Equal(t, int64(16*60*1000), out.Hold.LeftMillis)
	require.Equal(t, []sms.Text{{
		To: "+12025550101", Cause: sms.CauseOffer, EntryID: "entry_a", HoldID: "hold_a", Validity: 15 * time.Minute,
		Link: "https://n.example/r/token-of-hold_a-13:10:00",
		Body: "Nordlicht: https://n.example/r/token-of-hold_a-13:10:00 holds your Chair for 15 min. STOP to stop.",
	}}, p.texts)
	require.Equal(t, 1, p.woken)

	p.told.Left = 5*time.Minute + 20*time.Second // near its greatest age
	_, err = p.run(t, offerText, offerInput())
	require.NoError(t, err)
	require.Contains(t, p.texts[1].Body, "for 5 min.", "no more is promised than is left")
	require.Equal(t, 5*time.Minute+20*time.Second, p.texts[1].Validity)

	over := &phoneBook{told: redis.HoldOutcome{Base: redis.Base{Verdict: redis.OK}, Hold: redis.Hold{State: contract.HoldOffered}}}
	out, err = over.run(t, offerText, offerInput())
	require.NoError(t, err)
	require.True(t, out.Skipped, "past its greatest age a text would tell of nothing")
	require.Empty(t, over.texts)

	for _, verdict := range []redis.Verdict{redis.Gone, redis.Paused, redis.Ended, redis.Unknown} {
		p := &phoneBook{told: redis.HoldOutcome{Base: redis.Base{Verdict: verdict}}}
		out, err := p.run(t, offerText, offerInput())
		require.NoError(t, err)
		require.True(t, out.Skipped)
		require.Equal(t, verdict, out.Hold.Verdict)
		require.Empty(t, p.texts)
	}
}

func TestTextsAreInThePersonsWords(t *testing.T) {
	p := &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}, title: "Stuhl"}
	in := joinedInput()
	in.Locale = "de-CH"
	_, err := p.run(t, joinedText, in)
	require.NoError(t, err)
	require.Contains(t, p.texts[0].Body, "Nr. 2 auf der Warteliste für Stuhl.")

	p.told = redis.HoldOutcome{Base: redis.Base{Verdict: redis.OK}, Left: time.Hour}
	offer := offerInput()
	offer.Locale = "de"
	_, err = p.run(t, offerText, offer)
	require.NoError(t, err)
	require.Contains(t, p.texts[1].Body, "hält Stuhl 15 Min. für Sie bereit.")
}

// B114: the type and whether it is retried are those of the outermost error.
func TestTextRefusalsAreTyped(t *testing.T) {
	for class, want := range map[sms.Class]string{
		sms.Never: contract.ErrTextNever, sms.Later: contract.ErrTextLater, sms.StopAll: contract.ErrTextStopAll,
	} {
		p := &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}, err: &sms.Error{Class: class, Code: 21610, MaybeSent: true, Reason: "because", RetryAfter: 7 * time.Second}}
		_, err := p.run(t, joinedText, joinedInput())
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, want, app.Type())
		require.Equal(t, class == sms.Never, app.NonRetryable())
		var refusal contract.TextRefusal
		require.NoError(t, app.Details(&refusal))
		require.Equal(t, contract.TextRefusal{Code: 21610, OptedOut: true, MaybeSent: true}, refusal)
		require.Equal(t, map[sms.Class]time.Duration{sms.Never: 0, sms.Later: 7 * time.Second, sms.StopAll: time.Minute}[class], app.NextRetryDelay())
	}
}

// Who has opted out gets no text, and the gate is not told that they get one.
func TestWhoOptedOutGetsNoText(t *testing.T) {
	for name, c := range map[string]struct {
		method func(a *activities.Texts) any
		in     any
	}{"joined": {joinedText, joinedInput()}, "offer": {offerText, offerInput()}} {
		p := &phoneBook{optedOut: true, entry: &redis.Entry{State: contract.EntryWaiting}, told: redis.HoldOutcome{Base: redis.Base{Verdict: redis.OK, Wake: true}}}
		_, err := p.run(t, c.method, c.in)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app, name)
		require.Equal(t, contract.ErrTextNever, app.Type())
		require.True(t, app.NonRetryable())
		var refusal contract.TextRefusal
		require.NoError(t, app.Details(&refusal))
		require.True(t, refusal.OptedOut)
		require.Empty(t, p.texts)
		require.Zero(t, p.woken, "told was not called")
		require.Empty(t, p.said, "it is known already")

		p = &phoneBook{unknown: errors.New("Temporal is away"), entry: &redis.Entry{State: contract.EntryWaiting}}
		_, err = p.run(t, c.method, c.in)
		require.ErrorAs(t, err, &app, name)
		require.Equal(t, contract.ErrUnavailable, app.Type())
		require.False(t, app.NonRetryable(), "no text before that is known")
		require.Empty(t, p.texts)
	}
}

// 21610: Twilio knows of a STOP that we have not heard of.
func TestARefusalForAnOptOutIsRemembered(t *testing.T) {
	refusal := &sms.Error{Class: sms.Never, Code: 21610, Reason: "unsubscribed"}
	p := &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}, err: refusal}
	_, err := p.run(t, joinedText, joinedInput())
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrTextNever, app.Type())
	require.Equal(t, []contract.Said{{Word: contract.SaidStop, Source: contract.SaidByRefusal}}, p.said)

	p = &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}, err: refusal, deaf: errors.New("Temporal is away")}
	_, err = p.run(t, joinedText, joinedInput())
	require.ErrorAs(t, err, &app)
	require.False(t, app.NonRetryable(), "tried until it is remembered")

	p = &phoneBook{entry: &redis.Entry{State: contract.EntryWaiting}, err: &sms.Error{Class: sms.Never, Code: 21614}}
	_, err = p.run(t, joinedText, joinedInput())
	require.Error(t, err)
	require.Empty(t, p.said, "a landline is no opt-out")
}

// B41: an entry learns what keeps the text of its offer, once for each cause.
func TestAnEntryLearnsWhatKeepsItsText(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	down := &sms.Error{Class: sms.StopAll, Code: 20003, Status: 401}
	budget := &sms.Error{Class: sms.StopAll, Ours: true, Until: midnight}
	ok := redis.HoldOutcome{Base: redis.Base{Verdict: redis.OK}, Left: time.Hour}
	p := &phoneBook{told: ok}
	for _, refusal := range []error{down, down, budget, budget, down, &sms.Error{Class: sms.Later, Status: 429}, &sms.Error{Class: sms.Later}} {
		p.err = refusal
		_, err := p.run(t, offerText, offerInput())
		require.Error(t, err)
	}
	require.Equal(t, []contract.TextWait{
		{Why: contract.WhySenderDown}, {Why: contract.WhyRateLimited, Until: midnight}, {Why: contract.WhySenderDown},
	}, p.waits, "each cause once, and no word of what the first attempt met")

	for retry, told := range map[time.Duration]int{0: 0, 5 * time.Second: 0, 6 * time.Second: 1, time.Minute: 1} {
		p := &phoneBook{told: ok, err: &sms.Error{Class: sms.Later, Status: 429, RetryAfter: retry}}
		_, err := p.run(t, offerText, offerInput())
		require.Error(t, err)
		require.Len(t, p.waits, told, "a first attempt whose second comes in %s", retry)
	}

	for range 40 { // a provider that never says the same twice
		for _, p.err = range []error{down, budget} {
			_, err := p.run(t, offerText, offerInput())
			require.Error(t, err)
		}
	}
	require.Len(t, p.waits, 20, "a history has an end")

	p = &phoneBook{told: ok, err: down, deaf: errors.New("Temporal is away"), entry: &redis.Entry{State: contract.EntryWaiting}}
	_, err := p.run(t, offerText, offerInput())
	require.Error(t, err)
	require.Nil(t, p.known, "it is told at the next attempt")
	p.deaf = nil
	_, err = p.run(t, joinedText, joinedInput())
	require.Error(t, err)
	_, err = p.run(t, offerText, offerInput())
	require.Error(t, err)
	require.Len(t, p.waits, 1, "only of an offer")
	p.err = &sms.Error{Class: sms.Never}
	_, err = p.run(t, offerText, offerInput())
	require.Error(t, err)
	require.Len(t, p.waits, 1)
}

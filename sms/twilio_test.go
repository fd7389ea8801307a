package sms_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/twiliostub"
	"holdfast/sms"
)

const (
	number   = "+12025550101"
	link     = "https://n.example/r/abc"
	body     = "Nordlicht: " + link + " holds your Größe & mehr"
	account  = "AC00000000000000000000000000000001"
	token    = "token1"
	callback = "https://n.example/v1/webhooks/twilio/status"
)

func offer() sms.Text {
	return sms.Text{To: number, Body: body, Link: link, Cause: sms.CauseOffer, EntryID: "entry_a", HoldID: "hold_a", Validity: 900 * time.Second}
}

// standIn is Twilio, and a sender that sends there through the real twilio-go.
func standIn(t *testing.T, change func(*sms.TwilioAccount)) (*twiliostub.Server, *sms.Twilio) {
	t.Helper()
	stub, err := twiliostub.Start(twiliostub.Options{AccountSID: account, AuthToken: token})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stub.Close()) })
	a := sms.TwilioAccount{AccountSID: account, AuthToken: token, From: "+12025550100", BaseURL: stub.URL}
	if change != nil {
		change(&a)
	}
	sender, err := sms.NewTwilio(a)
	require.NoError(t, err)
	return stub, sender
}

func refusal(t *testing.T, err error) *sms.Error {
	t.Helper()
	var got *sms.Error
	require.ErrorAs(t, err, &got)
	require.NotContains(t, got.Error(), number[1:], "no number in an error")
	return got
}

func TestTwilioAccepts(t *testing.T) {
	stub, sender := standIn(t, nil)
	receipt, err := sender.Send(t.Context(), offer())
	require.NoError(t, err)
	m := stub.Messages()[0]
	require.Equal(t, sms.Receipt{ID: m.SID}, receipt, "accepted is not sent")
	require.Equal(t, url.Values{"To": {number}, "From": {"+12025550100"}, "Body": {body}, "ValidityPeriod": {"900"}}, stub.Requests()[0].Form)

	for validity, want := range map[time.Duration]string{time.Millisecond: "1", 7 * 24 * time.Hour: "36000"} {
		text := offer()
		text.Validity = validity
		_, err = sender.Send(t.Context(), text)
		require.NoError(t, err)
		requests := stub.Requests()
		require.Equal(t, want, requests[len(requests)-1].Form.Get("ValidityPeriod"))
	}
}

func TestTwilioTellsWhereToCallBack(t *testing.T) {
	stub, sender := standIn(t, func(a *sms.TwilioAccount) {
		a.From, a.MessagingService, a.StatusCallback = "", "MG00000000000000000000000000000001", callback
	})
	_, err := sender.Send(t.Context(), offer())
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"To": {number}, "MessagingServiceSid": {"MG00000000000000000000000000000001"}, "Body": {body}, "ValidityPeriod": {"900"},
		"StatusCallback": {callback + "?cause=offer&entry_id=entry_a&hold_id=hold_a"},
	}, stub.Requests()[0].Form)
	joined := sms.Text{To: number, Body: body, Link: link, Cause: sms.CauseJoined, EntryID: "entry_a"}
	_, err = sender.Send(t.Context(), joined)
	require.NoError(t, err)
	require.Equal(t, callback+"?cause=joined&entry_id=entry_a", stub.Messages()[1].StatusCallback)
}

func TestTwilioRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault twiliostub.Fault
		want  sms.Class
		maybe bool
		wait  time.Duration
	}{
		{"invalid number", twiliostub.Fault{Status: 400, Code: 21211}, sms.Never, false, 0},
		{"region not allowed", twiliostub.Fault{Status: 400, Code: 21408}, sms.Never, false, 0},
		{"opted out", twiliostub.Fault{Status: 400, Code: 21610}, sms.Never, false, 0},
		{"no route", twiliostub.Fault{Status: 400, Code: 21612}, sms.Never, false, 0},
		{"landline", twiliostub.Fault{Status: 400, Code: 21614}, sms.Never, false, 0},
		{"from is not ours", twiliostub.Fault{Status: 400, Code: 21606}, sms.StopAll, false, 0},
		{"a code nobody knows", twiliostub.Fault{Status: 400, Code: 29999}, sms.Later, false, 0},
		{"wrong token", twiliostub.Fault{Status: 401, Code: 20003}, sms.StopAll, false, 0},
		{"wrong token, from a proxy", twiliostub.Fault{Status: 401, Body: "<html>"}, sms.StopAll, false, 0},
		{"suspended", twiliostub.Fault{Status: 403, Code: 20005}, sms.StopAll, false, 0},
		{"forbidden", twiliostub.Fault{Status: 403, Code: 29999}, sms.StopAll, false, 0},
		{"too many", twiliostub.Fault{Status: 429, Code: 20429, RetryAfter: 7 * time.Second}, sms.Later, false, 7 * time.Second},
		{"too many, from a proxy", twiliostub.Fault{Status: 429, Body: "<html>slow down", RetryAfter: 3 * time.Second}, sms.Later, false, 3 * time.Second},
		{"too many, for a month", twiliostub.Fault{Status: 429, Code: 20429, RetryAfter: 720 * time.Hour}, sms.Later, false, 10 * time.Minute},
		{"queue full", twiliostub.Fault{Status: 400, Code: 21611}, sms.Later, false, 0},
		{"broken", twiliostub.Fault{Status: 500, Body: "oops"}, sms.Later, true, 0},
		{"away", twiliostub.Fault{Status: 503, Code: 20503}, sms.Later, true, 0},
		{"led elsewhere", twiliostub.Fault{Status: 307, Body: "x"}, sms.Later, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			stub, sender := standIn(t, nil)
			stub.Next(c.fault)
			_, err := sender.Send(t.Context(), offer())
			got := refusal(t, err)
			require.Equal(t, c.want, got.Class, got.Error())
			require.Equal(t, c.maybe, got.MaybeSent)
			require.Equal(t, c.wait, got.RetryAfter)
			require.Equal(t, c.fault.Code == 21610, got.OptedOut())
			require.Empty(t, stub.Messages())
			require.Len(t, stub.Requests(), 1, "it does not try again by itself")
		})
	}
	stub, sender := standIn(t, func(a *sms.TwilioAccount) { a.AuthToken = "revoked" })
	_, err := sender.Send(t.Context(), offer())
	require.Equal(t, sms.StopAll, refusal(t, err).Class)
	require.Equal(t, []string{"POST 401"}, stub.Calls())
}

// The provider quotes the number in its refusals; we do not.
func TestTwilioRefusesANumber(t *testing.T) {
	stub, sender := standIn(t, nil)
	for code, want := range map[int]sms.Class{21610: sms.Never, 21408: sms.Never, 21611: sms.Later} {
		stub.Refuse(number, code)
		_, err := sender.Send(t.Context(), offer())
		got := refusal(t, err)
		require.Equal(t, want, got.Class)
		require.Equal(t, code, got.Code)
		require.Contains(t, got.Error(), "(number)")
	}
}

func TestALostAnswerIsFoundAgain(t *testing.T) {
	for name, fault := range map[string]twiliostub.Fault{
		"dropped":              {On: twiliostub.Create, Kept: true, Drop: true},
		"never answered":       {On: twiliostub.Create, Kept: true, Hang: true},
		"broken after storing": {On: twiliostub.Create, Kept: true, Status: 500, Code: 20500},
		"no JSON":              {On: twiliostub.Create, Kept: true, Status: 201, Body: "<html>"},
		"without an id":        {On: twiliostub.Create, Kept: true, Status: 201, Body: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			stub, sender := standIn(t, nil)
			began := time.Now()
			stub.Next(fault)
			ctx, cancel := context.WithCancel(t.Context())
			if fault.Hang {
				time.AfterFunc(200*time.Millisecond, cancel) // the caller's context bounds the call
			}
			defer cancel()
			_, err := sender.Send(ctx, offer())
			got := refusal(t, err)
			require.Equal(t, sms.Later, got.Class)
			require.True(t, got.MaybeSent, "the text may be on its way")

			receipt, found, err := sender.Find(t.Context(), offer(), began)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, sms.Receipt{ID: stub.Messages()[0].SID}, receipt)
			require.Len(t, stub.Messages(), 1)
		})
	}
}

func TestWhatWasNeverTakenIsNotFound(t *testing.T) {
	stub, sender := standIn(t, nil)
	began := time.Now()
	stub.Next(twiliostub.Fault{On: twiliostub.Create, Drop: true})
	_, err := sender.Send(t.Context(), offer())
	require.True(t, refusal(t, err).MaybeSent)
	_, found, err := sender.Find(t.Context(), offer(), began)
	require.NoError(t, err)
	require.False(t, found)
}

func TestFindKnowsTheTextFromOthers(t *testing.T) {
	stub, sender := standIn(t, nil)
	began := time.Now()
	for _, other := range []sms.Text{
		{To: "+12025550102", Body: body},                                          // another person
		{To: number, Body: "Nordlicht: you are in line https://n.example/w/abc"},  // another text
		{To: number, Body: "Nordlicht: https://n.example/r/abd holds your chair"}, // another offer
	} {
		_, err := sender.Send(t.Context(), other)
		require.NoError(t, err)
	}
	_, found, err := sender.Find(t.Context(), offer(), began)
	require.NoError(t, err)
	require.False(t, found)

	receipt, err := sender.Send(t.Context(), offer())
	require.NoError(t, err)
	// What follows pushes it onto a later page.
	for range 120 {
		_, err := sender.Send(t.Context(), sms.Text{To: number, Body: "more"})
		require.NoError(t, err)
	}
	again := offer()
	again.Body = "other words by now: " + link + " holds it for 2 min"
	got, found, err := sender.Find(t.Context(), again, began)
	require.NoError(t, err)
	require.True(t, found, "it goes by the link")
	require.Equal(t, receipt, got)

	_, found, err = sender.Find(t.Context(), again, time.Now().Add(10*time.Minute))
	require.NoError(t, err)
	require.False(t, found, "an older one is another one")
	_, found, err = sender.Find(t.Context(), sms.Text{To: number}, began)
	require.NoError(t, err)
	require.False(t, found, "without a link there is nothing to go by")
	for _, r := range stub.Requests() {
		require.Empty(t, r.Form["DateSent>"], "a queued text has no time of sending")
	}
}

func TestFindLearnsWhatBecameOfIt(t *testing.T) {
	for _, c := range []struct {
		state string
		code  int
		found bool
		sent  bool
		class sms.Class
	}{
		{twiliostub.Queued, 0, true, false, ""},
		{twiliostub.Sending, 0, true, false, ""},
		{twiliostub.Sent, 0, true, true, ""},
		{twiliostub.Delivered, 0, true, true, ""},
		{twiliostub.Undelivered, 30003, false, false, ""}, // it may be sent again
		{twiliostub.Undelivered, 30006, false, false, sms.Never},
		{twiliostub.Failed, 21610, false, false, sms.Never},
		{twiliostub.Failed, 30034, false, false, sms.StopAll},
	} {
		stub, sender := standIn(t, nil)
		began := time.Now()
		receipt, err := sender.Send(t.Context(), offer())
		require.NoError(t, err)
		_, err = stub.Advance(receipt.ID, c.state, c.code)
		require.NoError(t, err)
		got, found, err := sender.Find(t.Context(), offer(), began)
		require.Equal(t, c.found, found, c.state)
		require.Equal(t, c.sent, got.Sent, c.state)
		if c.class == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, c.class, refusal(t, err).Class)
		require.Equal(t, c.code, refusal(t, err).Code)
	}
}

// Who cannot ask must not send either.
func TestFindThatGetsNoAnswerSaysSo(t *testing.T) {
	stub, sender := standIn(t, nil)
	for _, fault := range []twiliostub.Fault{
		{On: twiliostub.List, Drop: true},
		{On: twiliostub.List, Status: 429, Code: 20429, RetryAfter: 2 * time.Second},
		{On: twiliostub.List, Status: 500, Body: "oops"},
		{On: twiliostub.List, Status: 200, Body: "<html>"},
	} {
		stub.Next(fault)
		_, found, err := sender.Find(t.Context(), offer(), time.Now())
		require.False(t, found)
		got := refusal(t, err)
		require.Equal(t, sms.Later, got.Class)
		require.True(t, got.MaybeSent, "it still may be on its way")
		require.Equal(t, fault.RetryAfter, got.RetryAfter)
	}
}

func TestTwilioNeedsAnAccount(t *testing.T) {
	for word, account := range map[string]sms.TwilioAccount{
		"auth_token":        {AccountSID: "AC1", From: "x"},
		"account_sid":       {AuthToken: "x", From: "x"},
		"messaging_service": {AccountSID: "AC1", AuthToken: "x"},
		"exactly one":       {AccountSID: "AC1", AuthToken: "x", From: "a", MessagingService: "b"},
		"base_url":          {AccountSID: "AC1", AuthToken: "x", From: "a", BaseURL: "not a url"},
	} {
		_, err := sms.NewTwilio(account)
		require.ErrorContains(t, err, word)
	}
}

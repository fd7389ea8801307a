package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"holdfast/internal/twiliostub"
	"holdfast/sms"
)

// The account of the stand-in.
const (
	stubAccount = "AC00000000000000000000000000000000"
	stubToken   = "00000000000000000000000000000000"
	stubNumber  = "+15005550006"
)

// stubPace is how long a text takes from one state to the next.
const stubPace = 200 * time.Millisecond

// startTwilio starts a stand-in of Twilio and makes the settings send texts there.
// It files each in the texts file, as the console sender does, and delivers it.
func startTwilio(set *settings, textsFile string) (*twiliostub.Server, error) {
	file, err := sms.NewConsole(io.Discard, textsFile)
	if err != nil {
		return nil, err
	}
	stub, err := twiliostub.Start(twiliostub.Options{
		AccountSID: stubAccount, AuthToken: stubToken, Pace: stubPace,
		Follow:    []string{twiliostub.Sending, twiliostub.Sent, twiliostub.Delivered},
		OnMessage: func(m twiliostub.Message) { _, _ = file.Send(context.Background(), textOf(m)) }, // shown, no more
	})
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"HOLDFAST_SMS_PROVIDER":           "twilio",
		"HOLDFAST_SMS_TWILIO_ACCOUNT_SID": stubAccount,
		"HOLDFAST_SMS_TWILIO_AUTH_TOKEN":  stubToken,
		"HOLDFAST_SMS_TWILIO_FROM":        stubNumber,
		"HOLDFAST_SMS_TWILIO_BASE_URL":    stub.URL,
		"HOLDFAST_SHOP_TERMS_URL":         "https://shop.example/terms",
		"HOLDFAST_SHOP_PRIVACY_URL":       "https://shop.example/privacy",
		"HOLDFAST_SHOP_SUPPORT":           "help@shop.example",
	} {
		if _, given := set.env[name]; !given {
			set.env[name] = value
		}
	}
	return stub, nil
}

// textOf is a message as a text: its status callback says what it is about.
func textOf(m twiliostub.Message) sms.Text {
	t := sms.Text{To: m.To, Body: m.Body}
	if u, err := url.Parse(m.StatusCallback); err == nil {
		q := u.Query()
		t.Cause, t.EntryID, t.HoldID = q.Get(sms.CallbackCause), q.Get(sms.CallbackEntry), q.Get(sms.CallbackHold)
	}
	return t
}

// stubNotice says what is different with the stand-in.
func stubNotice(stub *twiliostub.Server) string {
	return fmt.Sprintf("TWILIO=stub: texts go through the Twilio client to a stand-in at %s, which delivers all of them", stub.URL)
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/sms"
)

func TestTheStandInOfTwilioFilesAndDelivers(t *testing.T) {
	set, err := readSettings([]string{"TWILIO=stub", "HOLDFAST_SHOP_SUPPORT=me@shop.example"})
	require.NoError(t, err)
	require.True(t, set.twilio)
	file := filepath.Join(t.TempDir(), "texts.jsonl")
	shown, err := tailFrom(file)
	require.NoError(t, err)
	stub, err := startTwilio(&set, file)
	require.NoError(t, err)
	defer func() { require.NoError(t, stub.Close()) }()
	require.Equal(t, "twilio", set.env["HOLDFAST_SMS_PROVIDER"])
	require.Equal(t, "me@shop.example", set.env["HOLDFAST_SHOP_SUPPORT"], "the shell wins")

	states := make(chan sms.State, 3)
	var verifier *sms.Verifier
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil || !verifier.Verify(r.RequestURI, raw, r.Header.Get(sms.SignatureHeader)) {
			http.Error(w, "forged", http.StatusUnauthorized)
			return
		}
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		states <- sms.State(form.Get("MessageStatus"))
	}))
	defer door.Close()
	verifier, err = sms.NewVerifier(set.env["HOLDFAST_SMS_TWILIO_AUTH_TOKEN"], door.URL)
	require.NoError(t, err)
	sender, err := sms.NewTwilio(sms.TwilioAccount{
		AccountSID: set.env["HOLDFAST_SMS_TWILIO_ACCOUNT_SID"], AuthToken: set.env["HOLDFAST_SMS_TWILIO_AUTH_TOKEN"],
		From: set.env["HOLDFAST_SMS_TWILIO_FROM"], BaseURL: set.env["HOLDFAST_SMS_TWILIO_BASE_URL"], StatusCallback: door.URL + sms.StatusPath,
	})
	require.NoError(t, err)
	_, err = sender.Send(t.Context(), sms.Text{To: "+12025550101", Body: "hello", Cause: sms.CauseOffer, EntryID: "entry_a", HoldID: "hold_a", Validity: time.Minute})
	require.NoError(t, err)
	for _, want := range []sms.State{sms.StateSending, sms.StateSent, sms.StateDelivered} {
		require.Equal(t, want, <-states)
	}
	var seen []text
	shown.read(func(one text) { seen = append(seen, one) })
	require.Equal(t, []text{{To: "+12025550101", Body: "hello"}}, seen)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"cause":"offer","entry_id":"entry_a","hold_id":"hold_a"`)

	_, err = readSettings([]string{"TWILIO=yes"})
	require.EqualError(t, err, `TWILIO is "yes", it must be stub, or not set`)
}

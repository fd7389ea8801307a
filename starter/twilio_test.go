package starter

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/twiliostub"
	"holdfast/redis"
	"holdfast/sms"
)

const twilioToken = "token1"

func withTwilio(cfg *config.Config, _ *redis.Options) {
	cfg.SMS.Provider, cfg.SMS.Twilio.AuthToken = "twilio", twilioToken
}

// callback posts a form to a target, signed for another URL with a token.
func (h *house) callback(target, signedFor, token string, form url.Values) int {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set(sms.SignatureHeader, twiliostub.Signature(token, signedFor, form))
	w := httptest.NewRecorder()
	h.door.all().ServeHTTP(w, r)
	return w.Code
}

// told is a status callback of an entry's text, as Twilio signs it.
func (h *house) told(query string, form url.Values) int {
	target := sms.StatusPath + "?" + query
	return h.callback(target, h.cfg.HTTP.PublicURL+target, twilioToken, form)
}

func (h *house) textStatuses() (list []contract.TextStatus) {
	for _, s := range h.wf.sent() {
		if s.Name == contract.SignalTextStatus {
			list = append(list, s.Arg.(contract.TextStatus))
		}
	}
	return list
}

func TestTextStatusReachesItsEntry(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	entry := h.ring.NewEntryID(h.sku)
	offer, joined := "cause=offer&entry_id="+entry+"&hold_id=hold_a", "cause=joined&entry_id="+entry
	form := func(state, code string) url.Values {
		f := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {state}}
		if code != "" {
			f.Set("ErrorCode", code)
		}
		return f
	}
	counted := map[sms.State]int{}
	h.door.onTextState = func(state sms.State) { counted[state]++ }
	for _, state := range []string{"queued", "sending", "sent", "delivered"} {
		require.Equal(t, http.StatusNoContent, h.told(offer, form(state, "")))
		require.Equal(t, http.StatusNoContent, h.told(joined, form(state, "")))
	}
	require.Equal(t, http.StatusNoContent, h.told(offer, form("undelivered", "30006")))
	require.Equal(t, http.StatusNoContent, h.told(offer, form("undelivered", "39999")))
	require.Equal(t, http.StatusNoContent, h.told(joined, form("failed", "21610")))
	require.Equal(t, []contract.TextStatus{
		{TextID: "SM1", HoldID: "hold_a", Status: "sent"},
		{TextID: "SM1", HoldID: "hold_a", Status: "delivered"},
		{TextID: "SM1", HoldID: "hold_a", Status: "undelivered", ErrorCode: 30006, Class: "never"},
		{TextID: "SM1", HoldID: "hold_a", Status: "undelivered", ErrorCode: 39999, Class: "later"},
		{TextID: "SM1", Status: "failed", ErrorCode: 21610, Class: "never", OptedOut: true},
	}, h.textStatuses(), "only what changes something")
	for _, s := range h.wf.sent() {
		require.Equal(t, entry, s.ID)
	}

	require.Equal(t, map[sms.State]int{"queued": 2, "sending": 2, "sent": 2, "delivered": 2, "undelivered": 2, "failed": 1}, counted)

	h.wf.set(func() { h.wf.down = true })
	require.Equal(t, http.StatusServiceUnavailable, h.told(offer, form("sent", "")))
}

func TestTextStatusOfAStranger(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	entry := h.ring.NewEntryID(h.sku)
	form := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"30006"}}
	target := sms.StatusPath + "?cause=offer&entry_id=" + entry + "&hold_id=hold_a"
	public := h.cfg.HTTP.PublicURL
	require.Equal(t, http.StatusUnauthorized, h.callback(target, public+target, "other", form))
	require.Equal(t, http.StatusUnauthorized, h.callback(target, "http://example.com"+target, twilioToken, form), "by the address it came to")
	require.Equal(t, http.StatusUnauthorized, h.callback(target+"&x=1", public+target, twilioToken, form))
	require.Equal(t, http.StatusNotFound, h.told("cause=offer&entry_id=entry_x", form))
	require.Equal(t, http.StatusNotFound, h.told("", form))
	require.Equal(t, http.StatusUnprocessableEntity, h.told("entry_id="+entry, url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"eaten"}}))
	require.Empty(t, h.textStatuses())

	h = newHouse(t, 0)
	require.Equal(t, http.StatusUnauthorized, h.callback(target, public+target, "", form), "without Twilio nobody is Twilio")
	require.Empty(t, h.textStatuses())
}

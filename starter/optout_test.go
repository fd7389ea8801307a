package starter

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/twiliostub"
	"holdfast/redis"
	"holdfast/sms"
)

const adasPhone = "+12025550101"

// texts is a text from a number, as Twilio signs it. more is what Twilio says
// beside it, as pairs.
func (h *house) texts(from, body, messageID string, more ...string) *httptest.ResponseRecorder {
	form := url.Values{"MessageSid": {messageID}, "From": {from}, "To": {"+12025550100"}, "Body": {body}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, sms.InboundPath, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set(sms.SignatureHeader, twiliostub.Signature(twilioToken, h.cfg.HTTP.PublicURL+sms.InboundPath, form))
	w := httptest.NewRecorder()
	h.door.all().ServeHTTP(w, r)
	return w
}

func TestInboundTexts(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	ada := h.ring.PersonOfPhone(adasPhone)
	var want []said
	for i, c := range []struct{ body, kind, word string }{
		{"STOP", "", "stop"},
		{"stopall", "", "stop"},
		{" Unsubscribe ", "", "stop"},
		{"CANCEL", "", "stop"},
		{"End", "", "stop"},
		{"quit", "", "stop"},
		{"REVOKE", "", "stop"},
		{"OptOut\n", "", "stop"},
		{"START", "", "start"},
		{"unstop", "", "start"},
		{"YES", "", "start"},
		{"HELP", "", ""},
		{"info", "", ""},
		{"please stop this", "", ""},
		{"", "", ""},
		{"ARRET", "STOP", "stop"},
		{"STOP", "HELP", ""}, // the shop gave the word another meaning at Twilio
		{"COMMENCER", "START", "start"},
	} {
		id := "SM" + string(rune('a'+i))
		a := h.texts(adasPhone, c.body, id, "OptOutType", c.kind)
		require.Equal(t, http.StatusOK, a.Code, "%q", c.body)
		require.Equal(t, "text/xml; charset=utf-8", a.Header().Get("Content-Type"))
		require.Equal(t, sms.EmptyTwiML, a.Body.String(), "Twilio answers keywords itself")
		if c.word != "" {
			want = append(want, said{ada, contract.Said{Word: c.word, Source: "text", MessageID: id}})
		}
	}
	require.Equal(t, want, h.wf.words)

	for _, from := range []string{"12025", "whatsapp:+12025550101", "", "NORDLICHT"} {
		require.Equal(t, http.StatusOK, h.texts(from, "STOP", "SM1").Code, "%q has no places", from)
	}
	require.Equal(t, want, h.wf.words)
	require.NotContains(t, h.log.String(), "2025550101", "no number in the log")

	h.wf.set(func() { h.wf.down = true })
	require.Equal(t, http.StatusServiceUnavailable, h.texts(adasPhone, "STOP", "SM2").Code, "it may be repeated")
	require.Equal(t, http.StatusOK, h.texts(adasPhone, "HELP", "SM3").Code)
}

func TestInboundTextsOfAStranger(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	form := url.Values{"MessageSid": {"SM1"}, "From": {adasPhone}, "Body": {"STOP"}}
	public := h.cfg.HTTP.PublicURL + sms.InboundPath
	require.Equal(t, http.StatusUnauthorized, h.callback(sms.InboundPath, public, "other", form))
	require.Equal(t, http.StatusUnauthorized, h.callback(sms.InboundPath+"?x=1", public, twilioToken, form))
	require.Equal(t, http.StatusUnauthorized, newHouse(t, 0).callback(sms.InboundPath, public, "", form), "without Twilio nobody is Twilio")
	require.Empty(t, h.wf.words)
}

// STOP ends every place on every SKU, frees what was offered, and leaves a hold
// that was pressed alone.
func TestStopLeavesEveryLine(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	chair := h.sku
	offered := h.join(adasPhone)
	next := h.join("+12025550102")
	for _, id := range []string{offered.EntryID, next.EntryID} {
		_, err := h.gate.AdoptEntry(t.Context(), h.sku, id)
		require.NoError(t, err)
	}
	h.restock(1)
	lamp := chair + "-lamp"
	h.put(lamp)
	h.sku = lamp
	waiting := h.join(adasPhone)
	h.sku = chair

	require.Equal(t, http.StatusOK, h.texts(adasPhone, "STOP", "SM1").Code)
	for _, id := range []string{offered.EntryID, waiting.EntryID} {
		a := h.call("GET", "/v1/waitlist/"+id, nil)
		require.Contains(t, a.body, `"state":"opted_out"`)
	}
	require.Contains(t, h.call("GET", "/v1/waitlist/"+next.EntryID, nil).body, `"state":"offered"`, "the unit goes on at once")
	require.Contains(t, h.browse("GET", "/w/"+offered.EntryID, nil).body, "text START")
}

func TestWhoOptedOutCannotJoin(t *testing.T) {
	h := newHouse(t, 0, withTwilio, func(cfg *config.Config, _ *redis.Options) { cfg.SMS.Twilio.From = "+12025550100" })
	left := h.join(adasPhone)
	h.eventually("its workflow starts inline", func() bool { _, ok := h.wf.entry(left.EntryID); return ok })
	require.Equal(t, http.StatusOK, h.texts(adasPhone, "STOP", "SM1").Code)

	body := map[string]any{"sku": h.sku, "phone": adasPhone, "consent": true}
	h.untouched(func() {
		a := h.call("POST", "/v1/waitlist", body)
		exact(t, a, http.StatusConflict, optedOut)
		require.Contains(t, a.body, "START, texted to +12025550100")

		again := h.browse("POST", "/w/"+left.EntryID+"/again", url.Values{})
		require.Equal(t, http.StatusConflict, again.status)
		require.Contains(t, again.text(), "text START to the number that our texts came from")
	})

	// A stranger gets the same answer for every number, and sees nothing move.
	other := map[string]any{"sku": h.sku, "phone": "+12025550102", "consent": true}
	public := h.call("POST", "/v1/waitlist", other, "Authorization", "")
	require.Equal(t, http.StatusAccepted, public.status)
	form := h.browse("POST", "/join/"+h.sku, map[string][]string{"phone": {"+12025550102"}, "consent": {"yes"}, "quantity": {"1"}})
	require.Equal(t, http.StatusAccepted, form.status)
	require.Contains(t, form.text(), "text START to +1 202-555-0100", "whoever it concerns learns it")
	h.untouched(func() {
		require.Equal(t, public, h.call("POST", "/v1/waitlist", body, "Authorization", ""))
		page := h.browse("POST", "/join/"+h.sku, map[string][]string{"phone": {adasPhone}, "consent": {"yes"}, "quantity": {"1"}})
		require.Equal(t, form.status, page.status)
		require.Equal(t, strings.ReplaceAll(form.text(), spokenPhone("+12025550102"), spokenPhone(adasPhone)), page.text())
	})

	require.Equal(t, http.StatusOK, h.texts(adasPhone, "START", "SM2").Code)
	back := h.join(adasPhone)
	require.NotEqual(t, left.EntryID, back.EntryID)
}

// A join never waits for Temporal: it looks when that is quick, and the text looks
// again.
func TestALookForAnOptOutHoldsNoJoinUp(t *testing.T) {
	h := newHouse(t, 0)
	h.wf.set(func() {
		h.wf.optedOut[h.ring.PersonOfPhone(adasPhone)] = true
		h.wf.slowLook = make(chan struct{})
	})
	defer close(h.wf.slowLook)
	began := time.Now()
	h.join(adasPhone)
	h.join("+12025550102")
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, 1, h.wf.called("OptedOut"), "after a look in vain nobody looks for a while")
}

// A text refused with 21610 says that its person has opted out.
func TestACallbackThatSaysOptedOut(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	entry := h.join(adasPhone)
	form := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"21610"}}
	require.Equal(t, http.StatusNoContent, h.told("cause=joined&entry_id="+entry.EntryID, form))
	require.Equal(t, []said{{h.ring.PersonOfPhone(adasPhone), contract.Said{Word: "stop", Source: "refused"}}}, h.wf.words)
	exact(t, h.call("POST", "/v1/waitlist", map[string]any{"sku": h.sku, "phone": adasPhone, "consent": true}), http.StatusConflict, optedOut)

	require.Equal(t, http.StatusNoContent, h.told("cause=joined&entry_id="+h.ring.NewEntryID(h.sku), form), "an entry that is gone")
	require.Len(t, h.wf.words, 1)
}

package starter

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
	"holdfast/redis"
)

// speaks joins somebody who said which language they read, and offers them a unit.
func (h *house) speaks(n int, locale string) (entryID, link string) {
	h.t.Helper()
	body := map[string]any{"sku": h.sku, "phone": fmt.Sprintf("+1202555%04d", n), "consent": true}
	if locale != "" {
		body["locale"] = locale
	}
	a := h.call("POST", "/v1/waitlist", body)
	require.Equal(h.t, http.StatusCreated, a.status, a.body)
	var v entryView
	a.into(h.t, &v)
	_, err := h.gate.AdoptEntry(h.t.Context(), h.sku, v.EntryID)
	require.NoError(h.t, err)
	h.restock(1)
	e, _, err := h.gate.ReadEntry(h.t.Context(), h.sku, v.EntryID)
	require.NoError(h.t, err)
	return v.EntryID, "/r/" + h.token(e.HoldID, time.Now().Add(time.Hour))
}

func (h *house) language(path, languages string) string {
	h.t.Helper()
	return h.ask(path, languages).header.Get("Content-Language")
}

// Who said which language they read gets it on every page of theirs, whatever the
// browser asks for.
func TestPagesSpeakTheEntrysLanguage(t *testing.T) {
	h := newHouse(t, 0)
	for i, c := range []struct{ locale, browser, speaks string }{
		{"de", "en-GB", "de"},
		{"de-AT", "en", "de"},
		{"de-AT", "", "de"},
		{"en", "de", "en"},
		{"en-GB", "de,en;q=0.5", "en"},
		{"fr", "de", "de"},
		{"fr", "en", "en"},
		{"", "de", "de"},
		{"no language", "de", "de"},
	} {
		entryID, link := h.speaks(i+1, c.locale)
		require.Equal(t, c.speaks, h.language("/w/"+entryID, c.browser), "%+v", c)
		require.Equal(t, c.speaks, h.language(link, c.browser), "%+v", c)
		require.Equal(t, http.StatusSeeOther, h.press(link).status)
		e, _, err := h.gate.ReadEntry(t.Context(), h.sku, entryID)
		require.NoError(t, err)
		require.Equal(t, c.speaks, h.language("/h/"+e.HoldID, c.browser), "%+v", c)
		require.Equal(t, c.speaks, h.language("/w/"+entryID, c.browser), "pressed: %+v", c)
	}

	// What cannot be answered is said in it as well.
	entryID, link := h.speaks(20, "de")
	h.gate.break_("Snapshot", redis.ErrUnavailable, nil)
	require.Equal(t, "de", h.language("/w/"+entryID, "en"))
	a := h.send(h.request("POST", link, url.Values{}.Encode(), "Content-Type", formMedia, "Accept-Language", "en"))
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "de", a.header.Get("Content-Language"))
	h.gate.break_("", nil, nil)

	// Nobody of the line stands behind a walk-in's hold.
	h = newHouse(t, 1)
	require.Equal(t, "de", h.language("/h/"+h.hold().HoldID, "de"))
}

// A record that was lost and put in again has the language of its person, which the pages
// may not speak.
func TestPagesSpeakTheLanguageOfALostEntry(t *testing.T) {
	h := newHouse(t, 0)
	for i, c := range []struct{ kept, browser, speaks string }{{"de", "en", "de"}, {"fr", "en", "en"}, {"fr", "de", "de"}, {"", "de", "de"}} {
		id := contract.EntryID(h.sku, fmt.Appendf(nil, "%011d", i))
		_, err := h.gate.RepairEntry(t.Context(), h.sku, redis.LostEntry{ID: id, Person: id, Units: 1, JoinedAt: time.Now().Add(-time.Hour), Language: c.kept})
		require.NoError(t, err)
		require.Equal(t, c.speaks, h.language("/w/"+id, c.browser), "%+v", c)
	}
}

// The form joins in the language of the browser that it was read in.
func TestTheFormsLanguageIsTheEntrys(t *testing.T) {
	h := newHouse(t, 0)
	r := h.request("POST", "/join/"+h.sku, url.Values{"phone": {"+12025550101"}, "consent": {"yes"}}.Encode(),
		"Content-Type", formMedia, "Accept-Language", "de-CH,en;q=0.5")
	require.Equal(t, http.StatusAccepted, h.send(r).status)
	h.eventually("the workflow starts", func() bool { return h.wf.started() == 1 })
	h.wf.set(func() {
		for id := range h.wf.entries {
			require.Equal(t, "de", h.language("/w/"+id, "en"))
		}
	})
}

// A refusal that concerns the person and not the unit has its own words.
func TestAtTheLimitThePageSaysSo(t *testing.T) {
	for locale, says := range map[string]string{"en": "You have as many as one may have", "de": "Mehr bekommt eine Person nicht"} {
		h := newHouse(t, 0)
		_, link := h.speaks(1, locale)
		h.gate.break_("Reserve", problem(limitReached, "as many as one may have"), nil)
		a := h.press(link)
		require.Equal(t, http.StatusConflict, a.status)
		require.Contains(t, a.text(), says)
		require.Contains(t, a.body, `href="`+link+`"`, "the way back")
		require.NotContains(t, h.log.String(), "nobody expected")
	}
}
